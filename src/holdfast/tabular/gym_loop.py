"""The episode loop in Python: the rules of this package in any environment with Discrete spaces."""

from __future__ import annotations

import operator
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from holdfast.core.clock import left_after_step
from holdfast.core.compiling import in_python
from holdfast.core.errors import InputError
from holdfast.core.rewards import LARGEST_REWARD
from holdfast.tabular.compiled import draw_held_action, draw_option, greedy_option
from holdfast.tabular.option_loop import is_cut
from holdfast.tabular.rule import HeldOption, LearningRule, Tables
from holdfast.tabular.run_state import EpisodeOutcomes, RunState, episode_seed
from holdfast.tabular.updates import learn

__all__ = ["GymSteps", "Steps", "run_in_python"]

Floats = NDArray[np.float64]

# Handing a generator to compiled code takes longer than these few draws.
_draw_held_action, _draw_option = in_python(draw_held_action), in_python(draw_option)
_greedy_option = in_python(greedy_option)


class Steps(Protocol):
    """Something to take steps in; states and actions count from 0."""

    def begin(self, episode: int, purpose: str) -> int:
        """Start an episode for ``"training"`` or ``"evaluation"``; its first state."""
        ...

    def step(self, action: int) -> tuple[int, float, bool, bool]:
        """Next state, reward, terminated, truncated."""
        ...


class GymSteps:
    """A Gymnasium environment whose episodes are seeded by the run's seed and their number alone.

    Args:
        env: Has Discrete observations and actions, counted from any number.
        seed: The run's seed.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int) -> None:
        self._env = env
        self._seed = seed
        assert isinstance(env.observation_space, gymnasium.spaces.Discrete)
        assert isinstance(env.action_space, gymnasium.spaces.Discrete)
        self._first_state = int(env.observation_space.start)
        self._n_states = int(env.observation_space.n)
        self._first_action = int(env.action_space.start)

    def begin(self, episode: int, purpose: str) -> int:
        """Reset with the episode's own seed."""
        observation, _ = self._env.reset(seed=episode_seed(self._seed, purpose, episode))
        return self._state(observation)

    def step(self, action: int) -> tuple[int, float, bool, bool]:
        """Next state, reward, terminated, truncated."""
        observation, reward, terminated, truncated, _ = self._env.step(action + self._first_action)
        worth = float(reward)
        if not abs(worth) <= LARGEST_REWARD:
            raise InputError(f"env must give finite rewards of at most {LARGEST_REWARD:g} in size, not {worth}")
        return self._state(observation), worth, bool(terminated), bool(truncated)

    def _state(self, observation: Any) -> int:
        """The state that ``observation`` stands for, counted from 0."""
        try:
            state = operator.index(observation) - self._first_state
        except TypeError:
            state = -1
        if not 0 <= state < self._n_states:
            last = self._first_state + self._n_states - 1
            raise InputError(f"env must give observations in {self._first_state}..{last}, not {observation!r}")
        return state


def run_in_python(
    steps: Steps,
    tables: Tables,
    rule: LearningRule,
    state: RunState,
    epsilons: Floats,
    step_limit: int,
    log: EpisodeOutcomes,
) -> None:
    """One episode per entry of ``epsilons``, each followed by a greedy one if asked; fills tables and ``log``."""
    for row, epsilon in enumerate(epsilons):
        episode = state.episode + row
        first = steps.begin(episode, "training")
        trained = _train(steps, tables, rule, first, epsilon, step_limit, state.agent)
        log.training_returns[row], log.steps[row], log.decisions[row] = trained
        if len(log.greedy_returns) > 0:
            first = steps.begin(episode, "evaluation")
            shown = _evaluate(steps, tables, rule, first, step_limit, state.evaluation)
            log.greedy_returns[row], log.greedy_steps[row], log.greedy_decisions[row] = shown


def _train(
    steps: Steps,
    tables: Tables,
    rule: LearningRule,
    state: int,
    epsilon: float,
    step_limit: int,
    agent: np.random.Generator,
) -> tuple[float, int, int]:
    total, taken, decisions = 0.0, 0, 0
    ended = False
    while not ended:
        action, left, exploratory = _decide(tables, rule, state, epsilon, agent)
        decisions += 1
        states, rewards, terminated = [state], [], False
        while left > 0:
            state, reward, terminated, truncated = steps.step(action)
            taken += 1
            total += reward
            states.append(state)
            rewards.append(reward)
            ended = terminated or truncated or taken >= step_limit
            left = left_after_step(left, ended)
            if left > 0 and not exploratory and _is_cut(tables, rule, state, action, left):
                left = 0
        learn(tables, HeldOption(np.array(states), action, np.array(rewards), len(rewards), terminated), rule)
    return total, taken, decisions


def _evaluate(
    steps: Steps, tables: Tables, rule: LearningRule, state: int, step_limit: int, evaluation: np.random.Generator
) -> tuple[float, int, int]:
    total, taken, decisions = 0.0, 0, 0
    ended = False
    while not ended:
        action, left = _decide_greedily(tables, rule, state, evaluation)
        decisions += 1
        while left > 0:
            state, reward, terminated, truncated = steps.step(action)
            taken += 1
            total += reward
            ended = terminated or truncated or taken >= step_limit
            left = left_after_step(left, ended)
            if left > 0 and _is_cut(tables, rule, state, action, left):
                left = 0
    return total, taken, decisions


def _decide(
    tables: Tables, rule: LearningRule, state: int, epsilon: float, agent: np.random.Generator
) -> tuple[int, int, bool]:
    """The training decision of the compiled loop."""
    if len(rule.durations) > 0:
        return _draw_held_action(tables.q[state], epsilon, rule.durations, agent)
    action, k, exploratory = _draw_option(tables.q[state], epsilon, agent)
    if len(tables.skip_values) > 0:  # the skip has a coin of its own
        _, k, _ = _draw_option(tables.skip_values[state, action : action + 1], epsilon, agent)
    return action, k, exploratory


def _decide_greedily(
    tables: Tables, rule: LearningRule, state: int, evaluation: np.random.Generator
) -> tuple[int, int]:
    """Its greedy decision."""
    action, k = _greedy_option(tables.q[state], rule.tolerance, rule.ties_at_random, evaluation)
    if len(tables.skip_values) > 0:
        _, k = _greedy_option(tables.skip_values[state, action : action + 1], 0.0, False, evaluation)
    return action, k


def _is_cut(tables: Tables, rule: LearningRule, state: int, action: int, left: int) -> bool:
    return rule.margin < np.inf and is_cut(tables.q[state], action, left, rule.margin)
