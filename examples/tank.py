"""A heated tank, as an example of your own simulator: a cost per step, and an end when it overheats.

    holdfast explore tank:make
    holdfast train tank:make --k-max 4 --steps 40000 --name tank

Run these in the folder of this file. The right fixed skip is known, by dynamic programming over the 75
temperatures: holding every action for five steps costs 1.7 % of the discounted value, six steps cost 6.6 %.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from holdfast import HoldAction

COLD, TARGET, TOO_HOT = 20, 70, 95
BAND = 5
HEAT, LOSS = 2.4, 0.02
COST, COST_PER_DEGREE, MOST_COST, OVERHEATING = 0.2, 1.0 / 6.0, 1.0, 40.0


class Tank(gymnasium.Env[NDArray[np.float32], int]):
    """Keep the temperature within five degrees of the target with a heater that is on or off."""

    observation_space = spaces.Box(np.float32(COLD), np.float32(TOO_HOT), (1,))
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self._temperature = TARGET

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin at the target."""
        super().reset(seed=seed)
        self._temperature = TARGET
        return self._seen(), {}

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Heat or not; the temperature is rounded up or down to whole degrees at random."""
        exact = after(self._temperature, int(action))
        rounded = math.floor(exact) + int(self.np_random.random() < exact - math.floor(exact))
        self._temperature = min(max(rounded, COLD), TOO_HOT)
        return self._seen(), reward(self._temperature), self._temperature == TOO_HOT, False, {}

    def _seen(self) -> NDArray[np.float32]:
        return np.array([self._temperature], dtype=np.float32)


def after(temperature: int, action: int) -> float:
    """The temperature after a step, before it is rounded."""
    return temperature + HEAT * action - LOSS * (temperature - COLD)


def reward(temperature: int) -> float:
    """The reward for reaching a temperature: a cost, larger outside the band, and a penalty if it is too hot."""
    if temperature == TOO_HOT:
        return -OVERHEATING
    return -COST - min(max(abs(temperature - TARGET) - BAND, 0) * COST_PER_DEGREE, MOST_COST)


def make(k: int = 1) -> gymnasium.Env[Any, Any]:
    """The tank for 200 steps, with every action held for k steps."""
    env: gymnasium.Env[Any, Any] = TimeLimit(Tank(), 200)
    return env if k == 1 else HoldAction(env, k)
