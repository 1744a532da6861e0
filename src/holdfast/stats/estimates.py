"""Means, and how sure they are."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from holdfast.core.checks import check_real
from holdfast.core.errors import InputError

__all__ = ["Band", "Estimate", "check_level", "mean_estimate", "mean_interval"]

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number and the interval that covers the true one at a level of confidence; NaN where nothing is known."""

    value: float
    low: float
    high: float


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


def mean_estimate(values: Floats, level: float = 0.95) -> Estimate:
    """A mean with Student's interval: x̄ ± t_{n−1} · s / √n.

    Args:
        values: (n,).
        level: Of confidence.
    """
    if len(values) == 0:
        return Estimate(math.nan, math.nan, math.nan)
    return Estimate(*map(float, mean_interval(np.asarray(values, dtype=np.float64), level)))


def mean_interval(values: Floats, level: float = 0.95) -> Band:
    """Mean over the first axis, and the ends of Student's interval for it; NaN where one value says nothing.

    Args:
        values: (n, ...).
        level: Of confidence.
    """
    n = len(values)
    mean = values.mean(axis=0)
    if n < 2:
        unknown = np.full_like(mean, np.nan)
        return Band(mean, unknown, unknown)
    half = stdtrit(n - 1, 0.5 + level / 2.0) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return Band(mean, mean - half, mean + half)
