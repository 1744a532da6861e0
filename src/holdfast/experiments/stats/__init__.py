"""The statistics that figures and sweeps report: means, aggregates over tasks, comparisons, intervals."""

from holdfast.experiments.stats.aggregates import (
    improvement_probability,
    interquartile_mean,
    mean_score,
    median_score,
    optimality_gap,
    performance_profile,
)
from holdfast.experiments.stats.bootstrap import bootstrap_band, bootstrap_estimate
from holdfast.experiments.stats.comparisons import (
    AGGREGATES,
    aggregate_estimates,
    improvement_estimate,
    profile_band,
)
from holdfast.experiments.stats.estimates import Band, Estimate, mean_band, mean_estimate
from holdfast.experiments.stats.learning import area_under_curve, episode_mean, mean_level
from holdfast.experiments.stats.reaching import ReachEstimate, reach_estimate, steps_to_reach
from holdfast.experiments.stats.scores import normalize_scores

__all__ = [
    "AGGREGATES",
    "Band",
    "Estimate",
    "ReachEstimate",
    "aggregate_estimates",
    "area_under_curve",
    "bootstrap_band",
    "bootstrap_estimate",
    "episode_mean",
    "improvement_estimate",
    "improvement_probability",
    "interquartile_mean",
    "mean_band",
    "mean_estimate",
    "mean_level",
    "mean_score",
    "median_score",
    "normalize_scores",
    "optimality_gap",
    "performance_profile",
    "profile_band",
    "reach_estimate",
    "steps_to_reach",
]
