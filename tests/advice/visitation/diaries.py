"""A small environment that writes down what is done in it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Diary(gymnasium.Env[Any, Any]):
    """Ends after a number of steps that its reset draws; the observation is that number and the steps taken.

    Args:
        actions: The action space.
        longest: Episodes have up to so many steps.
        truncates: Whether they are truncated then, or terminate.
    """

    observation_space = spaces.Box(0.0, 1000.0, (2,), np.float64)

    def __init__(
        self, actions: spaces.Space[Any] | None = None, longest: int = 40, truncates: bool = False
    ) -> None:
        self.action_space = spaces.Discrete(3) if actions is None else actions
        self._longest = longest
        self._truncates = truncates
        self._steps = self._end = 0
        self.resets: list[int | None] = []
        self.episodes: list[list[Any]] = []
        self.is_closed = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        super().reset(seed=seed)
        self._steps, self._end = 0, int(self.np_random.integers(1, self._longest + 1))
        self.resets.append(seed)
        self.episodes.append([])
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.episodes[-1].append(action)
        self._steps += 1
        is_over = self._steps == self._end
        return self._seen(), -1.0, is_over and not self._truncates, is_over and self._truncates, {}

    def close(self) -> None:
        self.is_closed = True

    def _seen(self) -> Any:
        return np.array([self._end, self._steps], dtype=np.float64)
