"""Persistence options (a, k): play primitive action ``a`` for ``k`` steps.

``k`` counts from 1 wherever a person or a formula sees it. Arrays of option values have the axes
(..., action, persistence). If every persistence up to K has values, the first two functions below are the only
place where ``k`` and its array index meet; the three after them serve sparse sets of persistences.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_duration, check_integer, check_persistences
from holdfast.core.errors import InputError

__all__ = [
    "Option",
    "OptionSpace",
    "chosen_persistences",
    "duration_at",
    "flat_index",
    "persistence_index",
    "persistence_positions",
    "persistence_set",
    "position_within",
]


def persistence_index(k: Any) -> Any:
    """Index of persistence ``k`` on a persistence axis (works for ints, arrays and tensors)."""
    return k - 1


def duration_at(index: Any) -> Any:
    """Persistence ``k`` at ``index`` of a persistence axis."""
    return index + 1


def flat_index(action: Any, k: Any, k_max: Any) -> Any:
    """Index of option (a, k) in a flattened (action, persistence) table."""
    return action * k_max + persistence_index(k)


def persistence_set(k_max: int, persistences: Sequence[int] | None = None) -> tuple[int, ...]:
    """The persistences that have values, in order: ``persistences`` if given, else all of 1..k_max."""
    return tuple(range(1, k_max + 1)) if persistences is None else tuple(persistences)


def chosen_persistences(k_max: int | None, persistences: Sequence[int] | None = None) -> Sequence[int]:
    """The persistences that a user asks for: all of 1..k_max, or a set, whose last element is then k_max.

    The full set 1..k_max is returned as a range, so that even a k_max too large for memory takes no space here.

    Raises:
        InputError: Neither argument is given, the two contradict each other, or a persistence is invalid.
    """
    if isinstance(persistences, range) and persistences and persistences == range(1, persistences[-1] + 1):
        chosen: Sequence[int] | None = persistences
    else:
        chosen = check_persistences("persistences", persistences)
    if chosen is None:
        return range(1, check_integer("k_max", k_max) + 1)
    if k_max is not None and k_max != chosen[-1]:
        raise InputError(
            f"k_max must be {chosen[-1]}, the last of persistences, or be left out, not {k_max!r}",
            "k_max",
            "persistences",
        )
    return chosen


def persistence_positions(durations: Sequence[int]) -> NDArray[np.int64]:
    """For each number of steps from 0 to the longest: its position in ``durations``, or −1 if it is not there."""
    positions = np.full(durations[-1] + 1, -1, dtype=np.int64)
    positions[list(durations)] = np.arange(len(durations))
    return positions


def position_within(durations: Any, steps: Any) -> Any:
    """Position of the longest of ``durations`` that is at most ``steps`` (a number or an array, at least 1)."""
    return np.searchsorted(durations, steps, side="right") - 1


class Option(NamedTuple):
    """A persistence option: the decision to play ``action`` for ``k`` steps.

    Paper: Definition defi:persistenceOption
    """

    action: int
    k: int


@dataclass(frozen=True, slots=True)
class OptionSpace:
    """The set O = A × {1..k_max} of persistence options, and its flat numbering.

    The flat index runs over persistences first, so that a table of shape (..., A, K) reshaped to
    (..., A·K) is indexed by it.

    Args:
        n_actions: Number of primitive actions |A|.
        k_max: Largest persistence K_max.
    """

    n_actions: int
    k_max: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_actions", check_integer("n_actions", self.n_actions))
        object.__setattr__(self, "k_max", check_integer("k_max", self.k_max))

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (A, K) of a table over the options."""
        return self.n_actions, self.k_max

    def __len__(self) -> int:
        return self.n_actions * self.k_max

    def __iter__(self) -> Iterator[Option]:
        return (self.option(index) for index in range(len(self)))

    def __contains__(self, option: object) -> bool:
        if not (isinstance(option, tuple) and len(option) == 2):
            return False
        if not all(isinstance(part, int | np.integer) and not isinstance(part, bool) for part in option):
            return False
        action, k = option
        return bool(0 <= action < self.n_actions and 1 <= k <= self.k_max)

    def index(self, action: int, k: int) -> int:
        """Flat index of the option (action, k)."""
        if (action, k) not in self:
            raise ValueError(
                f"option must be an action in 0..{self.n_actions - 1} with k in 1..{self.k_max}, "
                f"not ({action}, {k})"
            )
        return int(flat_index(action, k, self.k_max))

    def option(self, index: int) -> Option:
        """The option at a flat ``index``."""
        index = operator.index(index)
        if not 0 <= index < len(self):
            raise ValueError(f"index must be in 0..{len(self) - 1}, not {index}")
        action, position = divmod(index, self.k_max)
        return Option(action, duration_at(position))

    def split(self, indices: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Actions and persistences of flat indices in 0..len−1 (unchecked), each of the shape of ``indices``."""
        actions, positions = np.divmod(np.asarray(indices, dtype=np.int64), self.k_max)
        return actions, np.asarray(duration_at(positions))

    def with_persistence(self, k: int) -> tuple[Option, ...]:
        """O^(k): every option that lasts exactly ``k`` steps."""
        k = check_duration("k", k, self.k_max)
        return tuple(Option(action, k) for action in range(self.n_actions))
