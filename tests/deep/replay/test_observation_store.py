"""Rows of observations: written, read, compared and lent by number."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from holdfast.deep.replay.frame_store import FrameStore
from holdfast.deep.replay.observation_store import ArrayStore, DictStore
from holdfast.deep.replay.stores import bytes_needed, make_store

SPACE = spaces.Dict({"a": spaces.Box(0, 255, (2, 3), np.uint8), "b": spaces.Box(-1.0, 1.0, (1,), np.float32)})
SHAPE = {"a": (2, 3), "b": (1,)}


def batch(numbers):
    return {
        "a": np.array([np.full((2, 3), number) for number in numbers], dtype=np.uint8),
        "b": np.array([[number] for number in numbers], dtype=np.float32),
    }


@given(st.data())
def test_a_store_is_a_table_of_rows(data):
    store, table = make_store(5, SPACE, SHAPE), dict.fromkeys(range(5), 0)
    for _ in range(data.draw(st.integers(0, 30), label="commands")):
        match data.draw(st.sampled_from(["put", "put", "lend", "give back", "same"])):
            case "put":
                rows = data.draw(st.lists(st.sampled_from(sorted(table)), min_size=1, max_size=4, unique=True))
                numbers = [data.draw(st.integers(0, 200)) for _ in rows]
                store.put(np.array(rows), batch(numbers))
                table.update(zip(rows, numbers, strict=True))
            case "lend":
                row = store.lend()
                assert row not in table
                store.put(np.array([row]), batch([7]))
                table[row] = 7
            case "give back":
                lent = [row for row in table if row >= 5]
                if lent:
                    row = data.draw(st.sampled_from(lent))
                    store.give_back(row)
                    del table[row]
            case "same":
                rows = sorted(table)
                asked = [table[row] + data.draw(st.sampled_from([0, 0, 1])) for row in rows]
                expected = [number == table[row] for row, number in zip(rows, asked, strict=True)]
                assert store.same(np.array(rows), batch(asked)).tolist() == expected
    rows = np.array(sorted(table))
    found = store.get(rows)
    for key, values in batch([table[row] for row in rows]).items():
        np.testing.assert_array_equal(found[key], values)
        assert found[key].dtype == values.dtype


def test_what_is_read_is_a_copy():
    store = ArrayStore(3, (2,), np.float32)
    for row in (0, store.lend()):
        store.put(np.array([row]), np.ones((1, 2)))
        store.get(np.array([row]))[:] = 9.0
        assert store.get(np.array([row])).tolist() == [[1.0, 1.0]]


def test_lent_rows_grow_as_they_are_needed_and_keep_what_they_hold():
    store = ArrayStore(2, (1,), np.int64)
    rows = [store.lend() for _ in range(200)]
    assert len(set(rows)) == 200
    for row in rows:
        store.put(np.array([row]), np.array([[row]]))
    more = [store.lend() for _ in range(200)]
    assert not set(rows) & set(more)
    assert store.get(np.array(rows)).ravel().tolist() == rows


@pytest.mark.parametrize(
    ("space", "shape"),
    [
        (SPACE, SHAPE),
        (spaces.Box(-1.0, 1.0, (4,), np.float64), (4,)),
        (spaces.Discrete(9), (1,)),
        (spaces.MultiDiscrete([3, 4]), (2,)),
        (spaces.MultiBinary(6), (6,)),
        (spaces.Box(0, 255, (4, 30, 30), np.uint8), (4, 30, 30)),
    ],
)
def test_the_memory_that_is_announced_is_the_memory_that_is_used(space, shape):
    store = make_store(11, space, shape)
    kind = FrameStore if shape == (4, 30, 30) else ArrayStore
    assert isinstance(store, DictStore if isinstance(space, spaces.Dict) else kind)
    assert bytes_needed(11, space, shape) == store.nbytes
