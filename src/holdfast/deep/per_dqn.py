"""Persistent DQN: deep Q-learning with the all-persistence Bellman operator."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch as th
from numpy.typing import NDArray

from holdfast.deep.networks import ConvFeatures
from holdfast.deep.option_dqn import OptionDQN
from holdfast.deep.regression import Residuals, regress
from holdfast.deep.replay import OptionBatch
from holdfast.deep.targets import (
    all_persistence_targets,
    held_values,
    kept_targets,
    state_values,
)

__all__ = ["PerDQN"]


@final
class PerDQN(OptionDQN):
    """Persistent DQN (not to be confused with prioritised-replay DQN): Q(s,a,k) learned for every k at once.

    It chooses what to do and for how long; whatever time scale an experience was collected at, it updates the
    values of all of them. With ``k_max=1`` it is DQN.

    Paper: Algorithm per-dqn

    Its arguments are those of ``OptionDQN``; ``bootstrap=False`` makes it MSA-DQN.
    """

    def _random_options(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        actions = (
            np.array([self.action_space.sample() for _ in range(n)], dtype=np.int64) - self.action_space.start
        )
        if self.k_max == 1:
            return actions, np.ones(n, dtype=np.int64)
        return actions, np.random.randint(1, self.k_max + 1, size=n)  # noqa: NPY002 - SB3's generator

    def _learn_from(self, batch: OptionBatch) -> tuple[Residuals, NDArray[np.float32]]:
        targets = self._targets(batch)
        return regress(self.q_net, batch.observations, batch.actions, targets, batch.weights), targets

    def _targets(self, batch: OptionBatch) -> NDArray[np.float32]:
        """The TD targets of a batch, (K, B)."""
        if self._keeps_target_values and self.target_value != "double":
            return kept_targets(
                self._kept_target_values(batch.next_rows),
                batch.next_rows,
                batch.actions,
                batch.rest,
                batch.rewards,
                batch.discounts,
                batch.dones,
                self.target_value == "primitive",
            )
        rows, index = batch.next_rows.ravel(), np.arange(batch.next_rows.size)
        if self.k_max > 1:
            rows, index = np.unique(rows, return_inverse=True)
        target_q = self._target_values(rows)
        online_q = self._online_values(rows) if self.target_value == "double" else None
        device = target_q.device
        where = th.as_tensor(index, device=device).view(batch.rows.shape)
        actions, rest = th.as_tensor(batch.actions, device=device), th.as_tensor(batch.rest, device=device)
        targets = all_persistence_targets(
            th.as_tensor(batch.rewards, device=device),
            th.as_tensor(batch.discounts, device=device),
            th.as_tensor(batch.dones, device=device),
            rest == 0,
            state_values(self.target_value, target_q, online_q)[where],
            held_values(target_q, where, actions, rest),
        )
        return targets.cpu().numpy()

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
