"""The exact Bellman operators of the paper, as callables on arrays.

With f over (s,a) or (s,a,k), V(s) = max f(s,·,·), and k counting from 1:

    (T* f)(s,a)     = r + γ Σ P V                                    bellman_optimality
    (T*_K f)(s,a,k) = r_k + γ^k Σ P_k V                              option_optimality
    (T^κ f)(s,a,k)  = r_κ + γ^κ Σ P_κ f(·,a,k−κ)     for k > κ       bootstrap
    (H^κ f)         = T*_K f where k ≤ κ, T^κ f where k > κ          all_persistence
    (T^ψ f)(s,a,k)  = r_k + γ^k Σ P_k Σ ψ f                          option_expectation

H^κ contracts with factor γ^{min(k,κ)} in component k, and Q*_K is its one fixed point whatever κ is.

P_k is never formed: holding one step longer is g ← r + γ Σ P(s'|·,a) g(s',a), so that T*_K costs K passes over the
kernel, and T^κ costs κ passes of K−κ columns each. Terminal states are worth 0, whatever f says of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.core.checks import check_duration, check_integer
from holdfast.core.errors import InputError
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

Floats: TypeAlias = NDArray[np.float64]
Operator: TypeAlias = Callable[[ArrayLike], Floats]


def bellman_optimality(mdp: TabularMDP) -> Operator:
    """T*: (S,A) → (S,A), the Bellman optimality operator on primitive actions.

    Paper: Operator bellman-optimality
    """

    def apply(f: ArrayLike) -> Floats:
        values = _live(mdp, _checked(f, (mdp.n_states, mdp.n_actions))).max(axis=1)
        return mdp.reward + mdp.gamma * mdp.kernel.expect(values)

    return apply


def option_optimality(mdp: TabularMDP, k_max: int) -> Operator:
    """T*_K: (S,A,K) → (S,A,K), the Bellman optimality operator on persistence options.

    Paper: Operator option-optimality
    """
    shape = _option_shape(mdp, k_max)

    def apply(f: ArrayLike) -> Floats:
        values = _live(mdp, _checked(f, shape)).max(axis=(1, 2))
        return held_returns(mdp, values, k_max)

    return apply


def bootstrap(mdp: TabularMDP, k_max: int, kappa: int) -> Operator:
    """T^κ: (S,A,K) → (S,A,K), κ steps observed and the value of holding on for the rest; NaN where k ≤ κ.

    Paper: Operator bootstrap
    """
    shape = _option_shape(mdp, k_max)
    kappa = check_duration("kappa", kappa, k_max)

    def apply(f: ArrayLike) -> Floats:
        rest = _live(mdp, _checked(f, shape))[:, :, : k_max - kappa]
        for _ in range(kappa if rest.size else 0):
            rest = _hold_one_step(mdp, rest)
        result = np.full(shape, np.nan)
        result[:, :, kappa:] = rest
        return result

    return apply


def all_persistence(mdp: TabularMDP, k_max: int, kappa: int) -> Operator:
    """H^κ: (S,A,K) → (S,A,K), the all-persistence Bellman operator.

    Paper: Operator all-persistence
    """
    shape = _option_shape(mdp, k_max)
    kappa = check_duration("kappa", kappa, k_max)
    hold_on = bootstrap(mdp, k_max, kappa)

    def apply(f: ArrayLike) -> Floats:
        f = _checked(f, shape)
        values = _live(mdp, f).max(axis=(1, 2))
        result = hold_on(f)
        result[:, :, :kappa] = held_returns(mdp, values, kappa)
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


def held_returns(mdp: TabularMDP, values: ArrayLike, k_max: int) -> Floats:
    """r_k + γ^k Σ P_k V for k = 1..k_max: hold an action for k steps, then be worth V; (S,) → (S,A,K)."""
    values = _live(mdp, _checked(values, (mdp.n_states,)))
    n_states, n_actions, k_max = _option_shape(mdp, k_max)
    # Filled one k after another and turned round at the end: writing into the last axis is slow for many states.
    by_k = np.empty((k_max, n_states, n_actions))
    by_k[0] = mdp.reward + mdp.gamma * mdp.kernel.expect(values)
    for index in range(1, k_max):
        by_k[index] = _hold_one_step(mdp, by_k[index - 1])
    return np.ascontiguousarray(np.moveaxis(by_k, 0, -1))


def _hold_one_step(mdp: TabularMDP, f: Floats) -> Floats:
    """One more step of the same action in front of f: r + γ Σ P(s'|s,a) f(s',a,...), (S,A,...) → same."""
    reward = mdp.reward.reshape(mdp.reward.shape + (1,) * (f.ndim - 2))
    return reward + mdp.gamma * mdp.kernel.expect_held(f)


def _live(mdp: TabularMDP, f: Floats) -> Floats:
    """``f`` with terminal states worth 0."""
    if not mdp.terminal.any():
        return f
    return np.where(mdp.terminal.reshape((-1,) + (1,) * (f.ndim - 1)), 0.0, f)


def _option_shape(mdp: TabularMDP, k_max: int) -> tuple[int, int, int]:
    return mdp.n_states, mdp.n_actions, check_integer("k_max", k_max)


def _checked(f: ArrayLike, shape: tuple[int, ...]) -> Floats:
    try:
        array = np.asarray(f, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"values must be an array of numbers of shape {shape}") from None
    if array.shape != shape:
        raise InputError(f"values must have shape {shape}, not {array.shape}")
    return array
