"""Constructed environments to test advice on: small enough to be solved exactly, with rewards of every kind.

Every combination of five properties is a world:

- a step **costs** something or is **rewarded**;
- an episode ends by itself with **success**, with **failure**, or with either;
- rewards are **dense** (they depend on the place) or **sparse** (every step but the last gives the same);
- there is a **time limit** or none;
- holding an action for long is meant to be **helpful** (a long way, or inertia), **harmless** (a small place in
  which most moves are left to chance) or **harmful** (something to be balanced, or a lock that opens to
  alternating actions). That is the intention; training shows whether it is so.

Twelve more never end by themselves and have dense rewards and a time limit. Sizes, probabilities and amounts are
drawn from the world's number. A random half of the worlds is for building a rule, the other half for testing it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from holdfast.core.array_types import Floats
from holdfast.mdp import TabularMDP

__all__ = ["HALVES", "N_WORLDS", "AdviceWorld", "ModelEnv", "advice_world"]


STEPS = ("cost", "reward")
ENDS = ("success", "failure", "both")
REWARDS = ("dense", "sparse")
LIMITS = ("limit", "none")
HOLDING = ("helpful", "harmless", "harmful")
_ENDING = tuple(itertools.product(STEPS, ENDS, REWARDS, LIMITS, HOLDING))
_ENDLESS = tuple((step, "none", "dense", "limit", holding) for step in STEPS for holding in HOLDING) * 2
_COMBINATIONS = _ENDING + _ENDLESS

N_WORLDS = len(_COMBINATIONS)
HALVES = ("building", "kept apart")

GAMMA = 0.99
_SPLIT_SEED = 20260719
_HORIZON_WITHOUT_LIMIT = 200


@dataclass(frozen=True)
class _Place:
    """A place: its states, and where moves lead.

    Attributes:
        P: (S, A, S) probabilities; goals and failures are ordinary states here.
        start: The first state.
        goals: States that are a success.
        failures: States that are a failure.
        closeness: (S,) how good a state is, in [0, 1].
    """

    P: Floats
    start: int
    goals: frozenset[int]
    failures: frozenset[int]
    closeness: Floats


@dataclass(frozen=True, eq=False)
class AdviceWorld:
    """A constructed environment.

    Attributes:
        number: Number in 0..N_WORLDS − 1.
        step: ``"cost"`` or ``"reward"`` of each step.
        end: ``"success"``, ``"failure"``, ``"both"`` or ``"none"``.
        rewards: ``"dense"`` or ``"sparse"``.
        limit: ``"limit"`` or ``"none"``.
        holding: The intended effect of holding for long.
        mdp: The model.
        horizon: The time limit; if there is none, the steps after which learners truncate an episode.
    """

    number: int
    step: str
    end: str
    rewards: str
    limit: str
    holding: str
    mdp: TabularMDP
    horizon: int

    @cached_property
    def half(self) -> str:
        """The half of the worlds that it belongs to."""
        first, size = (0, len(_ENDING)) if self.number < len(_ENDING) else (len(_ENDING), len(_ENDLESS))
        order = np.random.default_rng(_SPLIT_SEED).permutation(size)
        return HALVES[int(np.flatnonzero(order == self.number - first)[0] >= size // 2)]

    @property
    def name(self) -> str:
        """The properties in one line."""
        return " ".join((self.step, self.end, self.rewards, self.limit, self.holding))

    def make(self) -> gymnasium.Env[Any, Any]:
        """An environment that reveals neither its table nor its time limit."""
        env: gymnasium.Env[Any, Any] = ModelEnv(self.mdp)
        return TimeLimit(env, self.horizon) if self.limit == "limit" else env

    def best_return(self) -> float:
        """The largest expected return over ``horizon`` steps, exact."""
        return self._return(lambda values: values.max(axis=1))

    def random_return(self) -> float:
        """The expected return of random actions over ``horizon`` steps, exact."""
        return self._return(lambda values: values.mean(axis=1))

    def _return(self, backup: Callable[[Floats], Floats]) -> float:
        values = np.zeros(self.mdp.n_states)
        for _ in range(self.horizon):
            values = np.where(self.mdp.terminal, 0.0, backup(self.mdp.r + self.mdp.P @ values))
        assert self.mdp.initial is not None
        return float(self.mdp.initial @ values)


def advice_world(number: int) -> AdviceWorld:
    """The world of this number; always the same one."""
    step, end, rewards, limit, holding = _COMBINATIONS[number]
    rng = np.random.default_rng((_SPLIT_SEED, number))
    horizon = int(rng.choice([60, 100, 200])) if limit == "limit" else _HORIZON_WITHOUT_LIMIT
    place = _PLACES[holding][int(rng.integers(2))](rng, end)
    mdp = _with_rewards(place, step, rewards, horizon, rng)
    return AdviceWorld(number, step, end, rewards, limit, holding, mdp, horizon)


class ModelEnv(gymnasium.Env[Any, Any]):
    """A model that can be played but does not reveal its table."""

    def __init__(self, mdp: TabularMDP) -> None:
        self.observation_space = spaces.Discrete(mdp.n_states)
        self.action_space = spaces.Discrete(mdp.n_actions)
        assert mdp.initial is not None
        outcome = mdp.r[:, :, None] if mdp.outcome_reward is None else mdp.outcome_reward
        self._rewards = np.broadcast_to(outcome, mdp.P.shape)
        self._cumulative = np.cumsum(mdp.P, axis=2)
        self._starts = np.cumsum(mdp.initial)
        self._terminal = mdp.terminal
        self._state = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin in a state drawn from the model's initial distribution."""
        super().reset(seed=seed)
        self._state = int(np.searchsorted(self._starts, self.np_random.random(), side="right"))
        return self._state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take one step."""
        chances = self._cumulative[self._state, action]
        following = int(np.searchsorted(chances, self.np_random.random() * chances[-1], side="right"))
        reward = float(self._rewards[self._state, action, following])
        self._state = following
        return following, reward, bool(self._terminal[following]), False, {}


# Rewards ---------------------------------------------------------------------------------------------------------


def _with_rewards(place: _Place, step: str, rewards: str, horizon: int, rng: np.random.Generator) -> TabularMDP:
    """The model with its rewards. Failing is worth less than going on well, and success is worth more."""
    n_states, n_actions, _ = place.P.shape
    shape = place.closeness if rewards == "dense" else np.ones(n_states)
    if step == "cost":
        each = -2.0 * (1.0 - place.closeness) if rewards == "dense" else -shape
        success = float(rng.choice([0.0, 0.5])) * horizon
        # A small penalty is less than random actions pay by going on, but more than good actions pay.
        failure = -float(rng.choice([0.15, 1.5])) * horizon
    else:
        each = shape
        success = 1.5 * horizon
        failure = -float(rng.choice([0.0, 0.5])) * horizon
    each = each.copy()
    for states, amount in ((place.goals, success), (place.failures, failure)):
        for state in states:
            # A success or failure without its own amount is an ordinary step.
            each[state] = amount if amount else each[state]
    r = np.broadcast_to(each, (n_states, n_actions, n_states)).copy()
    return TabularMDP(place.P.copy(), r, GAMMA, place.start, sorted(place.goals | place.failures))


# Places ----------------------------------------------------------------------------------------------------------


def _has_goal(end: str) -> bool:
    return end in ("success", "both")


def _has_failure(end: str) -> bool:
    return end in ("failure", "both")


def _corridor(rng: np.random.Generator, end: str) -> _Place:
    """A long corridor with the goal at the right end and the failure at the left."""
    return _line(int(rng.integers(20, 41)), float(rng.choice([0.0, 0.1])), end)


def _small_line(rng: np.random.Generator, end: str) -> _Place:
    """A short corridor in which half of the moves are left to chance."""
    return _line(int(rng.integers(5, 8)), 0.5, end)


def _line(n: int, slip: float, end: str) -> _Place:
    moves = np.zeros((n, 3, n))
    for place in range(n):
        for action, by in enumerate((-1, 0, 1)):
            moves[place, action, min(max(place + by, 0), n - 1)] = 1.0
    mixed = (1.0 - slip) * moves + slip * moves.mean(axis=1, keepdims=True)
    target = n - 1 if _has_goal(end) else (3 * n) // 4
    closeness = 1.0 - np.abs(np.arange(n) - target) / n
    goals = frozenset({n - 1} if _has_goal(end) else ())
    failures = frozenset({0} if _has_failure(end) else ())
    return _Place(mixed, max(1, n // 3), goals, failures, closeness)


def _inertia(rng: np.random.Generator, end: str) -> _Place:
    """A cart: actions change its velocity by one, and walls stop it."""
    n, fastest = int(rng.integers(14, 25)), 2
    speeds = 2 * fastest + 1
    moves = np.zeros((n * speeds, 3, n * speeds))
    for place, speed, action in itertools.product(range(n), range(speeds), range(3)):
        velocity = min(max(speed - fastest + action - 1, -fastest), fastest)
        following = place + velocity
        if not 0 <= following < n:
            following, velocity = min(max(following, 0), n - 1), 0
        moves[place * speeds + speed, action, following * speeds + velocity + fastest] = 1.0
    target = n - 1 if _has_goal(end) else (3 * n) // 4
    closeness = np.repeat(1.0 - np.abs(np.arange(n) - target) / n, speeds)
    goals = frozenset(range((n - 1) * speeds, n * speeds) if _has_goal(end) else ())
    failures = frozenset(range(speeds) if _has_failure(end) else ())
    return _Place(moves, (n // 3) * speeds + fastest, goals, failures, closeness)


def _jumps(rng: np.random.Generator, end: str) -> _Place:
    """Most moves lead anywhere; the action counts in one of five."""
    n = int(rng.integers(8, 15))
    moves = np.full((n, 2, n), 0.8 / n)
    for place in range(n):
        for action, by in enumerate((-1, 1)):
            moves[place, action, (place + by) % n] += 0.2
    closeness = np.arange(n) / (n - 1)
    goals = frozenset({n - 1} if _has_goal(end) else ())
    failures = frozenset({0} if _has_failure(end) else ())
    return _Place(moves, n // 2, goals, failures, closeness)


def _balance(rng: np.random.Generator, end: str) -> _Place:
    """Something that falls to the side it leans to; standing for a while is the success."""
    reach, drift = int(rng.integers(3, 6)), float(rng.choice([0.2, 0.4]))
    stages = int(rng.integers(8, 15)) if _has_goal(end) else 1
    width = 2 * reach + 1
    n = width * stages
    moves = np.zeros((n + 2, 2, n + 2))
    goal, fallen = n, n + 1
    for lean, stage, action in itertools.product(range(-reach, reach + 1), range(stages), range(2)):
        here = (lean + reach) * stages + stage
        for chance, more in ((1.0 - drift, 0), (drift, int(np.sign(lean)))):
            following = lean + 2 * action - 1 + more
            if abs(following) > reach:
                there = fallen if _has_failure(end) else reach * stages
            elif _has_goal(end) and stage + 1 == stages:
                there = goal
            else:
                there = (following + reach) * stages + min(stage + 1, stages - 1)
            moves[here, action, there] += chance
    moves[[goal, fallen], :, [goal, fallen]] = 1.0
    leans = np.repeat(np.arange(-reach, reach + 1), stages)
    closeness = np.concatenate([1.0 - np.abs(leans) / reach, [1.0, 0.0]])
    goals = frozenset({goal} if _has_goal(end) else ())
    failures = frozenset({fallen} if _has_failure(end) else ())
    return _Place(moves, reach * stages, goals, failures, closeness)


def _lock(rng: np.random.Generator, end: str) -> _Place:
    """Alternating actions advance; a wrong one leads back to the start, or may end the episode."""
    n = int(rng.integers(5, 8))
    breaks = 0.3 if _has_failure(end) else 0.0
    moves = np.zeros((n + 2, 2, n + 2))
    goal, broken = n, n + 1
    for place, action in itertools.product(range(n), range(2)):
        if action == place % 2:
            after = goal if _has_goal(end) else n - 2
            moves[place, action, place + 1 if place + 1 < n else after] = 1.0
        else:
            moves[place, action, 0] += 1.0 - breaks
            moves[place, action, broken] += breaks
    moves[[goal, broken], :, [goal, broken]] = 1.0
    closeness = np.concatenate([np.arange(n) / n, [1.0, 0.0]])
    goals = frozenset({goal} if _has_goal(end) else ())
    failures = frozenset({broken} if _has_failure(end) else ())
    return _Place(moves, 0, goals, failures, closeness)


_PLACES: dict[str, tuple[Callable[[np.random.Generator, str], _Place], ...]] = {
    "helpful": (_corridor, _inertia),
    "harmless": (_small_line, _jumps),
    "harmful": (_balance, _lock),
}
