"""The paper's settings, as keyword arguments of PerDQN.

The paper's code was built on OpenAI Baselines, whose deepq does things that the text does not mention. The reading
``"baselines"`` includes them; the reading ``"text"`` leaves them out.
"""

from __future__ import annotations

from typing import Any

from holdfast.deep.arguments import OWN_ARGUMENTS
from holdfast.deep.networks.option_network import ConvFeatures

__all__ = ["ATARI", "MOUNTAIN_CAR", "PLAIN", "READINGS"]

PLAIN: dict[str, Any] = {found.name: found.plain for found in OWN_ARGUMENTS if found.plain is not None}
"""Only the paper's update."""

READINGS: dict[str, dict[str, Any]] = {
    "text": {},
    "baselines": {
        "timeout_is_terminal": True,
        "target_value": "double",
        "clip_gradients": "each",
        "initialization": "baselines",
    },
}
"""What each reading adds where the paper's text is silent."""

MOUNTAIN_CAR: dict[str, Any] = {
    **PLAIN,
    "policy": "MlpPolicy",
    "k_max": 8,
    "gamma": 1.0,
    "learning_rate": 1e-4,
    "batch_size": 32,
    "buffer_size": 50_000,
    "learning_starts": 1000,
    "train_freq": 1,
    "target_update_interval": 1000,
    "exploration_fraction": 0.15,
    "exploration_initial_eps": 1.0,
    "exploration_final_eps": 0.01,
    "max_grad_norm": 10,
    "head_arch": [64],
    "prioritized": True,
    "priority_alpha": 0.6,
    "priority_beta0": 0.4,
    "policy_kwargs": {"net_arch": [128, 128]},
}
"""Schedules go over 600 000 steps."""

ATARI: dict[str, Any] = {
    **PLAIN,
    "policy": "CnnPolicy",
    "gamma": 0.99,
    "learning_rate": 5e-4,
    "batch_size": 32,
    "buffer_size": 50_000,
    "learning_starts": 1000,
    "train_freq": 1,
    "target_update_interval": 500,
    "exploration_fraction": 0.17,
    "exploration_initial_eps": 1.0,
    "exploration_final_eps": 0.01,
    "max_grad_norm": 10,
    "k_max": 4,
    "head_arch": [128],
    "prioritized": True,
    "priority_alpha": 0.6,
    "priority_beta0": 0.4,
    "policy_kwargs": {"net_arch": [], "features_extractor_class": ConvFeatures},
}
"""Schedules go over 2.5 million steps."""
