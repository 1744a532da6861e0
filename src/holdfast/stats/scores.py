"""Scores of runs: their checks, how a learning curve becomes a score, and a common scale for several tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError

__all__ = ["check_finite", "check_scores", "episode_mean", "normalize_scores"]


def check_finite(name: str, values: Any, shape: str, least_dimensions: int) -> Floats:
    """Return ``values`` as an array of finite numbers.

    Args:
        name: Argument's name.
        values: Argument's value.
        shape: The expected shape, as the message writes it.
        least_dimensions: Smallest number of axes.

    Raises:
        ValueError: The array has another shape, is empty, or contains NaN or infinity.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers of shape {shape}") from None
    if array.ndim < least_dimensions or array.size == 0:
        raise InputError(f"{name} must have shape {shape} and not be empty, not shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite numbers, without NaN")
    return array


def check_scores(name: str, scores: ArrayLike) -> Floats:
    """Return scores (..., runs, tasks), with the same number of runs for every task."""
    return check_finite(name, scores, "(runs, tasks), with the same number of runs for every task", 2)


def episode_mean(curves: ArrayLike, last: int | None = None) -> Floats:
    """Mean over the episodes of each curve, or over its last ``last`` episodes.

    Args:
        curves: (..., episodes).
        last: Number of episodes to average (default: all).

    Returns:
        (...).
    """
    values = check_finite("curves", curves, "(runs, points)", 1)
    episodes = values.shape[-1]
    count = episodes if last is None else check_integer("last", last)
    if count > episodes:
        raise InputError(f"last must be at most the {episodes} episodes of the curves, not {last!r}")
    return np.asarray(values[..., episodes - count :].mean(axis=-1))


def normalize_scores(scores: ArrayLike, zero: ArrayLike, one: ArrayLike) -> Floats:
    """(x − zero) / (one − zero), task by task: scores of different tasks on a common scale.

    Args:
        scores: (..., runs, tasks).
        zero: (tasks,) or a number: the score that becomes 0, such as that of a random policy.
        one: (tasks,) or a number: the score that becomes 1, such as the best possible one. May lie below ``zero``.

    Returns:
        An array of the shape of ``scores``.
    """
    values = check_scores("scores", scores)
    tasks = values.shape[-1:]
    ends = [check_finite(name, end, "(tasks,)", 0) for name, end in (("zero", zero), ("one", one))]
    for name, end in zip(("zero", "one"), ends, strict=True):
        if end.shape not in ((), tasks):
            raise InputError(f"{name} must be one number, or one for each of the {tasks[0]} tasks")
    if (ends[0] == ends[1]).any():
        raise InputError("zero and one must be different scores for every task")
    return np.asarray((values - ends[0]) / (ends[1] - ends[0]))
