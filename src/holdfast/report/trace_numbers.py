"""What a trace comes to: its end, its mean, when it got there, its mean over seeds, and a thinner one to draw."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from holdfast.core.array_types import Floats
from holdfast.report.records import Trace
from holdfast.runs.curves import mean_curve
from holdfast.stats import Band

__all__ = ["final_value", "mean_over_training", "seed_band", "steps_to_reach", "thinned"]

_FINAL_PART = 5
_MOST_MARKED = 200


def final_value(trace: Trace) -> float:
    """The mean of the last fifth of the values."""
    return float(trace.y[-max(1, len(trace.y) // _FINAL_PART) :].mean())


def mean_over_training(trace: Trace) -> float:
    """The mean over all steps, each value holding until the next: what the area under a curve says."""
    if len(trace.x) < 2 or trace.x[-1] == trace.x[0]:
        return float(trace.y.mean())
    return float(np.sum(trace.y[:-1] * np.diff(trace.x)) / (trace.x[-1] - trace.x[0]))


def steps_to_reach(trace: Trace, goal: float) -> float | None:
    """Where a quantity first reaches a goal; None if it never does."""
    reached = np.flatnonzero(trace.y >= goal)
    return float(trace.x[reached[0]]) if len(reached) else None


def seed_band(traces: Sequence[Trace]) -> tuple[Floats, Band]:
    """The mean over seeds, with its 95 % interval, as far as all of them go.

    It is taken at their own points if these are the same and few, else at 200 points.
    """
    last = min(trace.x[-1] for trace in traces)
    common = traces[0].x[traces[0].x <= last]
    is_common = len(common) <= _MOST_MARKED and all(
        np.array_equal(trace.x[trace.x <= last], common) for trace in traces
    )
    at, *band = mean_curve([(trace.x, trace.y) for trace in traces], common if is_common else None)
    return at, Band(*band)


def thinned(trace: Trace, most: int) -> Trace:
    """At most so many points of a trace, its extremes among them: of each stretch the least and the largest value.

    Args:
        trace: What is to be drawn.
        most: Points that are kept, at least 4.
    """
    n = len(trace.x)
    if n <= most:
        return trace
    edges = np.linspace(0, n, most // 2 + 1).astype(int)
    kept: list[int] = []
    for low, high in itertools.pairwise(edges):
        part = trace.y[low:high]
        kept += sorted({low + int(part.argmin()), low + int(part.argmax())})
    kept[0], kept[-1] = 0, n - 1
    chosen = np.array(kept)
    return Trace(trace.x[chosen], trace.y[chosen])
