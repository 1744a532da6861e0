"""Persistent DQN: deep Q-learning with the all-persistence Bellman operator."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from holdfast.deep.agents.exploratory_draws import uniform_durations
from holdfast.deep.agents.option_value_dqn import OptionValueDQN
from holdfast.deep.networks.option_network import ConvFeatures
from holdfast.deep.replay.ring import Views

__all__ = ["PerDQN"]


@final
class PerDQN(OptionValueDQN):
    """Persistent DQN (not to be confused with prioritised-replay DQN): Q(s,a,k) learned for every k at once.

    It chooses what to do and for how long; whatever time scale an experience was collected at, it updates the
    values of all of them. With ``k_max=1`` it is DQN.

    Paper: Algorithm per-dqn
    """

    @property
    def views(self) -> Views:
        """One for every persistence."""
        return Views(self.k_max, self.bootstrap)

    def _random_durations(self, n: int) -> NDArray[np.int64]:
        return uniform_durations(n, self.k_max)

    @staticmethod
    def paper_mountain_car() -> dict[str, Any]:
        """The paper's MountainCar settings as keyword arguments, with schedules over its 600 000 steps."""
        return {
            "policy": "MlpPolicy",
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

    @staticmethod
    def paper_atari() -> dict[str, Any]:
        """The paper's Atari settings as keyword arguments, with schedules over its 2.5 million steps."""
        return {
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
