"""The TD targets of a batch, with option values laid out (U, A, K).

On tensors they are twins of ``holdfast.core.targets``; ``kept_targets`` is the compiled form for values that are
kept by row.
"""

from __future__ import annotations

import numpy as np
import torch as th
from numpy.typing import NDArray

from holdfast.core.checks import check_choice
from holdfast.core.compiling import compiled
from holdfast.core.options import persistence_index
from holdfast.core.targets import bootstrapped_return
from holdfast.deep.arguments import TARGET_VALUES

__all__ = [
    "all_persistence_targets",
    "held_values",
    "kept_targets",
    "skip_targets",
    "state_values",
]


def state_values(kind: str, target_q: th.Tensor, online_q: th.Tensor | None = None) -> th.Tensor:
    """V(s') of target values (U, A, K): (U,).

    Args:
        kind: One of ``TARGET_VALUES``.
        target_q: Values of the target network.
        online_q: Values of the online network, for ``"double"``.
    """
    check_choice("target_value", kind, TARGET_VALUES)
    if kind == "primitive":
        return target_q[..., persistence_index(1)].max(dim=1).values
    if kind == "double":
        assert online_q is not None
        best = online_q.flatten(1).argmax(dim=1, keepdim=True)
        return target_q.flatten(1).gather(1, best).squeeze(1)
    return target_q.flatten(1).max(dim=1).values


def held_values(target_q: th.Tensor, next_index: th.Tensor, actions: th.Tensor, rest: th.Tensor) -> th.Tensor:
    """Q⁻(s',a,rest) of each tuple, all arguments but the first (K, B); any value where rest is 0."""
    _, n_actions, k_max = target_q.shape
    remaining = persistence_index(rest.clamp(min=1))
    return target_q.flatten()[(next_index * n_actions + actions) * k_max + remaining]


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
    return rewards + (1 - dones) * discounts * next_values


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
    return rewards + (1 - dones) * discounts * next_values


_bootstrapped_return = compiled(bootstrapped_return)


@compiled
def kept_targets(
    values: NDArray[np.float32],
    next_rows: NDArray[np.int64],
    actions: NDArray[np.int64],
    rest: NDArray[np.int64],
    rewards: NDArray[np.float32],
    discounts: NDArray[np.float32],
    dones: NDArray[np.float32],
    primitive: bool,
) -> NDArray[np.float32]:
    """The targets of tuples (K, B) whose last states' values (rows, A, K) are at hand.

    Args:
        values: Q⁻(s',·,·) by row.
        next_rows: (K, B) the row of each tuple's s'.
        actions: (K, B).
        rest: (K, B) k − ℓ.
        rewards: (K, B) r^ℓ.
        discounts: (K, B) γ^ℓ.
        dones: (K, B).
        primitive: Whether V(s') is the maximum over actions held once, rather than over all options.
    """
    targets = np.empty_like(rewards)
    considered = 1 if primitive else values.shape[2]
    for index in range(targets.shape[0]):
        for b in range(targets.shape[1]):
            at_end = values[next_rows[index, b]]
            if rest[index, b] > 0:
                next_value = at_end[actions[index, b], rest[index, b] - 1]
            else:
                next_value = at_end[:, :considered].max()
            targets[index, b] = _bootstrapped_return(
                rewards[index, b], discounts[index, b], next_value, dones[index, b]
            )
    return targets
