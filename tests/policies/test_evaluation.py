"""Greedy episodes: counted by hand, against the compiled loop, and against SB3's own evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.evaluation import evaluate_policy

from holdfast import PerDQN, PerQLearning
from holdfast.core.choice import Decision
from holdfast.envs import make_env
from holdfast.policies import evaluate, load_policy
from holdfast.policies.actors import NetworkActor, TableActor
from holdfast.policies.evaluation import evaluation_seeds, play
from holdfast.policies.policy_files import network_state, write_policy
from holdfast.policies.table_files import table_state


class Corridor(gymnasium.Env[int, int]):
    """States 0, 1, 2, ... to 6, where it ends; every step gives its number."""

    observation_space = gymnasium.spaces.Discrete(7)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self._state += 1
        return self._state, float(self._state), self._state == 6, False, {}


class Scripted:
    """Holds for 4 steps, but changes its mind in state 3 if it is to."""

    def __init__(self, fickle: bool) -> None:
        self._fickle = fickle

    def decide(self, observation: Any) -> Decision:
        return Decision(1, 4, np.zeros((2, 4)))

    def interrupts(self, observation: Any, action: int, left: int) -> bool:
        return self._fickle and observation == 3


def test_by_hand() -> None:
    found = evaluate(Scripted(fickle=False), Corridor(), [0, 1])
    assert found.returns.tolist() == [21.0, 21.0]
    assert found.lengths.tolist() == [6, 6]
    assert found.decisions.tolist() == [2, 2]
    # Four steps, then the two that were left.
    assert found.holds.tolist() == [0, 0, 2, 0, 2]
    fickle = evaluate(Scripted(fickle=True), Corridor(), [0])
    assert fickle.decisions.tolist() == [2]
    assert fickle.holds.tolist() == [0, 0, 0, 2]


def test_moments_by_hand() -> None:
    found = list(play(Scripted(fickle=True), Corridor(), 0))
    assert [moment.left for moment in found] == [4, 3, 2, 4, 3, 2, 0]
    assert [moment.is_decided for moment in found] == [True, False, False, True, False, False, False]
    assert [moment.total for moment in found] == [0, 1, 3, 6, 10, 15, 21]
    cut = list(play(Scripted(fickle=False), Corridor(), 0, longest=2))
    assert [moment.left for moment in cut] == [4, 3, 0]
    assert evaluate(Scripted(fickle=False), Corridor(), [0], longest=2).holds.tolist() == [0, 0, 1]


def test_seeds_are_those_of_the_run_and_the_evaluation() -> None:
    assert evaluation_seeds(3, 0, 4) == evaluation_seeds(3, 0, 4)
    assert evaluation_seeds(3, 0, 4)[:2] == evaluation_seeds(3, 0, 2)
    found = {tuple(evaluation_seeds(run, number, 4)) for run in range(5) for number in range(5)}
    assert len(found) == 25
    assert all(0 <= seed < 2**31 for seeds in found for seed in seeds)


def test_a_table_does_what_the_compiled_loop_does(tmp_path: Path) -> None:
    env = make_env("cliff")
    arguments = {"k_max": 4, "interrupt_margin": 0.1, "decision_tolerance": 0.02}
    learner = PerQLearning(**arguments)  # type: ignore[arg-type]
    result = learner.fit(env, 60, seeds=[2])
    found = evaluate(TableActor(learner.policy()), env, [0])
    assert found.returns[0] == result.greedy_returns[0, -1]
    assert found.lengths[0] == result.greedy_steps[0, -1]
    assert found.decisions[0] == result.greedy_decisions[0, -1]
    write_policy(tmp_path, table_state("perq", learner.policy(), 0, 0))
    loaded = evaluate(load_policy(tmp_path), env, [0])
    assert (loaded.returns, loaded.decisions) == (found.returns, found.decisions)


class FromOne(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The same, with states and actions counted from other numbers."""

    def reset(self, **keywords: Any) -> Any:
        seen, info = self.env.reset(**keywords)
        return seen + 1, info

    def step(self, action: Any) -> Any:
        seen, *rest = self.env.step(action + 2)
        return (seen + 1, *rest)


def test_states_and_actions_may_count_from_any_number() -> None:
    learner = PerQLearning(k_max=4)
    learner.fit(make_env("cliff"), 60, seeds=[2])
    plain = evaluate(TableActor(learner.policy()), make_env("cliff"), [0])
    shifted = evaluate(TableActor(learner.policy(), 1, -2), FromOne(make_env("cliff")), [0])
    assert (plain.returns, plain.decisions) == (shifted.returns, shifted.decisions)


@pytest.mark.parametrize("margin", [None, 0.0])
def test_a_network_does_what_sb3_says(margin: float | None, tmp_path: Path) -> None:
    model = PerDQN("MlpPolicy", "CartPole-v1", k_max=3, learning_starts=50, seed=0, interrupt_margin=margin)
    model.learn(400)
    write_policy(tmp_path, network_state("perdqn", model.policy))
    env = gymnasium.make("CartPole-v1")
    for seed in range(3):
        found = evaluate(NetworkActor(model.policy), env, [seed])
        again = evaluate(load_policy(tmp_path), env, [seed])
        monitored = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("CartPole-v1"))
        monitored.reset(seed=seed)
        sb3 = _seeded(monitored, seed)
        returns, lengths = evaluate_policy(model, sb3, 1, return_episode_rewards=True, warn=False)
        assert (found.returns[0], found.lengths[0]) == (returns[0], lengths[0])
        assert (again.returns[0], again.decisions[0]) == (found.returns[0], found.decisions[0])


def _seeded(env: Any, seed: int) -> Any:
    """An environment whose every reset is with the same seed."""
    reset = env.reset
    env.reset = lambda **_: reset(seed=seed)
    return env
