"""An empty grid with a new start and a new goal in every episode, and no other sign of a goal than reaching it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.core.checks import check_action, check_choice, check_integer
from holdfast.envs.grid_map import FREE, GOAL, START, GridMap
from holdfast.envs.grid_picture import grid_pixels, grid_text
from holdfast.envs.grid_rules import ACTION_NAMES

__all__ = ["GoalGrid"]

_MOVES = np.array([(0, -1), (1, 0), (0, 1), (-1, 0)])
"""Rows and columns by which each action moves, in the order of ``ACTION_NAMES``."""


class GoalGrid(gymnasium.Env[Any, Any]):
    """Walk to a cell that is shown: −1 for each step that does not end there, 0 and the end for the one that does.

    Start and goal are drawn anew for every episode, and are never the same cell. What is seen has three parts,
    each the row and the column of a cell scaled to [−1, 1]: ``observation`` and ``achieved_goal``, where the agent
    is, and ``desired_goal``. It is a goal environment as Gymnasium-Robotics has them, for hindsight replay.

    Args:
        size: Cells along each side.
        step_limit: Steps after which an episode is truncated; None for no limit.
        render_mode: ``"rgb_array"``, ``"ansi"`` or None.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 8}  # noqa: RUF012 - Gymnasium's own attribute
    action_names = ACTION_NAMES

    def __init__(self, size: int = 21, step_limit: int | None = 60, render_mode: str | None = None) -> None:
        self.size = check_integer("size", size, 2)
        self.step_limit = None if step_limit is None else check_integer("step_limit", step_limit)
        if render_mode is not None:
            check_choice("render_mode", render_mode, tuple(self.metadata["render_modes"]))
        self.render_mode = render_mode
        cell = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Dict({"observation": cell, "achieved_goal": cell, "desired_goal": cell})
        self.action_space = spaces.Discrete(len(ACTION_NAMES))
        self._start, self._cell, self._goal = np.zeros((3, 2), dtype=np.int64)
        self._steps = 0
        self._needs_reset = True
        self._last_action: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
        """Begin an episode with two different cells.

        Args:
            seed: Seed of starts and goals from here on.
            options: Not used.
        """
        super().reset(seed=seed)
        cells = self.np_random.choice(self.size**2, size=2, replace=False)
        self._start, self._goal = (np.array(divmod(int(cell), self.size)) for cell in cells)
        self._cell = self._start
        self._steps = 0
        self._needs_reset = False
        self._last_action = None
        return self._seen(), {}

    def step(self, action: Any) -> tuple[dict[str, NDArray[np.float32]], float, bool, bool, dict[str, Any]]:
        """Walk one step: left, down, right, up = 0..3; the border blocks."""
        if self._needs_reset:
            raise gymnasium.error.ResetNeeded("reset must be called before step: no episode is running")
        taken = self._last_action = check_action(action, ACTION_NAMES)
        self._cell = np.clip(self._cell + _MOVES[taken], 0, self.size - 1)
        self._steps += 1
        seen = self._seen()
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {}))
        terminated = reward == 0.0
        truncated = not terminated and self.step_limit is not None and self._steps >= self.step_limit
        self._needs_reset = terminated or truncated
        return seen, reward, terminated, truncated, {"is_success": terminated} if self._needs_reset else {}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """0 where a goal is achieved and −1 elsewhere; of goals (2,), or of many at once (n, 2)."""
        return np.all(np.equal(achieved_goal, desired_goal), axis=-1).astype(np.float32) - np.float32(1.0)

    def _seen(self) -> dict[str, NDArray[np.float32]]:
        here, goal = (self._scaled(cell) for cell in (self._cell, self._goal))
        return {"observation": here, "achieved_goal": here.copy(), "desired_goal": goal}

    def _scaled(self, cell: NDArray[np.int64]) -> NDArray[np.float32]:
        return (2.0 * cell / (self.size - 1) - 1.0).astype(np.float32)

    def render(self) -> Any:
        """The picture of the moment: an (height, width, 3) array, or text; None without a render mode."""
        if self.render_mode is None:
            return None
        letters = np.full((self.size, self.size), FREE)
        letters[tuple(self._start)] = START
        letters[tuple(self._goal)] = GOAL
        grid = GridMap(tuple("".join(row) for row in letters))
        agent = int(self._cell @ (self.size, 1))
        if self.render_mode == "ansi":
            return grid_text(grid, agent, self._last_action)
        return grid_pixels(grid, agent, deadly_border=False)
