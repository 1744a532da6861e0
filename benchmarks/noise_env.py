"""An environment that costs next to nothing and shows noise."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

__all__ = ["NoisePictures"]


class NoisePictures(gymnasium.Env[Any, Any]):
    """Pictures of noise, 84×84, and six actions that do nothing.

    Args:
        channels: Of each picture.
        episode_steps: After which an episode is truncated.
    """

    action_space = gymnasium.spaces.Discrete(6)

    def __init__(self, channels: int, episode_steps: int) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, (84, 84, channels), np.uint8)
        self._episode_steps = episode_steps

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._step = 0
        return self._picture(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step."""
        self._step += 1
        return self._picture(), 0.0, False, self._step == self._episode_steps, {}

    def _picture(self) -> Any:
        return self.np_random.integers(0, 256, self.observation_space.shape, dtype=np.uint8)
