"""Intervals: against numbers worked out by hand and against SciPy's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, quantile_test

from holdfast.stats.estimates import Estimate, mean_estimate
from holdfast.stats.intervals import in_percent, quantile_estimate, wilson_estimate


def test_wilson_by_hand() -> None:
    # z = 1.959964, z² = 3.841459, p̂ = .2, n = 10: the middle is (.2 + .19207) / 1.384146 = .28326, the half width
    # 1.959964·√(.016 + .0096036) / 1.384146 = .31362 / 1.384146 = .22658.
    assert wilson_estimate(2, 10) == pytest.approx((0.2, 0.05668, 0.50984), abs=1e-5)
    # Nothing in n trials: from 0 to z²/(n + z²).
    assert wilson_estimate(0, 100) == pytest.approx((0.0, 0.0, 3.841459 / 103.841459), abs=1e-7)
    assert wilson_estimate(100, 100).high == 1.0


@given(trials=st.integers(1, 500), share=st.floats(0, 1), level=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_wilson_is_scipys(trials: int, share: float, level: float) -> None:
    won = round(share * trials)
    theirs = binomtest(won, trials).proportion_ci(level, method="wilson")
    ours = wilson_estimate(won, trials, level)
    assert ours == pytest.approx((won / trials, theirs.low, theirs.high), abs=1e-12)
    assert 0.0 <= ours.low <= ours.value <= ours.high <= 1.0


def test_the_mean_by_hand() -> None:
    # Mean 3, standard deviation 1, n = 3; t of 2 degrees of freedom is 4.302653: ± 4.302653 / √3 = 2.484138.
    assert mean_estimate(np.array([2.0, 3.0, 4.0])) == pytest.approx((3.0, 0.515862, 5.484138), abs=1e-6)
    alone = mean_estimate(np.array([7.0]))
    assert alone.value == 7.0
    assert math.isnan(alone.low)


def test_the_median_of_ten_lies_between_the_second_and_the_ninth() -> None:
    # P(Bin(10, ½) ≤ 1) = 11/1024 < .025 ≤ 56/1024 = P(≤ 2): the textbook's interval, at 97.9 %.
    assert quantile_estimate(np.arange(10.0, 0.0, -1.0), 0.5) == (5.5, 2.0, 9.0)


def test_a_high_quantile_of_few_values_has_no_upper_end() -> None:
    few = quantile_estimate(np.arange(1.0, 11.0), 0.9)
    assert few.value == pytest.approx(9.1)
    assert few.low == 7.0  # P(Bin(10, .9) ≤ 6) = .0128 < .025 ≤ P(≤ 7) = .0702
    assert math.isnan(few.high)


@given(n=st.integers(60, 300), q=st.sampled_from([0.25, 0.5, 0.9]))
def test_quantiles_lie_within_scipys_interval_of_the_same_kind(n: int, q: float) -> None:
    values = np.random.default_rng(n).normal(size=n)
    theirs = quantile_test(values, q=np.quantile(values, q), p=q).confidence_interval(0.95)
    ours = quantile_estimate(values, q)
    ordered = np.sort(values)
    # SciPy's ends are ours or one value beside them: it weighs the steps of the distribution the other way.
    for mine, other in ((ours.low, theirs.low), (ours.high, theirs.high)):
        assert abs(np.searchsorted(ordered, mine) - np.searchsorted(ordered, other)) <= 1


def test_nothing_is_known_of_nothing() -> None:
    for estimate in (wilson_estimate(0, 0), mean_estimate(np.empty(0)), quantile_estimate(np.empty(0), 0.5)):
        assert all(math.isnan(part) for part in estimate)


def test_more_successes_than_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="successes must be at most the 3 trials, not 4"):
        wilson_estimate(4, 3)


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Estimate(0.0279, 0.0142, 0.0563), "2.79 % (1.4–5.6)"),
        (Estimate(1.0, 0.76, 1.0), "100 % (76–100)"),
        (Estimate(0.9984, 0.9953, 0.9994), "99.8 % (99.5–99.9)"),
        (Estimate(0.0, 0.0, 0.015), "0 % (0–1.5)"),
    ],
)
def test_rates_are_read_in_percent(rate: Estimate, text: str) -> None:
    assert in_percent(rate) == text
