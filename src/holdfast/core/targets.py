"""The value that an observed transition suggests: the empirical operators T̂*, T̂^κ and Ĥ^κ.

First come the formulas for one window s → s' of a held action, in the subset of Python that compiles; the tabular
learners compile and run these. Then come the same formulas on arrays, a reference that no training uses: tests
compare the tensors of ``deep`` with it. Last, the formulas are applied to a table Q of shape (S, A, K) and a
partial history, as the paper writes the operators; this is a reference too.

The paper prints the bootstrap of T̂^κ at s_{t+k}, but that state was never reached (k > κ). It should be s_{t+κ}.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_choice, check_discount
from holdfast.core.errors import InputError
from holdfast.core.history import PartialHistory, discounts
from holdfast.core.options import duration_at, persistence_index

__all__ = [
    "STATE_VALUES",
    "all_persistence_target",
    "best_value",
    "bootstrapped_return",
    "check_priced_target",
    "constant_value",
    "double_state_value",
    "empirical_all_persistence",
    "empirical_bootstrap",
    "empirical_optimality",
    "options_state_value",
    "primitive_state_value",
    "skip_target",
    "state_value",
    "toward",
    "undecided_value",
    "value_bounds",
    "window_target",
]

STATE_VALUES = ("options", "primitive")
"""How V(s') is read off Q(s',·,·): over all options (the paper), or over primitive actions alone."""


def check_priced_target(target_value: str, decision_cost: float) -> None:
    """Reject ``"primitive"`` if decisions cost something: longer holds may be best, so V(s') needs all options."""
    if decision_cost > 0.0 and target_value == "primitive":
        raise InputError(
            "target_value must not be 'primitive' if decision_cost is above 0: holds that save decisions would "
            "not be valued",
            "target_value",
            "decision_cost",
        )


def bootstrapped_return(reward: Any, discount: Any, next_value: Any, terminated: Any) -> Any:
    """r^ℓ + γ^ℓ · (1 − terminated) · next_value.

    Args:
        reward: r^ℓ, the discounted reward of ℓ steps.
        discount: γ^ℓ.
        next_value: What the rest is worth: V(s') or Q(s',a,k−ℓ).
        terminated: Whether s' is terminal; nothing can be gained beyond it.
    """
    return reward + discount * (1.0 - terminated) * next_value


def best_value(values: Any, n_durations: Any) -> Any:
    """V(s): the largest value of a table (A, K) among its first ``n_durations`` persistences."""
    best = values[0, 0]
    for a in range(values.shape[0]):
        for position in range(n_durations):
            best = max(best, values[a, position])
    return best


def undecided_value(best: Any, decision_cost: Any) -> Any:
    """V_c(s) = max Q_c(s,·,·) − c of a live state, where the next decision is still to be paid for.

    Q_c(s,a,k) is the value once (a,k) is chosen and paid for. A terminal state, where nothing is decided, is worth
    0.

    Args:
        best: max Q_c(s,·,·).
        decision_cost: c.
    """
    return best - decision_cost


def window_target(
    reward: Any, discount: Any, rest: Any, next_state_value: Any, next_held_values: Any, terminated: Any
) -> Any:
    """Ĥ^κ for one window of ℓ steps and persistence k: through V(s') if ℓ = k, else by holding on for k − ℓ.

    Args:
        reward: r^ℓ.
        discount: γ^ℓ.
        rest: k − ℓ.
        next_state_value: V(s'); read only if ``rest`` is 0.
        next_held_values: (K,) Q(s',a,·); read only if ``rest`` is above 0.
        terminated: Whether s' is terminal.
    """
    next_value = next_state_value if rest == 0 else next_held_values[persistence_index(rest)]
    return bootstrapped_return(reward, discount, next_value, terminated)


def value_bounds(reward_low: float, reward_high: float, gamma: float) -> tuple[float, float]:
    """The smallest and the largest possible return for rewards in a given range, if episodes may end at any time.

    Args:
        reward_low: Smallest reward, at most 0, because nothing is gained after an end.
        reward_high: Largest reward, at least 0.
        gamma: Discount factor; at 1, a reward that can be collected repeatedly has no bound.
    """
    if gamma < 1.0:
        return reward_low / (1.0 - gamma), reward_high / (1.0 - gamma)
    return (-math.inf if reward_low < 0.0 else 0.0), (math.inf if reward_high > 0.0 else 0.0)


def constant_value(mean_reward: float, end_rate: float, gamma: float) -> float:
    """The number v that is the value of every state if v = r̄ + γ (1 − d̄) v.

    Args:
        mean_reward: r̄, the mean reward of a step.
        end_rate: d̄, the share of steps that lead to a terminal state.
        gamma: Discount factor; at 1, if no step ends an episode, there is no such number and the result is 0.
    """
    left = 1.0 - gamma * (1.0 - end_rate)
    return mean_reward / left if left > 0.0 else 0.0


def toward(value: Any, target: Any, alpha: Any) -> Any:
    """(1 − α)·value + α·target: one update of a table entry."""
    return (1.0 - alpha) * value + alpha * target


def all_persistence_target(
    reward: Any, discount: Any, complete: Any, next_state_value: Any, next_held_value: Any, terminated: Any
) -> Any:
    """Reference form of ``window_target``, on arrays: V(s') where the window is complete, else holding on.

    Args:
        reward: r^ℓ.
        discount: γ^ℓ.
        complete: Whether ℓ = k.
        next_state_value: V(s').
        next_held_value: Q(s',a,k−ℓ); any finite number where ``complete`` is true.
        terminated: Whether s' is terminal.
    """
    next_value = np.where(complete, next_state_value, next_held_value)
    return bootstrapped_return(reward, discount, np.where(terminated, 0.0, next_value), False)


def options_state_value(q: NDArray[np.floating]) -> Any:
    """V(s) = max_{(a,k)} Q(s,a,k), from values of shape (..., A, K)."""
    return np.max(q, axis=(-2, -1))


def primitive_state_value(q: NDArray[np.floating]) -> Any:
    """V(s) = max_a Q(s,a,1), from values of shape (..., A, K): the same fixed point, less over-estimation."""
    return np.max(q[..., persistence_index(1)], axis=-1)


def double_state_value(online_q: NDArray[np.floating], target_q: NDArray[np.floating]) -> Any:
    """V(s) = Q⁻(s, argmax Q(s,·,·)): one network chooses, the other gives the value; both (..., A, K)."""
    online = online_q.reshape(*online_q.shape[:-2], -1)
    target = target_q.reshape(*target_q.shape[:-2], -1)
    best = np.argmax(online, axis=-1, keepdims=True)
    return np.take_along_axis(target, best, axis=-1)[..., 0]


def skip_target(
    reward: Any,
    discount: Any,
    online_values: NDArray[np.floating],
    target_values: NDArray[np.floating],
    terminated: Any,
) -> Any:
    """TempoRL's target for J(s,j|a), and for Q(s,a) with j = 1: r^j + γ^j Q⁻(s', argmax_a' Q(s',a')).

    Skips are valued through the action values alone, by double Q-learning.

    Args:
        reward: r^j.
        discount: γ^j.
        online_values: (..., A) Q(s',·), which choose the action.
        target_values: (..., A) Q⁻(s',·), which give its value.
        terminated: Whether s' is terminal.
    """
    next_value = double_state_value(online_values[..., None], target_values[..., None])
    return bootstrapped_return(reward, discount, next_value, terminated)


def state_value(q: NDArray[np.floating], kind: str = "options") -> Any:
    """V(s) from values (..., A, K), read in the way that ``kind`` names, one of ``STATE_VALUES``."""
    of_name = {"options": options_state_value, "primitive": primitive_state_value}
    return of_name[check_choice("target_value", kind, STATE_VALUES)](q)


def empirical_optimality(
    q: NDArray[np.floating], history: PartialHistory, k: int, gamma: float, kind: str = "options"
) -> float:
    """(T̂*_t Q)(s_t, a, k) = r^k + γ^k V(s_{t+k}), for k ≤ κ.

    Paper: Operator empirical-optimality

    Args:
        q: Table (S, A, K).
        history: Partial history; its states are row numbers of ``q``.
        k: A persistence that was executed in full, 1..κ.
        gamma: Discount factor.
        kind: How V is read off ``q``.
    """
    _check_table(q, history)
    if not 1 <= k <= history.kappa:
        raise ValueError(f"k must be in 1..kappa = {history.kappa} to be read off the history, not {k}")
    return _target(q, history, k, k, gamma, kind)


def empirical_bootstrap(q: NDArray[np.floating], history: PartialHistory, k: int, gamma: float) -> float:
    """(T̂^κ_t Q)(s_t, a, k) = r^κ + γ^κ Q(s_{t+κ}, a, k−κ), for k > κ.

    Paper: Operator empirical-bootstrap
    """
    _check_table(q, history)
    kappa = history.kappa
    if not kappa < k <= q.shape[-1]:
        raise ValueError(f"k must be in kappa+1 = {kappa + 1}..k_max = {q.shape[-1]}, not {k}")
    return _target(q, history, k, kappa, gamma, "options")


def empirical_all_persistence(
    q: NDArray[np.floating], history: PartialHistory, gamma: float, kind: str = "options"
) -> NDArray[np.float64]:
    """(Ĥ^κ_t Q)(s_t, a, ·): T̂* where k ≤ κ, T̂^κ where k > κ; shape (K,).

    Paper: Operator empirical-all-persistence
    """
    _check_table(q, history)
    gamma = check_discount(gamma)
    targets = np.empty(q.shape[-1])
    for index in range(len(targets)):
        k = duration_at(index)
        if k <= history.kappa:
            targets[index] = empirical_optimality(q, history, k, gamma, kind)
        else:
            targets[index] = empirical_bootstrap(q, history, k, gamma)
    return targets


def _target(
    q: NDArray[np.floating], history: PartialHistory, k: int, length: int, gamma: float, kind: str
) -> float:
    """The target that the first ``length`` steps of ``history`` give for persistence ``k``."""
    reward, discount = history.k_step_return(0, length, gamma), discounts(gamma, length)[length]
    if history.terminated and length == history.kappa:
        return reward
    values = q[history.states[length]]
    target = window_target(
        reward, discount, k - length, state_value(values, kind), values[history.action], terminated=False
    )
    return float(target)


def _check_table(q: NDArray[np.floating], history: PartialHistory) -> None:
    if q.ndim != 3:
        raise ValueError(f"q must be a table (S, A, K), not of shape {q.shape}")
    states = history.states
    if states.ndim != 1 or states.dtype.kind not in "iu" or np.any((states < 0) | (states >= q.shape[0])):
        raise ValueError(f"history must have whole numbers in 0..{q.shape[0] - 1}, the rows of q, as states")
    if history.action >= q.shape[1]:
        raise ValueError(f"history must have an action in 0..{q.shape[1] - 1}, not {history.action}")
