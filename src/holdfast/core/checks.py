"""Argument checks whose errors are one clear sentence: the argument's name, and what it may be."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.errors import InputError, InputTypeError

__all__ = [
    "check_action",
    "check_choice",
    "check_decision_cost",
    "check_discount",
    "check_duration",
    "check_integer",
    "check_persistences",
    "check_probability",
    "check_real",
    "check_truth",
    "refuse_actions",
]


def check_integer(name: str, value: Any, at_least: int = 1) -> int:
    """Return ``value`` as a Python int, or raise if it is not a whole number of at least ``at_least``.

    Raises:
        TypeError: The value is not a whole number; bools do not count as numbers.
        ValueError: The value is too small.
    """
    message = f"{name} must be a whole number of at least {at_least}, not {value!r}"
    if isinstance(value, bool | np.bool_):
        raise InputTypeError(message, name)
    try:
        number = operator.index(value)
    except TypeError:
        raise InputTypeError(message, name) from None
    if number < at_least:
        raise InputError(message, name)
    return number


def check_action(value: Any, names: Sequence[str]) -> int:
    """Return the index of one of the actions with these names."""
    number = check_integer("action", value, at_least=0)
    if number >= len(names):
        raise InputError(f"action must be in 0..{len(names) - 1} ({', '.join(names)}), not {value!r}")
    return number


def check_persistences(name: str, value: Any) -> tuple[int, ...] | None:
    """Return an increasing tuple of persistences that begins with 1, or None, which means all up to k_max."""
    if value is None:
        return None
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InputTypeError(f"{name} must be numbers such as [1, 2, 4, 8], not {value!r}", name)
    try:
        numbers = [check_integer(f"each of {name}", number) for number in value]
    except InputError as error:
        raise type(error)(str(error), name) from None
    if not numbers or numbers[0] != 1 or any(b <= a for a, b in itertools.pairwise(numbers)):
        raise InputError(f"{name} must begin with 1 and increase, as [1, 2, 4, 8] does, not {numbers}", name)
    return tuple(numbers)


def check_real(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False
) -> float:
    """Return ``value`` as a finite float in [low, high] (or (low, high] with ``open_low``)."""
    if math.isinf(low) and math.isinf(high):
        allowed = "a finite number"
    elif math.isinf(high):
        allowed = f"a finite number {'above' if open_low else 'of at least'} {low:g}"
    else:
        allowed = f"a number in {'(' if open_low else '['}{low:g}, {high:g}]"
    message = f"{name} must be {allowed}, not {value!r}"
    if isinstance(value, bool | np.bool_ | str | bytes) or getattr(value, "dtype", None) == np.bool_:
        raise InputTypeError(message, name)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputTypeError(message, name) from None
    except OverflowError:
        raise InputError(message, name) from None
    inside = (low < number if open_low else low <= number) and number <= high
    if not (math.isfinite(number) and inside):
        raise InputError(message, name)
    return number


def check_duration(name: str, value: Any, k_max: int) -> int:
    """Return a persistence ``value`` in 1..k_max."""
    number = check_integer(name, value)
    if number > k_max:
        raise InputError(f"{name} must be at most k_max = {k_max}, not {value!r}", name, "k_max")
    return number


def check_decision_cost(value: Any) -> float:
    """Return the cost of a decision, a finite number of at least 0."""
    return check_real("decision_cost", value, 0.0)


def check_discount(value: Any) -> float:
    """Return the discount factor gamma, a number in [0, 1]."""
    return check_real("gamma", value, 0.0, 1.0)


def check_probability(name: str, value: Any) -> float:
    """Return a probability, a number in [0, 1]."""
    return check_real(name, value, 0.0, 1.0)


def check_truth(name: str, value: Any) -> bool:
    """Return ``value`` as a bool, or raise TypeError if it is neither a Python nor a NumPy bool."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(f"{name} must be true or false, not {value!r}", name)
    return bool(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}", name)
    return value


def refuse_actions(sentence: str, actions: NDArray[Any], n_actions: int | None) -> None:
    """InputError for actions that there are not, whose message ends what ``sentence`` says they must be.

    Args:
        sentence: Such as ``"action must be"``.
        actions: Numbers from 0, or continuous ones.
        n_actions: How many there are; None for continuous ones.
    """
    if n_actions is None:
        if not np.isfinite(actions).all():
            raise InputError(f"{sentence} finite, not {actions.ravel()[:8]}")
    elif ((actions < 0) | (actions >= n_actions)).any():
        # Compiled code would read and write beyond its arrays.
        raise InputError(f"{sentence} counted from 0 and in 0..{n_actions - 1}, not {actions.ravel()[:8]}")
