"""A number with an interval, and the paper's: the mean over runs with Student's 95 %."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.core.checks import check_real
from holdfast.core.errors import InputError
from holdfast.experiments.stats.scores import check_finite
from holdfast.stats import estimates
from holdfast.stats.estimates import Estimate, mean_interval

__all__ = ["Band", "Estimate", "check_level", "mean_band", "mean_estimate"]

Floats = NDArray[np.float64]


class Band(NamedTuple):
    """Numbers, and the ends of the interval of each; all of one shape, as (points,)."""

    value: Floats
    low: Floats
    high: Floats


def check_level(level: float) -> float:
    """Return a level of confidence, above 0 and below 1."""
    number = check_real("level", level)
    if not 0.0 < number < 1.0:
        raise InputError(f"level must be a number in (0, 1), not {level!r}")
    return number


def mean_estimate(values: ArrayLike, level: float = 0.95) -> Estimate:
    """Mean over runs with Student's interval: x̄ ± t_{n−1} · s / √n.

    Args:
        values: (runs,) one number each.
        level: Of confidence.
    """
    array = check_finite("values", values, "(runs,)", 1)
    if array.ndim != 1:
        raise InputError(f"values must have shape (runs,), not {array.shape}")
    return estimates.mean_estimate(array, check_level(level))


def mean_band(curves: ArrayLike, level: float = 0.95) -> Band:
    """The same at each point of curves, by itself: of 100 points, about five may lie outside their intervals.

    Args:
        curves: (runs, points).
        level: Of confidence.
    """
    array = check_finite("curves", curves, "(runs, points)", 2)
    if array.ndim != 2:
        raise InputError(f"curves must have shape (runs, points), not {array.shape}")
    return Band(*mean_interval(array, check_level(level)))
