"""The line that says what takes so long: on a terminal, after a while, and gone at the end."""

from __future__ import annotations

import io
import threading
import time

import pytest

from holdfast.cli.waiting import Waiting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def until_it_says(stream: io.StringIO, text: str) -> None:
    for _ in range(1000):
        if text in stream.getvalue():
            return
        time.sleep(0.01)
    raise AssertionError(f"{text!r} is not in {stream.getvalue()!r}")


def test_the_line_says_what_and_how_long_and_is_wiped_away() -> None:
    stream = Terminal()
    with Waiting(stream, "solving", patience=0.0) as waiting:
        until_it_says(stream, "solving · 0 s")
        waiting.say("writing")
        until_it_says(stream, "writing · ")
    assert stream.getvalue().startswith("\r\x1b[2K")
    assert stream.getvalue().endswith("\r\x1b[2K")
    assert "\n" not in stream.getvalue()


def test_what_is_quick_leaves_no_trace() -> None:
    stream = Terminal()
    with Waiting(stream, "solving") as waiting:
        waiting.say("writing")
    assert stream.getvalue() == ""


def test_what_is_no_terminal_is_left_alone() -> None:
    stream = io.StringIO()
    with Waiting(stream, "solving", patience=0.0):
        time.sleep(0.1)
    assert stream.getvalue() == ""


def test_it_ends_with_an_error_too() -> None:
    stream = Terminal()

    def fail() -> None:
        until_it_says(stream, "solving")
        raise ValueError("no solution")

    with pytest.raises(ValueError, match="no solution"), Waiting(stream, "solving", patience=0.0):
        fail()
    assert stream.getvalue().endswith("\r\x1b[2K")
    assert all(thread.name != "waiting" for thread in threading.enumerate())
