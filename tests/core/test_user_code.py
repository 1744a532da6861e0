"""What code of the user raises is told; what asks the process to stop is not mistaken for it."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.schedules import Linear
from holdfast.core.user_code import described, is_interrupt, is_raised_by_holdfast, shown, user_code
from holdfast.mdp import TabularMDP


class Leave(BaseException):
    """Not one of Python's."""


def raised_by(do: Callable[[], Any]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - whatever it is
        do()
    return caught.value


class Handlers:
    """Handlers of all kinds that end the program."""

    def method(self, number: int, frame: Any) -> None:
        sys.exit(143)

    def __call__(self, number: int, frame: Any) -> None:
        self.method(number, frame)


def handler(code: int, number: int, frame: Any) -> None:
    sys.exit(code)


@pytest.mark.parametrize(
    "installed", [Handlers().method, Handlers(), functools.partial(handler, 143), lambda *_: sys.exit(143)]
)
def test_what_a_signals_handler_raises_is_an_interrupt(installed: Any) -> None:
    before = signal.signal(signal.SIGUSR1, installed)
    try:
        error = raised_by(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        assert isinstance(error, SystemExit)
        assert is_interrupt(error)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_ctrl_c_is_an_interrupt() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert is_interrupt(raised_by(lambda: os.kill(os.getpid(), signal.SIGINT)))
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("error", [SystemExit(0), SystemExit(), GeneratorExit(), Leave(), ValueError("a")])
def test_what_code_raises_by_itself_is_none(error: BaseException) -> None:
    def leave() -> None:
        raise error

    assert not is_interrupt(raised_by(leave))
    with pytest.raises(InputError, match=rf"^the robot raised {type(error).__name__}"), user_code("the robot"):
        leave()


def test_what_is_told_apart_goes_on() -> None:
    with pytest.raises(InputTypeError, match=r"^mine$"), user_code("the robot", InputTypeError):
        raise InputTypeError("mine")


class Silent(Exception):  # noqa: N818 - its name is told
    """Cannot be told."""

    def __str__(self) -> str:
        sys.exit(0)

    __repr__ = __str__


def test_everything_can_be_told_in_a_line() -> None:
    assert described(KeyError("arm")) == "KeyError: 'arm'"
    assert described(SystemExit()) == "SystemExit"
    assert described(SystemExit(0)) == "SystemExit: 0"
    assert described(Silent()) == "Silent"
    assert shown(Silent()) == "a Silent"
    assert described(ValueError("a\n\tb")) == "ValueError: a b"
    assert shown([1, "\n"]) == r"[1, '\n']"
    assert len(described(ValueError("x" * 10_000))) < 250
    assert len(shown("x" * 10_000)) < 250


@pytest.mark.parametrize(
    ("call", "ours"),
    [
        (lambda: check_integer("k_max", 0), True),
        # Python finds out, in the call that holdfast's code makes.
        (lambda: TabularMDP.n_states.fget(None), True),  # type: ignore[attr-defined]
        (lambda: Linear(1.0), False),  # type: ignore[call-arg]
        (lambda: json.loads("{"), False),
        (lambda: {}["x"], False),
    ],
)
def test_who_raised_it(call: Any, ours: bool) -> None:
    assert is_raised_by_holdfast(raised_by(call)) is ours


def test_what_was_never_raised_is_nobodys() -> None:
    assert not is_raised_by_holdfast(ValueError("x"))
