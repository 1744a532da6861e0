"""Where a learner can be trained, and how to step there: a model, an environment, or either one per seed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import gymnasium
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from holdfast.core.checks import check_choice
from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.rewards import LARGEST_REWARD
from holdfast.envs import EpisodeLog, GridWorld, NamedFailures
from holdfast.envs.choices import NumberedActions
from holdfast.mdp import TabularMDP
from holdfast.tabular.run import RunState, environment_seed
from holdfast.tabular.simulator import FlatModel, ModelSteps, flat_model

__all__ = [
    "LOOPS",
    "Steps",
    "Trainable",
    "World",
    "find_world",
    "is_plain_grid",
    "opaque_wrapper",
    "own_step_limit",
    "shortest_limit",
    "steps_in",
]

Trainable: TypeAlias = TabularMDP | gymnasium.Env[Any, Any] | Callable[[int], Any]
"""A model, an environment, or a callable that makes one of them for a seed."""

LOOPS = ("auto", "compiled", "python")

DEFAULT_STEP_LIMIT = 100

# These wrappers pass every step through unchanged.
_TRANSPARENT = (EpisodeLog, NamedFailures, OrderEnforcing, PassiveEnvChecker, TimeLimit)


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """The place of a run: a model for the compiled loop, an environment for the Python loop, or both.

    Attributes:
        n_states: S.
        n_actions: A.
        step_limit: Steps after which an episode is truncated.
        model: The exact model, if it is to be used.
        env: The environment; None if a model was given instead.
        compiled: Whether to run the compiled loop.
        owned: Whether the environment was made for this run and is closed with it.
        first_state: Number of the environment's first state; 0 in a model.
        first_action: Number of the environment's first action.
    """

    n_states: int
    n_actions: int
    step_limit: int
    model: FlatModel | None
    env: gymnasium.Env[Any, Any] | None
    compiled: bool
    owned: bool = False
    first_state: int = 0
    first_action: int = 0

    def close(self) -> None:
        """Close the environment if it was made for this run."""
        if self.owned and self.env is not None:
            self.env.close()


def find_world(source: Any, seed: int, gamma: float, step_limit: int | None, loop: str = "auto") -> World:
    """The world that ``source`` describes for ``seed``.

    With ``loop="auto"``, models and unwrapped grid worlds of this library run compiled, and all other environments
    run in the Python loop. ``"compiled"`` uses the transition table of any environment that exposes one. A
    learner's step limit can only shorten the environment's own.

    Raises:
        TypeError: ``source`` cannot be trained in, or has spaces other than Discrete.
        ValueError: The compiled loop was requested but there is no model.
    """
    check_choice("loop", loop, LOOPS)
    made = not isinstance(source, TabularMDP | gymnasium.Env) and callable(source)
    place = source(seed) if made else source
    if isinstance(place, TabularMDP):
        limit = DEFAULT_STEP_LIMIT if step_limit is None else step_limit
        return World(place.n_states, place.n_actions, limit, flat_model(place), None, loop != "python")
    if not isinstance(place, gymnasium.Env):
        raise InputTypeError(
            "env must be a Gymnasium environment, a TabularMDP, or a callable that makes one of them for a seed, "
            f"not {place!r} (gymnasium.make turns a name into an environment)"
        )
    if isinstance(place.action_space, gymnasium.spaces.MultiDiscrete | gymnasium.spaces.MultiBinary):
        place = NumberedActions(place)
    states, actions = _discrete(place, "observation_space"), _discrete(place, "action_space")
    limit = shortest_limit(place, step_limit)
    firsts = int(states.start), int(actions.start)
    compiled = loop == "compiled" or (loop == "auto" and is_plain_grid(place))
    if not compiled:
        return World(int(states.n), int(actions.n), limit, None, place, False, made, *firsts)
    wrapper = opaque_wrapper(place)
    if wrapper is not None:
        raise InputError(
            f"loop must be 'auto' or 'python' for an environment in the wrapper {type(wrapper).__name__}: "
            "the compiled loop would bypass it"
        )
    model = flat_model(TabularMDP.from_gymnasium(place, gamma))
    return World(model.n_states, model.n_actions, limit, model, place, True, made, *firsts)


def shortest_limit(env: gymnasium.Env[Any, Any], step_limit: int | None) -> int:
    """Steps after which a learner with this limit truncates an episode: the shorter of both limits, else 100."""
    known = [limit for limit in (own_step_limit(env), step_limit) if limit is not None]
    return min(known, default=DEFAULT_STEP_LIMIT)


def own_step_limit(env: gymnasium.Env[Any, Any]) -> int | None:
    """Steps after which ``env`` itself truncates an episode, if known."""
    limits = [env.unwrapped.step_limit] if isinstance(env.unwrapped, GridWorld) else []
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return min((limit for limit in limits if limit is not None), default=None)


def _discrete(env: gymnasium.Env[Any, Any], name: str) -> gymnasium.spaces.Discrete:
    space = getattr(env, name)
    if not isinstance(space, gymnasium.spaces.Discrete):
        raise InputTypeError(
            f"env must have a Discrete {name.replace('_', ' ')} for a table of values, not {type(space).__name__}",
            "env",
        )
    return space


def is_plain_grid(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether ``env`` is exactly what ``GridWorld.tabular_mdp`` says: no opaque wrapper, no overridden method."""
    if not isinstance(env.unwrapped, GridWorld):
        return False
    kind = type(env.unwrapped)
    return (
        kind.step is GridWorld.step
        and kind.reset is GridWorld.reset
        and kind.tabular_mdp is GridWorld.tabular_mdp
        and opaque_wrapper(env) is None
    )


def opaque_wrapper(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any] | None:
    """The outermost wrapper that may change what passes through it, if any."""
    while isinstance(env, gymnasium.Wrapper):
        if type(env) not in _TRANSPARENT:
            return env
        env = env.env
    return None


def steps_in(world: World, state: RunState) -> Steps:
    """What the Python loop steps in: the environment if there is one, else the model."""
    if world.env is not None:
        return GymSteps(world.env, state.seed)
    assert world.model is not None
    return ModelSteps(world.model, state.environment, state.evaluation)


class Steps(Protocol):
    """Something to take steps in; states and actions count from 0."""

    def begin(self, episode: int, purpose: str) -> int:
        """Start an episode for ``"training"`` or ``"evaluation"``; return its first state."""
        ...

    def step(self, action: int) -> tuple[int, float, bool, bool]:
        """Next state, reward, terminated, truncated."""
        ...


class GymSteps:
    """A Gymnasium environment whose episodes depend only on the run's seed and their own number.

    Args:
        env: An environment with Discrete observations and actions, which may count from any number.
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
        observation, _ = self._env.reset(seed=environment_seed(self._seed, purpose, episode))
        return self._state(observation)

    def step(self, action: int) -> tuple[int, float, bool, bool]:
        """Next state, reward, terminated, truncated."""
        observation, reward, terminated, truncated, _ = self._env.step(action + self._first_action)
        worth = float(reward)
        if not abs(worth) <= LARGEST_REWARD:
            raise InputError(f"env must give finite rewards of at most {LARGEST_REWARD:g} in size, not {worth}")
        return self._state(observation), worth, bool(terminated), bool(truncated)

    def _state(self, observation: Any) -> int:
        """The state number of ``observation``, counted from 0."""
        try:
            state = operator.index(observation) - self._first_state
        except TypeError:
            state = -1
        if not 0 <= state < self._n_states:
            last = self._first_state + self._n_states - 1
            raise InputError(f"env must give observations in {self._first_state}..{last}, not {observation!r}")
        return state
