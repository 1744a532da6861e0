"""Environments that note down everything, for any observation space."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

VECTOR = spaces.Box(-1.0, 1.0, (3,), np.float32)

OBSERVATIONS: dict[str, spaces.Space[Any]] = {
    "float32": VECTOR,
    "float64": spaces.Box(-2.0, 2.0, (2,), np.float64),
    "unbounded": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "matrix": spaces.Box(-1.0, 1.0, (2, 3), np.float32),
    "int32": spaces.Box(-5, 9, (2,), np.int32),
    "uint8": spaces.Box(0, 255, (4,), np.uint8),
    "discrete": spaces.Discrete(5),
    "multidiscrete": spaces.MultiDiscrete([3, 4]),
    "multibinary": spaces.MultiBinary(4),
    "multibinary2d": spaces.MultiBinary((2, 3)),
    "dict": spaces.Dict(
        {
            "box": VECTOR,
            "number": spaces.Discrete(3),
            "switches": spaces.MultiBinary(2),
            "dials": spaces.MultiDiscrete([2, 3]),
        }
    ),
}


class Samples(gym.Env[Any, int]):
    """Observations drawn from a space; action 1 is rewarded; episodes of a fixed length.

    Args:
        space: Of the observations.
        length: Of the episodes.
        n_actions: Actions.
        ends: "terminated" or "truncated".
    """

    def __init__(
        self, space: spaces.Space[Any] = VECTOR, length: int = 6, n_actions: int = 3, ends: str = "truncated"
    ):
        self.observation_space = copy.deepcopy(space)
        self.action_space: spaces.Discrete = spaces.Discrete(n_actions)
        self.length, self.ends = length, ends
        self.seen: list[Any] = []
        self.done: list[int] = []
        self.resets = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.time = 0
        self.resets += 1
        return self.observe(), {}

    def observe(self) -> Any:
        self.seen.append(self.observation_space.sample())
        return copy.deepcopy(self.seen[-1])

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        assert self.action_space.contains(np.int64(action)), action
        self.done.append(int(action))
        self.time += 1
        over = self.time == self.length
        terminated, truncated = (over and self.ends == end for end in ("terminated", "truncated"))
        return self.observe(), float(action == 1), terminated, truncated, {}


class Counting(Samples):
    """Shows how many observations it has given so far, and then the step of the episode."""

    def __init__(self, first: int = 0, **arguments: Any):
        super().__init__(spaces.Box(-np.inf, np.inf, (2,), np.float32), **arguments)
        self.first = first

    def observe(self) -> np.ndarray:
        self.seen.append(self.first + len(self.seen))
        return np.array([self.seen[-1], self.time], np.float32)


class Echo(Samples):
    """Fully determined: shows the time and the last action, pays for both together."""

    def __init__(self, length: int = 7, n_actions: int = 3):
        super().__init__(spaces.Box(0.0, 100.0, (2,), np.float32), length, n_actions)
        self.last = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        self.last = 0
        return super().reset(seed=seed, options=options)

    def observe(self) -> np.ndarray:
        self.seen.append((self.time, self.last))
        return np.array([self.time, self.last], np.float32)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.last = int(action)
        observation, _, terminated, truncated, info = super().step(action)
        return observation, float(self.time * (action + 1)), terminated, truncated, info


def vector(n_envs: int = 1, kind: Any = Samples, monitored: bool = True, **arguments: Any) -> DummyVecEnv:
    """Environments side by side; those of ``Counting`` count from different numbers."""

    def maker(index: int) -> Any:
        own = {"first": 10_000 * index} if kind is Counting else {}
        return lambda: Monitor(kind(**own, **arguments)) if monitored else kind(**own, **arguments)

    return DummyVecEnv([maker(index) for index in range(n_envs)])


def singles(env: Any) -> list[Any]:
    """The environments inside a VecEnv, without wrappers."""
    return [single.unwrapped for single in env.unwrapped.envs]
