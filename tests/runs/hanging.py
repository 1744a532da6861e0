"""An environment that hangs, in Python or in C, with the interpreter's lock or without."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np


class Hanging(gymnasium.Env[Any, Any]):
    """Ten steps an episode; at one step of its life, or in the reset after it, it never returns."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, how: str = "never", at: int = 30) -> None:
        self._how, self._at, self._steps = how, at, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if self._how == "reset" and self._steps >= self._at:
            time.sleep(1000)  # in reset
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        if self._steps == self._at:
            if self._how == "sleep":
                time.sleep(1000)  # in sleep
            while self._how == "loop":
                pass  # in loop
            if self._how in ("suspended", "suspended_forever"):
                # Half of what a test allows it; more passes while nobody lets it run.
                Path("ready").touch()
                time.sleep(0.35 if self._how == "suspended" else 1000)
            if self._how == "lock":
                pow(3, 10**9)  # in lock
        return np.zeros(2, np.float32), 1.0, self._how != "endless" and self._steps % 10 == 0, False, {}
