"""Classic control in finer time: n steps for every one of Gymnasium's own environments.

The dynamics are integrated n times as often with a step n times as small, each reward is divided by n, and an
episode may have n times as many steps. In physical time the problem stays the same; to keep it the same for an
agent, use γ^(1/n) as its γ. With n = 1 the environments are Gymnasium's own, bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv, MountainCarEnv, PendulumEnv

from holdfast.core.checks import check_integer

__all__ = ["AcrobotFine", "CartPoleFine", "MountainCarFine", "PendulumFine"]


class _PhysicalTime:
    """Counts the steps of an episode, which lasts equally long in physical time for every n.

    Args:
        n: Number of steps that replace one of Gymnasium's.
        steps: Gymnasium's number of steps after which an episode is truncated.
    """

    def __init__(self, n: int, steps: int) -> None:
        self.n = check_integer("n", n)
        self.step_limit = steps * self.n
        self._taken = 0

    def begin(self) -> None:
        """Begin an episode."""
        self._taken = 0

    def is_up(self) -> bool:
        """Count one step; return whether the time is up."""
        self._taken += 1
        return self._taken >= self.step_limit


class _Timed(gymnasium.Env[Any, Any]):
    """An environment whose episodes last as long as ``time`` says."""

    time: _PhysicalTime

    def reset(self, **kwargs: Any) -> Any:
        """Begin an episode."""
        self.time.begin()
        return super().reset(**kwargs)


class _Shortened(_Timed):
    """One whose own step takes the shorter time already."""

    def step(self, action: Any) -> Any:
        """Gymnasium's step, over a shorter time."""
        found: Any = super().step(action)
        observation, reward, terminated, _, info = found
        return observation, reward / self.time.n, terminated, self.time.is_up(), info


class MountainCarFine(_Timed, MountainCarEnv):
    """MountainCar-v0 with n steps for one.

    Args:
        n: Number of steps that replace one of Gymnasium's.
        render_mode: As in Gymnasium.
        goal_velocity: As in Gymnasium.
    """

    def __init__(self, n: int = 1, render_mode: str | None = None, goal_velocity: float = 0) -> None:
        super().__init__(render_mode, goal_velocity)
        self.time = _PhysicalTime(n, 200)

    def step(self, action: int) -> Any:
        """V ← v + a/n, then x ← x + v/n, both clipped to their bounds; the wall on the left stops the car."""
        n = self.time.n
        position, velocity = self.state
        pull = (action - 1) * self.force + math.cos(3 * position) * (-self.gravity)
        velocity = np.clip(velocity + pull / n, -self.max_speed, self.max_speed)
        position = np.clip(position + velocity / n, self.min_position, self.max_position)
        if position == self.min_position and velocity < 0:
            velocity = 0
        self.state = (position, velocity)
        has_arrived = bool(position >= self.goal_position and velocity >= self.goal_velocity)
        if self.render_mode == "human":
            self.render()  # type: ignore[no-untyped-call]  # Gymnasium's has no types
        return np.array(self.state, dtype=np.float32), -1.0 / n, has_arrived, self.time.is_up(), {}


class CartPoleFine(_Shortened, CartPoleEnv):
    """CartPole-v1 with n steps for one.

    Args:
        n: Number of steps that replace one of Gymnasium's.
        render_mode: As in Gymnasium.
        sutton_barto_reward: As in Gymnasium.
    """

    def __init__(self, n: int = 1, render_mode: str | None = None, sutton_barto_reward: bool = False) -> None:
        super().__init__(sutton_barto_reward, render_mode)
        self.time = _PhysicalTime(n, 500)
        self.tau /= n


class AcrobotFine(_Shortened, AcrobotEnv):
    """Acrobot-v1 with n steps for one.

    Args:
        n: Number of steps that replace one of Gymnasium's.
        render_mode: As in Gymnasium.
    """

    def __init__(self, n: int = 1, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.time = _PhysicalTime(n, 500)
        self.dt = type(self).dt / n


class PendulumFine(_Shortened, PendulumEnv):
    """Pendulum-v1 with n steps for one.

    Args:
        n: Number of steps that replace one of Gymnasium's.
        render_mode: As in Gymnasium.
        g: As in Gymnasium.
    """

    def __init__(self, n: int = 1, render_mode: str | None = None, g: float = 10.0) -> None:
        super().__init__(render_mode, g)
        self.time = _PhysicalTime(n, 200)
        self.dt /= n
