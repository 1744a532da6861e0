"""The formulas of an actor-critic over persistence options, on arrays, for reference.

An actor has a head μ_k(s) for every persistence: what to do if it is held for k steps. Critics give Q_i(s,a,k) for
all K persistences at once. What the tensors of ``deep`` compute is tested against these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_choice
from holdfast.core.options import persistence_index
from holdfast.core.targets import STATE_VALUES

__all__ = ["actor_objective", "actor_state_value", "clipped_minimum", "proposed_values", "smoothed_actions"]

Floats = NDArray[np.floating]


def proposed_values(values: Floats) -> Any:
    """Q(s, μ_k(s), k) for every k: (..., K) of (..., K, K), whose rows are the proposals and columns durations."""
    return np.diagonal(values, axis1=-2, axis2=-1)


def clipped_minimum(values: Floats) -> Any:
    """min_i Q_i of values with the critics along the first axis."""
    return np.min(values, axis=0)


def smoothed_actions(actions: Floats, noise: Floats, noise_clip: float) -> Any:
    """μ̄(s') + clip(noise, −c, c), within [−1, 1]: target policy smoothing."""
    return np.clip(actions + np.clip(noise, -noise_clip, noise_clip), -1.0, 1.0)


def actor_state_value(values: Floats, kind: str = "options") -> Any:
    """V(s) of critics' values (C, ..., K, K) of the actor's K proposals: (...).

    Args:
        values: The critics along the first axis, proposals along the last but one, durations along the last.
        kind: ``"options"`` is max_k min_i Q_i(s, μ_k(s), k), ``"primitive"`` is min_i Q_i(s, μ_1(s), 1).
    """
    check_choice("target_value", kind, STATE_VALUES)
    least = clipped_minimum(proposed_values(values))
    return least[..., persistence_index(1)] if kind == "primitive" else least.max(axis=-1)


def actor_objective(values: Floats) -> float:
    """What the actor maximises: the mean over states and persistences of Q_1(s, μ_k(s), k), from (..., K, K)."""
    return float(np.mean(proposed_values(values)))
