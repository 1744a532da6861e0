"""Observations that are none of their space are told, and those that are go through."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from holdfast.envs.observations import has_numbers, observation_problem

BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)
PAIR = spaces.MultiDiscrete([3, 4])
BITS = spaces.MultiBinary(2)
BOTH = spaces.Dict({"where": BOX, "what": spaces.Discrete(3)})
ROW = spaces.Tuple((BOX, spaces.Discrete(3)))


class Leaving:
    """Ends the program when it is looked at."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        sys.exit(0)


@pytest.mark.parametrize(
    ("space", "observation", "sentence"),
    [
        (BOX, [[1.0], [1.0, 2.0]], "it gave an observation whose parts have different lengths"),
        (BOX, [1.0, [2.0]], "it gave an observation whose parts have different lengths"),
        (BOX, np.array([1.0, None]), "it gave an observation of type object, which must be numbers"),
        (BOX, np.array(["1", "2"]), "it gave an observation of type <U1, which must be numbers"),
        (BOX, "hello", "it gave an observation of type <U5, which must be numbers"),
        (BOX, np.array([1j, 2]), "it gave an observation of type complex128, which must be numbers"),
        (BOX, None, "it gave an observation of type NoneType, which must be numbers"),
        (BOX, {"a": 1}, "it gave an observation of type dict, which must be numbers"),
        (BOX, np.zeros(2, "M8[D]"), "it gave an observation of type datetime64[D], which must be numbers"),
        (BOX, np.zeros(3), "it gave an observation of shape (3,), which must have (2,)"),
        (BOX, [float("nan"), 1.0], "it gave an observation that is NaN or infinite somewhere"),
        (BOX, np.array([1e300, 0.0]), "it gave an observation with a number too large for float32"),
        (BOX, Leaving(), "it gave an observation that cannot be read as numbers: SystemExit: 0"),
        (PAIR, [1, 9], "it gave [1, 9] as an observation, which must be in MultiDiscrete([3 4])"),
        (PAIR, [-1, 0], "it gave [-1, 0] as an observation, which must be in MultiDiscrete([3 4])"),
        (PAIR, [0.5, 0], "it gave [0.5, 0] as an observation, which must be in MultiDiscrete([3 4])"),
        (PAIR, [1, 1, 1], "it gave an observation of shape (3,), which must have (2,)"),
        (BITS, [1, 2], "it gave [1, 2] as an observation, which must be in MultiBinary(2)"),
        (BOTH, {"where": np.zeros(2)}, "it gave an observation without 'what'"),
        (BOTH, {"where": np.zeros(2), "what": 3}, "it gave 3 as an observation, which must be in 0..2"),
        (BOTH, {"where": 0, "what": 3, 1: 0}, "it gave an observation with 1, which its space does not have"),
        (BOTH, 3, "it gave 3 as an observation, which must be a dictionary"),
        (ROW, (np.zeros(2),), "it gave (array([0., 0.]),) as an observation, which must have 2 parts"),
        (ROW, (np.zeros(2), 7), "it gave 7 as an observation, which must be in 0..2"),
    ],
)
def test_what_is_wrong_is_told(space: spaces.Space[Any], observation: Any, sentence: str) -> None:
    assert observation_problem(space, observation) == sentence


@pytest.mark.parametrize(
    ("space", "observation"),
    [
        (BOX, np.zeros(2)),
        (BOX, [0.0, 1]),
        (BOX, np.array([9, -9])),  # many overstep their bounds a little
        (spaces.Discrete(3, start=5), np.int64(7)),
        (spaces.Discrete(3), np.array(2)),
        (PAIR, np.array([2.0, 3.0])),
        (spaces.MultiDiscrete([3, 4], start=[1, 2]), [3, 5]),
        (BITS, [True, False]),
        (BOTH, {"where": np.zeros(2), "what": 2}),
        (ROW, [np.zeros(2), 2]),
        (spaces.Text(5), "abc"),
        (spaces.Sequence(BOX), (np.zeros(2),)),
    ],
)
def test_others_go_through(space: spaces.Space[Any], observation: Any) -> None:
    assert observation_problem(space, observation) is None


def test_spaces_without_a_number_are_known() -> None:
    empty = spaces.Box(-1.0, 1.0, (3, 0))
    for space in (
        empty,
        spaces.Dict({"a": BOX, "b": empty}),
        spaces.Tuple((empty,)),
        spaces.Dict({}),
        spaces.Tuple(()),
    ):
        assert not has_numbers(space)
    for space in (BOX, PAIR, BITS, BOTH, ROW, spaces.Discrete(1), spaces.Text(5)):
        assert has_numbers(space)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (np.uint8, np.array([-5, 3000])),
        (np.uint8, np.array([0, 256], np.uint16)),
        (np.uint8, np.array([-1, 0], np.int8)),
        (np.uint8, np.array([0.5, 1.0])),
        (np.uint8, np.array([0.0, 1e9], np.float32)),
        (np.int64, np.array([0.0, 2.0**63])),
        (np.int64, np.array([0, 2**63], np.uint64)),
        (np.uint8, [1, 300]),
    ],
    ids=repr,
)
def test_numbers_that_would_become_others_in_their_space_are_told(dtype: Any, values: Any) -> None:
    space = spaces.Box(0, 100, (2,), dtype)
    limits = np.iinfo(dtype)
    told = observation_problem(space, values)
    assert told is not None
    assert told.endswith(f"must be whole numbers in {limits.min}..{limits.max} ({np.dtype(dtype)})")


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (np.uint8, np.array([0, 255])),
        (np.uint8, np.array([0.0, 255.0])),
        (np.uint8, np.array([True, False])),
        (np.int64, np.array([0, 255], np.uint8)),
        (np.int8, np.array([-128, 127], np.int64)),
        (np.uint8, [1, 2]),
    ],
    ids=repr,
)
def test_numbers_that_stay_the_same_in_their_space_go_through(dtype: Any, values: Any) -> None:
    assert observation_problem(spaces.Box(0, 100, (2,), dtype), values) is None
