"""Optimal values by iterating a contraction to its fixed point."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import spsolve

from holdfast.core.checks import check_integer, check_real
from holdfast.mdp.kernels import DenseKernel, DeterministicKernel, SparseKernel
from holdfast.mdp.model import TabularMDP
from holdfast.mdp.operators import Operator, bellman_optimality, held_returns

__all__ = ["FixedPoint", "NoConvergenceError", "fixed_point", "k_values", "q_star", "q_star_options"]

_EPSILON = float(np.finfo(np.float64).eps)


LARGEST_EXACT_EVALUATION: dict[type, int] = {
    DenseKernel: 2_000,
    DeterministicKernel: 200_000,
    SparseKernel: 20_000,
}
"""States up to which a policy is evaluated by solving its linear system, by form of the model."""

WARM_UP_SWEEPS = 2_000
"""Sweeps of value iteration that policy iteration may be preceded by."""


class NoConvergenceError(ValueError):
    """The iteration limit was reached before the tolerance.

    Attributes:
        value: Where the iteration was.
    """

    def __init__(self, message: str, value: NDArray[np.float64]) -> None:
        super().__init__(message)
        self.value = value


class FixedPoint(NamedTuple):
    """Where an iteration stopped.

    Attributes:
        value: The last iterate.
        iterations: Applications of the operator.
        residual: sup |f_n − f_{n−1}| of the last two iterates.
        error_bound: What the contraction guarantees of sup |f_n − f*|; infinite without a modulus below 1.
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
        operator: A map of arrays to arrays of the same shape.
        start: Where to begin.
        modulus: Its contraction factor m in the sup norm. Below 1 the distance to the fixed point is at most
            m/(1−m) times the last step, and that bound is brought under ``tolerance``; at 1 nothing is known
            and the last step itself is.
        tolerance: Above 0. Steps as small as the rounding of the values end the iteration too.
        max_iterations: Limit.

    Raises:
        NoConvergenceError: The limit was reached first.
    """
    modulus = check_real("modulus", modulus, 0.0, 1.0)
    tolerance = check_real("tolerance", tolerance, 0.0, open_low=True)
    limit = check_integer("max_iterations", max_iterations)
    factor = modulus / (1.0 - modulus) if modulus < 1.0 else math.inf
    value = np.array(start, dtype=np.float64)
    residual = math.inf
    for iteration in range(1, limit + 1):
        following = operator(value)
        if following is value:
            raise ValueError("operator must return a new array, not the one it was given")
        residual = float(np.max(np.abs(following - value)))
        value = following
        if not math.isfinite(residual):
            raise NoConvergenceError(
                f"no fixed point: the values are no longer finite after {iteration} iterations", value
            )
        bound = factor * residual if residual > 0.0 else 0.0
        rounding = 2.0 * _EPSILON * float(np.max(np.abs(value)))
        if residual <= rounding or (bound if modulus < 1.0 else residual) <= tolerance:
            return FixedPoint(value, iteration, residual, bound)
    raise NoConvergenceError(
        f"no fixed point within {limit} iterations: the last step was {residual:.3g}, asked was {tolerance:.3g}"
        + (" (with gamma = 1 there may be none)" if modulus >= 1.0 else ""),
        value,
    )


def q_star(mdp: TabularMDP, tolerance: float = 1e-10, max_iterations: int = 1_000_000) -> NDArray[np.float64]:
    """Q*(s,a), (S,A): value iteration, then policy iteration with exact evaluation where the model allows it.

    Within ``tolerance`` of the truth in the sup norm, or within what rounding allows where that is more: about
    1e-16 · max|Q*| / (1−γ). Policy iteration makes small values right too, and does not slow down as γ nears 1;
    for models too large for it, value iteration goes on to the tolerance.

    Raises:
        NoConvergenceError: Not reached within ``max_iterations`` sweeps; with γ = 1 values may be infinite.
    """
    start = np.zeros((mdp.n_states, mdp.n_actions))
    sweep = bellman_optimality(mdp)
    if mdp.gamma < 1.0 and mdp.n_states <= LARGEST_EXACT_EVALUATION[type(mdp.kernel)]:
        return _improve_policy(mdp, _settled(sweep, start, min(max_iterations, WARM_UP_SWEEPS)), max_iterations)
    return fixed_point(sweep, start, modulus=mdp.gamma, tolerance=tolerance, max_iterations=max_iterations).value


def _settled(sweep: Operator, q: NDArray[np.float64], max_sweeps: int) -> NDArray[np.float64]:
    """Sweep until no value changes by more than a small part of itself, however small it is, or long enough."""
    for _ in range(max_sweeps):
        following = sweep(q)
        changes = np.abs(following - q) > 1e-9 * np.abs(following)
        q = following
        if not changes.any():
            break
    return q


def _improve_policy(mdp: TabularMDP, q: NDArray[np.float64], max_iterations: int) -> NDArray[np.float64]:
    """Howard's policy iteration from the policy that is greedy for ``q``."""
    policy = q.argmax(axis=1)
    states = np.arange(mdp.n_states)
    for _ in range(max_iterations):
        q = mdp.reward + mdp.gamma * mdp.kernel.expect(_policy_values(mdp, policy))
        kept = q[states, policy]
        # Only what is better beyond rounding counts, or the policies would go round in circles.
        better = q.max(axis=1) - kept > 1e-13 * np.abs(kept)
        if not better.any():
            return q
        policy = np.where(better, q.argmax(axis=1), policy)
    raise NoConvergenceError(f"no optimal policy within {max_iterations} improvements", q)


def _policy_values(mdp: TabularMDP, policy: NDArray[np.int64]) -> NDArray[np.float64]:
    """V^π from (I − γ P_π) V = r_π, (S,)."""
    chain = mdp.kernel.under(policy)
    reward = mdp.reward[np.arange(mdp.n_states), policy]
    if isinstance(chain, np.ndarray):
        values = np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * chain, reward)
    else:
        values = np.atleast_1d(spsolve(sp.csc_array(sp.eye_array(mdp.n_states) - mdp.gamma * chain), reward))
    return np.where(mdp.terminal, 0.0, values)


def q_star_options(
    mdp: TabularMDP, k_max: int, tolerance: float = 1e-10, max_iterations: int = 1_000_000
) -> NDArray[np.float64]:
    """Q*_K(s,a,k), (S,A,K), as near to the truth as ``q_star`` is.

    Q*_K(·,·,1) = Q*, so that value iteration on (S,A) and K held steps from V* are all it takes.
    """
    check_integer("k_max", k_max)
    return held_returns(mdp, q_star(mdp, tolerance, max_iterations).max(axis=1), k_max)


def k_values(
    mdp: TabularMDP, k_max: int, tolerance: float = 1e-10, max_iterations: int = 1_000_000
) -> NDArray[np.float64]:
    """V*_k(s) = max_a Q*_K(s,a,k), (S,K): the first action held for k steps, everything after it optimal.

    This is not the optimal value of the k-persistent MDP, where every action is held for k steps.

    Paper: Definition k-value
    """
    return np.asarray(q_star_options(mdp, k_max, tolerance, max_iterations).max(axis=1))
