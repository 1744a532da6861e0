"""Choosing an option from its values: the exploration coin, the greedy option, and the longest good-enough hold.

The first half holds leaf functions for one state, written in the subset of Python that compiles; the tabular loops
call them. The second half does the same for many states at once, on values of shape (..., A, K).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.core.checks import check_real
from holdfast.core.options import duration_at

__all__ = [
    "Decision",
    "best_option",
    "best_skip",
    "count_best",
    "few_decision_option",
    "is_exploratory",
    "longest_skip",
    "longest_within",
    "nth_best",
    "scaled_index",
]


class Decision(NamedTuple):
    """What a policy decides, and the values behind it: for one state, or as arrays for many states at once.

    Attributes:
        action: The action to play.
        hold: The number of steps to hold it for.
        values: Q(s,·,·), (A, K) or (n, A, K); an actor's are Q(s, μ_k(s), k), with A = 1.
    """

    action: Any
    hold: Any
    values: NDArray[np.floating]


def is_exploratory(draw: Any, epsilon: Any) -> Any:
    """Whether a uniform ``draw`` from [0, 1) means to explore."""
    return draw < epsilon


def scaled_index(draw: Any, n: Any) -> Any:
    """Turn a uniform ``draw`` from [0, 1) into one of 0..n−1."""
    return int(draw * n)


def count_best(values: Any) -> Any:
    """How many entries of a table (A, K) share its maximum."""
    best, equals = values[0, 0], 0
    for a in range(values.shape[0]):
        for position in range(values.shape[1]):
            if values[a, position] > best:
                best, equals = values[a, position], 1
            elif values[a, position] == best:
                equals += 1
    return equals


def nth_best(values: Any, n: Any) -> Any:
    """Flat index of the entry of a table (A, K) that comes after ``n`` others that share the largest value."""
    best, index, found, seen = values[0, 0], 0, 0, 0
    for a in range(values.shape[0]):
        for position in range(values.shape[1]):
            if values[a, position] > best:
                best, found, seen = values[a, position], index, 1
            elif values[a, position] == best:
                if seen <= n:
                    found = index
                seen += 1
            index += 1
    return found


def longest_within(values: Any, action: Any, position: Any, tolerance: Any) -> Any:
    """Last position in row ``action`` of (A, K) whose value is within ``tolerance`` of that at ``position``.

    A negative tolerance returns ``position`` unchanged.
    """
    best, longest = values[action, position], position
    for other in range(values.shape[1]):
        if best - values[action, other] <= tolerance:
            longest = other
    return longest


def best_option(values: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The greedy option of values (..., A, K): actions and persistences, each (...). Ties go to the first.

    With a sparse set of persistences, the second result is the position in that set, counted from 1.
    """
    table = np.asarray(values)
    actions, positions = np.divmod(np.argmax(table.reshape(*table.shape[:-2], -1), axis=-1), table.shape[-1])
    return np.asarray(actions), np.asarray(duration_at(positions))


def few_decision_option(values: ArrayLike, tolerance: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The best action of values (..., A, K), held as long as its value stays within ``tolerance`` of the best.

    Since Q*(s,a,1) ≥ Q*(s,a,k), a greedy agent gains nothing by holding. The tolerance is what it may give up per
    decision in order to decide less often.

    Args:
        values: (..., A, K).
        tolerance: At least 0.

    Returns:
        Actions and persistences, each (...); of a sparse set, positions as in ``best_option``.
    """
    table = np.asarray(values)
    tolerance = check_real("tolerance", tolerance, 0.0)
    actions, durations = best_option(table)
    rows = np.take_along_axis(table, actions[..., None, None], axis=-2)[..., 0, :]
    within = rows.max(axis=-1, keepdims=True) - rows <= tolerance
    last = table.shape[-1] - 1 - np.argmax(within[..., ::-1], axis=-1)
    # A NaN is within no tolerance; then the best option stays as it is.
    longest = np.maximum(durations, duration_at(last))
    return actions, np.where(within.any(axis=-1), longest, durations)


def best_skip(
    action_values: ArrayLike, skip_values: ArrayLike, tolerance: float = 0.0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """TempoRL's greedy choice: a = argmax Q(s,·), then j = argmax J(s,·|a). Ties go to the longest skip.

    Args:
        action_values: (..., A) Q(s,a); ties go to the first action.
        skip_values: (..., A, K) J(s,j|a).
        tolerance: How much value a longer skip may cost, at least 0.

    Returns:
        Actions and skips, each (...).
    """
    actions = np.asarray(np.argmax(np.asarray(action_values), axis=-1))
    return actions, longest_skip(skip_values, actions, tolerance)


def longest_skip(skip_values: ArrayLike, actions: ArrayLike, tolerance: float = 0.0) -> NDArray[np.int64]:
    """How long to hold each of ``actions`` (...): the longest skip worth within ``tolerance`` of the best.

    Args:
        skip_values: (..., A, K) value of holding each action for each number of steps.
        actions: (...).
        tolerance: At least 0.
    """
    rows = np.take_along_axis(np.asarray(skip_values), np.asarray(actions)[..., None, None], axis=-2)
    return few_decision_option(rows, tolerance)[1]
