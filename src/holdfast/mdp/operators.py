"""The exact Bellman operators of the paper, as callables on arrays.

With f over (s,a) or (s,a,k), V(s) = max f(s,·,·), and k counting from 1:

    (T* f)(s,a)     = r + γ Σ P V                                    bellman_optimality
    (T*_K f)(s,a,k) = r_k + γ^k Σ P_k V                              option_optimality
    (T^κ f)(s,a,k)  = r_κ + γ^κ Σ P_κ f(·,a,k−κ)     for k > κ       bootstrap
    (H^κ f)         = T*_K f where k ≤ κ, T^κ f where k > κ          all_persistence
    (T^ψ f)(s,a,k)  = r_k + γ^k Σ P_k Σ ψ f                          option_expectation

H^κ contracts with factor γ^{min(k,κ)} in component k, and Q*_K is its only fixed point, for every κ.

There are two generalisations; with the defaults, the operators are the paper's:

* Every decision costs c ≥ 0 (``decision_cost``). f(s,a,k) is the value once (a,k) is chosen and paid for, and
  V(s) = max f(s,·,·) − c in live states. T^κ does not change, since nothing is decided inside a hold. The factors
  are those of c = 0, and the fixed point is still the same for every κ.
* Options last k steps only for the k of a sparse set (``persistences``, which the last axis then runs over). Of
  the κ observed steps, T^κ uses as many as leave a rest k−ℓ that is itself in the set: ℓ is the largest such
  number up to κ (``window_lengths``), and the factor is γ^ℓ. If there is none, H^κ leaves f(s,a,k) unchanged.

P_k is never formed: holding one step longer is g ← r + γ Σ P(s'|·,a) g(s',a). T*_K therefore costs K passes over
the kernel, and T^κ costs κ passes of K−κ columns each. Terminal states are worth 0, whatever f contains for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_decision_cost, check_duration
from holdfast.core.decomposition import window_lengths
from holdfast.core.errors import InputError
from holdfast.core.options import chosen_persistences, persistence_positions
from holdfast.core.targets import undecided_value
from holdfast.mdp.model import TabularMDP

__all__ = [
    "Operator",
    "all_persistence",
    "bellman_optimality",
    "bootstrap",
    "held_returns",
    "option_expectation",
    "option_optimality",
]

Operator: TypeAlias = Callable[[ArrayLike], Floats]


def bellman_optimality(mdp: TabularMDP) -> Operator:
    """T*: (S,A) → (S,A), the Bellman optimality operator on primitive actions.

    Paper: Operator bellman-optimality
    """

    def apply(f: ArrayLike) -> Floats:
        values = _live(mdp, _checked(f, (mdp.n_states, mdp.n_actions))).max(axis=1)
        return mdp.reward + mdp.gamma * mdp.kernel.expect(values)

    return apply


def option_optimality(
    mdp: TabularMDP,
    k_max: int | None = None,
    *,
    decision_cost: float = 0.0,
    persistences: Sequence[int] | None = None,
) -> Operator:
    """T*_K: (S,A,K) → (S,A,K), the Bellman optimality operator on persistence options.

    Paper: Operator option-optimality

    Args:
        mdp: The model.
        k_max: Options last 1..k_max steps.
        decision_cost: c, the cost of each decision.
        persistences: A set of durations to use instead of 1..k_max.
    """
    durations = chosen_persistences(k_max, persistences)
    cost = check_decision_cost(decision_cost)
    shape = mdp.n_states, mdp.n_actions, len(durations)

    def apply(f: ArrayLike) -> Floats:
        return _held(mdp, _state_values(mdp, _checked(f, shape), cost), durations)

    return apply


def bootstrap(
    mdp: TabularMDP, k_max: int | None = None, kappa: int = 1, *, persistences: Sequence[int] | None = None
) -> Operator:
    """T^κ: (S,A,K) → (S,A,K), κ observed steps and the value of holding on for the rest; NaN where k ≤ κ.

    With a sparse set it is also NaN where no rest k−ℓ with 1 ≤ ℓ ≤ κ is in the set.

    Paper: Operator bootstrap

    Args:
        mdp: The model.
        k_max: Options last 1..k_max steps.
        kappa: κ, at most the longest persistence.
        persistences: A set of durations to use instead of 1..k_max.
    """
    durations = chosen_persistences(k_max, persistences)
    kappa = check_duration("kappa", kappa, durations[-1])
    shape = mdp.n_states, mdp.n_actions, len(durations)
    lengths, places = window_lengths(durations)[:, kappa], persistence_positions(durations)

    def apply(f: ArrayLike) -> Floats:
        f = _live(mdp, _checked(f, shape))
        result = np.full(shape, np.nan)
        columns: list[int] = []
        held = np.empty((*shape[:2], 0))
        # Options that are held for ℓ steps join the others when ℓ steps remain.
        for steps in range(kappa, 0, -1):
            joining = [at for at, k in enumerate(durations) if k > kappa and lengths[at] == steps]
            if joining:
                rests = f[:, :, [places[durations[at] - steps] for at in joining]]
                held = np.concatenate([held, rests], axis=2) if columns else rests
                columns += joining
            if columns:
                held = _hold_one_step(mdp, held)
        result[:, :, columns] = held
        return result

    return apply


def all_persistence(
    mdp: TabularMDP,
    k_max: int | None = None,
    kappa: int = 1,
    *,
    decision_cost: float = 0.0,
    persistences: Sequence[int] | None = None,
) -> Operator:
    """H^κ: (S,A,K) → (S,A,K), the all-persistence Bellman operator.

    Paper: Operator all-persistence

    Args:
        mdp: The model.
        k_max: Options last 1..k_max steps.
        kappa: κ, at most the longest persistence.
        decision_cost: c, the cost of each decision.
        persistences: A set of durations to use instead of 1..k_max.
    """
    durations = chosen_persistences(k_max, persistences)
    cost = check_decision_cost(decision_cost)
    hold_on = bootstrap(mdp, kappa=kappa, persistences=durations)
    seen = [k for k in durations if k <= kappa]
    is_uninformed = window_lengths(durations)[:, kappa] == 0
    shape = mdp.n_states, mdp.n_actions, len(durations)

    def apply(f: ArrayLike) -> Floats:
        f = _checked(f, shape)
        result = hold_on(f)
        result[:, :, : len(seen)] = _held(mdp, _state_values(mdp, f, cost), seen)
        result[:, :, is_uninformed] = _live(mdp, f)[:, :, is_uninformed]
        return result

    return apply


def option_expectation(mdp: TabularMDP, psi: ArrayLike) -> Operator:
    """T^ψ: (S,A,K) → (S,A,K), the Bellman expectation operator of a policy over persistence options.

    Paper: Operator option-expectation

    Args:
        mdp: The model.
        psi: (S,A,K) probabilities ψ(a,k|s).
    """
    S, A = mdp.n_states, mdp.n_actions
    try:
        policy = np.array(psi, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"psi must be an array of numbers of shape ({S}, {A}, k_max)") from None
    if policy.ndim != 3 or policy.shape[:2] != (S, A) or policy.shape[2] < 1:
        raise InputError(f"psi must have shape ({S}, {A}, k_max), not {policy.shape}")
    if np.any(policy < 0.0) or not np.allclose(policy.sum(axis=(1, 2)), 1.0, rtol=0.0, atol=1e-8):
        raise InputError("psi must be a distribution over options in every state: not negative, summing to 1")

    def apply(f: ArrayLike) -> Floats:
        values = np.einsum("sak,sak->s", policy, _live(mdp, _checked(f, policy.shape)))
        return held_returns(mdp, values, policy.shape[2])

    return apply


def held_returns(
    mdp: TabularMDP, values: ArrayLike, k_max: int | None = None, *, persistences: Sequence[int] | None = None
) -> Floats:
    """r_k + γ^k Σ P_k V for k = 1..k_max: hold an action for k steps, then collect V; (S,) → (S,A,K).

    Args:
        mdp: The model.
        values: V, (S,); terminal states are worth 0, whatever it contains for them.
        k_max: The largest k.
        persistences: A set of k to use instead of 1..k_max.
    """
    return _held(mdp, _checked(values, (mdp.n_states,)), chosen_persistences(k_max, persistences))


def _held(mdp: TabularMDP, values: Floats, durations: Sequence[int]) -> Floats:
    """``held_returns`` for durations that are already known to be a valid set of persistences."""
    # Filled one k at a time and transposed at the end: with many states, writing into the last axis is slow.
    by_k = np.empty((len(durations), mdp.n_states, mdp.n_actions))
    held = mdp.reward + mdp.gamma * mdp.kernel.expect(_live(mdp, values))
    steps = 1
    for index, k in enumerate(durations):
        for _ in range(k - steps):
            held = _hold_one_step(mdp, held)
        by_k[index], steps = held, k
    return np.ascontiguousarray(np.moveaxis(by_k, 0, -1))


def _state_values(mdp: TabularMDP, f: Floats, decision_cost: float) -> Floats:
    """V(s) of f (S,A,K) before the decision in s is paid for, (S,)."""
    return _live(mdp, np.asarray(undecided_value(f.max(axis=(1, 2)), decision_cost)))


def _hold_one_step(mdp: TabularMDP, f: Floats) -> Floats:
    """One more step of the same action before f: r + γ Σ P(s'|s,a) f(s',a,...), (S,A,...) → same shape."""
    reward = mdp.reward.reshape(mdp.reward.shape + (1,) * (f.ndim - 2))
    return reward + mdp.gamma * mdp.kernel.expect_held(f)


def _live(mdp: TabularMDP, f: Floats) -> Floats:
    """``f`` with terminal states worth 0."""
    if not mdp.terminal.any():
        return f
    return np.where(mdp.terminal.reshape((-1,) + (1,) * (f.ndim - 1)), 0.0, f)


def _checked(f: ArrayLike, shape: tuple[int, ...]) -> Floats:
    try:
        array = np.asarray(f, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"values must be an array of numbers of shape {shape}") from None
    if array.shape != shape:
        raise InputError(f"values must have shape {shape}, not {array.shape}")
    return array
