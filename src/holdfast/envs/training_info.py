"""The only part of an environment's info that training reads."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

__all__ = ["TrainingInfo"]


class TrainingInfo(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Passes on only one entry of an environment's info: whether an episode was a success.

    Stable-Baselines3 copies the whole info at every step, and gives entries such as ``"episode"`` its own meaning.
    What an environment puts there for other purposes may be unfit for copying, or mean something else.

    Args:
        env: The environment.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, _ = self.env.reset(seed=seed, options=options)
        return observation, {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        success: Any = info.get("is_success")
        # Other types of numbers, such as a user's own, may raise when they are read.
        told = {"is_success": float(success)} if _is_plain(success) and np.isfinite(success) else {}
        return observation, reward, terminated, truncated, told


def _is_plain(value: Any) -> bool:
    if type(value) is int:
        return abs(value) < 2**63
    is_of_numpy = isinstance(value, np.bool_ | np.integer | np.floating) and type(value).__module__ == "numpy"
    return is_of_numpy or type(value) in (bool, float)
