"""A line on the terminal that says what takes so long."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import IO

__all__ = ["Waiting"]


class Waiting:
    """Within the block, a line on the terminal says what is being done and the time taken so far.

    The line appears after ``patience`` seconds and is erased at the end. Other streams get nothing.

    Args:
        stream: Where to write.
        what: What is being done.
        patience: Seconds before the line appears.
    """

    def __init__(self, stream: IO[str], what: str, patience: float = 2.0) -> None:
        self._stream = stream
        self._what = what
        self._patience = patience
        self._over = threading.Event()
        self._clock: threading.Thread | None = None

    def say(self, what: str) -> None:
        """What is being done from now on."""
        self._what = what

    def __enter__(self) -> Waiting:
        if self._stream.isatty():
            self._clock = threading.Thread(target=self._tick, name="waiting", daemon=True)
            self._clock.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        if self._clock is not None:
            self._clock.join()

    def _tick(self) -> None:
        from holdfast.runs.progress import duration

        began = time.monotonic()
        if self._over.wait(self._patience):
            return
        while True:
            self._stream.write(f"\r\x1b[2K{self._what} · {duration(time.monotonic() - began)}")
            self._stream.flush()
            if self._over.wait(1.0):
                break
        self._stream.write("\r\x1b[2K")
        self._stream.flush()
