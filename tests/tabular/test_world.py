from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from holdfast.envs import FrozenLake16, GridWorld, make_env
from holdfast.envs.maps import CLIFF
from holdfast.tabular import QLearning
from holdfast.tabular.world import find_world
from tests.tabular.conftest import corridor


def test_models_and_plain_grids_run_compiled() -> None:
    for source in (corridor(), GridWorld(CLIFF), make_env("cliff"), FrozenLake16):
        assert find_world(source, 0, 0.99, None).compiled
        assert not find_world(source, 0, 0.99, None, "python").compiled


def test_other_environments_run_in_python_unless_asked() -> None:
    env = gymnasium.make("CliffWalking-v1")
    assert not find_world(env, 0, 0.99, None).compiled
    assert find_world(env, 0, 0.99, None, "compiled").compiled


class Doubled(gymnasium.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> Any:
        return 2.0 * reward


class Windy(GridWorld):
    def step(self, action: Any) -> Any:
        return super().step(1)


def test_a_wrapper_or_an_override_is_not_passed_by() -> None:
    assert not find_world(Doubled(make_env("cliff")), 0, 0.99, None).compiled
    assert not find_world(Windy(CLIFF), 0, 0.99, None).compiled
    with pytest.raises(ValueError, match="for an environment in the wrapper Doubled: the compiled loop"):
        find_world(Doubled(make_env("cliff")), 0, 0.99, None, "compiled")


def test_the_step_limit_is_the_shorter_of_the_learners_and_the_environments() -> None:
    assert find_world(make_env("cliff", step_limit=30), 0, 0.99, None).step_limit == 30
    assert find_world(make_env("cliff", step_limit=30), 0, 0.99, 20).step_limit == 20
    assert find_world(make_env("cliff", step_limit=30), 0, 0.99, 50).step_limit == 30
    assert find_world(make_env("cliff", step_limit=None), 0, 0.99, None).step_limit == 100
    assert find_world(gymnasium.make("Taxi-v4"), 0, 0.99, None).step_limit == 200
    assert find_world(gymnasium.make("CliffWalking-v1"), 0, 0.99, None).step_limit == 100
    assert find_world(corridor(), 0, 0.99, None).step_limit == 100
    assert find_world(corridor(), 0, 0.99, 7).step_limit == 7


def test_what_others_call_a_step_limit_is_not_read() -> None:
    class Other(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Discrete(2)
        action_space = gymnasium.spaces.Discrete(2)
        step_limit = "none at all"

    assert find_world(Other(), 0, 0.99, None).step_limit == 100


def test_a_callable_makes_a_new_environment_for_each_seed() -> None:
    result = QLearning().fit(FrozenLake16, 3, seeds=(1, 2, 3))
    assert result.q.shape == (3, 256, 4, 1)
    one, other = (find_world(FrozenLake16, seed, 0.99, None).model for seed in (1, 2))
    assert one is not None
    assert other is not None
    assert not np.array_equal(one.terminal, other.terminal)


def test_what_a_callable_made_is_closed() -> None:
    closed = []

    class Closing(GridWorld):
        def close(self) -> None:
            closed.append(True)

    QLearning().fit(lambda seed: Closing(CLIFF), 1, seeds=(1, 2))
    assert closed == [True, True]
    QLearning().fit(Closing(CLIFF), 1)
    assert len(closed) == 2


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (lambda: gymnasium.make("MountainCar-v0"), "env must have a Discrete observation space"),
        (lambda: gymnasium.make("Pendulum-v1"), "env must have a Discrete observation space"),
        (lambda: "cliff", "env must be a Gymnasium environment, a TabularMDP, or a callable"),
        (lambda: 3, "env must be a Gymnasium environment, a TabularMDP, or a callable"),
        (lambda: lambda seed: seed, "env must be a Gymnasium environment, a TabularMDP, or a callable"),
    ],
)
def test_what_cannot_be_trained_in_is_named(source: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        find_world(source(), 0, 0.99, None)


def test_a_continuous_action_space_is_named() -> None:
    class Knob(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Discrete(2)
        action_space = gymnasium.spaces.Box(0.0, 1.0)

    with pytest.raises(TypeError, match="env must have a Discrete action space for a table of values, not Box"):
        find_world(Knob(), 0, 0.99, None)


def test_an_unknown_loop_is_named() -> None:
    with pytest.raises(ValueError, match="loop must be one of 'auto', 'compiled', 'python', not 'fast'"):
        find_world(corridor(), 0, 0.99, None, "fast")


def test_environments_of_different_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="env must have the same numbers of states and actions for every seed"):
        QLearning().fit(lambda seed: corridor(3 + seed), 1, seeds=(0, 1))
