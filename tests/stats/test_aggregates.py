"""Aggregates over runs and tasks: by hand, against SciPy, and what holds for all scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from scipy import stats

from holdfast.stats import (
    improvement_probability,
    interquartile_mean,
    mean_score,
    median_score,
    normalize_scores,
    optimality_gap,
    performance_profile,
)

Floats = NDArray[np.float64]

SCORES = arrays(
    np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(-100.0, 100.0, width=16)
)
FEW_SCORES = arrays(np.float64, (4, 3), elements=st.integers(0, 3))

BY_HAND = np.array(
    [
        [0.0, 1.0, 4.0],
        [2.0, 1.0, 8.0],
        [1.0, 4.0, 6.0],
    ]
)


def test_mean_by_hand() -> None:
    assert mean_score(BY_HAND) == 3.0


def test_median_by_hand() -> None:
    # Means of the tasks: 1, 2 and 6.
    assert median_score(BY_HAND) == 2.0


def test_interquartile_mean_by_hand() -> None:
    # 0 1 | 1 1 2 4 4 | 6 8: of nine, two are left out at each end.
    assert interquartile_mean(BY_HAND) == pytest.approx(12.0 / 5.0)
    # Of three, none is.
    assert interquartile_mean([[0.0, 1.0, 8.0]]) == 3.0


def test_optimality_gap_by_hand() -> None:
    # To 2, there are missing 2 + 1 + 1 + 1 of nine scores.
    assert optimality_gap(BY_HAND, 2.0) == pytest.approx(5.0 / 9.0)
    assert optimality_gap([[0.25, 3.0]]) == pytest.approx(0.375)


def test_profile_by_hand() -> None:
    # Above, not at: of nine, two are at least 6 and one is above it.
    assert performance_profile(BY_HAND, [-1.0, 0.0, 1.0, 6.0, 8.0]) == pytest.approx(np.array([9, 8, 5, 1, 0]) / 9)


def test_improvement_by_hand() -> None:
    # First task: 3 > 1, 3 > 2, 2 > 1 and 2 = 2 are 3.5 of four pairs; second: 0 < 1 twice, 1 = 1 twice.
    scores, others = [[3.0, 0.0], [2.0, 1.0]], [[1.0, 1.0], [2.0, 1.0]]
    assert improvement_probability(scores, others) == pytest.approx((3.5 / 4.0 + 1.0 / 4.0) / 2.0)


def test_scores_on_a_common_scale_by_hand() -> None:
    found = normalize_scores([[-200.0, 0.0], [-100.0, 3.0]], zero=[-200.0, 1.0], one=[-100.0, 0.0])
    assert found.tolist() == [[0.0, 1.0], [1.0, -2.0]]
    assert normalize_scores([[5.0]], 0, 10).tolist() == [[0.5]]


@given(SCORES)
def test_the_interquartile_mean_is_a_trimmed_mean(scores: Floats) -> None:
    expected = stats.trim_mean(scores, proportiontocut=0.25, axis=None)
    assert interquartile_mean(scores) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(SCORES, st.integers(1, 5), st.integers(0, 1000))
def test_improvement_is_the_u_of_mann_and_whitney(scores: Floats, runs: int, seed: int) -> None:
    others = np.random.default_rng(seed).choice(scores.ravel(), size=(runs, scores.shape[1]))
    # Only its U is used: the method is that of the p-value, and this one says nothing about ties.
    found = [stats.mannwhitneyu(x, y, method="exact").statistic for x, y in zip(scores.T, others.T, strict=True)]
    expected = np.mean(found) / (len(scores) * runs)
    assert improvement_probability(scores, others) == pytest.approx(expected)


@given(FEW_SCORES, FEW_SCORES)
def test_one_wins_where_the_other_loses(scores: Floats, others: Floats) -> None:
    assert improvement_probability(scores, others) + improvement_probability(others, scores) == pytest.approx(1.0)
    assert improvement_probability(scores, scores) == pytest.approx(0.5)
    assert improvement_probability(scores + 10.0, others) == 1.0


@given(SCORES, st.floats(0.5, 4.0), st.floats(-9.0, 9.0))
def test_scaled_scores_have_scaled_aggregates(scores: Floats, factor: float, shift: float) -> None:
    for aggregate in (mean_score, median_score, interquartile_mean):
        assert aggregate(factor * scores + shift) == pytest.approx(factor * aggregate(scores) + shift, abs=1e-9)
        assert scores.min() - 1e-9 <= aggregate(scores) <= scores.max() + 1e-9
    assert optimality_gap(factor * scores, factor) == pytest.approx(factor * optimality_gap(scores), abs=1e-9)


@given(SCORES)
def test_the_area_under_a_profile_is_what_is_missing_to_the_target(scores: Floats) -> None:
    # ∫ P(x ≤ τ) dτ up to the target is its distance to min(x, target), by parts.
    target = 1.0
    corners = np.unique(np.concatenate([np.minimum(scores.ravel(), target), [target]]))
    shares = 1.0 - performance_profile(scores, corners)
    assert optimality_gap(scores, target) == pytest.approx(float(np.diff(corners) @ shares[:-1]), abs=1e-9)


@given(SCORES)
def test_a_profile_falls_from_all_to_none(scores: Floats) -> None:
    taus = np.linspace(scores.min() - 1.0, scores.max(), 9)
    profile = performance_profile(scores, taus)
    assert profile[0] == 1.0
    assert profile[-1] == 0.0
    assert (np.diff(profile) <= 0.0).all()
    assert profile == pytest.approx(stats.ecdf(scores.ravel()).sf.evaluate(taus))


@given(SCORES)
def test_axes_before_the_last_two_stay(scores: Floats) -> None:
    stack = np.stack([scores, scores[::-1] + 1.0, 2.0 * scores])
    for aggregate in (mean_score, median_score, interquartile_mean, optimality_gap):
        assert aggregate(stack) == pytest.approx([float(aggregate(one)) for one in stack])
    taus = [0.0, 1.0]
    assert performance_profile(stack, taus).tolist() == [performance_profile(s, taus).tolist() for s in stack]
    pairs = [float(improvement_probability(one, scores)) for one in stack]
    assert improvement_probability(stack, np.stack([scores] * 3)) == pytest.approx(pairs)


def test_one_run_of_one_task_is_its_own_aggregate() -> None:
    for aggregate in (mean_score, median_score, interquartile_mean):
        assert aggregate([[0.25]]) == 0.25
    assert optimality_gap([[0.25]]) == 0.75
    assert improvement_probability([[1.0]], [[1.0]]) == 0.5


@pytest.mark.parametrize(
    "scores", [[], [[]], [1.0, 2.0], [[1.0, 2.0], [3.0]], [[np.nan]], [[1.0, np.inf]], [["x"]], None]
)
def test_scores_refused_in_a_sentence(scores: Any) -> None:
    for aggregate in (mean_score, median_score, interquartile_mean, optimality_gap):
        with pytest.raises(ValueError, match="scores must"):
            aggregate(scores)
    with pytest.raises(ValueError, match="others must"):
        improvement_probability([[1.0]], scores)


def test_unequal_numbers_of_runs_are_refused_and_say_what_is_asked_for() -> None:
    with pytest.raises(ValueError, match="the same number of runs for every task"):
        mean_score([[1.0, 2.0], [3.0]])


def test_other_arguments_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="others must have the 2 tasks"):
        improvement_probability([[1.0, 2.0]], [[1.0]])
    with pytest.raises(ValueError, match="thresholds must"):
        performance_profile([[1.0]], [[1.0]])
    with pytest.raises(ValueError, match="target must"):
        optimality_gap([[1.0]], np.nan)
    with pytest.raises(ValueError, match="zero and one must"):
        normalize_scores([[1.0, 2.0]], [0.0, 1.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="one must be one number, or one for each of the 2 tasks"):
        normalize_scores([[1.0, 2.0]], 0.0, [1.0, 1.0, 1.0])
