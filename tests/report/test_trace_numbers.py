"""What a trace comes to, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from holdfast.report.records import Trace
from holdfast.report.trace_numbers import final_value, mean_over_training, seed_band, steps_to_reach, thinned


def trace(x, y):
    return Trace(np.array(x, dtype=float), np.array(y, dtype=float))


def test_the_end_is_the_mean_of_the_last_fifth():
    assert final_value(trace(range(10), [0, 0, 0, 0, 0, 0, 0, 0, 3, 5])) == 4.0
    assert final_value(trace([1, 2], [7, 9])) == 9.0


def test_the_mean_over_training_counts_how_long_a_value_held():
    # 2 for 10 steps, 6 for 30 steps: (20 + 180) / 40.
    assert mean_over_training(trace([0, 10, 40], [2, 6, 100])) == 5.0
    assert mean_over_training(trace([5], [3])) == 3.0


def test_a_goal_is_reached_where_it_first_is():
    assert steps_to_reach(trace([1, 2, 3, 4], [0, 5, 2, 6]), 5.0) == 2.0
    assert steps_to_reach(trace([1, 2], [0, 1]), 5.0) is None


def test_the_band_over_seeds_is_students():
    at, band = seed_band([trace([1, 2], [0, 4]), trace([1, 2], [2, 8]), trace([1, 2, 3], [4, 0, 9])])
    assert at.tolist() == [1.0, 2.0]
    assert band.value.tolist() == [2.0, 4.0]
    expected = stats.t.interval(0.95, 2, loc=4.0, scale=stats.sem([4.0, 8.0, 0.0]))
    assert (band.low[1], band.high[1]) == pytest.approx(expected)


def test_a_thin_trace_keeps_ends_and_extremes():
    y = np.zeros(1_000_000)
    y[123_456], y[777_777] = 5.0, -7.0
    thin = thinned(Trace(np.arange(1_000_000.0), y), 100)
    assert len(thin.x) <= 100
    assert (thin.x[0], thin.x[-1]) == (0.0, 999_999.0)
    assert (thin.y.max(), thin.y.min()) == (5.0, -7.0)
    assert np.all(np.diff(thin.x) > 0)
    short = trace([1, 2, 3], [1, 2, 3])
    assert thinned(short, 100) is short
