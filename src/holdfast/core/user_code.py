"""Code that is not ours and is called from here: what it raises, whose fault that is, and how to say so.

An environment, a wrapper or an experiment may raise anything, ``SystemExit`` included. None of it may end the
process as if all were well; what a signal's handler raises is no failure of such code, and goes on as it is.
What a library says of a user's values is about the values; what holdfast's own code raises there is not.
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

from holdfast.core.errors import InputError

__all__ = [
    "StoppedBySignal",
    "described",
    "is_interrupt",
    "is_raised_by_holdfast",
    "place_of",
    "shown",
    "user_code",
]

_PACKAGE = Path(__file__).parents[1]

_LONGEST = 200
"""Letters of what others say that are repeated."""


class StoppedBySignal(SystemExit):
    """A signal ends the program, whatever it is in the middle of.

    Args:
        exit_code: What the process ends with.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


@contextmanager
def user_code(
    sentence: str, told_apart: type[BaseException] | tuple[type[BaseException], ...] = ()
) -> Iterator[None]:
    """Turn whatever the code of a user raises into bad input.

    Args:
        sentence: What the message begins with, such as ``"experiment 'a:b' cannot be used: importing a"``.
        told_apart: Exceptions that go on as they are.

    Raises:
        ValueError: The code raised an exception of any kind, ``SystemExit`` included.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, told_apart) or is_interrupt(error):
            raise
        raise InputError(f"{sentence} raised {described(error)}") from error


def is_raised_by_holdfast(error: BaseException) -> bool:
    """Whether holdfast's own code raised ``error``, and not a library or a user's code that it called.

    For calls that hand a user's values to other code: what that code says of them is about the values, and what
    holdfast's own code raises is a fault of holdfast, or an ``InputError`` already.
    """
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and Path(place.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE)


def is_interrupt(error: BaseException) -> bool:
    """Whether somebody asked the process to stop: Ctrl-C, or a signal whose handler ends the program."""
    if isinstance(error, KeyboardInterrupt | StoppedBySignal):
        return True
    if isinstance(error, Exception):
        return False
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


def _code_of(handler: Any) -> CodeType | None:
    """The code that a signal's handler runs; None for those that are not written in Python."""
    if not callable(handler):
        return None
    # A partial's function, or else a function, a method, or an object that is called.
    inner = getattr(handler, "func", handler)
    code = getattr(inner, "__code__", None) or getattr(inner.__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None


def described(error: BaseException) -> str:
    """An exception in one line: ``KeyError: 'arm'``."""
    said = _short_line(str, error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def place_of(error: BaseException, *, but: str) -> str:
    """Where an exception was raised: ``" (robot.py, line 12)"``; nothing where that is the file ``but``."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or frames[-1].filename == but:
        return ""
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def shown(value: Any) -> str:
    """``repr`` of what a user's code gave, in one short line whatever it is."""
    return _short_line(repr, value) or f"a {type(value).__name__}"


def _short_line(text_of: Callable[[Any], str], value: Any) -> str:
    """``str`` or ``repr`` of a value in one short line; empty where even that raises."""
    try:
        text = text_of(value)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return ""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
