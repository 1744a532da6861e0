"""The process that keeps watch for ``step_limit``; it is run by path and imports nothing from holdfast."""

from __future__ import annotations

import os
import re
import select
import signal
import struct
import subprocess
import sys
import sysconfig
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["RunningTime", "is_stopped", "place_in", "watch"]

_RECORD = struct.Struct("<dqqq")
_FRAME = re.compile(r'  File "(.*)", line (\d+) in .*')
_PATIENCE = 2.0
"""Seconds within which a process must answer."""


class RunningTime:
    """Counts the time for which a process could run, as seen by another process that looks at it regularly.

    A clock alone would also count the time for which either was stopped (SIGSTOP, Ctrl-Z, a debugger, a frozen
    container, a machine that sleeps), and a process would seem to hang because nobody let it run. Here a look adds
    at most twice the pause before it, and nothing if the process is stopped.

    Args:
        process: Its number.
        pause: Seconds between two looks.
    """

    def __init__(self, process: int, pause: float) -> None:
        self._process, self._pause = process, pause
        self.begin()

    def begin(self) -> None:
        """Count from here."""
        self.seconds = 0.0
        self._looked = time.monotonic()

    def look(self) -> None:
        """Count what has passed since the last look."""
        now = time.monotonic()
        passed, self._looked = now - self._looked, now
        if not is_stopped(self._process):
            self.seconds += min(passed, 2.0 * self._pause)


def is_stopped(process: int) -> bool:
    """Whether a process exists and is stopped, by a signal or a debugger; False if the system cannot tell."""
    try:
        state = Path(f"/proc/{process}/stat").read_bytes().rpartition(b") ")[2]
    except OSError:
        if Path("/proc/self/stat").exists():
            return False
        try:
            asked = ["ps", "-o", "state=", "-p", str(process)]
            state = subprocess.run(asked, capture_output=True, timeout=_PATIENCE, check=False).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return False
    return state[:1] in (b"T", b"t")


def watch(arguments: list[str]) -> None:
    """Watch a process until it ends or a call of an environment takes too long."""
    process, page, stacks, orders = map(int, arguments[:4])
    limit, caller, who, hint = float(arguments[4]), *arguments[5:8]
    pause = min(max(limit / 10.0, 0.005), 0.2)
    running, found = RunningTime(process, pause), b""
    while os.getppid() == process:
        time.sleep(pause)
        before, found = found, os.pread(page, _RECORD.size, 0)
        began, call, episode, step = _RECORD.unpack(found)
        if found != before or began == 0.0:
            # Another call, or none.
            running.begin()
            continue
        running.look()
        if running.seconds <= limit or is_stopped(process):
            continue
        # What an earlier request has left.
        _read(stacks, 0.0)
        os.kill(process, signal.SIGUSR2)
        place = place_in(_read(stacks), caller)
        if os.pread(page, _RECORD.size, 0) != found or is_stopped(process):
            # The call has returned after all, or the process is stopped.
            continue
        name, when = ("step", f"at its step {step}") if call else ("reset", "before its step 1")
        is_terminal = os.isatty(2)
        # The reader may be gone; the process must end all the same.
        with suppress(OSError):
            sys.stderr.write(
                ("\r\x1b[2K" if is_terminal else "")
                + f"{who}: the environment failed in episode {episode}, {when}: its {name} did not return within "
                f"{limit:g} s{place}{hint}\n"
            )
            sys.stderr.flush()
        os.write(orders, b"x")
        patience = time.monotonic() + _PATIENCE
        while os.getppid() == process and time.monotonic() < patience:
            time.sleep(0.01)
        if os.getppid() == process:
            os.kill(process, signal.SIGKILL)
        return


def place_in(stacks: str, caller: str) -> str:
    """Where the environment is, from a dump of ``faulthandler``: ``" (it was in robot.py, line 12)"``.

    That is the innermost line outside Python's standard library, among the calls made by the file ``caller``.
    """
    for stack in stacks.split("\n\n"):
        frames = [match.groups() for match in map(_FRAME.fullmatch, stack.splitlines()) if match]
        files = [file for file, _ in frames]
        if caller not in files:
            continue
        inner = frames[: files.index(caller)] or frames[:1]
        library = (sysconfig.get_path("stdlib"), "<frozen")
        own = [frame for frame in inner if not frame[0].startswith(library) or "-packages" in frame[0]]
        file, line = (own or inner)[0]
        return f" (it was in {Path(file).name}, line {line})"
    return ""


def _read(stacks: int, patience: float = _PATIENCE) -> str:
    """Everything that arrives until nothing more does for a moment; the first part may take longer."""
    parts = []
    while select.select([stacks], [], [], patience)[0]:
        part = os.read(stacks, 65536)
        if not part:
            # The process has ended.
            break
        parts.append(part)
        patience = 0.2
    return b"".join(parts).decode("utf-8", errors="replace")


if __name__ == "__main__":
    watch(sys.argv[1:])
