"""Combinations of dials and switches as one choice, there and back."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from holdfast.core.errors import InputError
from holdfast.envs import MOST_COMBINATIONS, Choices, action_names, are_choices
from holdfast.envs.choices import NumberedActions

SPACES = {
    "plain": spaces.Discrete(5, start=-2),
    "dials": spaces.MultiDiscrete([2, 1, 3], start=[0, 4, -1]),
    "dials in rows": spaces.MultiDiscrete([[2, 2], [3, 2]]),
    "switches": spaces.MultiBinary(3),
    "switches in rows": spaces.MultiBinary((2, 2)),
}


def test_numbers_count_the_last_dial_fastest():
    choices = Choices(SPACES["dials"])
    assert choices.n == 6
    # Dials 0..1, 4 and −1..1.
    assert choices.all_taken().tolist() == [[0, 4, -1], [0, 4, 0], [0, 4, 1], [1, 4, -1], [1, 4, 0], [1, 4, 1]]
    assert choices.number([1, 4, 0]) == 4
    assert choices.names()[:2] == ("(0, 4, -1)", "(0, 4, 0)")


@pytest.mark.parametrize("name", SPACES)
def test_there_and_back(name):
    space = SPACES[name]
    choices = Choices(space)
    taken = choices.all_taken()
    assert len(taken) == choices.n == len(np.unique(taken.reshape(choices.n, -1), axis=0))
    assert all(space.contains(space.dtype.type(action) if space.shape == () else action) for action in taken)
    assert choices.numbers(taken).tolist() == list(range(choices.n))
    space.seed(1)
    for _ in range(20):
        action = space.sample()
        assert np.array_equal(taken[choices.number(action)], action)
    assert choices.are_numbers == (name == "plain")


def test_what_they_are_called():
    class Panel(gymnasium.Env):
        observation_space = spaces.Discrete(2)
        action_space = SPACES["switches"]

    assert action_names(Panel())[5] == "(1, 0, 1)"
    assert Choices(SPACES["plain"]).names()[0] == "action -2"


@pytest.mark.parametrize(
    "space", [spaces.MultiDiscrete([33, 32]), spaces.MultiBinary(11), spaces.MultiBinary(200)]
)
def test_too_many_combinations(space):
    with pytest.raises(
        InputError, match=f"env must have at most {MOST_COMBINATIONS} combinations of actions, and"
    ):
        Choices(space)


def test_as_many_as_there_may_be():
    assert Choices(spaces.MultiBinary(10)).n == MOST_COMBINATIONS
    assert Choices(spaces.Discrete(5000)).n == 5000


def test_other_spaces_are_no_choices():
    assert not are_choices(spaces.Box(0, 1))
    with pytest.raises(InputError, match="a choice among a few"):
        Choices(spaces.Box(0, 1))


def test_an_environment_with_numbered_actions():
    class Panel(gymnasium.Env):
        observation_space = spaces.Discrete(2)
        action_space = SPACES["dials"]

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def step(self, action):
            assert self.action_space.contains(action)
            return 1, float(action @ (100, 10, 1)), True, False, {}

    env = NumberedActions(Panel())
    assert env.action_space == spaces.Discrete(6)
    env.reset()
    assert env.step(3)[1] == 100 + 40 - 1
