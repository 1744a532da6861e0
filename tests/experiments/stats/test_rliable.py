"""The same numbers as rliable, where it is installed: the library of those who recommended them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from holdfast.experiments.stats import (
    AGGREGATES,
    aggregate_estimates,
    improvement_estimate,
    improvement_probability,
    performance_profile,
    profile_band,
)

# Importing it warns of what it imports in turn.
pytestmark = pytest.mark.filterwarnings("ignore")

SCORES = np.random.default_rng(5).normal([0.2, 0.5, 1.0, 0.9], [0.1, 0.3, 0.2, 0.5], size=(11, 4)).round(1)
OTHERS = np.random.default_rng(6).normal([0.3, 0.4, 0.8, 0.7], [0.2, 0.3, 0.2, 0.4], size=(9, 4)).round(1)
TAUS = np.linspace(-0.25, 1.45, 6)


@pytest.fixture
def metrics() -> Any:
    return pytest.importorskip("rliable.metrics", exc_type=ImportError)


@pytest.fixture
def library() -> Any:
    found = pytest.importorskip("rliable.library", exc_type=ImportError)
    # It draws from NumPy's one generator, whatever random_state it is given.
    np.random.seed(0)  # noqa: NPY002 - so that this test is the same every time
    return found


def test_aggregates(metrics: Any) -> None:
    theirs = {
        "median": metrics.aggregate_median,
        "interquartile mean": metrics.aggregate_iqm,
        "mean": metrics.aggregate_mean,
        "optimality gap": metrics.aggregate_optimality_gap,
    }
    for name, function in AGGREGATES.items():
        assert function(SCORES) == pytest.approx(theirs[name](SCORES), rel=1e-12)


def test_improvement(metrics: Any) -> None:
    assert improvement_probability(SCORES, OTHERS) == pytest.approx(
        metrics.probability_of_improvement(SCORES, OTHERS), rel=1e-12
    )


def test_intervals(metrics: Any, library: Any) -> None:
    def all_of_them(scores: Any) -> Any:
        return np.array(
            [
                metrics.aggregate_median(scores),
                metrics.aggregate_iqm(scores),
                metrics.aggregate_mean(scores),
                metrics.aggregate_optimality_gap(scores),
            ]
        )

    _, intervals = library.get_interval_estimates({"x": SCORES}, all_of_them, reps=4000)
    ours = aggregate_estimates(SCORES, resamples=4000)
    for (_, low, high), (their_low, their_high) in zip(ours.values(), intervals["x"].T, strict=True):
        tolerance = 0.08 * (their_high - their_low)
        assert low == pytest.approx(their_low, abs=tolerance)
        assert high == pytest.approx(their_high, abs=tolerance)


def test_intervals_of_improvement(metrics: Any, library: Any) -> None:
    _, intervals = library.get_interval_estimates(
        {"x": [SCORES, OTHERS]}, lambda x, y: np.array([metrics.probability_of_improvement(x, y)]), reps=1000
    )
    ours = improvement_estimate(SCORES, OTHERS, resamples=4000)
    assert [ours.low, ours.high] == pytest.approx(intervals["x"].ravel(), abs=0.02)


def test_profiles(library: Any) -> None:
    profiles, bands = library.create_performance_profile({"x": SCORES}, TAUS, reps=1000)
    ours = profile_band(SCORES, TAUS, resamples=4000)
    assert performance_profile(SCORES, TAUS) == pytest.approx(profiles["x"])
    assert ours.low == pytest.approx(bands["x"][0], abs=0.03)
    assert ours.high == pytest.approx(bands["x"][1], abs=0.03)
