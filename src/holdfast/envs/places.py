"""Environments that report where they are, which an image does not show: games with an accessible state."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import gymnasium

__all__ = ["Placed", "place_names", "place_of"]


@runtime_checkable
class Placed(Protocol):
    """An environment whose places differ from its observations.

    Attributes:
        place_names: What such places are, in the plural, such as ``"contents of the emulator's RAM"``.
    """

    place_names: str

    def place(self) -> Any:
        """The current place: arrays, numbers, and lists and mappings of them; must not be changed."""
        ...


def place_names(env: gymnasium.Env[Any, Any]) -> str | None:
    """What the places of an environment are; None if they are its observations."""
    inner = env.unwrapped
    return inner.place_names if isinstance(inner, Placed) else None


def place_of(env: gymnasium.Env[Any, Any], observation: Any) -> Any:
    """The place that an environment reports, or else its last observation."""
    inner = env.unwrapped
    return inner.place() if isinstance(inner, Placed) else observation
