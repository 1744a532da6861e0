"""Kept target values: computed once, never stale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.deep.speed.target_cache import TargetCache


@given(st.data())
def test_kept_values_are_what_would_be_computed_now(data):
    version = dict.fromkeys(range(12), 0)
    n_rows = data.draw(st.sampled_from([0, 5, 12]), label="n_rows")
    kept, computed = TargetCache(n_rows, (2, 3)), []

    def values(rows):
        return np.array([np.full((2, 3), 100 * row + version[row]) for row in rows.tolist()], dtype=np.float32)

    def compute(rows):
        computed.extend((row, version[row]) for row in rows.tolist())
        return values(rows)

    rows = st.lists(st.integers(0, 11), min_size=1, max_size=6).map(np.array)
    for name, chosen in data.draw(st.lists(st.tuples(st.sampled_from(["need", "need", "put", "all"]), rows))):
        if name == "need":
            kept.need(chosen, compute)
            np.testing.assert_array_equal(kept.values[chosen], values(chosen))
        else:
            for row in version if name == "all" else chosen.tolist():
                version[row] += 1
            kept.drop(None if name == "all" else chosen)
    assert len(computed) == len(set(computed)), "something was computed twice"


def test_each_distinct_row_is_asked_for_once():
    kept, asked = TargetCache(8, (1,)), []

    def compute(rows):
        asked.append(rows.tolist())
        return 10.0 * rows[:, None]

    kept.need(np.array([[3, 5, 3], [5, 1, 3]]), compute)
    kept.need(np.array([[1, 7, 7]]), compute)
    kept.need(np.array([[7, 3, 1]]), compute)
    assert asked == [[3, 5, 1], [7]]
    assert kept.values[[1, 3, 5, 7], 0].tolist() == [10.0, 30.0, 50.0, 70.0]


def test_rows_are_not_known_after_a_computation_that_failed():
    kept = TargetCache(4, (1,))
    kept.need(np.array([0]), lambda rows: np.full((1, 1), 5.0))

    def fail(rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.need(np.array([0, 2, 3]), fail)
    kept.need(np.array([0, 2]), lambda rows: np.full((len(rows), 1), 7.0))
    assert kept.known.tolist() == [True, False, True, False]
    assert kept.values[[0, 2], 0].tolist() == [5.0, 7.0]
