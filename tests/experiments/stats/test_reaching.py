"""How soon runs reach a threshold, where some never do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from holdfast.experiments.stats import reach_estimate, steps_to_reach

STEPS = np.array([0.0, 10.0, 20.0, 60.0])
LEVELS = [0.6, 0.8, 0.9, 0.95, 0.99]  # that no number of tosses meets exactly
CURVES = np.array([[0.0, 2.0, 4.0, 4.0], [1.0, 1.0, 1.0, 1.0]])


def test_first_steps_by_hand() -> None:
    assert steps_to_reach(STEPS, CURVES, 2.0).tolist() == [10.0, math.inf]
    assert steps_to_reach(STEPS, CURVES, 1.0).tolist() == [10.0, 0.0]
    assert steps_to_reach(STEPS, CURVES, 4.1).tolist() == [math.inf, math.inf]
    # A lucky episode does not count where the mean of two has to be there.
    assert steps_to_reach(STEPS, [[0.0, 9.0, 0.0, 6.0]], 5.0).tolist() == [10.0]
    assert steps_to_reach(STEPS, [[0.0, 9.0, 2.0, 6.0]], 5.0, window=2).tolist() == [20.0]
    assert steps_to_reach(STEPS, [[0.0, 9.0, 0.0, 6.0]], 5.0, window=2).tolist() == [math.inf]
    assert steps_to_reach(STEPS, CURVES, 2.5, window=4).tolist() == [60.0, math.inf]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=10), st.integers(-4, 4), st.integers(1, 3))
def test_the_first_step_by_looking_at_each(curve: list[int], threshold: int, window: int) -> None:
    if window > len(curve):
        window = len(curve)
    expected = math.inf
    for last in reversed(range(window - 1, len(curve))):
        if sum(curve[last - window + 1 : last + 1]) >= threshold * window:
            expected = 100.0 + last
    assert steps_to_reach(100 + np.arange(len(curve)), curve, threshold, window) == expected


def test_medians_of_steps_by_hand() -> None:
    # Of seven, fewer than one head has the probability 1/128: from the first to the last.
    assert reach_estimate([70.0, 10.0, 30.0, 20.0, 40.0, math.inf, 50.0]) == (40.0, 10.0, None, 6, 7)
    # Exactly half of them were there at 20.
    assert reach_estimate([10.0, 20.0, math.inf, math.inf], level=0.8) == (20.0, 10.0, None, 2, 4)
    assert reach_estimate([10.0, math.inf, math.inf], level=0.7) == (None, 10.0, None, 1, 3)
    assert reach_estimate([math.inf] * 9) == (None, None, None, 0, 9)


def test_five_runs_are_too_few_for_95_percent() -> None:
    value, low, high, reached, runs = reach_estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (value, reached, runs) == (3.0, 5, 5)
    assert low is not None
    assert high is not None
    assert math.isnan(low)
    assert math.isnan(high)
    assert reach_estimate([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == (3.0, 1.0, 6.0, 6, 6)


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=60, unique=True), st.sampled_from(LEVELS))
def test_the_interval_is_the_one_of_the_quantile_test(times: list[float], level: float) -> None:
    found = reach_estimate(times, level)
    low, high = stats.quantile_test(times, p=0.5).confidence_interval(level)
    assert found.low == pytest.approx(low, nan_ok=True)
    assert found.high == pytest.approx(high, nan_ok=True)


@given(st.lists(st.one_of(st.integers(1, 20), st.just(math.inf)), min_size=1, max_size=15))
def test_the_median_is_the_one_of_kaplan_and_meier(times: list[float]) -> None:
    censored = stats.CensoredData.right_censored(np.minimum(times, 25.0), np.isinf(times))
    survival = stats.ecdf(censored).sf
    there = [time for time in sorted(set(times)) if math.isfinite(time) and survival.evaluate(time) <= 0.5 + 1e-12]
    assert reach_estimate(times).value == (there[0] if there else None)


def test_intervals_cover_the_median_at_least_as_often_as_they_say() -> None:
    random = np.random.default_rng(4)
    times = random.exponential(1.0, size=(400, 15))
    times[times > 2.0] = math.inf  # the end of the training
    covered = []
    for sample in times:
        found = reach_estimate(sample)
        low = math.inf if found.low is None else found.low
        high = math.inf if found.high is None else found.high
        covered.append(low <= math.log(2.0) <= high)
    assert 0.94 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: steps_to_reach(STEPS, CURVES, math.nan), "threshold must be"),
        (lambda: steps_to_reach(STEPS, CURVES, 1.0, window=5), "window must be at most the 4 points"),
        (lambda: reach_estimate([]), "times must be"),
        (lambda: reach_estimate([math.nan]), "times must be"),
        (lambda: reach_estimate([[1.0]]), "times must be"),
        (lambda: reach_estimate([-math.inf]), "times must be"),
    ],
)
def test_refused_in_a_sentence(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
