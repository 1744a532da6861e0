"""Counting places."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from holdfast.advice.visitation.cells import BINS, cell_numbers, coverage, entropy, most_telling_axes, visits_in


class Showing(gymnasium.Env[Any, Any]):
    """An environment of which only the observations matter."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.observation_space = space


def vector(n: int) -> Showing:
    return Showing(spaces.Box(-np.inf, np.inf, (n,), np.float32))


def test_coverage_by_hand() -> None:
    # Five cells, of which the last was never visited by anybody.
    numbers, share = coverage(np.array([[3, 0, 0, 1, 0], [1, 9, 0, 0, 0], [0, 0, 5, 0, 0]]))
    assert numbers.tolist() == [2, 2, 1]
    assert share.tolist() == [0.5, 0.5, 0.25]


def test_entropy_by_hand() -> None:
    assert entropy(np.array([5, 0, 5])) == pytest.approx(math.log(2))
    assert entropy(np.array([7, 0])) == 0.0
    assert entropy(np.zeros(3, dtype=np.int64)) == 0.0


def test_every_number_lies_in_its_cell_and_the_highest_in_the_last() -> None:
    assert cell_numbers(np.array([0.0, 0.019, 0.021, 0.999, 1.0]), 0.0, 1.0).tolist() == [0, 0, 1, 49, 49]
    values = np.random.default_rng(0).normal(size=1000)
    theirs, _ = np.histogram(values, bins=BINS)
    assert (
        np.bincount(cell_numbers(values, values.min(), values.max()), minlength=BINS).tolist() == theirs.tolist()
    )


def test_the_axes_are_those_along_which_the_spread_differs_most() -> None:
    narrow, wide = np.zeros(BINS, dtype=np.int64), np.ones(BINS, dtype=np.int64)
    narrow[0] = BINS
    half = np.where(np.arange(BINS) < 25, 2, 0)
    # By setting, then by axis: only axes 1 and 3 differ, 3 more so.
    counts = np.array([[wide, half, narrow, narrow], [wide, wide, narrow, wide]])
    assert most_telling_axes(counts) == (1, 3)
    assert most_telling_axes(counts[:1]) == (0, 1)


def test_a_plane_is_cut_between_what_all_settings_saw() -> None:
    visits = visits_in(vector(2), 2, None, keep=True)
    visits.add(0, np.array([[0.0, 1.0], [0.0, 1.0]]))
    visits.add(1, np.array([[50.0, 3.0]]))
    visits.add(0, np.array([[10.5, 2.0]]))
    cells = visits.cells(None)
    assert cells.kind == "plane"
    assert cells.names == ("observation[0]", "observation[1]")
    assert [(edges[0], edges[-1], len(edges)) for edges in cells.edges] == [(0.0, 50.0, 51), (1.0, 3.0, 51)]
    assert {tuple(at): int(cells.counts[tuple(at)]) for at in np.argwhere(cells.counts)} == {
        (0, 0, 0): 2,
        (0, 10, 25): 1,
        (1, 49, 49): 1,
    }


def test_what_was_not_kept_is_asked_for_again() -> None:
    parts = [np.random.default_rng(n).normal(size=(20, 2)) for n in range(3)]
    kept, asked = (visits_in(vector(2), 3, (1, 0), keep) for keep in (True, False))
    for number, part in enumerate(parts):
        kept.add(number, part)
        asked.add(number, part)
    found = asked.cells(lambda number: iter([parts[number][:5], parts[number][5:]]))
    assert np.array_equal(found.counts, kept.cells(None).counts)
    assert found.axes == (1, 0)
    for column, edges in zip((1, 0), found.edges, strict=True):
        assert edges[0] == min(part[:, column].min() for part in parts)


def test_numbers_that_never_change_have_room_too() -> None:
    visits = visits_in(vector(2), 1, None, keep=True)
    visits.add(0, np.array([[4.0, 0.0], [4.0, 1.0]]))
    assert visits.cells(None).counts.sum() == 2


def test_states_count_from_the_first() -> None:
    visits = visits_in(Showing(spaces.Discrete(4, start=3)), 1, None, keep=True)
    visits.add(0, np.array([visits.encode(state) for state in (3, 6, np.int64(6))]))
    cells = visits.cells(None)
    assert (cells.kind, cells.counts.tolist()) == ("states", [[1, 0, 0, 2]])


@pytest.mark.parametrize(
    ("space", "seen"),
    [
        (spaces.Box(0, 255, (2, 2), np.uint8), [np.zeros((2, 2)), np.eye(2), np.zeros((2, 2))]),
        (spaces.MultiDiscrete([3, 3]), [np.array([0, 1]), np.array([1, 0]), np.array([0, 1])]),
        (
            spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Discrete(2)}),
            [{"a": 0, "b": 1}, {"a": 1, "b": 0}, {"b": 1, "a": 0}],
        ),
        (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]), [(0, 1), (1, 0), (0, 1)]),
        (spaces.Box(-1, 1, (40,)), [np.zeros(40), np.ones(40), np.zeros(40)]),
    ],
)
def test_observations_of_other_kinds_are_told_apart(space: spaces.Space[Any], seen: list[Any]) -> None:
    visits = visits_in(Showing(space), 2, None, keep=True)
    visits.add(0, np.array([visits.encode(observation) for observation in seen]))
    visits.add(1, np.array([visits.encode(seen[1])]))
    cells = visits.cells(None)
    assert (cells.kind, cells.counts.tolist()) == ("observations", [[2, 1], [0, 1]])


def test_dictionaries_of_numbers_have_a_plane() -> None:
    space = spaces.Dict(
        {"position": spaces.Box(0, 9, (2,)), "fuel": spaces.Box(0, 9, ()), "gear": spaces.Discrete(2)}
    )
    visits = visits_in(Showing(space), 2, None, keep=True)

    def seen(x: float, y: float, fuel: float) -> Any:
        return visits.encode({"position": np.array([x, y]), "fuel": np.array(fuel), "gear": 1})

    visits.add(0, np.array([seen(1, y, fuel) for y, fuel in ((0, 0), (2, 3), (4, 6))]))
    visits.add(1, np.array([seen(1, 0, 0)] * 3))
    cells = visits.cells(None)
    # Sorted by key, as Gymnasium does it: fuel, gear=0, gear=1, position[0], position[1].
    assert (cells.kind, cells.axes, cells.names) == ("plane", (0, 4), ("fuel", "position[1]"))
    assert [int((counts > 0).sum()) for counts in cells.counts] == [3, 1]


def test_long_vectors_have_a_plane_where_it_is_asked_for() -> None:
    visits = visits_in(vector(40), 1, (39, 2), keep=True)
    visits.add(0, np.arange(80.0).reshape(2, 40))
    cells = visits.cells(None)
    assert cells.axes == (39, 2)
    assert cells.edges[0][[0, -1]].tolist() == [39.0, 79.0]


@pytest.mark.parametrize(
    ("space", "axes", "sentence"),
    [
        (spaces.Box(0, 1, (3,)), (0, 3), r"axes must be two different numbers in 0..2, not \(0, 3\)"),
        (spaces.Box(0, 1, (3,)), (1, 1), "axes must be two different numbers in 0..2"),
        (spaces.Discrete(3), (0, 1), "axes must be None if observations are not vectors"),
        (spaces.Box(0, 1, (3, 3)), (0, 1), "axes must be None if observations are not vectors"),
    ],
)
def test_axes_that_there_are_not(space: spaces.Space[Any], axes: tuple[int, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        visits_in(Showing(space), 1, axes, keep=True)
