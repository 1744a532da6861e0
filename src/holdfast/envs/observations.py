"""Whether an observation belongs to its space, as far as learners and pictures rely on it."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.core.user_code import described, is_interrupt, shown

__all__ = ["has_numbers", "observation_problem"]

_NUMBERS = "biuf"


def observation_problem(space: spaces.Space[Any], observation: Any) -> str | None:
    """What is wrong with an observation, as ``"it gave ..."``; None if nothing is.

    The bounds of a Box are not checked: many environments exceed them slightly.
    """
    try:
        return _problem(space, observation)
    except BaseException as error:
        # Whatever an object does that was returned as an observation.
        if is_interrupt(error):
            raise
        return f"it gave an observation that cannot be read as numbers: {described(error)}"


def has_numbers(space: spaces.Space[Any]) -> bool:
    """Whether an observation contains anything: no part of it is an empty array."""
    if isinstance(space, spaces.Dict):
        return len(space.spaces) > 0 and all(map(has_numbers, space.spaces.values()))
    if isinstance(space, spaces.Tuple):
        return len(space.spaces) > 0 and all(map(has_numbers, space.spaces))
    return space.shape is None or 0 not in space.shape


def _problem(space: spaces.Space[Any], observation: Any) -> str | None:
    if isinstance(space, spaces.Box):
        return _box_problem(space, observation)
    if isinstance(space, spaces.Discrete):
        return (
            None
            if _is_one_of(space, observation)
            else _not_in(observation, space.start, space.start + space.n - 1)
        )
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return _choices_problem(space, observation)
    if isinstance(space, spaces.Dict):
        if not isinstance(observation, Mapping):
            return f"it gave {shown(observation)} as an observation, which must be a dictionary"
        missing = [key for key in space.spaces if key not in observation]
        if missing:
            return f"it gave an observation without {missing[0]!r}"
        if len(observation) != len(space.spaces):
            foreign = next(key for key in observation if key not in space.spaces)
            return f"it gave an observation with {shown(foreign)}, which its space does not have"
        return _first(_problem(part, observation[key]) for key, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        if not isinstance(observation, tuple | list) or len(observation) != len(space.spaces):
            return f"it gave {shown(observation)} as an observation, which must have {len(space.spaces)} parts"
        return _first(map(_problem, space.spaces, observation))
    return _first(_other_problem(part) for part in _parts(observation))


def _box_problem(space: spaces.Box, observation: Any) -> str | None:
    values, problem = _array(observation)
    if problem is not None:
        return problem
    if values.shape != space.shape:
        return f"it gave an observation of shape {values.shape}, which must have {space.shape}"
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            return "it gave an observation that is NaN or infinite somewhere"
        is_longer = values.dtype.itemsize > space.dtype.itemsize and space.dtype.kind == "f"
        if is_longer and values.size and np.abs(values).max() > np.finfo(space.dtype.char).max:
            return f"it gave an observation with a number too large for {space.dtype}"
    if values.dtype != space.dtype and space.dtype.kind in "iu" and not _fits(values, space.dtype):
        limits = np.iinfo(space.dtype.char)
        return (
            f"it gave {shown(observation)} as an observation, which must be whole numbers in "
            f"{limits.min}..{limits.max} ({space.dtype})"
        )
    return None


def _fits(values: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether finite numbers keep their values when converted to a type of whole numbers."""
    if values.size == 0 or np.can_cast(values.dtype, dtype):
        return True
    limits = np.iinfo(dtype.char)
    # Compared as Python numbers, because NumPy would round the limits of long types.
    is_within = limits.min <= values.min().item() and values.max().item() <= limits.max
    return is_within and (values.dtype.kind != "f" or bool((values == np.floor(values)).all()))


def _choices_problem(space: spaces.MultiDiscrete | spaces.MultiBinary, observation: Any) -> str | None:
    values, problem = _array(observation)
    if problem is not None:
        return problem
    if values.shape != space.shape:
        return f"it gave an observation of shape {values.shape}, which must have {space.shape}"
    first = space.start if isinstance(space, spaces.MultiDiscrete) else 0
    n = space.nvec if isinstance(space, spaces.MultiDiscrete) else 2
    if not np.all((values >= first) & (values < first + n) & (values == np.floor(values))):
        return f"it gave {shown(observation)} as an observation, which must be in {space}"
    return None


def _array(observation: Any) -> tuple[NDArray[Any], str | None]:
    """An observation as an array, and what is wrong with it, if anything."""
    try:
        values = np.asarray(observation)
    except ValueError:
        return np.empty(0), "it gave an observation whose parts have different lengths"
    if values.dtype.kind not in _NUMBERS:
        kind = type(observation).__name__ if values.dtype == object and values.shape == () else values.dtype
        return values, f"it gave an observation of type {kind}, which must be numbers"
    return values, None


def _other_problem(part: Any) -> str | None:
    if isinstance(part, np.ndarray | np.floating | float):
        values = np.asarray(part)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            return "it gave an observation that is NaN or infinite somewhere"
    return None


def _not_in(observation: Any, first: Any, last: Any) -> str:
    return f"it gave {shown(observation)} as an observation, which must be in {first}..{last}"


def _is_one_of(space: spaces.Discrete, observation: Any) -> bool:
    try:
        return bool(0 <= operator.index(observation) - space.start < space.n)
    except TypeError:
        return False


def _first(problems: Iterator[str | None]) -> str | None:
    return next((problem for problem in problems if problem is not None), None)


def _parts(observation: Any) -> Iterator[Any]:
    if isinstance(observation, Mapping):
        for part in observation.values():
            yield from _parts(part)
    elif isinstance(observation, tuple):
        for part in observation:
            yield from _parts(part)
    else:
        yield observation
