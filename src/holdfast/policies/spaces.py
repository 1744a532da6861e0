"""What a policy's file says of it as JSON values and arrays: spaces, there and back, and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_integer, take_list, take_mapping
from holdfast.core.user_code import is_raised_by_holdfast

__all__ = ["as_json", "space_from", "space_state"]

_KINDS = "biuf"


def as_json(value: Any) -> Any:
    """A setting as JSON has it: a tuple as a list."""
    return list(value) if isinstance(value, tuple) else value


def space_state(space: spaces.Space[Any]) -> dict[str, Any]:
    """A space as arrays and JSON values.

    Raises:
        ValueError: It is of a kind that cannot be written down.
    """
    match space:
        case spaces.Box():
            return {"kind": "Box", "low": np.array(space.low), "high": np.array(space.high)}
        case spaces.Discrete():
            return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
        case spaces.MultiDiscrete():
            return {"kind": "MultiDiscrete", "nvec": np.array(space.nvec), "start": np.array(space.start)}
        case spaces.MultiBinary():
            return {"kind": "MultiBinary", "shape": [int(length) for length in space.shape]}
        case spaces.Dict():
            return {"kind": "Dict", "parts": [[key, space_state(part)] for key, part in space.spaces.items()]}
    raise InputError(f"a policy cannot be saved for the space {type(space).__name__}")


def space_from(state: Mapping[str, Any], name: str) -> spaces.Space[Any]:
    """The space that ``space_state`` described.

    Raises:
        ValueError: The description is damaged.
    """
    saved = take_mapping(state, name)
    try:
        return _space(saved)
    except (ValueError, TypeError, AssertionError, OverflowError, MemoryError) as error:
        if not isinstance(error, InputError | MemoryError) and is_raised_by_holdfast(error):
            raise
        said = " ".join(str(error).split())[:200]
        raise InputError(f"the saved state must describe a space as {name!r}: {said}") from None


def _space(saved: Mapping[str, Any]) -> spaces.Space[Any]:
    kind = take(saved, "kind")
    if kind == "Box":
        low, high = _bounds(saved, "low"), _bounds(saved, "high")
        if low.shape != high.shape or low.dtype != high.dtype or np.isnan(low).any() or np.isnan(high).any():
            raise InputError("the saved state must have bounds of one shape and type")
        return spaces.Box(low, high, dtype=low.dtype.type)
    if kind == "Discrete":
        start = take(saved, "start")
        if type(start) is not int or abs(start) >= 2**62:
            raise InputError("the saved state must have a whole number as 'start'")
        return spaces.Discrete(take_integer(saved, "n", 1, 2**62), start=start)
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(_bounds(saved, "nvec"), start=_bounds(saved, "start"))
    if kind == "MultiBinary":
        shape = take_list(saved, "shape", int)
        return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
    if kind == "Dict":
        parts = take_list(saved, "parts", list)
        if not all(len(part) == 2 and isinstance(part[0], str) and isinstance(part[1], Mapping) for part in parts):
            raise InputError("the saved state must have named spaces as 'parts'")
        return spaces.Dict([(key, _space(part)) for key, part in parts])
    raise InputError(f"the saved state has an unknown kind of space, {str(kind)[:40]!r}")


def _bounds(saved: Mapping[str, Any], name: str) -> np.ndarray[Any, Any]:
    value = take(saved, name)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in _KINDS or value.nbytes > 2**28:
        raise InputError(f"the saved state must have an array of numbers as {name!r}")
    return value.copy()
