"""Agarwal et al.'s (2021) numbers as their definitions read: one score, one pair, one resample at a time.

Plain Python without NumPy's reductions, and Python's own random numbers, so that nothing is shared with what is
tested.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence

Scores = Sequence[Sequence[float]]
"""By run, then by task."""


def columns(scores: Scores) -> list[list[float]]:
    """By task, then by run."""
    return [[run[task] for run in scores] for task in range(len(scores[0]))]


def mean(scores: Scores) -> float:
    return statistics.fmean(score for run in scores for score in run)


def median(scores: Scores) -> float:
    return statistics.median(statistics.fmean(runs) for runs in columns(scores))


def interquartile_mean(scores: Scores) -> float:
    left = sorted(score for run in scores for score in run)
    for _ in range(len(left) // 4):
        left.remove(min(left))
        left.remove(max(left))
    return statistics.fmean(left)


def optimality_gap(scores: Scores, target: float = 1.0) -> float:
    return statistics.fmean(max(target - score, 0.0) for run in scores for score in run)


def profile(scores: Scores, taus: Sequence[float]) -> list[float]:
    return [statistics.fmean(float(score > tau) for run in scores for score in run) for tau in taus]


def improvement(scores: Scores, others: Scores) -> float:
    won = {True: 1.0, False: 0.0}
    tasks = zip(columns(scores), columns(others), strict=True)
    return statistics.fmean(
        statistics.fmean(0.5 if x == y else won[x > y] for x in mine for y in theirs) for mine, theirs in tasks
    )


def resampled(scores: Scores, draws: random.Random) -> Scores:
    """As many runs of each task as there are, drawn with replacement, for each task by itself."""
    drawn = [draws.choices(runs, k=len(runs)) for runs in columns(scores)]
    return columns(drawn)


def interval(
    statistic: Callable[..., float], *scores: Scores, resamples: int, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """The middle ``level`` of a statistic's values on resamples of every argument."""
    draws = random.Random(seed)
    values = sorted(statistic(*(resampled(one, draws) for one in scores)) for _ in range(resamples))
    outside = round(resamples * (1.0 - level) / 2.0)
    return values[outside], values[-1 - outside]
