"""Calls to code outside holdfast: what it raises, whose fault that is, and how to say so.

An environment, a wrapper or an experiment may raise anything, even ``SystemExit``. None of it may end the process
as if nothing had happened. What a signal handler raises is not a failure of such code and passes through
unchanged. What a library raises about a user's values is bad input; what holdfast's own code raises there is not.
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Container, Iterator
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
    "shown",
    "user_code",
    "where_passed",
    "where_raised",
]

_PACKAGE = Path(__file__).parents[1]

_LONGEST = 200
"""Longest part of a foreign message that is repeated, in characters."""


class StoppedBySignal(SystemExit):
    """A signal ends the program, whatever the program is doing.

    Args:
        exit_code: The process's exit code.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


@contextmanager
def user_code(
    sentence: str, told_apart: type[BaseException] | tuple[type[BaseException], ...] = ()
) -> Iterator[None]:
    """Turn anything that a user's code raises into an ``InputError``.

    Args:
        sentence: Beginning of the message, such as ``"experiment 'a:b' cannot be used: importing a"``.
        told_apart: Exceptions that pass through unchanged.

    Raises:
        ValueError: The code raised an exception of any kind, including ``SystemExit``.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, told_apart) or is_interrupt(error):
            raise
        raise InputError(f"{sentence} raised {described(error)}") from error


def is_raised_by_holdfast(error: BaseException) -> bool:
    """Whether holdfast's own code raised ``error``, rather than a library or a user's code that it called.

    Use it around calls that pass a user's values to other code. What that code raises is about the values; what
    holdfast's own code raises is a fault of holdfast, or already an ``InputError``.
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
    """The code that a signal handler runs; None if the handler is not written in Python."""
    if not callable(handler):
        return None
    # The function of a partial; else a function, a method, or a callable object.
    inner = getattr(handler, "func", handler)
    code = getattr(inner, "__code__", None) or getattr(inner.__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None


def described(error: BaseException) -> str:
    """An exception in one line: ``KeyError: 'arm'``."""
    said = _short_line(str, error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def where_raised(error: BaseException, *, but: str) -> str:
    """Where an exception was raised, as ``" (robot.py, line 12)"``; empty if that is the file ``but``."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or frames[-1].filename == but:
        return ""
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def where_passed(error: BaseException, files: Container[str]) -> str:
    """The last place in one of ``files`` that an exception came through, said as by ``where_raised``; or empty."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in files:
            return f" ({Path(frame.filename).name}, line {frame.lineno})"
    return ""


def shown(value: Any) -> str:
    """``repr`` of a value from a user's code, always as one short line."""
    return _short_line(repr, value) or f"a {type(value).__name__}"


def _short_line(text_of: Callable[[Any], str], value: Any) -> str:
    """``str`` or ``repr`` of a value as one short line; empty if even that raises."""
    try:
        text = text_of(value)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return ""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
