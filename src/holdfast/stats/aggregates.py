"""One number for many runs on many tasks, as recommended by Agarwal et al. (2021).

Each function takes scores (..., runs, tasks) and reduces the last two axes, so one call handles thousands of
resamples. Scores of different tasks are comparable only on a common scale: see ``normalize_scores``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_real
from holdfast.core.errors import InputError
from holdfast.stats.scores import check_finite, check_scores

__all__ = [
    "improvement_probability",
    "interquartile_mean",
    "mean_score",
    "median_score",
    "optimality_gap",
    "performance_profile",
]


def mean_score(scores: ArrayLike) -> Floats:
    """Mean over runs and tasks; a single task with huge scores can dominate it.

    Args:
        scores: (..., runs, tasks).

    Returns:
        (...).
    """
    return np.asarray(check_scores("scores", scores).mean(axis=(-2, -1)))


def median_score(scores: ArrayLike) -> Floats:
    """Median over tasks of the mean over runs; it ignores failure on almost half of the tasks.

    Args:
        scores: (..., runs, tasks).

    Returns:
        (...).
    """
    return np.asarray(np.median(check_scores("scores", scores).mean(axis=-2), axis=-1))


def interquartile_mean(scores: ArrayLike) -> Floats:
    """Mean of the middle half of all scores: of n scores, the ⌊n/4⌋ lowest and the ⌊n/4⌋ highest are left out.

    Args:
        scores: (..., runs, tasks).

    Returns:
        (...).
    """
    values = check_scores("scores", scores)
    n = values.shape[-2] * values.shape[-1]
    ordered = np.sort(values.reshape(*values.shape[:-2], n), axis=-1)
    return np.asarray(ordered[..., n // 4 : n - n // 4].mean(axis=-1))


def optimality_gap(scores: ArrayLike, target: float = 1.0) -> Floats:
    """Average shortfall from ``target``; scores above the target count as the target. Lower is better.

    Args:
        scores: (..., runs, tasks).
        target: A score that counts as good enough.

    Returns:
        (...).
    """
    target = check_real("target", target)
    return np.asarray((target - np.minimum(check_scores("scores", scores), target)).mean(axis=(-2, -1)))


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Share of scores, over all runs and tasks, above each threshold τ.

    Args:
        scores: (..., runs, tasks).
        thresholds: (n,) thresholds τ.

    Returns:
        (..., n).
    """
    values = check_scores("scores", scores)
    taus = check_finite("thresholds", thresholds, "(n,)", 1)
    if taus.ndim != 1:
        raise InputError(f"thresholds must have shape (n,), not {taus.shape}")
    return np.stack([(values > tau).mean(axis=(-2, -1)) for tau in taus], axis=-1)


def improvement_probability(scores: ArrayLike, others: ArrayLike) -> Floats:
    """P(X > Y): the probability that a run of X beats a run of Y on the same task; a tie counts half.

    On each task it is the Mann–Whitney U divided by the number of pairs; all tasks have equal weight.

    Args:
        scores: (..., runs, tasks) of X.
        others: (..., runs, tasks) of Y; the number of runs may differ.

    Returns:
        (...).
    """
    x, y = check_scores("scores", scores), check_scores("others", others)
    if x.shape[-1] != y.shape[-1]:
        raise InputError(f"others must have the {x.shape[-1]} tasks of scores, not {y.shape[-1]}")
    # Pairs of runs: (..., runs of X, runs of Y, tasks).
    x, y = x[..., :, None, :], y[..., None, :, :]
    return np.asarray(((x > y).mean(axis=(-3, -2, -1)) + (x >= y).mean(axis=(-3, -2, -1))) / 2.0)
