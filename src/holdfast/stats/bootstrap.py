"""Stratified bootstrap: how much a statistic would vary with other seeds on the same tasks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError
from holdfast.stats.estimates import Band, Estimate, check_level
from holdfast.stats.scores import check_scores

__all__ = ["RESAMPLES", "Seed", "bootstrap_band", "bootstrap_estimate"]

Statistic = Callable[..., Floats]
"""A function of arrays of scores (..., runs, tasks) that reduces the last two axes and keeps those before them."""

Seed = int | np.random.SeedSequence | np.random.Generator

RESAMPLES = 2_000
"""Default number of resamples; the ends of an interval then repeat within a few hundredths of its width."""

_NUMBERS_AT_ONCE = 1 << 19


def bootstrap_estimate(
    statistic: Statistic,
    *scores: ArrayLike,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: Seed = 0,
) -> Estimate:
    """``bootstrap_band`` for a statistic that is a single number."""
    band = bootstrap_band(statistic, *scores, resamples=resamples, level=level, seed=seed)
    if band.value.shape != ():
        raise InputError(f"statistic must be one number, not an array of shape {band.value.shape}")
    return Estimate(float(band.value), float(band.low), float(band.high))


def bootstrap_band(
    statistic: Statistic,
    *scores: ArrayLike,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: Seed = 0,
) -> Band:
    """A statistic with its percentile bootstrap interval.

    Runs are drawn with replacement within each task, separately for each task and each array of scores. The
    interval lies between the quantiles (1 ∓ level) / 2 of the resampled statistic. If an array has only one run,
    there is nothing to draw and the ends are NaN.

    Args:
        statistic: A function such as those of ``aggregates``: it reduces the last two axes of its arrays
            (..., runs, tasks) to a number or to an array.
        scores: The statistic's arguments, each (runs, tasks).
        resamples: Number of resamples.
        level: Confidence level.
        seed: Seed of the draws; the same seed gives the same interval. A generator is used as it is.

    Returns:
        Three arrays of the statistic's shape.
    """
    arrays = [check_scores("scores", one) for one in scores]
    if not arrays or any(array.ndim != 2 for array in arrays):
        raise InputError("scores must be one or more arrays of shape (runs, tasks)")
    resamples = check_integer("resamples", resamples)
    tail = (1.0 - check_level(level)) / 2.0
    random = _generator(seed)
    value = np.asarray(statistic(*arrays), dtype=np.float64)
    if min(len(array) for array in arrays) < 2:
        unknown = np.full_like(value, np.nan)
        return Band(value, unknown, unknown)
    # A statistic may compare every run of one array with every run of another.
    size = math.prod(len(array) for array in arrays) * max(array.shape[1] for array in arrays)
    at_once = max(1, _NUMBERS_AT_ONCE // size)
    found = []
    for first in range(0, resamples, at_once):
        n = min(at_once, resamples - first)
        found.append(np.asarray(statistic(*(_resampled(array, n, random) for array in arrays))))
        if found[-1].shape != (n, *value.shape):
            raise InputError("statistic must reduce the last two axes of its arrays and keep the axes before them")
    low, high = np.quantile(np.concatenate(found), [tail, 1.0 - tail], axis=0)
    return Band(value, np.asarray(low), np.asarray(high))


def _resampled(scores: Floats, n: int, random: np.random.Generator) -> Floats:
    """(n, runs, tasks): each column's runs drawn from that column."""
    runs, tasks = scores.shape
    drawn = random.integers(runs, size=(n, runs, tasks))
    return np.asarray(scores[drawn, np.arange(tasks)])


def _generator(seed: Seed) -> np.random.Generator:
    if isinstance(seed, np.random.Generator | np.random.SeedSequence):
        return np.random.default_rng(seed)
    return np.random.default_rng(check_integer("seed", seed, at_least=0))
