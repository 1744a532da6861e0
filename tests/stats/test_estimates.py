"""Means over runs with Student's interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from holdfast.stats import mean_estimate, mean_interval

NUMBERS = st.floats(-1e6, 1e6)


def test_an_interval_by_hand() -> None:
    # Mean 4, variance 8/3, t(0.975, 3) = 3.182446.
    found = mean_estimate([2.0, 4.0, 4.0, 6.0])
    spread = math.sqrt(8.0 / 3.0)
    assert found.value == 4.0
    assert found.high == pytest.approx(4.0 + 3.182446 * spread / 2.0, rel=1e-6)
    assert found.low == pytest.approx(4.0 - 3.182446 * spread / 2.0, rel=1e-6)


@given(st.lists(NUMBERS, min_size=2, max_size=12), st.floats(0.5, 0.99))
def test_it_is_the_interval_of_scipy(values: list[float], level: float) -> None:
    found = mean_estimate(values, level)
    error = float(stats.sem(values))
    expected = stats.t.interval(level, len(values) - 1, loc=np.mean(values), scale=error) if error > 0.0 else None
    low, high = expected or (found.value, found.value)
    assert found.low == pytest.approx(low, rel=1e-9, abs=1e-6)
    assert found.high == pytest.approx(high, rel=1e-9, abs=1e-6)


def test_curves_point_by_point() -> None:
    curves = np.random.default_rng(0).normal(size=(7, 5))
    band = mean_interval(curves, 0.9)
    for point in range(5):
        assert tuple(part[point] for part in band) == pytest.approx(mean_estimate(curves[:, point], 0.9))


def test_one_run_has_no_interval() -> None:
    value, low, high = mean_estimate([3.0])
    assert value == 3.0
    assert math.isnan(low)
    assert math.isnan(high)
    assert np.isnan(mean_interval(np.array([[1.0, 2.0]])).low).all()


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    runs = np.random.default_rng(1).normal(2.0, 3.0, size=(8, 4000))
    band = mean_interval(runs)
    assert np.mean((band.low <= 2.0) & (band.high >= 2.0)) == pytest.approx(0.95, abs=0.012)
