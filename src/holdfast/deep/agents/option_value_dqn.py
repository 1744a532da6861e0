"""Agents that value options Q(s,a,k), learned by the all-persistence operator from one view or many."""

from __future__ import annotations

import numpy as np
import torch as th
from numpy.typing import NDArray

from holdfast.deep.agents.option_dqn import OptionDQN
from holdfast.deep.agents.regression import Residuals, regress
from holdfast.deep.agents.targets import (
    all_persistence_targets,
    held_values,
    kept_targets,
    state_values,
)
from holdfast.deep.networks.option_network import OptionQNetwork
from holdfast.deep.replay.ring import OptionBatch

__all__ = ["OptionValueDQN"]


class OptionValueDQN(OptionDQN):
    """The loss of option values. With one view it is that of DQN.

    Abstract: an agent supplies its views and how random durations are drawn.
    """

    q_net: OptionQNetwork
    q_net_target: OptionQNetwork

    def _learn_from(self, batch: OptionBatch) -> tuple[Residuals, NDArray[np.float32]]:
        targets = self._targets(batch)
        residuals = regress(
            self.q_net, batch.observations, batch.actions, targets, batch.weights, self.policy.optimizer
        )
        return residuals, targets

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
        if self.views.k_max > 1:
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

    @property
    def _keeps_target_values(self) -> bool:
        """One view gains nothing by keeping, and what a training VecNormalize says of an observation changes."""
        return self.views.k_max > 1 and self._vec_normalize_env is None

    def _kept_target_values(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Q⁻(s,·,·) by row of the replay, (rows, A, K), known for ``rows`` at least."""
        buffer = self.replay_buffer
        assert buffer is not None
        buffer.kept.belong_to(self.q_net_target.version())
        buffer.kept.need(rows, lambda missing: self._target_values(missing).cpu().numpy())
        return buffer.kept.values
