"""Fields of a saved state, which may be damaged or somebody else's: each is checked before it is used."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from holdfast.core.errors import InputError

__all__ = [
    "json_copy",
    "restore_generator",
    "take",
    "take_array",
    "take_integer",
    "take_list",
    "take_mapping",
    "take_number",
]

_LARGEST = 2**63 - 1
"""What an array of whole numbers can hold."""


def json_copy(value: Any) -> Any:
    """A copy of a value that JSON gives back as it was.

    Raises:
        ValueError: JSON would make something else of it.
    """
    try:
        copied = json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError):
        raise InputError("a value must be made of JSON values") from None
    if copied != value:
        raise InputError("a value must be made of JSON values, without tuples and with texts as keys")
    return copied


def take(state: Mapping[str, Any], name: str) -> Any:
    """The field ``name``, which must be there."""
    if not isinstance(state, Mapping) or name not in state:
        raise InputError(f"the saved state is incomplete: {name!r} is missing")
    return state[name]


def take_mapping(state: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of the state."""
    value = take(state, name)
    if not isinstance(value, Mapping):
        raise InputError(f"the saved state must have a mapping as {name!r}, not {type(value).__name__}")
    return value


def take_integer(state: Mapping[str, Any], name: str, at_least: int = 0, at_most: int | None = _LARGEST) -> int:
    """A whole number; ``at_most`` None lets it have any number of digits."""
    value = take(state, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        raise InputError(f"the saved state must have a whole number of at least {at_least} as {name!r}")
    if at_most is not None and value > at_most:
        raise InputError(f"the saved state must have a whole number of {at_most} at most as {name!r}")
    return int(value)


def take_number(state: Mapping[str, Any], name: str) -> float:
    """A finite number."""
    value = take(state, name)
    try:
        is_number = not isinstance(value, bool) and isinstance(value, int | float | np.integer | np.floating)
        if is_number and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise InputError(f"the saved state must have a finite number as {name!r}")


def take_list(state: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> list[Any]:
    """A list of values of one kind."""
    value = take(state, name)
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise InputError(f"the saved state must have a plain list as {name!r}")
    return list(value)


def take_array(
    state: Mapping[str, Any],
    name: str,
    dtype: DTypeLike,
    shape: tuple[int | None, ...],
    longest: int | None = None,
) -> NDArray[Any]:
    """An array of exactly this type and shape, of finite numbers; None stands for any length.

    It may be a view of a file: none of its numbers is looked at before type and shape are right.

    Args:
        state: Where it is.
        name: Of the array.
        dtype: Its type.
        shape: Its shape.
        longest: What any length may be at most; None for no limit.
    """
    value = take(state, name)
    expected = np.dtype(dtype)
    if not isinstance(value, np.ndarray) or value.dtype != expected:
        raise InputError(f"the saved state must have an array of {expected} as {name!r}")
    fits = value.ndim == len(shape) and all(
        wanted is None or length == wanted for length, wanted in zip(value.shape, shape, strict=True)
    )
    if not fits:
        wanted_shape = "×".join("any" if length is None else str(length) for length in shape)
        raise InputError(
            f"the saved state must have an array of shape {wanted_shape} as {name!r}, not {value.shape}"
        )
    if longest is not None and max(value.shape, default=0) > max(longest, *(length or 0 for length in shape)):
        raise InputError(f"the saved state must have an array of length {longest} at most as {name!r}")
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        raise InputError(f"the saved state must have finite numbers as {name!r}")
    if value.dtype.kind == "b" and value.size and value.view(np.uint8).max() > 1:
        raise InputError(f"the saved state must have true or false as {name!r}")
    return value


def restore_generator(generator: np.random.Generator, state: Mapping[str, Any], name: str) -> None:
    """Let a generator go on from what its ``bit_generator.state`` was."""
    saved = take_mapping(state, name)
    bits = generator.bit_generator
    try:
        bits.state = dict(saved)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        taken = False
    else:
        # Numbers that do not fit are cut off without a word.
        taken = _equal(bits.state, saved)
    if not taken:
        raise InputError(f"the saved state must have the state of a {type(bits).__name__} generator as {name!r}")


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return set(one) == set(other) and all(_equal(one[name], other[name]) for name in one)
    return np.array_equal(one, other)
