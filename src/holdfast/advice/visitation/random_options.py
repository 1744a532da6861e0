"""Random options in any environment: each decision draws an action and the number of steps to hold it.

A setting is K, the longest hold, and a mode: ``"dynamic"`` draws k uniformly from 1..K, ``"fixed"`` always holds
for K steps. The end of an episode cuts an option short. All draws depend only on the study's seed, so a study
repeats bit for bit: episode i has the same reset seed in every setting (settings differ in their options, not in
their starts), and each setting has its own stream of options.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.core.array_types import Floats, Integers
from holdfast.core.checks import check_choice, check_integer
from holdfast.core.choice import scaled_index
from holdfast.core.clock import left_after_step
from holdfast.envs.episode_log import episode_seed
from holdfast.envs.places import place_of
from holdfast.policies.evaluation import LONGEST_EPISODE

__all__ = ["MODES", "Budget", "PythonRoller", "RollOut", "Roller", "Setting", "option_stream"]


MODES = ("dynamic", "fixed")

SHORTEST_CUT = 10_000
"""Number of steps that an episode may always have, however small the budget."""

_OPTIONS, _SAMPLES = 1, 2
"""Branches of the seed's tree; ``episode_seed`` uses branch 0, as for the first environment of a run."""


class Setting(NamedTuple):
    """How options are drawn.

    Attributes:
        k_max: K, the longest hold.
        mode: ``"dynamic"``, k uniform in 1..K, or ``"fixed"``, always K.
    """

    k_max: int
    mode: str

    @classmethod
    def checked(cls, k_max: Any, mode: Any) -> Setting:
        """The setting, or an error that says what it must be."""
        return cls(check_integer("k_values", k_max), check_choice("modes", mode, MODES))

    @property
    def draws_duration(self) -> bool:
        """Whether durations are drawn; with K = 1 both modes are the same."""
        return self.mode == "dynamic" and self.k_max > 1


class Budget(NamedTuple):
    """How long each setting is played: a number of episodes, or whole episodes up to a number of steps.

    Attributes:
        amount: The number of episodes or steps.
        unit: ``"episodes"`` or ``"steps"``.
    """

    amount: int
    unit: str

    @property
    def longest_episode(self) -> int:
        """Steps after which an episode that does not end is cut off."""
        if self.unit == "episodes":
            return LONGEST_EPISODE
        return max(SHORTEST_CUT, min(self.amount, LONGEST_EPISODE))

    def is_spent(self, episodes: int, steps: int) -> bool:
        """Whether the budget is used up."""
        return self._done(episodes, steps) >= self.amount

    def fraction(self, episodes: int, steps: int) -> float:
        """The share of the budget that is used up, in [0, 1]."""
        return min(self._done(episodes, steps) / self.amount, 1.0)

    def episodes_left(self, episodes: int, steps: int, longest: int) -> int:
        """Number of episodes that are certain to fit into the rest, even if each takes ``longest`` steps."""
        left = self.amount - self._done(episodes, steps)
        return left if self.unit == "episodes" else left // longest

    def _done(self, episodes: int, steps: int) -> int:
        return episodes if self.unit == "episodes" else steps


@dataclass(frozen=True, eq=False)
class RollOut:
    """n episodes of a setting, one after the other.

    Attributes:
        observations: (Σ lengths + n, ...) all observations, encoded: the first of each episode and one per step.
        rewards: (Σ lengths,) one per step.
        lengths: (n,) steps of each episode.
        decisions: (n,) options begun in each episode.
        terminated: (n,) whether it ended by itself, not by a limit.
        cut_off: (n,) whether it did not end at all and was cut off at the budget's longest episode.
    """

    observations: NDArray[Any]
    rewards: Floats
    lengths: Integers
    decisions: Integers
    terminated: NDArray[np.bool_]
    cut_off: NDArray[np.bool_]

    @property
    def returns(self) -> Floats:
        """(n,) sums of the rewards."""
        return np.asarray(np.add.reduceat(self.rewards, self._begins), dtype=np.float64)

    @property
    def best_rewards(self) -> Floats:
        """(n,) largest reward of each episode."""
        return np.asarray(np.maximum.reduceat(self.rewards, self._begins), dtype=np.float64)

    @property
    def last_rewards(self) -> Floats:
        """(n,) reward of each episode's last step."""
        return self.rewards[np.cumsum(self.lengths) - 1]

    @property
    def rewards_of_going_on(self) -> Floats:
        """Rewards of the steps that did not terminate an episode."""
        return np.delete(self.rewards, (np.cumsum(self.lengths) - 1)[self.terminated])

    @property
    def _begins(self) -> Integers:
        return np.cumsum(self.lengths) - self.lengths


class Roller(Protocol):
    """Something that plays random options."""

    def roll(self, setting: Setting, budget: Budget) -> Iterator[RollOut]:
        """The episodes of a setting, some at a time; every call gives the same ones."""
        ...


def option_stream(seed: int, setting: Setting) -> np.random.Generator:
    """The stream of a setting's options; with K = 1 it is the same in both modes."""
    return np.random.Generator(np.random.PCG64(_branch(seed, _OPTIONS, setting)))


class PythonRoller:
    """Random options in any environment, step by step.

    Args:
        envs: Environments that take turns, one episode each.
        encode: Encodes a place: the one that the environment itself reports, else the observation.
        seed: Seed of the study.
    """

    def __init__(self, envs: Sequence[gymnasium.Env[Any, Any]], encode: Callable[[Any], Any], seed: int) -> None:
        self._envs = envs
        self._encode = encode
        self._seed = seed

    def roll(self, setting: Setting, budget: Budget) -> Iterator[RollOut]:
        """Play episode by episode."""
        draws = option_stream(self._seed, setting)
        actions, longest = self._actions(setting, draws), budget.longest_episode
        episodes = steps = 0
        while not budget.is_spent(episodes, steps):
            env = self._envs[episodes % len(self._envs)]
            played = self._play(env, episode_seed(self._seed, 0, episodes), setting, longest, actions, draws)
            episodes, steps = episodes + 1, steps + int(played.lengths[0])
            yield played

    def _play(
        self,
        env: gymnasium.Env[Any, Any],
        seed: int,
        setting: Setting,
        longest: int,
        actions: Iterator[Any],
        draws: np.random.Generator,
    ) -> RollOut:
        observation, _ = env.reset(seed=seed)
        seen = [self._encode(place_of(env, observation))]
        rewards, decisions = [], 0
        ended = terminated = truncated = False
        while not ended:
            action, left = next(actions), setting.k_max
            if setting.draws_duration:
                left = 1 + scaled_index(draws.random(), setting.k_max)
            decisions += 1
            while left > 0:
                # A copy, because the environment may write into an array.
                observation, reward, terminated, truncated, _ = env.step(copy.copy(action))
                seen.append(self._encode(place_of(env, observation)))
                rewards.append(float(reward))
                ended = bool(terminated or truncated or len(rewards) >= longest)
                left = left_after_step(left, ended)
        return RollOut(
            np.asarray(seen),
            np.array(rewards),
            np.array([len(rewards)]),
            np.array([decisions]),
            np.array([bool(terminated)]),
            np.array([not (terminated or truncated)]),
        )

    def _actions(self, setting: Setting, draws: np.random.Generator) -> Iterator[Any]:
        """An endless stream of actions; those of a Discrete space come from the stream of the options."""
        space = self._envs[0].action_space
        if isinstance(space, spaces.Discrete):
            n_actions, first = int(space.n), int(space.start)
            while True:
                yield first + scaled_index(draws.random(), n_actions)
        # A copy, so that the environment's own space keeps its random state.
        space = copy.deepcopy(space)
        space.seed(int(_branch(self._seed, _SAMPLES, setting).generate_state(1)[0]))
        while True:
            yield space.sample()


def _branch(seed: int, purpose: int, setting: Setting) -> np.random.SeedSequence:
    is_fixed = setting.mode == "fixed" and setting.k_max > 1
    return np.random.SeedSequence(seed, spawn_key=(purpose, int(is_fixed), setting.k_max))
