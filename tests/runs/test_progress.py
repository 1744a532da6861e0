"""How far a training is, in words."""

from __future__ import annotations

import io
import json

import pytest

from holdfast.runs.progress import (
    JsonLines,
    Pace,
    PlainLines,
    Silent,
    TerminalLine,
    TrainingProgress,
    duration,
    pick_reporter,
    progress_line,
)

HALF = TrainingProgress(75_000, 400, 0.5, "150,000 steps", 125.0, 600.0, -142.25, 61.2, 3.27, 0.0123)
START = TrainingProgress(0, 0, 0.0, "150,000 steps", None, None, None, None, None, 1.0)


def test_everything_in_one_line() -> None:
    shown = "2:05 min left · return -142.2 · 61.2 decisions · hold 3.27 · ε 0.012 · 600 steps/s"
    assert progress_line(HALF, None) == f" 50% of 150,000 steps · {shown}"
    assert progress_line(START, None) == "  0% of 150,000 steps · ε 1"


@pytest.mark.parametrize("columns", [1, 10, 40, 79, 200])
def test_the_line_fits(columns: int) -> None:
    line = progress_line(HALF, columns)
    assert len(line) <= columns
    if columns >= 79:
        assert all(part in line for part in ("50%", "left", "return", "61.2 dec", "hold 3.27", "ε 0.012", "600"))


def test_durations() -> None:
    shown = {0.4: "0 s", 59.4: "59 s", 59.6: "1:00 min", 125: "2:05 min", 3599: "59:59 min", 3720: "1:02 h"}
    assert {seconds: duration(seconds) for seconds in shown} == shown


def test_pace() -> None:
    pace = Pace()
    assert pace.mark(10.0, 100, 0.1) == (None, None)
    rate, left = pace.mark(20.0, 1100, 0.2)
    assert rate == pytest.approx(100.0)
    assert left == pytest.approx(80.0)
    # Only the recent past counts.
    for second in range(21, 200):
        rate, left = pace.mark(float(second), 1100 + 10 * (second - 20), 0.2)
    assert rate == pytest.approx(10.0)
    assert left is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_who_suits_the_streams() -> None:
    plain, terminal = io.StringIO(), Terminal()
    assert isinstance(pick_reporter(terminal, plain, quiet=False, as_json=False), TerminalLine)
    assert isinstance(pick_reporter(plain, plain, quiet=False, as_json=False), PlainLines)
    assert isinstance(pick_reporter(terminal, plain, quiet=True, as_json=False), Silent)
    assert isinstance(pick_reporter(terminal, plain, quiet=False, as_json=True), JsonLines)


def test_a_terminal_line_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    line = TerminalLine(stream)
    line.say("hello")
    line.show(START)
    line.show(HALF)
    line.say("aside")
    line.show(HALF)
    line.close()
    line.close()
    shown = stream.getvalue()
    assert shown.startswith("hello\n\r\x1b[2K  0% of")
    assert shown.count("\n") == 3
    assert all(len(part) <= 59 for part in shown.replace("\n", "\r\x1b[2K").split("\r\x1b[2K"))


def test_plain_and_json_lines() -> None:
    stream = io.StringIO()
    plain = PlainLines(stream)
    plain.say("hello")
    plain.show(HALF)
    plain.close()
    assert stream.getvalue().splitlines() == ["hello", progress_line(HALF, None)]
    stream = io.StringIO()
    objects = JsonLines(stream)
    objects.say("hello")
    objects.show(HALF)
    objects.close()
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["event"], first["text"]) == ("message", "hello")
    assert (second["event"], second["steps"], second["hold"]) == ("progress", 75_000, 3.27)
