"""Campaigns of the command line as processes of their own, in a folder with the module ``ladders``."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.architecture import ROOT

__all__ = ["begin", "contents", "finish", "is_alive", "prepare", "wait_until"]


def prepare(folder: Path) -> Path:
    """A folder to type commands in."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("ladders.py"), folder / "ladders.py")
    return folder


def begin(
    folder: Path, *arguments: str, verb: str = "reproduce", before: tuple[str, ...] = (), **variables: str
) -> subprocess.Popen[str]:
    """Type ``holdfast reproduce``, or another verb, there."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    return subprocess.Popen(
        [*before, sys.executable, "-P", "-m", "holdfast", verb, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        # Where these tests run in the background of a shell, Ctrl-C is switched off.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, and what was printed."""
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def contents(campaign: Path) -> dict[str, bytes]:
    """The files of a campaign's rows, hidden ones too."""
    return {path.name: path.read_bytes() for path in sorted((campaign / "rows").iterdir())}


def is_alive(number: int) -> bool:
    """Whether there is a process of that number."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether something comes true in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
