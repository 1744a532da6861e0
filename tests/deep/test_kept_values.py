"""Kept target values: computed once, never stale."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.deep.kept_values import KeptValues


@given(st.data())
def test_kept_values_are_what_would_be_computed_now(data):
    version = dict.fromkeys(range(12), 0)
    kept, computed = KeptValues(0, (2, 3)), []

    def values(rows):
        return np.array([np.full((2, 3), 100 * row + version[row]) for row in rows.tolist()], dtype=np.float32)

    def compute(rows):
        computed.extend((row, version[row]) for row in rows.tolist())
        return values(rows)

    rows = st.lists(st.integers(0, 11), min_size=1, max_size=6, unique=True).map(np.array)
    for name, chosen in data.draw(st.lists(st.tuples(st.sampled_from(["get", "get", "put", "all"]), rows))):
        if name == "get":
            np.testing.assert_array_equal(kept.get(chosen, compute), values(chosen))
        else:
            for row in version if name == "all" else chosen.tolist():
                version[row] += 1
            kept.drop(None if name == "all" else chosen)
    assert len(computed) == len(set(computed)), "something was computed twice"
