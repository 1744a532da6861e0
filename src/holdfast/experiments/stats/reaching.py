"""How soon runs reach a threshold, where some never do within their training."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from holdfast.core.checks import check_integer, check_real
from holdfast.core.errors import InputError
from holdfast.experiments.stats.estimates import check_level
from holdfast.experiments.stats.scores import check_curves, check_steps

__all__ = ["ReachEstimate", "reach_estimate", "steps_to_reach"]

Floats = NDArray[np.float64]


class ReachEstimate(NamedTuple):
    """The median of the steps that runs took to reach a threshold.

    Attributes:
        value: The first step by which at least half of the runs were there; None if fewer ever were.
        low: Lower end of its interval; None if it lies beyond the training, NaN if the runs are too few to say.
        high: Upper end, likewise.
        reached: How many runs reached it.
        runs: Of how many.
    """

    value: float | None
    low: float | None
    high: float | None
    reached: int
    runs: int


def steps_to_reach(steps: ArrayLike, curves: ArrayLike, threshold: float, window: int = 1) -> Floats:
    """The first step at which each curve is at least ``threshold``; infinite where it never is.

    Args:
        steps: (points,) where the points are, growing.
        curves: (..., points).
        threshold: What is to be reached.
        window: Points whose mean has to reach it, so that one lucky episode does not count; the step is that of
            the last of them.

    Returns:
        (...).
    """
    values = check_curves("curves", curves)
    x = check_steps("steps", steps, values.shape[-1])
    threshold = check_real("threshold", threshold)
    window = check_integer("window", window)
    if window > len(x):
        raise InputError(f"window must be at most the {len(x)} points of the curves, not {window}")
    means = sliding_window_view(values, window, axis=-1).mean(axis=-1)
    is_reached = means >= threshold
    return np.where(is_reached.any(axis=-1), x[window - 1 :][is_reached.argmax(axis=-1)], np.inf)


def reach_estimate(times: ArrayLike, level: float = 0.95) -> ReachEstimate:
    """Median of the steps to reach a threshold, where runs that never reached it took longer than all others.

    The interval is that of order statistics: of n runs in order, from the l-th to the l-th last, where l is the
    largest number for which fewer than l heads in n tosses of a coin have a probability of at most
    (1 − level) / 2. It holds for every distribution of the steps, with at least the level of confidence; at 95 %
    it takes six runs. All runs must have been trained for equally long.

    Args:
        times: (runs,) from ``steps_to_reach``; infinite for not reached.
        level: Of confidence.
    """
    ordered = np.sort(np.asarray(times, dtype=np.float64))
    if ordered.ndim != 1 or ordered.size == 0 or np.isnan(ordered).any() or ordered[0] == -np.inf:
        raise InputError("times must be steps of at least one run, (runs,), infinite where it never got there")
    n = len(ordered)
    rank = int(np.count_nonzero(binom.cdf(np.arange(n), n, 0.5) <= (1.0 - check_level(level)) / 2.0))
    median = _step(ordered[(n - 1) // 2])
    reached = int(np.isfinite(ordered).sum())
    if rank == 0:
        return ReachEstimate(median, math.nan, math.nan, reached, n)
    return ReachEstimate(median, _step(ordered[rank - 1]), _step(ordered[n - rank]), reached, n)


def _step(time: float) -> float | None:
    return float(time) if math.isfinite(time) else None
