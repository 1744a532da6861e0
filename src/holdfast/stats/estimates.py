"""Means and their confidence intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_real
from holdfast.core.errors import InputError

__all__ = ["Band", "Estimate", "check_level", "mean_estimate", "mean_interval"]


class Estimate(NamedTuple):
    """A number and the interval that covers the true value at a confidence level; NaN where nothing is known."""

    value: float
    low: float
    high: float


class Band(NamedTuple):
    """Numbers and the ends of their intervals, as arrays of one shape, such as (points,)."""

    value: Floats
    low: Floats
    high: Floats


def check_level(level: float) -> float:
    """Return a confidence level, above 0 and below 1."""
    number = check_real("level", level)
    if not 0.0 < number < 1.0:
        raise InputError(f"level must be a number in (0, 1), not {level!r}")
    return number


def mean_estimate(values: Floats, level: float = 0.95) -> Estimate:
    """A mean with Student's interval: x̄ ± t_{n−1} · s / √n.

    Args:
        values: (n,).
        level: Confidence level.
    """
    if len(values) == 0:
        return Estimate(math.nan, math.nan, math.nan)
    return Estimate(*map(float, mean_interval(np.asarray(values, dtype=np.float64), level)))


def mean_interval(values: Floats, level: float = 0.95) -> Band:
    """Mean over the first axis, with the ends of Student's interval; the ends are NaN if there is only one value.

    Args:
        values: (n, ...).
        level: Confidence level.
    """
    n = len(values)
    mean = values.mean(axis=0)
    if n < 2:
        unknown = np.full_like(mean, np.nan)
        return Band(mean, unknown, unknown)
    half = stdtrit(n - 1, 0.5 + level / 2.0) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return Band(mean, mean - half, mean + half)
