"""Means, and how sure they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

__all__ = ["mean_interval"]

Floats = NDArray[np.float64]


def mean_interval(values: Floats, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """Mean over the first axis, and the ends of Student's interval for it; NaN where one value says nothing.

    Args:
        values: (n, ...).
        level: Of confidence.
    """
    n = len(values)
    mean = values.mean(axis=0)
    if n < 2:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown
    half = stdtrit(n - 1, 0.5 + level / 2.0) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half
