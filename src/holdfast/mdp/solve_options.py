"""Optimal values of options: for every persistence or a set of them, with an optional cost per decision.

Without a cost, a longer hold never pays: Q*_K(s,a,1) = Q*(s,a), and the values of all options follow from V*. With
a cost c, options have to be compared: T*_K with V(s) − c is solved by policy iteration over options.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_decision_cost
from holdfast.core.errors import InputError
from holdfast.core.options import chosen_persistences
from holdfast.core.targets import undecided_value
from holdfast.mdp.iteration import NoConvergenceError, fixed_point
from holdfast.mdp.kernels import DeterministicKernel
from holdfast.mdp.model import TabularMDP
from holdfast.mdp.operators import held_returns, option_optimality
from holdfast.mdp.option_model import OptionModel
from holdfast.mdp.policy_improvement import is_better
from holdfast.mdp.solve import LARGEST_LINEAR_SYSTEM, q_star

__all__ = ["best_policy", "k_values", "q_star_options"]


_LARGEST_K_MAX = 2**31


def q_star_options(
    mdp: TabularMDP,
    k_max: int | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 1_000_000,
    *,
    decision_cost: float = 0.0,
    persistences: Sequence[int] | None = None,
) -> Floats:
    """Q*_K(s,a,k), (S,A,K), as accurate as ``q_star``.

    Q*_K(·,·,1) = Q*, so without a cost it takes only value iteration on (S,A) and K held steps from V*. With a
    cost, the value is that of an option that is already chosen and paid for: before the decision, a state is worth
    max Q − c.

    Args:
        mdp: The model.
        k_max: Options last 1..k_max steps.
        tolerance: As for ``q_star``.
        max_iterations: As for ``q_star``.
        decision_cost: c, the cost of each decision. If γ = 1, values are iterated to the tolerance.
        persistences: A set of durations to use instead of 1..k_max; the last axis then runs over the set.

    Raises:
        NoConvergenceError: The tolerance was not reached within ``max_iterations`` sweeps or policies.
    """
    durations = chosen_persistences(k_max, persistences)
    if durations[-1] >= _LARGEST_K_MAX:
        name = "k_max" if isinstance(durations, range) else "persistences"
        raise InputError(f"{name} must be less than {_LARGEST_K_MAX}, not {durations[-1]}", name)
    cost = check_decision_cost(decision_cost)
    values = q_star(mdp, tolerance, max_iterations).max(axis=1)
    # With a cost, this values the options as if only the next decision were paid for: an upper bound.
    q = held_returns(mdp, undecided_value(values, cost), persistences=durations)
    if cost == 0.0:
        return q
    if mdp.gamma < 1.0 and (
        isinstance(mdp.kernel, DeterministicKernel) or mdp.n_states <= LARGEST_LINEAR_SYSTEM[type(mdp.kernel)]
    ):
        return _improve_policy(OptionModel(mdp, durations), q, cost, max_iterations)
    operator = option_optimality(mdp, decision_cost=cost, persistences=durations)
    return fixed_point(operator, q, modulus=mdp.gamma, tolerance=tolerance, max_iterations=max_iterations).value


def _improve_policy(model: OptionModel, q: Floats, decision_cost: float, max_iterations: int) -> Floats:
    """Howard's policy iteration over options, from the policy that is greedy for ``q`` (S,A,K)."""
    states = np.arange(len(q))
    policy = best_policy(q)
    highest = np.full(len(q), -np.inf)
    for _ in range(max_iterations):
        values = model.policy_values(policy, decision_cost)
        q = held_returns(model.mdp, values, persistences=model.durations)
        flat, best = q.reshape(len(q), -1), best_policy(q)
        changed = is_better(flat[states, best], flat[states, policy])
        # Each policy must be better than all before it somewhere; if not, the difference is only rounding.
        if not changed.any() or not np.any(values > highest):
            return q
        np.maximum(values, highest, out=highest)
        policy = np.where(changed, best, policy)
    raise NoConvergenceError(f"no optimal policy over options within {max_iterations} improvements", q)


def best_policy(q: Floats) -> NDArray[np.int64]:
    """The greedy option of each state of (S,A,K), as a flat number action · K + position; ties go to the first."""
    return np.asarray(q.reshape(len(q), -1).argmax(axis=1))


def k_values(
    mdp: TabularMDP,
    k_max: int | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 1_000_000,
    *,
    decision_cost: float = 0.0,
    persistences: Sequence[int] | None = None,
) -> Floats:
    """V*_k(s) = max_a Q*_K(s,a,k), (S,K): the first action is held for k steps, and all that follows is optimal.

    This is not the optimal value of the k-persistent MDP, where every action is held for k steps. With a cost, the
    first decision is already paid for. The arguments are those of ``q_star_options``.

    Paper: Definition k-value
    """
    q = q_star_options(
        mdp, k_max, tolerance, max_iterations, decision_cost=decision_cost, persistences=persistences
    )
    return np.asarray(q.max(axis=1))
