"""What a training reads of an environment's info, and nothing else of it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

__all__ = ["TrainingInfo"]


class TrainingInfo(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Hands on of an environment's info only whether an episode was a success.

    Stable-Baselines3 copies all of it at every step, and gives entries such as ``"episode"`` a meaning of its own.
    What an environment puts there for others may be neither fit to be copied nor meant in that way.

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
        """One step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        success: Any = info.get("is_success")
        is_number = isinstance(success, bool | np.bool_ | int | float | np.integer | np.floating)
        told = {"is_success": float(success)} if is_number and np.isfinite(success) else {}
        return observation, reward, terminated, truncated, told
