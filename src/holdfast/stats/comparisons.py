"""The statistics that a comparison of algorithms reports, each with its bootstrap interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_real
from holdfast.stats import aggregates
from holdfast.stats.bootstrap import RESAMPLES, Seed, bootstrap_band, bootstrap_estimate
from holdfast.stats.estimates import Band, Estimate

__all__ = ["AGGREGATES", "aggregate_estimates", "improvement_estimate", "profile_band"]


AGGREGATES: Mapping[str, Callable[..., Floats]] = MappingProxyType(
    {
        "median": aggregates.median_score,
        "interquartile mean": aggregates.interquartile_mean,
        "mean": aggregates.mean_score,
        "optimality gap": aggregates.optimality_gap,
    }
)
"""The aggregate functions by name."""


def aggregate_estimates(
    scores: ArrayLike,
    *,
    target: float = 1.0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: Seed = 0,
) -> dict[str, Estimate]:
    """An estimate of each of ``AGGREGATES``, all from the same resamples.

    Args:
        scores: (runs, tasks), on a common scale.
        target: Target of the optimality gap.
        resamples: Number of resamples.
        level: Confidence level.
        seed: Seed of the draws.
    """
    target = check_real("target", target)

    def all_of_them(resampled: Floats) -> Floats:
        return np.stack(
            [
                function(resampled, target) if function is aggregates.optimality_gap else function(resampled)
                for function in AGGREGATES.values()
            ],
            axis=-1,
        )

    band = bootstrap_band(all_of_them, scores, resamples=resamples, level=level, seed=seed)
    return {
        name: Estimate(float(value), float(low), float(high))
        for name, value, low, high in zip(AGGREGATES, *band, strict=True)
    }


def profile_band(
    scores: ArrayLike,
    thresholds: ArrayLike,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: Seed = 0,
) -> Band:
    """``performance_profile`` with a separate interval at each threshold.

    Args:
        scores: (runs, tasks), on a common scale.
        thresholds: (n,) thresholds τ.
        resamples: Number of resamples.
        level: Confidence level.
        seed: Seed of the draws.

    Returns:
        Three arrays (n,).
    """
    return bootstrap_band(
        lambda resampled: aggregates.performance_profile(resampled, thresholds),
        scores,
        resamples=resamples,
        level=level,
        seed=seed,
    )


def improvement_estimate(
    scores: ArrayLike,
    others: ArrayLike,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: Seed = 0,
) -> Estimate:
    """``improvement_probability`` with its interval; the runs of both algorithms are resampled independently.

    Args:
        scores: (runs, tasks) of X.
        others: (runs, tasks) of Y; the number of runs may differ.
        resamples: Number of resamples.
        level: Confidence level.
        seed: Seed of the draws.
    """
    return bootstrap_estimate(
        aggregates.improvement_probability, scores, others, resamples=resamples, level=level, seed=seed
    )
