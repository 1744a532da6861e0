"""How holdfast is measured.

A benchmark is a file ``bench_<name>.py`` beside this one with a function ``tables(settings)`` that yields
``Table``s, smallest effort first. All benchmarks follow these rules:

- **Both sides in one run.** Everything that is compared is measured by one call of ``Settings.measure``, in one
  process; a number from another day, machine or paper is never one side of a ratio.
- **One thread.** ``use_one_thread`` must run before NumPy is loaded, so this file imports only the standard
library. - **Burn-in excluded.** Each case runs before its first timing: compilation and cold caches are not
counted. - **Interleaved repetitions.** At least five; each times every case once, every other one in reverse
order, so that a busy moment of the machine affects all sides. A case too short for the clock is called several
times. - **Median and spread.** A cell is the median, its spread half the range over the median. - **Ratio.** The
median over repetitions of a case's time over the baseline's in the same repetition. - **Growth.** If cost depends
on a size, there are at least three sizes, and the slope of log cost over log size.

Memory is measured by ``peak_bytes`` in a separate run, because tracing slows the code down.
"""

from __future__ import annotations

import gc
import math
import os
import statistics
import textwrap
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = [
    "FEWEST_REPETITIONS",
    "WIDTH",
    "Row",
    "Settings",
    "Table",
    "Timing",
    "compare",
    "compare_trainings",
    "format_bytes",
    "format_seconds",
    "format_table",
    "growth",
    "peak_bytes",
    "time_parts",
    "training",
    "use_one_thread",
]

FEWEST_REPETITIONS = 5
WIDTH = 80

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def use_one_thread() -> None:
    """Limit the numerical libraries that are loaded from now on to one thread."""
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"


@dataclass(frozen=True)
class Timing:
    """Seconds per call, one number per repetition."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of the repetitions."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the range, as a fraction of the median."""
        return (max(self.seconds) - min(self.seconds)) / (2.0 * self.median)

    def ratio_to(self, baseline: Timing) -> float:
        """How many times the baseline's cost this is, repetition by repetition."""
        pairs = zip(self.seconds, baseline.seconds, strict=True)
        return statistics.median(own / other for own, other in pairs)


@dataclass(frozen=True)
class Settings:
    """How carefully to measure.

    Args:
        quick: Whether to check only that everything runs; a benchmark then uses its smallest sizes.
        repetitions: Number of timings per case.
    """

    quick: bool = False
    repetitions: int = FEWEST_REPETITIONS

    def __post_init__(self) -> None:
        if self.repetitions < FEWEST_REPETITIONS:
            raise ValueError(f"repetitions must be at least {FEWEST_REPETITIONS}, not {self.repetitions}")

    def measure(self, cases: Mapping[str, Callable[[], object]]) -> dict[str, Timing]:
        """Time all ``cases``, interleaved."""
        shortest = 1e-4 if self.quick else 2e-2
        calls = {name: _calls_lasting(case, shortest) for name, case in cases.items()}
        seconds: dict[str, list[float]] = {name: [] for name in cases}
        names = list(cases)
        for repetition in range(self.repetitions):
            for name in names if repetition % 2 == 0 else reversed(names):
                seconds[name].append(_seconds_per_call(cases[name], calls[name]))
        return {name: Timing(tuple(numbers)) for name, numbers in seconds.items()}


@dataclass(frozen=True)
class Row:
    """One measured case.

    Attributes:
        case: What was measured.
        timing: How long it took.
        ratio: How many times the baseline's cost that is.
        facts: Further columns, by heading.
    """

    case: str
    timing: Timing
    ratio: float
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Rows that were measured together, and what they show."""

    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def compare(
    settings: Settings,
    cases: Mapping[str, Callable[[], object]],
    facts: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[Row, ...]:
    """Measure ``cases`` against the first, which is the baseline."""
    timings = settings.measure(cases)
    baseline = next(iter(timings.values()))
    return tuple(
        Row(name, timing, timing.ratio_to(baseline), (facts or {}).get(name, {}))
        for name, timing in timings.items()
    )


def training(agent: Any, steps: int) -> Callable[[], object]:
    """The case of an agent of Stable-Baselines3 that goes on training for some steps."""
    return lambda: agent.learn(steps, reset_num_timesteps=False, log_interval=10**9)


def compare_trainings(settings: Settings, agents: Mapping[str, Any], steps: int) -> tuple[Row, ...]:
    """Measure how long agents train for ``steps`` steps, against the first of them; with steps per second."""
    rows = compare(settings, {name: training(agent, steps) for name, agent in agents.items()})
    return tuple(replace(row, facts={"steps/s": f"{steps / row.timing.median:.0f}"}) for row in rows)


def time_parts(
    settings: Settings, watched: Mapping[str, tuple[object, str]], case: Callable[[], object], steps: int
) -> tuple[tuple[Row, ...], dict[str, Timing]]:
    """Where training time goes, measured by stopwatches around methods and functions while ``case`` runs.

    Args:
        settings: Number of repetitions.
        watched: By label, the owner of each function and its name there. None of them may call another.
        case: What to measure.
        steps: Number of steps in one call of ``case``.

    Returns:
        One row for a whole step, one for the rest of it and one per part; and the timings of the parts.
    """
    repetitions = []
    for _ in range(settings.repetitions):
        with _stopwatches(watched) as seconds:
            whole = _seconds_per_call(case, 1)
        inside = {name: value / steps for name, value in seconds.items()}
        repetitions.append({"everything else": whole / steps - sum(inside.values()), **inside})
    whole_step = Timing(tuple(sum(parts.values()) for parts in repetitions))
    timings = {name: Timing(tuple(parts[name] for parts in repetitions)) for name in repetitions[0]}
    rows = [Row("a step with its update", whole_step, 1.0)]
    rows += [Row(f"  {name}", timing, timing.ratio_to(whole_step)) for name, timing in timings.items()]
    return tuple(rows), {name: timings[name] for name in watched}


@contextmanager
def _stopwatches(watched: Mapping[str, tuple[object, str]]) -> Iterator[dict[str, float]]:
    """Seconds spent in each watched function."""
    seconds = dict.fromkeys(watched, 0.0)
    is_own = {name: attribute in vars(owner) for name, (owner, attribute) in watched.items()}
    originals = {name: getattr(owner, attribute) for name, (owner, attribute) in watched.items()}

    def timed(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def measure(*arguments: object, **keywords: object) -> object:
            began = time.perf_counter()
            try:
                return function(*arguments, **keywords)
            finally:
                seconds[name] += time.perf_counter() - began

        return measure

    for name, (owner, attribute) in watched.items():
        setattr(owner, attribute, timed(name, originals[name]))
    try:
        yield seconds
    finally:
        for name, (owner, attribute) in watched.items():
            if is_own[name]:
                setattr(owner, attribute, originals[name])
            else:
                delattr(owner, attribute)


def growth(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The exponent p of cost ~ size^p: the least-squares slope of log cost over log size."""
    if len(sizes) < 3:
        raise ValueError(f"sizes must be at least 3 to show a growth, not {len(sizes)}")
    return statistics.linear_regression([math.log(s) for s in sizes], [math.log(c) for c in costs]).slope


def peak_bytes(case: Callable[[], object]) -> int:
    """Most memory that Python and NumPy held at once for one call, including its result.

    Memory that a compiled library allocates itself, such as SciPy's sparse factorisation, is not seen.
    """
    gc.collect()
    tracemalloc.start()
    try:
        result = case()
        peak = tracemalloc.get_traced_memory()[1]
        del result
    finally:
        tracemalloc.stop()
    return peak


def format_seconds(seconds: float) -> str:
    """Three digits with a unit: ``1.23 ms``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{_three_digits(seconds / scale)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"


def format_bytes(count: float) -> str:
    """Three digits with a unit: ``1.23 MB``."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{_three_digits(count / scale)} {unit}"
    return f"{count:.0f} B"


def format_table(table: Table) -> str:
    """The table as text of at most ``WIDTH`` columns."""
    facts = list(dict.fromkeys(heading for row in table.rows for heading in row.facts))
    lines = [["", "median", "±", "ratio", *facts]]
    for row in table.rows:
        measured = [format_seconds(row.timing.median), f"{row.timing.spread:.0%}", f"{row.ratio:.2f}"]
        lines.append([row.case, *measured, *(row.facts.get(heading, "") for heading in facts)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    widths[0] = min(widths[0], WIDTH - sum(widths[1:]) - 2 * len(widths[1:]))
    text = textwrap.wrap(table.title, WIDTH)
    text.append("-" * (sum(widths) + 2 * (len(widths) - 1)))
    for case, *cells in lines:
        shown = case if len(case) <= widths[0] else case[: widths[0] - 1] + "…"
        aligned = (f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        text.append("  ".join((f"{shown:<{widths[0]}}", *aligned)))
    for note in table.notes:
        text += textwrap.wrap(note, WIDTH, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(line.rstrip() for line in text)


def _three_digits(number: float) -> str:
    return f"{number:.{max(0, 2 - math.floor(math.log10(number)))}f}" if number > 0.0 else "0"


def _calls_lasting(case: Callable[[], object], shortest: float) -> int:
    """How many calls take at least ``shortest`` seconds; the trials are the burn-in."""
    calls = 1
    if _seconds_per_call(case, calls) > 50 * shortest:
        return calls  # even a cold start does not make a short case last this long
    while (lasted := _seconds_per_call(case, calls) * calls) < shortest:
        calls = max(calls + 1, min(10 * calls, math.ceil(1.2 * calls * shortest / max(lasted, 1e-9))))
    return calls


def _seconds_per_call(case: Callable[[], object], calls: int) -> float:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        began = time.perf_counter()
        for _ in range(calls):
            case()
        return (time.perf_counter() - began) / calls
    finally:
        if was_enabled:
            gc.enable()
