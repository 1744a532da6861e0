"""The rules of a grid world: the rewards of its steps, how they slip, and how many steps an episode has."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.core.checks import check_choice, check_integer, check_probability, check_real

__all__ = ["ACTION_NAMES", "GridRules"]

ACTION_NAMES = ("left", "down", "right", "up")
"""Each direction is adjacent to the one before and the one after it, cyclically."""


@dataclass(frozen=True, kw_only=True)
class GridRules:
    """Checked, unchangeable rules; ``GridWorld`` explains each of them."""

    goal_reward: float
    hole_reward: float
    step_reward: float
    border: str
    border_reward: float
    slip: float
    step_limit: int | None

    def __post_init__(self) -> None:
        for name in ("goal_reward", "hole_reward", "step_reward", "border_reward"):
            object.__setattr__(self, name, check_real(name, getattr(self, name)))
        check_choice("border", self.border, ("block", "deadly"))
        object.__setattr__(self, "slip", check_probability("slip", self.slip))
        if self.step_limit is not None:
            object.__setattr__(self, "step_limit", check_integer("step_limit", self.step_limit))

    @property
    def deadly_border(self) -> bool:
        """Whether leaving the map ends the episode."""
        return self.border == "deadly"

    def outcomes(self, action: int) -> list[tuple[float, int]]:
        """The directions a step may take, each with its probability."""
        outcomes = [
            (self.slip / 2, (action - 1) % len(ACTION_NAMES)),
            (1.0 - self.slip, action),
            (self.slip / 2, (action + 1) % len(ACTION_NAMES)),
        ]
        return [outcome for outcome in outcomes if outcome[0] > 0.0]
