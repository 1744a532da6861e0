"""Stop requests: signals are noted, and obeyed at a point from which a training can continue."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from holdfast.core.user_code import StoppedBySignal

__all__ = ["StopRequest", "TrainingStopped", "stop_on_signals"]

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class TrainingStopped(Exception):  # noqa: N818 - nothing went wrong
    """The training was asked to stop, at a point from which it can continue."""


class StopRequest:
    """Whether the training has been asked to stop.

    Attributes:
        signal: Number of the signal that asked; None if there was none.
        is_obeyed_later: Whether a running training checks for it; if not, a signal ends the process at once.
        parent: Process whose end also counts as a request to stop; None for no such process.
    """

    def __init__(self, parent: int | None = None) -> None:
        self.signal: int | None = None
        self.is_obeyed_later = False
        self.parent = parent

    def __bool__(self) -> bool:
        if self.signal is None and self.parent is not None and os.getppid() != self.parent:
            self.signal = signal.SIGTERM
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """The exit code of a process that a signal has stopped."""
        return 128 + (self.signal or 0)


@contextmanager
def stop_on_signals(parent: int | None = None) -> Iterator[StopRequest]:
    """Within the block, note signals that ask to stop; a second one stops at once.

    Args:
        parent: The process that started this one, if its end is to count as a signal.
    """
    request = StopRequest(parent)

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal is not None:
            raise KeyboardInterrupt
        request.signal = number
        if not request.is_obeyed_later:
            raise StoppedBySignal(request.exit_code)

    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    # Signals that are ignored, for example because of nohup, stay ignored.
    numbers = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
