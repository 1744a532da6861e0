"""One number for each learning curve: how much was learned, early and late."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import trapezoid

from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError
from holdfast.experiments.stats.scores import check_curves, check_steps

__all__ = ["area_under_curve", "episode_mean", "mean_level"]

Floats = NDArray[np.float64]


def episode_mean(curves: ArrayLike, last: int | None = None) -> Floats:
    """Mean over the episodes of each curve, or over its last ones.

    Args:
        curves: (..., episodes).
        last: How many count; all unless told.

    Returns:
        (...).
    """
    values = check_curves("curves", curves)
    episodes = values.shape[-1]
    count = episodes if last is None else check_integer("last", last)
    if count > episodes:
        raise InputError(f"last must be at most the {episodes} episodes of the curves, not {last!r}")
    return np.asarray(values[..., episodes - count :].mean(axis=-1))


def area_under_curve(steps: ArrayLike, curves: ArrayLike) -> Floats:
    """Area between each curve and 0, with straight lines from point to point (trapezoids).

    Args:
        steps: (points,) where the points are, growing.
        curves: (..., points).

    Returns:
        (...).
    """
    values = check_curves("curves", curves)
    return np.asarray(trapezoid(values, check_steps("steps", steps, values.shape[-1]), axis=-1))


def mean_level(steps: ArrayLike, curves: ArrayLike) -> Floats:
    """The area under each curve divided by its width: a mean that points close together do not weigh more in.

    Args:
        steps: (points,) where the points are, growing.
        curves: (..., points); a single point is its own mean.

    Returns:
        (...).
    """
    values = check_curves("curves", curves)
    x = check_steps("steps", steps, values.shape[-1])
    if len(x) == 1:
        return np.asarray(values[..., 0])
    return np.asarray(area_under_curve(x, values) / (x[-1] - x[0]))
