"""Statistics: means and rates with their intervals, the bootstrap, and comparisons of algorithms over tasks."""

from holdfast.stats.aggregates import (
    improvement_probability,
    interquartile_mean,
    mean_score,
    median_score,
    optimality_gap,
    performance_profile,
)
from holdfast.stats.bootstrap import bootstrap_band, bootstrap_estimate
from holdfast.stats.comparisons import AGGREGATES, aggregate_estimates, improvement_estimate, profile_band
from holdfast.stats.estimates import Band, Estimate, mean_estimate, mean_interval
from holdfast.stats.scores import episode_mean, normalize_scores

__all__ = [
    "AGGREGATES",
    "Band",
    "Estimate",
    "aggregate_estimates",
    "bootstrap_band",
    "bootstrap_estimate",
    "episode_mean",
    "improvement_estimate",
    "improvement_probability",
    "interquartile_mean",
    "mean_estimate",
    "mean_interval",
    "mean_score",
    "median_score",
    "normalize_scores",
    "optimality_gap",
    "performance_profile",
    "profile_band",
]
