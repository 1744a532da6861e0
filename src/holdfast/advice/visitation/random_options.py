"""Random options in any environment: at each decision an action and a number of steps to hold it are drawn.

A setting is K, the longest hold, and a mode: ``"dynamic"`` draws k from 1..K, all equally likely, ``"fixed"``
always holds for K steps. An episode's end cuts an option short. What is drawn comes from the seed of the study
alone, so that a study repeats bit for bit: episode number i has the same reset seed in every setting (they differ
by their options, not by where they start), and each setting has its own stream of options.
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

from holdfast.core.checks import check_choice, check_integer
from holdfast.core.choice import scaled_index
from holdfast.core.clock import left_after_step
from holdfast.envs.episode_log import episode_seed
from holdfast.envs.places import place_of
from holdfast.policies.evaluation import LONGEST_EPISODE

__all__ = ["MODES", "Budget", "PythonRoller", "RollOut", "Roller", "Setting", "option_stream"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MODES = ("dynamic", "fixed")

SHORTEST_CUT = 10_000
"""Steps that an episode may always have, however small the budget is."""

_OPTIONS, _SAMPLES = 1, 2
"""Branches of the seed's tree; ``episode_seed`` has its branch 0, as the first environment of a run."""


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
        """The setting, or one sentence about what it must be."""
        return cls(check_integer("k_values", k_max), check_choice("modes", mode, MODES))

    @property
    def draws_duration(self) -> bool:
        """Whether there is anything to draw; with K = 1 both modes are the same."""
        return self.mode == "dynamic" and self.k_max > 1


class Budget(NamedTuple):
    """How long a setting is looked at: so many episodes, or whole episodes until there are so many steps.

    Attributes:
        amount: How many.
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
        """Whether so many are enough."""
        return self._done(episodes, steps) >= self.amount

    def fraction(self, episodes: int, steps: int) -> float:
        """Part of it that is spent, in [0, 1]."""
        return min(self._done(episodes, steps) / self.amount, 1.0)

    def episodes_left(self, episodes: int, steps: int, longest: int) -> int:
        """Episodes that fit in what is left even if each takes ``longest`` steps."""
        left = self.amount - self._done(episodes, steps)
        return left if self.unit == "episodes" else left // longest

    def _done(self, episodes: int, steps: int) -> int:
        return episodes if self.unit == "episodes" else steps


@dataclass(frozen=True, eq=False)
class RollOut:
    """Some episodes of a setting, n of them, one after the other.

    Attributes:
        observations: (Σ lengths + n, ...) everything seen, encoded: the first of each episode and one per step.
        rewards: (Σ lengths,) one per step.
        lengths: (n,) steps of each episode.
        decisions: (n,) options begun in it.
        terminated: (n,) whether it ended by itself and not by a limit.
        cut_off: (n,) whether it did not end at all, and was cut off after the budget's longest episode.
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
        """Rewards of the steps that did not end an episode by itself."""
        return np.delete(self.rewards, (np.cumsum(self.lengths) - 1)[self.terminated])

    @property
    def _begins(self) -> Integers:
        return np.cumsum(self.lengths) - self.lengths


class Roller(Protocol):
    """Something that plays random options."""

    def roll(self, setting: Setting, budget: Budget) -> Iterator[RollOut]:
        """The episodes of a setting, some at a time; the same ones whenever it is asked."""
        ...


def option_stream(seed: int, setting: Setting) -> np.random.Generator:
    """Where a setting's options are drawn from; one with K = 1 is the same in both modes."""
    return np.random.Generator(np.random.PCG64(_branch(seed, _OPTIONS, setting)))


class PythonRoller:
    """Random options in any environments, step by step.

    Args:
        envs: They take turns, an episode each.
        encode: What is kept of a place: of what an environment itself says of where it is, else of an observation.
        seed: Of the study.
    """

    def __init__(self, envs: Sequence[gymnasium.Env[Any, Any]], encode: Callable[[Any], Any], seed: int) -> None:
        self._envs = envs
        self._encode = encode
        self._seed = seed

    def roll(self, setting: Setting, budget: Budget) -> Iterator[RollOut]:
        """Episode by episode."""
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
                # A copy where it is an array: an environment may write into it.
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
        """Endlessly one action after the other; those of a Discrete space come from the stream of the options."""
        space = self._envs[0].action_space
        if isinstance(space, spaces.Discrete):
            n_actions, first = int(space.n), int(space.start)
            while True:
                yield first + scaled_index(draws.random(), n_actions)
        # A copy: the environment's own space keeps its random numbers.
        space = copy.deepcopy(space)
        space.seed(int(_branch(self._seed, _SAMPLES, setting).generate_state(1)[0]))
        while True:
            yield space.sample()


def _branch(seed: int, purpose: int, setting: Setting) -> np.random.SeedSequence:
    is_fixed = setting.mode == "fixed" and setting.k_max > 1
    return np.random.SeedSequence(seed, spawn_key=(purpose, int(is_fixed), setting.k_max))
