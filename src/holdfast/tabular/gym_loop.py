"""The episode loop in Python: the rules of this package in any environment with Discrete spaces."""

from __future__ import annotations

import operator
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from holdfast.core.clock import left_after_step
from holdfast.core.errors import InputError
from holdfast.core.rewards import LARGEST_REWARD
from holdfast.tabular.run_state import EpisodeOutcomes, RunState, reset_seed

__all__ = ["GymSteps", "Rule", "Steps", "run_in_python"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Steps(Protocol):
    """Something to take steps in; states and actions count from 0."""

    def begin(self, episode: int, purpose: str) -> int:
        """Start an episode for ``"training"`` or ``"evaluation"``; its first state."""
        ...

    def step(self, action: int) -> tuple[int, float, bool, bool]:
        """Next state, reward, terminated, truncated."""
        ...


class Rule(Protocol):
    """What the loop asks of a learner."""

    def draw_option(self, state: RunState, position: int, epsilon: float) -> tuple[int, int, bool]:
        """A training decision: action, persistence, and whether it was drawn at random."""
        ...

    def greedy_option(self, state: RunState, position: int) -> tuple[int, int]:
        """An evaluation decision: action and persistence."""
        ...

    def interrupts(self, state: RunState, position: int, action: int, left: int) -> bool:
        """Whether a greedy option is dropped with ``left`` steps to go."""
        ...

    def learn_step(
        self, state: RunState, position: int, action: int, reward: float, following: int, terminated: bool
    ) -> None:
        """Learn from a primitive step, at once."""
        ...

    def learn_option(
        self, state: RunState, states: Integers, action: int, rewards: Floats, terminated: bool
    ) -> None:
        """Learn from an option when it is over."""
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
        observation, _ = self._env.reset(seed=reset_seed(self._seed, purpose, episode))
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
    rule: Rule,
    steps: Steps,
    state: RunState,
    epsilons: Floats,
    step_limit: int,
    log: EpisodeOutcomes,
) -> None:
    """Advance ``state`` by one episode per entry of ``epsilons``, with a greedy one after each if asked."""
    for row, epsilon in enumerate(epsilons):
        episode = state.episode + row
        trained = _train(rule, steps, state, steps.begin(episode, "training"), epsilon, step_limit)
        log.training_returns[row], log.steps[row], log.decisions[row] = trained
        if len(log.greedy_returns) > 0:
            shown = _evaluate(rule, steps, state, steps.begin(episode, "evaluation"), step_limit)
            log.greedy_returns[row], log.greedy_steps[row], log.greedy_decisions[row] = shown


def _train(
    rule: Rule, steps: Steps, state: RunState, position: int, epsilon: float, step_limit: int
) -> tuple[float, int, int]:
    total, taken, decisions = 0.0, 0, 0
    ended = False
    while not ended:
        action, left, exploratory = rule.draw_option(state, position, epsilon)
        decisions += 1
        states, rewards, terminated = [position], [], False
        while left > 0:
            following, reward, terminated, truncated = steps.step(action)
            taken += 1
            total += reward
            rule.learn_step(state, position, action, reward, following, terminated)
            states.append(following)
            rewards.append(reward)
            position = following
            ended = terminated or truncated or taken >= step_limit
            left = left_after_step(left, ended)
            if left > 0 and not exploratory and rule.interrupts(state, position, action, left):
                left = 0
        rule.learn_option(state, np.array(states), action, np.array(rewards), terminated)
    return total, taken, decisions


def _evaluate(rule: Rule, steps: Steps, state: RunState, position: int, step_limit: int) -> tuple[float, int, int]:
    total, taken, decisions = 0.0, 0, 0
    ended = False
    while not ended:
        action, left = rule.greedy_option(state, position)
        decisions += 1
        while left > 0:
            position, reward, terminated, truncated = steps.step(action)
            taken += 1
            total += reward
            ended = terminated or truncated or taken >= step_limit
            left = left_after_step(left, ended)
            if left > 0 and rule.interrupts(state, position, action, left):
                left = 0
    return total, taken, decisions
