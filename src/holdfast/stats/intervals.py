"""Rates and quantiles estimated from episodes, each with a confidence interval."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom, norm

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_integer, check_probability
from holdfast.core.errors import InputError
from holdfast.stats.estimates import Estimate

__all__ = ["LEVEL", "in_percent", "quantile_estimate", "wilson_estimate"]


LEVEL = 0.95
"""Default confidence level."""


def wilson_estimate(successes: int, trials: int, level: float = LEVEL) -> Estimate:
    """A rate with Wilson's score interval.

    (p̂ + z²/2n ± z·√(p̂(1 − p̂)/n + z²/4n²)) / (1 + z²/n). It stays within [0, 1] and is informative even if no
    trial or every trial succeeded, unlike the rule of thumb p̂ ± z·√(p̂(1 − p̂)/n).

    Args:
        successes: Number of successes.
        trials: Number of trials n.
        level: Confidence level.
    """
    n = check_integer("trials", trials, at_least=0)
    won = check_integer("successes", successes, at_least=0)
    if won > n:
        raise InputError(f"successes must be at most the {n} trials, not {won}")
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan)
    z = float(norm.ppf(0.5 + check_probability("level", level) / 2.0))
    rate = won / n
    middle = rate + z * z / (2 * n)
    half = z * math.sqrt(rate * (1.0 - rate) / n + z * z / (4 * n * n))
    whole = 1.0 + z * z / n
    # Both ends are exact; rounding would leave them slightly off 0 or 1.
    low = 0.0 if won == 0 else (middle - half) / whole
    high = 1.0 if won == n else (middle + half) / whole
    return Estimate(rate, low, high)


def quantile_estimate(values: Floats, quantile: float, level: float = LEVEL) -> Estimate:
    """A quantile, with an interval between two of the sorted values that holds for any distribution.

    The number of the n values below the true q-quantile is Binomial(n, q). With l and u the (1 − level)/2 and
    (1 + level)/2 quantiles of that number, the true quantile lies between the l-th and the (u + 1)-th smallest
    value with a probability of at least ``level``. An end is NaN if there are too few values for it.

    Args:
        values: (n,).
        quantile: q, in [0, 1].
        level: Confidence level.
    """
    q = check_probability("quantile", quantile)
    n = len(values)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan)
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    tail = (1.0 - check_probability("level", level)) / 2.0
    lower, upper = int(binom.ppf(tail, n, q)), int(binom.ppf(1.0 - tail, n, q)) + 1
    return Estimate(
        float(np.quantile(ordered, q)),
        float(ordered[lower - 1]) if lower >= 1 else math.nan,
        float(ordered[upper - 1]) if upper <= n else math.nan,
    )


def in_percent(rate: Estimate) -> str:
    """A rate and its interval as text, such as 2.79 % (1.4–5.6)."""
    low, high = (100.0 * end for end in (rate.low, rate.high))
    return f"{100.0 * rate.value:.3g} % ({_end(low)}–{_end(high)})"


def _end(percent: float) -> str:
    # With two digits, 100 would be written as 1e+02.
    return f"{percent:.3g}" if percent >= 99.5 else f"{percent:.2g}"
