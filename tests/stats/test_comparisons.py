"""What a comparison reports, against the definitions written out: the numbers, and their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from holdfast.stats import (
    AGGREGATES,
    aggregate_estimates,
    improvement_estimate,
    improvement_probability,
    performance_profile,
    profile_band,
)
from tests.stats import literal

# Several tasks of different spread, with ties within and between the two.
SCORES = np.random.default_rng(5).normal([0.2, 0.5, 1.0, 0.9], [0.1, 0.3, 0.2, 0.5], size=(11, 4)).round(1)
OTHERS = np.random.default_rng(6).normal([0.3, 0.4, 0.8, 0.7], [0.2, 0.3, 0.2, 0.4], size=(9, 4)).round(1)
TAUS = [-0.25, 0.09, 0.5, 0.77, 1.0, 1.45]  # some at scores, which are not above themselves

LITERAL: dict[str, Any] = {
    "median": literal.median,
    "interquartile mean": literal.interquartile_mean,
    "mean": literal.mean,
    "optimality gap": literal.optimality_gap,
}


@pytest.mark.parametrize("name", LITERAL)
def test_aggregates(name: str) -> None:
    for scores in (SCORES, OTHERS, SCORES[:3, :3], SCORES[:1], SCORES[:, :1]):
        assert AGGREGATES[name](scores) == pytest.approx(LITERAL[name](scores.tolist()), rel=1e-12)


def test_every_aggregate_is_compared() -> None:
    assert list(LITERAL) == list(AGGREGATES) == list(aggregate_estimates(SCORES, resamples=2))


def test_improvement() -> None:
    expected = literal.improvement(SCORES.tolist(), OTHERS.tolist())
    assert improvement_probability(SCORES, OTHERS) == pytest.approx(expected, rel=1e-12)


def test_profiles() -> None:
    assert performance_profile(SCORES, TAUS) == pytest.approx(literal.profile(SCORES.tolist(), TAUS), rel=1e-12)


# Two bootstraps with different random numbers agree up to the noise of their quantiles.


@pytest.mark.parametrize("name", LITERAL)
def test_intervals_of_aggregates(name: str) -> None:
    low, high = literal.interval(LITERAL[name], SCORES.tolist(), resamples=4000)
    ours = aggregate_estimates(SCORES, resamples=8000)[name]
    assert [ours.low, ours.high] == pytest.approx([low, high], abs=0.08 * (high - low))


def test_intervals_of_improvement() -> None:
    expected = literal.interval(literal.improvement, SCORES.tolist(), OTHERS.tolist(), resamples=1500)
    ours = improvement_estimate(SCORES, OTHERS, resamples=8000)
    assert [ours.low, ours.high] == pytest.approx(expected, abs=0.02)


def test_bands_of_profiles() -> None:
    ours = profile_band(SCORES, TAUS, resamples=8000)
    for place, tau in enumerate(TAUS):
        low, high = literal.interval(
            lambda scores, tau=tau: literal.profile(scores, [tau])[0], SCORES.tolist(), resamples=1500
        )
        assert [ours.low[place], ours.high[place]] == pytest.approx([low, high], abs=0.03)
