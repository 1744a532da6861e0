"""Being asked to stop: signals are noted, and obeyed where a training can be continued from."""

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
    """The training was asked to stop, and stands where it can go on."""


class StopRequest:
    """Whether somebody wants the training to stop.

    Attributes:
        signal: Number of the signal that asked; None while nobody did.
        is_obeyed_later: Whether there is a training that will see to it; else a signal ends the process at once.
        parent: Number of the process whose end asks to stop, too; None for no such process.
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
        """What a process ends with that a signal has stopped."""
        return 128 + (self.signal or 0)


@contextmanager
def stop_on_signals(parent: int | None = None) -> Iterator[StopRequest]:
    """Note the signals that ask to stop, for as long as the block lasts; the second one stops at once.

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
    # What nohup and the like have switched off stays off.
    numbers = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
