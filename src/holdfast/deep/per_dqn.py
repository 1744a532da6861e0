"""Persistent DQN: deep Q-learning with the all-persistence Bellman operator."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from holdfast.core.checks import check_choice
from holdfast.deep.networks import ConvFeatures
from holdfast.deep.option_dqn import BatchLoss, OptionDQN
from holdfast.deep.replay import OptionBatch
from holdfast.deep.targets import TARGET_VALUES, all_persistence_targets, held_values, state_values

__all__ = ["PerDQN"]


@final
class PerDQN(OptionDQN):
    """Persistent DQN (not to be confused with prioritised-replay DQN): Q(s,a,k) learned for every k at once.

    It chooses what to do and for how long; whatever time scale an experience was collected at, it updates the
    values of all of them. With ``k_max=1`` it is DQN.

    Paper: Algorithm per-dqn

    Args:
        *arguments: As of ``OptionDQN``: policy, env, then SB3's DQN arguments.
        target_value: How V(s') is read off the networks: ``"options"`` is the maximum over all options (the
            paper), ``"primitive"`` that over actions held once (the same fixed point, less over-estimation),
            ``"double"`` chooses with the online network and values with the target network.
        **keywords: As of ``OptionDQN``. ``bootstrap=False`` makes it MSA-DQN.
    """

    def __init__(self, *arguments: Any, target_value: str = "options", **keywords: Any) -> None:
        self.target_value = check_choice("target_value", target_value, TARGET_VALUES)
        super().__init__(*arguments, **keywords)

    def _random_options(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        actions = (
            np.array([self.action_space.sample() for _ in range(n)], dtype=np.int64) - self.action_space.start
        )
        if self.k_max == 1:
            return actions, np.ones(n, dtype=np.int64)
        return actions, np.random.randint(1, self.k_max + 1, size=n)  # noqa: NPY002 - SB3's generator

    def _batch_loss(self, batch: OptionBatch) -> BatchLoss:
        with th.no_grad():
            targets = self._targets(batch)
        values = self.q_net.own_head_values(batch.observations)  # type: ignore[operator]
        chosen = values.gather(2, batch.actions.unsqueeze(2)).squeeze(2)
        row_losses = F.smooth_l1_loss(chosen, targets, reduction="none")
        loss = (row_losses if batch.weights is None else batch.weights * row_losses).mean()
        return BatchLoss(loss, row_losses.detach(), (chosen - targets).detach(), targets)

    def _targets(self, batch: OptionBatch) -> th.Tensor:
        target_q = self._target_values(batch.next_rows)
        online_q = self._online_values(batch.next_rows) if self.target_value == "double" else None
        v = state_values(self.target_value, target_q, online_q)
        return all_persistence_targets(
            batch.rewards,
            batch.discounts,
            batch.dones,
            batch.rest == 0,
            v[batch.next_index],
            held_values(target_q, batch.next_index, batch.actions, batch.rest),
        )

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
