"""A small game on boards of bytes, as MinAtar's are, without its package."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

__all__ = ["Boards"]


class Boards(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """A piece on one of two layers goes where it is told to; stones on the other come and go.

    Args:
        highest: Largest number of a cell.
        dtype: Of the boards.
    """

    def __init__(self, highest: int = 1, dtype: Any = np.uint8) -> None:
        self.observation_space = spaces.Box(0, highest, (2, 5, 7), dtype)
        self.action_space = spaces.Discrete(3)
        self._highest = highest

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:
        """Begin in a corner."""
        super().reset(seed=seed)
        self._place, self._steps = 0, 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Move by 0, 1 or 8 cells; the last one ends the game."""
        self._place = min(self._place + (0, 1, 8)[int(action)], 34)
        self._steps += 1
        is_over = self._place == 34
        return self._seen(), float(is_over) - 0.1, is_over, self._steps >= 20 and not is_over, {}

    def _seen(self) -> NDArray[Any]:
        board = np.zeros(self.observation_space.shape, self.observation_space.dtype)
        board[0].flat[self._place] = 1
        board[1] = self.np_random.integers(1, self._highest + 1, (5, 7)) * (self.np_random.random((5, 7)) < 0.3)
        return board
