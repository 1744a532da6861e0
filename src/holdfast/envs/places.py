"""Environments that say where they are, which a picture of them does not: games whose state can be looked at."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import gymnasium

__all__ = ["Placed", "place_names", "place_of"]


@runtime_checkable
class Placed(Protocol):
    """An environment whose places are not its observations.

    Attributes:
        place_names: What such places are, in the plural: ``"contents of the emulator's RAM"``.
    """

    place_names: str

    def place(self) -> Any:
        """Where it is: arrays, numbers, and lists and mappings of such, which nobody changes."""
        ...


def place_names(env: gymnasium.Env[Any, Any]) -> str | None:
    """What the places of an environment are; None where they are its observations."""
    inner = env.unwrapped
    return inner.place_names if isinstance(inner, Placed) else None


def place_of(env: gymnasium.Env[Any, Any], observation: Any) -> Any:
    """Where an environment says it is, or else what was last seen there."""
    inner = env.unwrapped
    return inner.place() if isinstance(inner, Placed) else observation
