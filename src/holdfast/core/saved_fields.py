"""Fields of a saved state, which may be damaged or foreign: each is checked before it is used."""

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
"""The largest number that an array of whole numbers can hold."""


def json_copy(value: Any) -> Any:
    """A copy of ``value``, made through JSON.

    Raises:
        ValueError: JSON would not give back an equal value.
    """
    try:
        copied = json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError):
        raise InputError("a value must be made of JSON values") from None
    if copied != value:
        raise InputError("a value must be made of JSON values, without tuples and with strings as keys")
    return copied


def take(state: Mapping[str, Any], name: str) -> Any:
    """The field ``name``, which must exist."""
    if not isinstance(state, Mapping) or name not in state:
        raise InputError(f"the saved state is incomplete: {name!r} is missing")
    return state[name]


def take_mapping(state: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The field ``name``, which must be a mapping."""
    value = take(state, name)
    if not isinstance(value, Mapping):
        raise InputError(f"the saved state must have a mapping as {name!r}, not {type(value).__name__}")
    return value


def take_integer(state: Mapping[str, Any], name: str, at_least: int = 0, at_most: int | None = _LARGEST) -> int:
    """The whole number ``name``; with ``at_most=None`` it may have any number of digits."""
    value = take(state, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        raise InputError(f"the saved state must have a whole number of at least {at_least} as {name!r}")
    if at_most is not None and value > at_most:
        raise InputError(f"the saved state must have a whole number of at most {at_most} as {name!r}")
    return int(value)


def take_number(state: Mapping[str, Any], name: str) -> float:
    """The finite number ``name``."""
    value = take(state, name)
    try:
        is_number = not isinstance(value, bool) and isinstance(value, int | float | np.integer | np.floating)
        if is_number and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise InputError(f"the saved state must have a finite number as {name!r}")


def take_list(state: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> list[Any]:
    """The list ``name``, whose items must all be of type ``kind``."""
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
    """The array ``name``: exactly this type and shape, and finite numbers; None in ``shape`` allows any length.

    The array may be a view of a file, so no number is read before type and shape are known to be right.

    Args:
        state: Saved state that holds the array.
        name: Array's name.
        dtype: Array's type.
        shape: Array's shape.
        longest: Largest length where ``shape`` allows any; None for no limit.
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
        raise InputError(f"the saved state must have an array of length at most {longest} as {name!r}")
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        raise InputError(f"the saved state must have finite numbers as {name!r}")
    if value.dtype.kind == "b" and value.size and value.view(np.uint8).max() > 1:
        raise InputError(f"the saved state must have true or false as {name!r}")
    return value


def restore_generator(generator: np.random.Generator, state: Mapping[str, Any], name: str) -> None:
    """Set a generator to the saved state ``name`` of its ``bit_generator``."""
    saved = take_mapping(state, name)
    bits = generator.bit_generator
    try:
        bits.state = dict(saved)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        taken = False
    else:
        # NumPy cuts off numbers that do not fit, without an error.
        taken = _equal(bits.state, saved)
    if not taken:
        raise InputError(f"the saved state must have the state of a {type(bits).__name__} generator as {name!r}")


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return set(one) == set(other) and all(_equal(one[name], other[name]) for name in one)
    return np.array_equal(one, other)
