"""Optimal values: policy iteration, exact where the model allows it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.core.checks import check_integer, check_real
from holdfast.core.errors import InputError
from holdfast.mdp.evaluation import policy_values
from holdfast.mdp.kernels import DenseKernel, DeterministicKernel, SparseKernel
from holdfast.mdp.likeliest_outcomes import likeliest_outcomes
from holdfast.mdp.model import TabularMDP
from holdfast.mdp.operators import Operator, bellman_optimality, held_returns
from holdfast.mdp.policy_improvement import ImprovementWaves, is_better

__all__ = ["FixedPoint", "NoConvergenceError", "fixed_point", "k_values", "q_star", "q_star_options"]

_LARGEST_K_MAX = 2**31
_EPSILON = float(np.finfo(np.float64).eps)
_SETTLED = 1e-9
"""A value that changes by less than this part of itself has settled."""

LARGEST_LINEAR_SYSTEM: dict[type, int] = {DenseKernel: 2_000, SparseKernel: 20_000}
"""States up to which policies of a model with chance are evaluated by solving their equations, by its form."""

WARM_UP_SWEEPS = 2_000
"""Sweeps of value iteration that policy iteration with linear systems may be preceded by."""

SWEEPS_PER_POLICY = 40
"""Sweeps under one policy before the next one is chosen, where it is not evaluated exactly."""


class NoConvergenceError(InputError):
    """The iteration limit was reached before the tolerance.

    Attributes:
        value: Where the iteration was.
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
        if _is_near(value, residual, modulus, tolerance):
            return FixedPoint(value, iteration, residual, _error_bound(residual, modulus))
    raise NoConvergenceError(
        f"no fixed point within {limit} iterations: the last step was {residual:.3g}, asked was {tolerance:.3g}"
        + (" (with gamma = 1 there may be none)" if modulus >= 1.0 else ""),
        value,
    )


def _is_near(value: NDArray[np.float64], residual: float, modulus: float, tolerance: float) -> bool:
    """Whether ``value`` is within ``tolerance`` of the fixed point, or as near as rounding lets it come.

    Args:
        value: A contraction, applied to some array.
        residual: How far it took that array, in the sup norm.
        modulus: The contraction's factor; at 1 the residual itself is to be within the tolerance.
        tolerance: Above 0.
    """
    rounding = 2.0 * _EPSILON * float(np.max(np.abs(value)))
    missing = _error_bound(residual, modulus) if modulus < 1.0 else residual
    return residual <= rounding or missing <= tolerance


def _error_bound(residual: float, modulus: float) -> float:
    if residual == 0.0:
        return 0.0
    return modulus / (1.0 - modulus) * residual if modulus < 1.0 else math.inf


def q_star(mdp: TabularMDP, tolerance: float = 1e-10, max_iterations: int = 1_000_000) -> NDArray[np.float64]:
    """Q*(s,a), (S,A), by policy iteration.

    Within ``tolerance`` of the truth in the sup norm, or within what rounding allows where that is more: about
    1e-16 · max|Q*| / (1−γ).

    Policies are evaluated exactly: in deterministic models of any size by following their paths, in others of up
    to some thousands of states by solving linear equations. That makes small values right too, and does not slow
    down as γ nears 1. In larger sparse models policies are evaluated as far as the tolerance asks; in larger dense
    ones, and where γ = 1, values are iterated to the tolerance.

    Raises:
        NoConvergenceError: Not reached within ``max_iterations`` sweeps or policies; with γ = 1 values may be
            infinite.
    """
    start = np.zeros((mdp.n_states, mdp.n_actions))
    sweep = bellman_optimality(mdp)
    if mdp.gamma < 1.0:
        if isinstance(mdp.kernel, DeterministicKernel):
            return _improve_policy(mdp, mdp.reward.argmax(axis=1), max_iterations)
        if mdp.n_states <= LARGEST_LINEAR_SYSTEM[type(mdp.kernel)]:
            q = _settled(sweep, start, min(max_iterations, WARM_UP_SWEEPS))
            return _improve_policy(mdp, q.argmax(axis=1), max_iterations)
        if isinstance(mdp.kernel, SparseKernel):
            return _sweep_policies(mdp, tolerance, max_iterations)
    return fixed_point(sweep, start, modulus=mdp.gamma, tolerance=tolerance, max_iterations=max_iterations).value


def _settled(sweep: Operator, q: NDArray[np.float64], max_sweeps: int) -> NDArray[np.float64]:
    """Sweep until no value changes by more than a small part of itself, however small it is, or long enough."""
    for _ in range(max_sweeps):
        following = sweep(q)
        changes = np.abs(following - q) > _SETTLED * np.abs(following)
        q = following
        if not changes.any():
            break
    return q


def _improve_policy(mdp: TabularMDP, policy: NDArray[np.int64], max_iterations: int) -> NDArray[np.float64]:
    """Howard's policy iteration from ``policy``; in deterministic models improvements are passed on in waves."""
    states = np.arange(mdp.n_states)
    waves = ImprovementWaves(mdp) if isinstance(mdp.kernel, DeterministicKernel) else None
    highest = np.full(mdp.n_states, -np.inf)
    for _ in range(max_iterations):
        values = policy_values(mdp, policy)
        q = mdp.reward + mdp.gamma * mdp.kernel.expect(values)
        best = q.argmax(axis=1)
        changed = np.flatnonzero(is_better(q[states, best], q[states, policy]))
        # Each policy is worth more than the one before it somewhere: one that is not differs by rounding alone.
        if not len(changed) or not np.any(values > highest):
            return q
        np.maximum(values, highest, out=highest)
        policy[changed] = best[changed]
        if waves is not None:
            values[changed] = q[changed, best[changed]]
            waves.spread(values, policy, changed)
    raise NoConvergenceError(f"no optimal policy within {max_iterations} improvements", q)


def _sweep_policies(mdp: TabularMDP, tolerance: float, max_iterations: int) -> NDArray[np.float64]:
    """Modified policy iteration: a policy is evaluated by some sweeps, cheaper ones than those over all actions.

    A value travels one step in a sweep, and only where the policy goes its way. So the first policy should go
    the right way everywhere: it is greedy for the values of the model in which nothing happens by chance.

    Once the tolerance is reached, as much work again may be done for the sake of small values far away.
    """
    tolerance = check_real("tolerance", tolerance, 0.0, open_low=True)
    limit = check_integer("max_iterations", max_iterations)
    states = np.arange(mdp.n_states)
    values = q_star(likeliest_outcomes(mdp), max_iterations=limit).max(axis=1)
    last = limit
    for count in range(1, limit + 1):
        q = mdp.reward + mdp.gamma * mdp.kernel.expect(values)
        policy = q.argmax(axis=1)
        best = q[states, policy]
        steps = np.abs(best - values)
        residual = float(steps.max())
        if _is_near(best, residual, mdp.gamma, tolerance):
            last = min(last, 2 * count)
            if count == last or np.all(steps <= _SETTLED * np.abs(best)):
                return q
        chain, reward = mdp.kernel.under(policy), mdp.reward[states, policy]
        values = best
        for _ in range(SWEEPS_PER_POLICY):
            values = reward + mdp.gamma * (chain @ values)
    raise NoConvergenceError(
        f"no optimal policy within {limit} improvements: the last step was {residual:.3g}, "
        f"asked was {tolerance:.3g}",
        q,
    )


def q_star_options(
    mdp: TabularMDP, k_max: int, tolerance: float = 1e-10, max_iterations: int = 1_000_000
) -> NDArray[np.float64]:
    """Q*_K(s,a,k), (S,A,K), as near to the truth as ``q_star`` is.

    Q*_K(·,·,1) = Q*, so that value iteration on (S,A) and K held steps from V* are all it takes.
    """
    if check_integer("k_max", k_max) >= _LARGEST_K_MAX:
        raise InputError(f"k_max must be less than {_LARGEST_K_MAX}, not {k_max}", "k_max")
    return held_returns(mdp, q_star(mdp, tolerance, max_iterations).max(axis=1), k_max)


def k_values(
    mdp: TabularMDP, k_max: int, tolerance: float = 1e-10, max_iterations: int = 1_000_000
) -> NDArray[np.float64]:
    """V*_k(s) = max_a Q*_K(s,a,k), (S,K): the first action held for k steps, everything after it optimal.

    This is not the optimal value of the k-persistent MDP, where every action is held for k steps.

    Paper: Definition k-value
    """
    return np.asarray(q_star_options(mdp, k_max, tolerance, max_iterations).max(axis=1))
