"""The TD targets of a batch, with option values laid out (U, A, K).

``bootstrapped_return`` is ``core``'s own. What reads values off tensors is the twin of what ``core`` has for
arrays, and tested against it.
"""

from __future__ import annotations

import torch as th

from holdfast.core.checks import check_choice
from holdfast.core.options import persistence_index
from holdfast.core.targets import bootstrapped_return, undecided_value
from holdfast.deep.arguments import TARGET_VALUES

__all__ = [
    "all_persistence_targets",
    "held_values",
    "skip_targets",
    "state_values",
]


def state_values(
    kind: str, target_q: th.Tensor, online_q: th.Tensor | None = None, decision_cost: float = 0.0
) -> th.Tensor:
    """V(s') of target values (U, A, K) before the decision in s' is paid for: (U,).

    Args:
        kind: One of ``TARGET_VALUES``.
        target_q: Values of the target network.
        online_q: Values of the online network, for ``"double"``.
        decision_cost: c.
    """
    check_choice("target_value", kind, TARGET_VALUES)
    if kind == "primitive":
        best = target_q[..., persistence_index(1)].max(dim=1).values
    elif kind == "double":
        assert online_q is not None
        chosen = online_q.flatten(1).argmax(dim=1, keepdim=True)
        best = target_q.flatten(1).gather(1, chosen).squeeze(1)
    else:
        assert kind == "options", kind
        best = target_q.flatten(1).max(dim=1).values
    return th.as_tensor(undecided_value(best, decision_cost))


def held_values(
    target_q: th.Tensor, next_index: th.Tensor, actions: th.Tensor, rest_positions: th.Tensor
) -> th.Tensor:
    """Q⁻(s',a,k−ℓ) of each tuple, all arguments but the first (K, B); any value where the position is negative."""
    _, n_actions, n_persistences = target_q.shape
    remaining = rest_positions.clamp(min=0)
    return target_q.flatten()[(next_index * n_actions + actions) * n_persistences + remaining]


def all_persistence_targets(
    rewards: th.Tensor,
    discounts: th.Tensor,
    dones: th.Tensor,
    complete: th.Tensor,
    next_state_values: th.Tensor,
    next_held_values: th.Tensor,
) -> th.Tensor:
    """r^ℓ + γ^ℓ (1−done) · (V(s') where complete, else Q⁻(s',a,k−ℓ)); all (K, B)."""
    next_values = th.where(complete, next_state_values, next_held_values)
    return bootstrapped_return(rewards, discounts, next_values, dones)


def skip_targets(
    rewards: th.Tensor,
    discounts: th.Tensor,
    dones: th.Tensor,
    target_q: th.Tensor,
    online_q: th.Tensor,
    next_index: th.Tensor,
) -> th.Tensor:
    """TempoRL's r^j + γ^j (1−done) · Q⁻(s', argmax_a Q(s',a)), (K, B); row j = 1 is the target of Q(s,a) too.

    Args:
        rewards: (K, B) r^j.
        discounts: (K, B) γ^j.
        dones: (K, B).
        target_q: (U, A, 1) Q⁻ of the distinct last states.
        online_q: (U, A, 1) Q of them.
        next_index: (K, B) which of them each tuple leads to.
    """
    next_values = state_values("double", target_q, online_q)[next_index]
    return bootstrapped_return(rewards, discounts, next_values, dones)
