"""Names of actions and observations."""

from __future__ import annotations

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from holdfast.envs import action_names, make_env, observation_names
from holdfast.envs.names import two_axes


class Nameless(gymnasium.Env):
    observation_space = spaces.Box(-1.0, 1.0, (3,))
    action_space = spaces.Discrete(2, start=5)


class Atari(Nameless):
    action_space = spaces.Discrete(3)

    def get_action_meanings(self) -> list[str]:
        return ["NOOP", "FIRE", "UP"]


def test_known_ones_are_called_by_their_names() -> None:
    car = make_env("MountainCar-v0")
    assert action_names(car) == ("push left", "no push", "push right")
    assert observation_names(car) == ("position", "velocity")
    # Left is left: the first action slows a car down that goes to the right.
    car.reset(seed=0)
    assert car.step(0)[0][observation_names(car).index("velocity")] < car.step(2)[0][1]


@pytest.mark.parametrize("name", ["MountainCar-v0", "CartPole-v1", "Acrobot-v1", "cliff"])
def test_there_is_one_for_each(name: str) -> None:
    env = make_env(name)
    assert len(set(action_names(env))) == env.action_space.n
    assert not any(name.startswith("action ") for name in action_names(env))
    assert len(set(observation_names(env))) == np.prod(env.observation_space.shape or 0)


def test_others_are_numbered_as_the_environment_does() -> None:
    assert action_names(Nameless()) == ("action 5", "action 6")
    assert observation_names(Nameless()) == ("observation[0]", "observation[1]", "observation[2]")
    assert action_names(Atari()) == ("noop", "fire", "up")


@pytest.mark.parametrize("own", [lambda self: 1 / 0, lambda self: sys.exit(0), 7, ["too", "many", "names"]])
def test_names_that_cannot_be_read_are_numbers(own: object) -> None:
    env = Nameless()
    type(env).action_names = own  # type: ignore[attr-defined]
    try:
        assert action_names(env) == ("action 5", "action 6")
    finally:
        del type(env).action_names  # type: ignore[attr-defined]


def test_a_cut_action_set_has_no_wrong_names() -> None:
    env = make_env("MountainCar-v0")
    env.action_space = spaces.Discrete(2)
    assert action_names(env) == ("action 0", "action 1")


@pytest.mark.parametrize(
    ("given", "found"), [("angle,0", (1, 0)), (" 0 , speed ", (0, 2)), ("2,1", (2, 1)), ("speed,angle", (2, 1))]
)
def test_two_axes_by_name_or_number(given: str, found: tuple[int, int]) -> None:
    assert two_axes(given, ("position", "angle", "speed")) == found


@pytest.mark.parametrize("given", ["angle", "0,0", "0,1,2", "0,3", "0,-1", "0,height", ""])
def test_what_are_no_two_axes(given: str) -> None:
    with pytest.raises(ValueError, match=r"^axes must be two different ones of position, angle, speed"):
        two_axes(given, ("position", "angle", "speed"))


def test_no_axes_without_names() -> None:
    with pytest.raises(ValueError, match=r"^axes must not be given if observations are not vectors"):
        two_axes("0,1", ())
