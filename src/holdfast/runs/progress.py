"""The progress of a training, shown as one line that changes, as plain lines, or as JSON."""

from __future__ import annotations

import json
import shutil
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import IO, Protocol

__all__ = ["JsonLines", "PlainLines", "Reporter", "Silent", "TerminalLine", "TrainingProgress", "pick_reporter"]


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of a training.

    Attributes:
        steps: Steps done.
        episodes: Episodes done.
        fraction: Share of the training that is done, in [0, 1].
        of: The whole: ``"150,000 steps"``.
        seconds_left: Estimate at the current pace; None while there is none.
        steps_per_second: The current pace.
        mean_return: Mean return of the last 20 episodes; None before the first.
        decisions: Mean decisions per episode, of the same episodes.
        hold: Mean steps per decision, of the same episodes.
        epsilon: Exploration rate.
    """

    steps: int
    episodes: int
    fraction: float
    of: str
    seconds_left: float | None
    steps_per_second: float | None
    mean_return: float | None
    decisions: float | None
    hold: float | None
    epsilon: float


class Pace:
    """Steps per second, and the fraction of the whole per second, over the last half minute."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int, float]] = deque(maxlen=64)

    def mark(self, now: float, steps: int, fraction: float) -> tuple[float | None, float | None]:
        """Record the progress; return steps per second and seconds left."""
        if not self._marks or now - self._marks[-1][0] >= 0.5:
            self._marks.append((now, steps, fraction))
        then, steps_then, fraction_then = self._marks[0]
        if now <= then or steps <= steps_then:
            return None, None
        rate = (steps - steps_then) / (now - then)
        gained = (fraction - fraction_then) / (now - then)
        return rate, (1.0 - fraction) / gained if gained > 0.0 else None


class Reporter(Protocol):
    """Receives the progress of a training."""

    seconds: float
    """Seconds between two reports."""

    def show(self, progress: TrainingProgress) -> None:
        """Show how far the training is."""
        ...

    def say(self, sentence: str) -> None:
        """Say something once."""
        ...

    def close(self) -> None:
        """The training has ended."""
        ...


class Silent:
    """Shows nothing."""

    seconds = 3600.0

    def show(self, progress: TrainingProgress) -> None:
        """Nothing."""

    def say(self, sentence: str) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class TerminalLine:
    """One line that changes in place.

    Args:
        stream: A terminal.
    """

    seconds = 0.2

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._is_open = False

    def show(self, progress: TrainingProgress) -> None:
        """Rewrite the line."""
        columns = shutil.get_terminal_size().columns
        self._stream.write(f"\r\x1b[2K{progress_line(progress, columns - 1)}")
        self._stream.flush()
        self._is_open = True

    def say(self, sentence: str) -> None:
        """Print a line above it."""
        self._stream.write(("\r\x1b[2K" if self._is_open else "") + sentence + "\n")
        self._stream.flush()
        self._is_open = False

    def close(self) -> None:
        """Leave the line as it is."""
        if self._is_open:
            self._stream.write("\n")
            self._stream.flush()
            self._is_open = False


class PlainLines:
    """A line from time to time, for logs.

    Args:
        stream: Where to.
    """

    seconds = 30.0

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def show(self, progress: TrainingProgress) -> None:
        """One more line."""
        self.say(progress_line(progress, None))

    def say(self, sentence: str) -> None:
        """One more line."""
        self._stream.write(sentence + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Nothing is left open."""


class JsonLines:
    """An object per line, for programs.

    Args:
        stream: Where to.
    """

    seconds = 5.0

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def show(self, progress: TrainingProgress) -> None:
        """One more object."""
        self._write({"event": "progress", **asdict(progress)})

    def say(self, sentence: str) -> None:
        """One more object."""
        self._write({"event": "message", "text": sentence})

    def close(self) -> None:
        """Nothing is left open."""

    def _write(self, event: dict[str, object]) -> None:
        self._stream.write(json.dumps({"time": round(time.time(), 3), **event}) + "\n")
        self._stream.flush()


def pick_reporter(stream: IO[str], out: IO[str], quiet: bool, as_json: bool) -> Reporter:
    """The reporter that suits the streams: progress goes to ``stream``, JSON to ``out``."""
    if as_json:
        return JsonLines(out)
    if quiet:
        return Silent()
    return TerminalLine(stream) if stream.isatty() else PlainLines(stream)


def progress_line(progress: TrainingProgress, columns: int | None) -> str:
    """The progress in one line of at most ``columns``; the least important parts are dropped first."""
    line = " · ".join(_parts(progress, short=False))
    if columns is None or len(line) <= columns:
        return line
    parts = _parts(progress, short=True)
    while len(parts) > 1 and len(" · ".join(parts)) > columns:
        parts.pop()
    return " · ".join(parts)[: max(columns, 1)]


def _parts(progress: TrainingProgress, short: bool) -> list[str]:
    done = f"{100.0 * progress.fraction:3.0f}%"
    parts = [done if short else f"{done} of {progress.of}"]
    if progress.seconds_left is not None:
        parts.append(f"{duration(progress.seconds_left)} left")
    if progress.mean_return is not None:
        parts.append(f"return {progress.mean_return:.4g}")
    if progress.decisions is not None:
        parts.append(f"{progress.decisions:.3g} {'dec.' if short else 'decisions'}")
    if progress.hold is not None:
        parts.append(f"hold {progress.hold:.3g}")
    parts.append(f"ε {progress.epsilon:.2g}")
    if progress.steps_per_second is not None:
        parts.append(f"{progress.steps_per_second:,.0f}{'/s' if short else ' steps/s'}")
    return parts


def duration(seconds: float) -> str:
    """Seconds for people: 42 s, 3:05 min, 1:02 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    minutes = whole // 60
    return f"{minutes // 60}:{minutes % 60:02d} h"
