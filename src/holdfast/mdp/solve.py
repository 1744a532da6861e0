"""Optimal values of primitive actions, by policy iteration that is exact where the model allows it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_integer, check_real
from holdfast.mdp.evaluation import policy_values
from holdfast.mdp.iteration import NoConvergenceError, fixed_point, is_near
from holdfast.mdp.kernels import DenseKernel, DeterministicKernel, SparseKernel
from holdfast.mdp.likeliest_outcomes import likeliest_outcomes
from holdfast.mdp.model import TabularMDP
from holdfast.mdp.operators import Operator, bellman_optimality
from holdfast.mdp.policy_improvement import ImprovementWaves, is_better

__all__ = ["LARGEST_LINEAR_SYSTEM", "q_star"]

_SETTLED = 1e-9
"""A value whose relative change is below this has settled."""

LARGEST_LINEAR_SYSTEM: dict[type, int] = {DenseKernel: 2_000, SparseKernel: 20_000}
"""Largest number of states for which stochastic models are solved by linear equations, by form of kernel."""

WARM_UP_SWEEPS = 2_000
"""Largest number of value iteration sweeps before policy iteration with linear systems."""

SWEEPS_PER_POLICY = 40
"""Sweeps under one policy before the next is chosen, if policies are not evaluated exactly."""


def q_star(mdp: TabularMDP, tolerance: float = 1e-10, max_iterations: int = 1_000_000) -> NDArray[np.float64]:
    """Q*(s,a), (S,A), by policy iteration.

    The result is within ``tolerance`` of the truth in the sup norm, or within what rounding allows if that is
    more: about 1e-16 · max|Q*| / (1−γ).

    Policies are evaluated exactly: in deterministic models of any size by following their paths, and in others of
    up to a few thousand states by solving linear equations. Small values are then accurate too, and the time does
    not grow as γ nears 1. In larger sparse models, policies are evaluated as far as the tolerance requires. In
    larger dense ones, and if γ = 1, values are iterated to the tolerance.

    Raises:
        NoConvergenceError: The tolerance was not reached within ``max_iterations`` sweeps or policies; with γ = 1,
            values may be infinite.
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
    """Sweep until no value, however small, changes by more than a small part of itself, or until the limit."""
    for _ in range(max_sweeps):
        following = sweep(q)
        changes = np.abs(following - q) > _SETTLED * np.abs(following)
        q = following
        if not changes.any():
            break
    return q


def _improve_policy(mdp: TabularMDP, policy: NDArray[np.int64], max_iterations: int) -> NDArray[np.float64]:
    """Howard's policy iteration from ``policy``; in deterministic models, improvements spread in waves."""
    states = np.arange(mdp.n_states)
    waves = ImprovementWaves(mdp) if isinstance(mdp.kernel, DeterministicKernel) else None
    highest = np.full(mdp.n_states, -np.inf)
    for _ in range(max_iterations):
        values = policy_values(mdp, policy)
        q = mdp.reward + mdp.gamma * mdp.kernel.expect(values)
        best = q.argmax(axis=1)
        changed = np.flatnonzero(is_better(q[states, best], q[states, policy]))
        # Each policy must be better than all before it somewhere; if not, the difference is only rounding.
        if not len(changed) or not np.any(values > highest):
            return q
        np.maximum(values, highest, out=highest)
        policy[changed] = best[changed]
        if waves is not None:
            values[changed] = q[changed, best[changed]]
            waves.spread(values, policy, changed)
    raise NoConvergenceError(f"no optimal policy within {max_iterations} improvements", q)


def _sweep_policies(mdp: TabularMDP, tolerance: float, max_iterations: int) -> NDArray[np.float64]:
    """Modified policy iteration: a few sweeps evaluate each policy, and cost less than sweeps over all actions.

    In each sweep a value travels one step, and only where the policy leads. The first policy should therefore lead
    the right way everywhere: it is greedy for the values of the model in which the likeliest outcome always
    happens.

    Once the tolerance is reached, as much work again may be spent on small values far away.
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
        if is_near(best, residual, mdp.gamma, tolerance):
            last = min(last, 2 * count)
            if count == last or np.all(steps <= _SETTLED * np.abs(best)):
                return q
        chain, reward = mdp.kernel.under(policy), mdp.reward[states, policy]
        values = best
        for _ in range(SWEEPS_PER_POLICY):
            values = reward + mdp.gamma * (chain @ values)
    raise NoConvergenceError(
        f"no optimal policy within {limit} improvements: the last step was {residual:.3g}, "
        f"the tolerance is {tolerance:.3g}",
        q,
    )
