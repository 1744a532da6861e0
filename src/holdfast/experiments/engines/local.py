"""Jobs on this machine, each in a fresh process: one that dies costs one job, and none outlives the campaign.

Such a process is ``python -m holdfast.experiments.engines.local``. Its job is read from the standard input, a line
of JSON, and the rows are written to the standard output; whatever else is printed goes to the standard error. The
standard input stays open for as long as somebody waits for the rows; when it closes, the process ends at once, and
with it all that it has started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self

from holdfast.core.checks import check_integer
from holdfast.experiments.engines.base import THREADS, Ended, Event, Limits, Started, Task, perform, print_failure
from holdfast.files import Entry
from holdfast.runs.step_watch import RunningTime

__all__ = ["LocalEngine", "last_line", "run_one_job"]

_LOOK = 0.2
"""Seconds after which an engine tells that nothing has happened."""
_GRACE = 10.0
"""Seconds that a job which is told to stop has for it."""


class LocalEngine:
    """Runs jobs in processes of this machine.

    Args:
        at_once: How many at the same time.
        limits: How long jobs may take, and how often failed ones are repeated.
    """

    def __init__(self, at_once: int, limits: Limits | None = None) -> None:
        self.at_once = check_integer("at_once", at_once)
        self.limits = Limits() if limits is None else limits
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._is_stopping = threading.Event()

    def about(self) -> dict[str, Any]:
        """What the manifest is to say of it."""
        return {"name": "local", "at_once": self.at_once}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def run(self, tasks: Sequence[Task], alone: bool = False) -> Generator[Event, None, None]:
        """Run all tasks, and tell; closing the iterator stops what is running."""
        waiting: SimpleQueue[Task] = SimpleQueue()
        events: SimpleQueue[Event] = SimpleQueue()
        for task in tasks:
            waiting.put(task)
        self._is_stopping.clear()
        threads = [
            threading.Thread(target=self._work, args=(waiting, events), daemon=True)
            for _ in range(1 if alone else min(self.at_once, len(tasks)))
        ]
        for thread in threads:
            thread.start()
        left = len(tasks)
        try:
            while left:
                try:
                    event = events.get(timeout=_LOOK)
                except Empty:
                    event = None
                left -= isinstance(event, Ended)
                yield event
        finally:
            self._stop()
            for thread in threads:
                thread.join()

    def _work(self, waiting: SimpleQueue[Task], events: SimpleQueue[Event]) -> None:
        while not self._is_stopping.is_set():
            try:
                task = waiting.get_nowait()
            except Empty:
                return
            events.put(Started(task.job))
            began = time.monotonic()
            data, problem, tries = None, None, 0
            while data is None and tries <= self.limits.retries and not self._is_stopping.is_set():
                tries += 1
                try:
                    data, problem = self._run(task)
                except Exception as error:
                    data, problem = None, f"{type(error).__name__}: {error}"
            told = self.limits.problem_after(tries, problem)
            events.put(Ended(task.job, time.monotonic() - began, data, told))

    def _run(self, task: Task) -> tuple[bytes | None, str | None]:
        """Run one task: its rows, or what went wrong."""
        with task.log.create() as log:
            # In a session of its own, so that Ctrl-C does not reach it: the campaign sees to it.
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "holdfast.experiments.engines.local"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **THREADS},
                start_new_session=True,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        stdout = process.stdout
        self._processes.add(process)
        if self._is_stopping.is_set():
            process.terminate()
        try:
            with suppress(BrokenPipeError):
                request = {**self.limits.document(task), "place": str(task.whole_place)}
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
            answer: list[bytes] = []
            reader = threading.Thread(target=lambda: answer.append(stdout.read()), daemon=True)
            reader.start()
            is_late = not _ends_within(process, self.limits.job_seconds)
            if is_late:
                _kill_group(process)
            code = process.wait()
            # What the job has started and left behind; it may hold on to the answer's pipe.
            _kill_group(process)
            reader.join()
            data = answer[0]
        finally:
            self._processes.discard(process)
            process.stdout.close()
            with suppress(BrokenPipeError):
                process.stdin.close()
        if code == 0 and data:
            found = task.log.status()
            if found is not None and found.st_size == 0:
                task.log.remove()
            return data, None
        if is_late:
            return None, self.limits.too_long
        if code < 0:
            return None, f"its process was ended by signal {-code} ({signal.Signals(-code).name})"
        without = "" if code else " and without rows"
        return None, last_line(task.log) or f"its process ended with exit code {code}{without}"

    def _stop(self) -> None:
        """Tell what is running to stop, and end what does not."""
        self._is_stopping.set()
        for process in list(self._processes):
            process.terminate()
        patience = time.monotonic() + _GRACE
        while self._processes and time.monotonic() < patience:
            time.sleep(0.02)
        for process in list(self._processes):
            _kill_group(process)


def _ends_within(process: subprocess.Popen[bytes], seconds: float | None) -> bool:
    """Wait until a process ends; False if it runs for longer, not counting time for which it was stopped."""
    if seconds is None:
        process.wait()
        return True
    running = RunningTime(process.pid, _LOOK)
    while running.seconds <= seconds:
        try:
            process.wait(min(_LOOK, seconds - running.seconds + 0.001))
            return True
        except subprocess.TimeoutExpired:
            running.look()
    return False


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # Where the group is gone, there is nothing to do.
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def last_line(log: Entry, length: int = 300) -> str:
    """The last line of a log that has something in it."""
    with log.open_to_read() as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        text = file.read().decode("utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:length] if lines else ""


# In the process of one job --------------------------------------------------------------------------------------


def run_one_job() -> int:
    """Run the job of the standard input in this process; 0 if it has rows."""
    answer = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = json.loads(_first_line())
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    try:
        data = perform(request, Path(request["place"]))
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code not in (0, None):
            raise
        # An exit with 0 is no answer either.
        print_failure(error)
        return 1
    with os.fdopen(answer, "wb") as file:
        file.write(data)
    return 0


def _first_line() -> bytes:
    # Not through sys.stdin: a thread that waits in its buffer could not be left at the end.
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:
            raise SystemExit(1)
        line += part
    return line


def _end_with_the_asker() -> None:
    while os.read(0, 1024):
        pass
    try:
        if hasattr(os, "killpg"):
            os.killpg(os.getpid(), signal.SIGKILL)
    finally:
        os._exit(1)


if __name__ == "__main__":
    sys.exit(run_one_job())
