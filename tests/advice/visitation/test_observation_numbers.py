"""What the numbers of an observation are called, and that they are laid out in that order."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from holdfast.advice.visitation.observation_numbers import number_names, numbers_of
from tests.advice.visitation.test_cells import Showing

PLACE = spaces.Box(-1.0, 1.0, (2,))


@pytest.mark.parametrize(
    ("space", "names"),
    [
        (PLACE, ["observation[0]", "observation[1]"]),
        (spaces.Dict(b=PLACE, a=spaces.Box(0.0, 1.0, ())), ["b[0]", "b[1]", "a"]),
        (spaces.Dict(goal=spaces.Dict(at=PLACE), on=spaces.MultiBinary(1)), ["goal.at[0]", "goal.at[1]", "on[0]"]),
        (spaces.Tuple([spaces.Discrete(2, start=3), PLACE]), ["[0]=3", "[0]=4", "[1][0]", "[1][1]"]),
        (spaces.Dict(at=PLACE, m=spaces.MultiDiscrete([1, 2])), ["at[0]", "at[1]", "m[0]=0", "m[1]=0", "m[1]=1"]),
        (spaces.Dict(picture=spaces.Box(0, 255, (1, 2), np.uint8)), ["picture[0]", "picture[1]"]),
    ],
)
def test_names_are_those_of_the_flattened_numbers(space: spaces.Space[Any], names: list[str]) -> None:
    full = [f"observation{name}" if name.startswith("[") else name for name in names]
    assert sorted(number_names(Showing(space))) == sorted(full)
    space.seed(0)
    found = numbers_of(space, space.sample())
    assert found.shape == (len(names),)


def test_each_number_is_where_its_name_is() -> None:
    space = spaces.Dict(goal=spaces.Dict(at=PLACE), gear=spaces.Discrete(3), fuel=spaces.Box(0.0, 9.0, ()))
    shown = {"goal": {"at": np.array([0.25, 0.5])}, "gear": 2, "fuel": np.array(7.0)}
    found = dict(zip(number_names(Showing(space)), numbers_of(space, shown).tolist(), strict=True))
    assert found == {
        "goal.at[0]": 0.25,
        "goal.at[1]": 0.5,
        "gear=0": 0.0,
        "gear=1": 0.0,
        "gear=2": 1.0,
        "fuel": 7.0,
    }


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3),
        spaces.Box(0, 1, (2, 2)),
        spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(2)),
        spaces.Tuple([spaces.MultiDiscrete([2, 2])]),
        spaces.Dict(at=PLACE, said=spaces.Text(9)),
        spaces.Dict(at=spaces.Sequence(PLACE)),
    ],
)
def test_other_observations_have_no_numbers(space: spaces.Space[Any]) -> None:
    assert number_names(Showing(space)) == ()


def test_known_environments_keep_their_names() -> None:
    assert number_names(gymnasium.make("MountainCar-v0")) == ("position", "velocity")
