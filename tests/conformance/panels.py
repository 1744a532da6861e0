"""An environment with dials and switches: one combination of them is worth most in each of three states."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

ACTIONS: dict[str, spaces.Space[Any]] = {
    "dials": spaces.MultiDiscrete([2, 3], start=[1, -1]),
    "dials in rows": spaces.MultiDiscrete([[2], [2]]),
    "switches": spaces.MultiBinary(2),
    "switches in rows": spaces.MultiBinary((1, 2)),
}


class Panel(gymnasium.Env[Any, Any]):
    """Three lamps, lit in turn; a step is worth 1 if the right combination is set, −1 otherwise.

    Args:
        kind: One of ``ACTIONS``.
        discrete: Whether what is seen is a number rather than a vector.
    """

    def __init__(self, kind: str = "dials", discrete: bool = False) -> None:
        self.action_space = ACTIONS[kind]
        self.discrete = discrete
        self.observation_space = spaces.Discrete(3) if discrete else spaces.Box(0.0, 1.0, (3,), np.float32)
        self.taken: list[Any] = []

    def _seen(self) -> Any:
        return self.lamp if self.discrete else np.eye(3, dtype=np.float32)[self.lamp]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.lamp, self.time = int(self.np_random.integers(3)), 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        assert self.action_space.contains(action), action
        self.taken.append(action)
        wanted = np.full(self.action_space.shape, self.lamp % 2) + getattr(self.action_space, "start", 0)
        reward = 1.0 if np.array_equal(action, wanted) else -1.0
        self.time += 1
        if self.time % 4 == 0:
            self.lamp = (self.lamp + 1) % 3
        return self._seen(), reward, False, self.time >= 12, {}
