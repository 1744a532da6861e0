"""The fixed point of an operator, found by applying it repeatedly."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.core.checks import check_integer, check_real
from holdfast.core.errors import InputError
from holdfast.mdp.operators import Operator

__all__ = ["FixedPoint", "NoConvergenceError", "fixed_point", "is_near"]

_EPSILON = float(np.finfo(np.float64).eps)


class NoConvergenceError(InputError):
    """The iteration limit was reached before the tolerance.

    Attributes:
        value: The last iterate.
    """

    def __init__(self, message: str, value: NDArray[np.float64]) -> None:
        super().__init__(message)
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.value)


class FixedPoint(NamedTuple):
    """Where an iteration stopped.

    Attributes:
        value: The last iterate.
        iterations: Number of times the operator was applied.
        residual: sup |f_n − f_{n−1}| of the last two iterates.
        error_bound: The bound that the contraction gives for sup |f_n − f*|; infinite if the modulus is not below
            1.
    """

    value: NDArray[np.float64]
    iterations: int
    residual: float
    error_bound: float


def fixed_point(
    operator: Operator,
    start: ArrayLike,
    *,
    modulus: float = 1.0,
    tolerance: float = 1e-10,
    max_iterations: int = 1_000_000,
) -> FixedPoint:
    """Apply ``operator`` until its fixed point is reached within ``tolerance``.

    Args:
        operator: A map from arrays to arrays of the same shape.
        start: The first iterate.
        modulus: The operator's contraction factor m in the sup norm. Below 1, the distance to the fixed point is
            at most m/(1−m) times the last step, and this bound must fall to ``tolerance``. At 1 there is no bound,
            and the last step itself must.
        tolerance: Above 0. The iteration also stops once steps are as small as the values' rounding.
        max_iterations: Largest number of iterations.

    Raises:
        NoConvergenceError: The limit was reached first.
    """
    modulus = check_real("modulus", modulus, 0.0, 1.0)
    tolerance = check_real("tolerance", tolerance, 0.0, open_low=True)
    limit = check_integer("max_iterations", max_iterations)
    value = np.array(start, dtype=np.float64)
    residual = math.inf
    for iteration in range(1, limit + 1):
        following = operator(value)
        if following is value:
            raise InputError("operator must return a new array, not the one it was given")
        residual = float(np.max(np.abs(following - value)))
        value = following
        if not math.isfinite(residual):
            raise NoConvergenceError(
                f"no fixed point: the values are no longer finite after {iteration} iterations", value
            )
        if is_near(value, residual, modulus, tolerance):
            return FixedPoint(value, iteration, residual, _error_bound(residual, modulus))
    raise NoConvergenceError(
        f"no fixed point within {limit} iterations: the last step was {residual:.3g}, "
        f"the tolerance is {tolerance:.3g}" + (" (with gamma = 1 there may be none)" if modulus >= 1.0 else ""),
        value,
    )


def is_near(value: NDArray[np.float64], residual: float, modulus: float, tolerance: float) -> bool:
    """Whether ``value`` is within ``tolerance`` of the fixed point, or as close as rounding allows.

    Args:
        value: The result of applying a contraction to some array.
        residual: The distance between that array and ``value``, in the sup norm.
        modulus: The contraction factor; at 1 the residual itself must be within the tolerance.
        tolerance: Above 0.
    """
    rounding = 2.0 * _EPSILON * float(np.max(np.abs(value)))
    missing = _error_bound(residual, modulus) if modulus < 1.0 else residual
    return residual <= rounding or missing <= tolerance


def _error_bound(residual: float, modulus: float) -> float:
    if residual == 0.0:
        return 0.0
    return modulus / (1.0 - modulus) * residual if modulus < 1.0 else math.inf
