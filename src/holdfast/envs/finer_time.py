"""Classic control with time cut finer: n steps where Gymnasium's own environments take one.

The dynamics are integrated n times as often with a step n times as small, a step's reward is divided by n, and an
episode may have n times as many steps. The problem stays what it was in physical time; an agent that is to see it
so takes γ^(1/n) for its γ. With n = 1 the environments are Gymnasium's own, bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv, MountainCarEnv, PendulumEnv

from holdfast.core.checks import check_integer

__all__ = ["AcrobotFine", "CartPoleFine", "MountainCarFine", "PendulumFine"]


class _PhysicalTime:
    """Counts the steps of an episode, for one that lasts as long in physical time whatever n is.

    Args:
        n: Steps that one of Gymnasium's is cut into.
        steps: Of Gymnasium's own, after which an episode is truncated.
    """

    def __init__(self, n: int, steps: int) -> None:
        self.n = check_integer("n", n)
        self.step_limit = steps * self.n
        self._taken = 0

    def begin(self) -> None:
        """An episode begins."""
        self._taken = 0

    def is_up(self) -> bool:
        """Count one step; whether it was the last that there is time for."""
        self._taken += 1
        return self._taken >= self.step_limit


class MountainCarFine(MountainCarEnv):
    """MountainCar-v0 with n steps for one.

    Args:
        n: Steps that one of Gymnasium's is cut into.
        render_mode: As Gymnasium's.
        goal_velocity: As Gymnasium's.
    """

    def __init__(self, n: int = 1, render_mode: str | None = None, goal_velocity: float = 0) -> None:
        super().__init__(render_mode, goal_velocity)
        self.time = _PhysicalTime(n, 200)

    def reset(self, **kwargs: Any) -> Any:
        """A new episode."""
        self.time.begin()
        return super().reset(**kwargs)

    def step(self, action: int) -> Any:
        """V ← v + a/n, then x ← x + v/n, both within their bounds; the wall on the left stops the car."""
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


class CartPoleFine(CartPoleEnv):
    """CartPole-v1 with n steps for one.

    Args:
        n: Steps that one of Gymnasium's is cut into.
        render_mode: As Gymnasium's.
        sutton_barto_reward: As Gymnasium's.
    """

    def __init__(self, n: int = 1, render_mode: str | None = None, sutton_barto_reward: bool = False) -> None:
        super().__init__(sutton_barto_reward, render_mode)
        self.time = _PhysicalTime(n, 500)
        self.tau /= n

    def reset(self, **kwargs: Any) -> Any:
        """A new episode."""
        self.time.begin()
        return super().reset(**kwargs)

    def step(self, action: Any) -> Any:
        """Gymnasium's step, of a shorter time."""
        observation, reward, terminated, _, info = super().step(action)  # type: ignore[no-untyped-call]
        return observation, reward / self.time.n, terminated, self.time.is_up(), info


class AcrobotFine(AcrobotEnv):
    """Acrobot-v1 with n steps for one.

    Args:
        n: Steps that one of Gymnasium's is cut into.
        render_mode: As Gymnasium's.
    """

    def __init__(self, n: int = 1, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.time = _PhysicalTime(n, 500)
        self.dt = type(self).dt / n

    def reset(self, **kwargs: Any) -> Any:
        """A new episode."""
        self.time.begin()
        return super().reset(**kwargs)

    def step(self, action: Any) -> Any:
        """Gymnasium's step, of a shorter time."""
        observation, reward, terminated, _, info = super().step(action)  # type: ignore[no-untyped-call]
        return observation, reward / self.time.n, terminated, self.time.is_up(), info


class PendulumFine(PendulumEnv):
    """Pendulum-v1 with n steps for one.

    Args:
        n: Steps that one of Gymnasium's is cut into.
        render_mode: As Gymnasium's.
        g: As Gymnasium's.
    """

    def __init__(self, n: int = 1, render_mode: str | None = None, g: float = 10.0) -> None:
        super().__init__(render_mode, g)
        self.time = _PhysicalTime(n, 200)
        self.dt /= n

    def reset(self, **kwargs: Any) -> Any:
        """A new episode."""
        self.time.begin()
        return super().reset(**kwargs)

    def step(self, u: Any) -> Any:
        """Gymnasium's step, of a shorter time."""
        observation, reward, terminated, _, info = super().step(u)  # type: ignore[no-untyped-call]
        return observation, reward / self.time.n, terminated, self.time.is_up(), info
