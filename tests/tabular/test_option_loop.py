from __future__ import annotations

import math
import re
from typing import Any

import gymnasium
import numpy as np
import pytest

from holdfast.envs import GridWorld, make_env
from holdfast.envs.maps import CLIFF
from holdfast.mdp import TabularMDP
from holdfast.tabular import MSAQLearning, PerQLearning, QLearning, TempoRLQLearning
from tests.tabular.conftest import random_mdp, same_episodes
from tests.tabular.learners import LEARNERS


@pytest.mark.parametrize("name", LEARNERS)
def test_on_a_grid_both_loops_are_one(name: str) -> None:
    env = make_env("zigzag", step_limit=40)
    one = LEARNERS[name]().fit(env, 40, seeds=(1, 4), loop="compiled")
    other = LEARNERS[name]().fit(env, 40, seeds=(1, 4), loop="python")
    same_episodes(one, other)
    np.testing.assert_array_equal(one.q, other.q)
    if one.skip_values is not None:
        np.testing.assert_array_equal(one.skip_values, other.skip_values)


@pytest.mark.parametrize("name", LEARNERS)
def test_on_a_stochastic_model_both_loops_are_one(name: str) -> None:
    one = LEARNERS[name](initial_std=0.5).fit(random_mdp(), 30, loop="compiled")
    other = LEARNERS[name](initial_std=0.5).fit(random_mdp(), 30, loop="python")
    same_episodes(one, other)
    np.testing.assert_array_equal(one.q, other.q)


def test_a_slippery_environment_is_the_same_in_either_loop_but_for_its_own_draws() -> None:
    env = make_env("cliff", slip=0.3)
    one, other = (
        QLearning(alpha=1e-9, epsilon=1.0).fit(env, 1000, loop=loop, evaluate=False)
        for loop in ("compiled", "python")
    )
    assert not np.array_equal(one.steps, other.steps)
    assert one.steps.mean() == pytest.approx(other.steps.mean(), abs=1.6)
    assert one.training_returns.mean() == pytest.approx(other.training_returns.mean(), abs=0.02)


def test_cliff_walking() -> None:
    env = gymnasium.make("CliffWalking-v1")
    result = PerQLearning(4, alpha=0.5, step_limit=300).fit(env, 100)
    assert result.q.shape == (1, 48, 4, 4)
    assert result.greedy_returns[0, -20:].mean() == -13.0
    assert result.greedy_steps[0, -1] == 13
    assert 5 <= result.greedy_decisions[0, -1] <= 13  # up, right for 11 steps, down


def test_taxi_and_its_model() -> None:
    env = gymnasium.make("Taxi-v4")
    result = QLearning(alpha=0.5).fit(env, 200, evaluate=False)
    assert result.training_returns[0, -50:].mean() > result.training_returns[0, :50].mean() + 100
    compiled = QLearning(alpha=0.5).fit(env, 3000, loop="compiled")
    assert compiled.greedy_returns[0, -200:].mean() > 5.0
    assert compiled.q.shape[1] in (500, 501)


class Shifted(gymnasium.Env[Any, Any]):
    """A grid whose states count from 100 and whose actions count from 7."""

    def __init__(self) -> None:
        self._grid = GridWorld(CLIFF)
        self.observation_space = gymnasium.spaces.Discrete(60, start=100)
        self.action_space = gymnasium.spaces.Discrete(4, start=7)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        state, info = self._grid.reset(seed=seed)
        return state + 100, info

    def step(self, action: Any) -> Any:
        state, *rest = self._grid.step(action - 7)
        return (state + 100, *rest)


@pytest.mark.parametrize("learner", [QLearning, PerQLearning, MSAQLearning, TempoRLQLearning])
def test_states_and_actions_may_count_from_any_number(learner: Any) -> None:
    one = learner().fit(Shifted(), 30)
    other = learner().fit(GridWorld(CLIFF), 30)
    same_episodes(one, other)
    np.testing.assert_array_equal(one.q, other.q)


@pytest.mark.parametrize("learner", [QLearning, PerQLearning, TempoRLQLearning])
def test_acting_counts_as_the_environment_does(learner: Any) -> None:
    one, other = learner(), learner()
    one.fit(Shifted(), 30, seeds=(0, 1))
    other.fit(GridWorld(CLIFF), 30, seeds=(0, 1))
    for index in (0, 1, -1):
        for state in (0, 17, 59):
            action, k = other.act(state, index)
            assert one.act(100 + state, index) == (7 + action, k)
            assert one.policy(index).act(state) == (action, k)  # as the tables count
    with pytest.raises(ValueError, match="state must be a whole number of at least 100, not 99"):
        one.act(99)
    with pytest.raises(ValueError, match=r"state must be in 100\.\.159, not 160"):
        one.act(160)
    one.reset(60, 4)
    assert one.act(0).action == 0


class Chancy(gymnasium.Env[Any, Any]):
    """Two states; the reward is drawn from the environment's own stream."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return int(self.np_random.integers(2)), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return int(self.np_random.integers(2)), float(self.np_random.random()), self.steps >= 5, False, {}


def test_the_same_seed_is_the_same_run_and_another_is_not() -> None:
    one, again = (PerQLearning(3).fit(Chancy(), 10, seeds=(1, 2)) for _ in range(2))
    same_episodes(one, again)
    assert not np.array_equal(one.training_returns[0], one.training_returns[1])


def test_evaluating_changes_nothing_in_training() -> None:
    one = PerQLearning(3).fit(Chancy(), 10)
    other = PerQLearning(3).fit(Chancy(), 10, evaluate=False)
    np.testing.assert_array_equal(one.q, other.q)
    np.testing.assert_array_equal(one.training_returns, other.training_returns)
    assert other.greedy_returns.shape == (1, 0)
    stochastic = random_mdp()
    one, other = (QLearning().fit(stochastic, 20, evaluate=evaluate) for evaluate in (True, False))
    np.testing.assert_array_equal(one.q, other.q)


@pytest.mark.parametrize("loop", ["compiled", "python"])
@pytest.mark.parametrize("name", LEARNERS)
def test_truncation_is_no_end(name: str, loop: str) -> None:
    # One step in a corridor that goes on: the value beyond the limit counts.
    mdp = TabularMDP(np.array([[1], [0]]), np.ones((2, 1)), 0.5, initial=0)
    learner = LEARNERS[name](alpha=1.0, gamma=0.5, initial_value=4.0, step_limit=1)
    result = learner.fit(mdp, 1, loop=loop, evaluate=False)
    assert result.steps[0, 0] == 1
    assert result.q[0, 0, 0, 0] == 1.0 + 0.5 * (4.0 - getattr(learner, "decision_cost", 0.0))
    assert (result.q[0, 1] == 4.0).all()
    longer = 1.0 + 0.5 * 4.0 if isinstance(learner, PerQLearning) else 4.0
    holds = getattr(learner, "persistences", None) or range(1, result.q.shape[3] + 1)
    # Of a sparse set, a hold is only learned of if the rest of it is one, too.
    expected = [longer if k - 1 in holds else 4.0 for k in holds]
    assert result.q[0, 0, 0, 1:].tolist() == expected[1:]
    if result.skip_values is not None:
        np.testing.assert_array_equal(result.skip_values[0, :, 0], [[3.0, 4.0, 4.0, 4.0, 4.0], [4.0] * 5])


def test_terminal_states_keep_initial_values_where_no_model_is_known() -> None:
    env = GridWorld(CLIFF)
    ends = env.tabular_mdp(0.99).terminal
    python, compiled = (
        QLearning(initial_value=2.0).fit(env, 5, loop=loop).q[0] for loop in ("python", "compiled")
    )
    assert (python[ends] == 2.0).all()
    assert (compiled[ends] == 0.0).all()
    np.testing.assert_array_equal(python[~ends], compiled[~ends])


@pytest.mark.parametrize("first", [0, 100])
@pytest.mark.parametrize("when", ["reset", "step"])
@pytest.mark.parametrize("wrong", [-1, 2, 0.9, 90000, "0", None])
def test_an_observation_outside_the_space_is_refused(first: int, when: str, wrong: Any) -> None:
    strange = first + wrong if isinstance(wrong, int | float) else wrong

    class Astray(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Discrete(2, start=first)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return strange if when == "reset" else first, {}

        def step(self, action: Any) -> Any:
            return strange, 0.0, False, False, {}

    sentence = f"env must give observations in {first}..{first + 1}, not {strange!r}"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        PerQLearning(3).fit(Astray(), 1)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.array])
def test_observations_may_be_whole_numbers_of_any_kind(kind: Any) -> None:
    class Typed(Chancy):
        def step(self, action: Any) -> Any:
            state, *rest = super().step(action)
            return (kind(state), *rest)

    np.testing.assert_array_equal(QLearning().fit(Typed(), 5).q, QLearning().fit(Chancy(), 5).q)


@pytest.mark.parametrize("reward", [math.nan, -math.inf, 1e308])
def test_rewards_that_cannot_be_added_up_are_refused(reward: float) -> None:
    class Broken(Chancy):
        def step(self, action: Any) -> Any:
            return 0, reward, False, False, {}

    with pytest.raises(ValueError, match=r"env must give finite rewards of at most 1e\+30 in size, not"):
        QLearning().fit(Broken(), 1)
