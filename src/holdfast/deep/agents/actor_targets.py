"""The twins on tensors of ``core/actor_critic.py``: what an actor-critic's targets are made of."""

from __future__ import annotations

import torch as th

from holdfast.core.checks import check_choice
from holdfast.core.options import persistence_index
from holdfast.core.targets import STATE_VALUES

__all__ = [
    "actor_loss",
    "actor_state_values",
    "proposed_values",
    "smoothed_actions",
    "soft_actor_loss",
    "soft_state_values",
]


def proposed_values(values: th.Tensor) -> th.Tensor:
    """Q(s, μ_k(s), k) for every k: (..., K) of (..., K, K), whose rows are the proposals and columns durations."""
    return values.diagonal(dim1=-2, dim2=-1)


def smoothed_actions(actions: th.Tensor, noise: th.Tensor, noise_clip: float) -> th.Tensor:
    """μ̄(s') + clip(noise, −c, c), within [−1, 1]."""
    return (actions + noise.clamp(-noise_clip, noise_clip)).clamp(-1, 1)


def actor_state_values(values: th.Tensor, kind: str) -> th.Tensor:
    """V(s) of critics' values (C, n, M, K) of proposals: (n,).

    For ``"options"`` it is the definition of what ``OptionCritic.best_of_proposals`` finds with less work.

    Args:
        values: Of all K proposals for ``"options"``, of the first one, for one step, at least for ``"primitive"``.
        kind: One of ``STATE_VALUES``.
    """
    return _of_the_best_head(proposed_values(values).min(dim=0).values, kind)


def soft_state_values(values: th.Tensor, log_prob: th.Tensor, alpha: th.Tensor, kind: str) -> th.Tensor:
    """V(s) of critics' values (C, n, M, K) of drawn actions with log π_k(a_k|s) (n, M): (n,).

    For ``"options"`` it is the definition of what ``OptionCritic.best_of_proposals`` finds with less work.
    """
    return _of_the_best_head(_least_and_entropy(values, log_prob, alpha), kind)


def _least_and_entropy(values: th.Tensor, log_prob: th.Tensor, alpha: th.Tensor) -> th.Tensor:
    """min_i Q_i(s,a_k,k) − α log π_k(a_k|s): (n, M)."""
    return proposed_values(values).min(dim=0).values - alpha * log_prob


def _of_the_best_head(values: th.Tensor, kind: str) -> th.Tensor:
    check_choice("target_value", kind, STATE_VALUES)
    return values[..., persistence_index(1)] if kind == "primitive" else values.max(dim=-1).values


def actor_loss(values: th.Tensor) -> th.Tensor:
    """−mean Q_1(s, μ_k(s), k) over states and persistences, of the first critic's values (B, K, K)."""
    return -proposed_values(values).mean()


def soft_actor_loss(values: th.Tensor, log_prob: th.Tensor, alpha: th.Tensor) -> th.Tensor:
    """Mean of α log π_k(a_k|s) − min_i Q_i(s,a_k,k) over states and persistences, of values (C, B, K, K)."""
    return -_least_and_entropy(values, log_prob, alpha).mean()
