"""Reference formulas of an actor-critic over persistence options, on arrays.

An actor has one head μ_k(s) per persistence: the action to take if it is held for k steps. Critics give Q_i(s,a,k)
for all K persistences at once. The tests compare the tensors of ``deep`` with these formulas.

A soft actor-critic is paid α for each unit of entropy of a decision. Steps without a decision are paid too: αH̄,
where H̄ is the target entropy of a decision. If only decisions were paid, entropy would favour long
holds where H̄ is below 0, as it is in SAC by default, and short ones where it is above.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_choice
from holdfast.core.options import persistence_index
from holdfast.core.targets import STATE_VALUES, all_persistence_target

__all__ = [
    "actor_objective",
    "actor_state_value",
    "clipped_minimum",
    "held_entropy",
    "proposed_values",
    "smoothed_actions",
    "soft_actor_objective",
    "soft_persistence_target",
    "soft_state_value",
]

Floats = NDArray[np.floating]


def proposed_values(values: Floats) -> Any:
    """Q(s, μ_k(s), k) for every k: (..., K) from (..., K, K), with proposals as rows and durations as columns."""
    return np.diagonal(values, axis1=-2, axis2=-1)


def clipped_minimum(values: Floats) -> Any:
    """min_i Q_i, with the critics along the first axis of ``values``."""
    return np.min(values, axis=0)


def smoothed_actions(actions: Floats, noise: Floats, noise_clip: float) -> Any:
    """μ̄(s') + clip(noise, −c, c), within [−1, 1]: target policy smoothing."""
    return np.clip(actions + np.clip(noise, -noise_clip, noise_clip), -1.0, 1.0)


def actor_state_value(values: Floats, kind: str = "options") -> Any:
    """V(s), shape (...), from the critics' values (C, ..., K, K) of the actor's K proposals.

    Args:
        values: Critics along the first axis, proposals along the second to last, durations along the last.
        kind: ``"options"`` is max_k min_i Q_i(s, μ_k(s), k), ``"primitive"`` is min_i Q_i(s, μ_1(s), 1).
    """
    check_choice("target_value", kind, STATE_VALUES)
    least = clipped_minimum(proposed_values(values))
    return least[..., persistence_index(1)] if kind == "primitive" else least.max(axis=-1)


def actor_objective(values: Floats) -> float:
    """The actor's objective: the mean over states and persistences of Q_1(s, μ_k(s), k), from (..., K, K)."""
    return float(np.mean(proposed_values(values)))


def soft_state_value(values: Floats, log_prob: Floats, alpha: float, kind: str = "options") -> Any:
    """V(s) of critics' values (C, ..., K, K) of actions that the heads have drawn: (...).

    Args:
        values: As in ``actor_state_value``.
        log_prob: (..., K) log π_k(a_k|s) of these actions.
        alpha: What a unit of entropy is worth.
        kind: ``"options"`` is max_k (min_i Q_i(s,a_k,k) − α log π_k(a_k|s)), ``"primitive"`` that of k = 1 alone.
    """
    check_choice("target_value", kind, STATE_VALUES)
    soft = clipped_minimum(proposed_values(values)) - alpha * log_prob
    return soft[..., persistence_index(1)] if kind == "primitive" else soft.max(axis=-1)


def held_entropy(n_steps: int, gamma: float, payment: float) -> NDArray[np.float64]:
    """Σ_{i=1}^{ℓ−1} γ^i · payment for every ℓ of 0..n_steps: what the undecided steps of a tuple are paid.

    Deep agents look it up by the lengths of their tuples. The first step is not among them: what it is paid is
    part of V(s), which precedes the decision, and not of Q(s,a,k).

    Args:
        n_steps: The largest ℓ.
        gamma: Discount factor.
        payment: αH̄.
    """
    found = np.zeros(n_steps + 1)
    for length in range(2, n_steps + 1):
        found[length] = found[length - 1] + gamma ** (length - 1) * payment
    return found


def soft_persistence_target(
    reward: Any,
    gamma: float,
    length: int,
    complete: bool,
    next_state_value: Any,
    next_held_value: Any,
    terminated: bool,
    payment: float,
) -> Any:
    """r^ℓ + Σ_{i=1}^{ℓ−1} γ^i αH̄ + γ^ℓ (1−done) · (V(s') where ℓ = k, else αH̄ + Q(s',a,k−ℓ)).

    Args:
        reward: r^ℓ.
        gamma: Discount factor.
        length: ℓ.
        complete: Whether ℓ = k.
        next_state_value: V(s'), with the entropy of the decision in s'.
        next_held_value: Q(s',a,k−ℓ).
        terminated: Whether s' is terminal.
        payment: αH̄, of a step that decides nothing.
    """
    paid = reward + held_entropy(length, gamma, payment)[length]
    held = payment + next_held_value
    return all_persistence_target(paid, gamma**length, complete, next_state_value, held, terminated)


def soft_actor_objective(values: Floats, log_prob: Floats, alpha: float) -> float:
    """What a soft actor maximises: the mean of min_i Q_i(s,a_k,k) − α log π_k(a_k|s).

    Args:
        values: (C, ..., K, K), as in ``actor_state_value``.
        log_prob: (..., K).
        alpha: What a unit of entropy is worth.
    """
    return float(np.mean(clipped_minimum(proposed_values(values)) - alpha * log_prob))
