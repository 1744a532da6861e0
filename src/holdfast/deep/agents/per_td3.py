"""Persistent TD3: the actor-critic TD3 with the all-persistence Bellman operator, for continuous actions."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.utils import polyak_update
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from holdfast.core.targets import undecided_value
from holdfast.deep.actor_arguments import TD3_UPDATE
from holdfast.deep.agents.actor_targets import actor_loss, actor_state_values, smoothed_actions
from holdfast.deep.agents.option_td3 import OptionTD3
from holdfast.deep.agents.targets import all_persistence_targets
from holdfast.deep.replay.views import OptionBatch, Views

__all__ = ["PerTD3"]


@final
class PerTD3(OptionTD3):
    """Persistent TD3: it chooses a continuous action and for how long to hold it.

    Critics learn Q_i(s,a,k) for every persistence at once, whatever time scale an experience was collected at. The
    actor has a head for every persistence, and the first critic chooses among what they propose. With ``k_max=1``
    and ``td3()`` it is SB3's TD3.
    """

    @staticmethod
    def td3() -> dict[str, Any]:
        """TD3's update alone, as keyword arguments: without what was added to it beside holding."""
        return dict(TD3_UPDATE)

    @property
    def views(self) -> Views:
        """One for every persistence."""
        return Views(self.k_max, persistences=self.persistences, shared_draws=self.shared_draws)

    def _update(self, batch_size: int, beta: float) -> float:
        batch = self._sample(batch_size, beta)
        targets = self._clipped(self._targets(batch))
        loss = self._learn_values(batch, targets)
        if (self._n_updates + 1) % self.policy_delay == 0:
            self._learn_actor(batch)
            self._move_targets()
        return loss

    def _targets(self, batch: OptionBatch) -> NDArray[np.float32]:
        """(K, B) r^ℓ + γ^ℓ (1−done) · (V̄(s') where ℓ = k, else min_i Q̄_i(s',a,k−ℓ))."""
        assert self.replay_buffer is not None
        complete = batch.rest == 0
        state_values, held_values = np.zeros((2, *batch.rest.shape), dtype=np.float32)
        state_values[complete] = self._state_values(batch.next_rows[complete])
        goes_on = ~complete & (batch.dones == 0)
        if goes_on.any():
            held_values[goes_on] = self._held_values(
                batch.next_rows[goes_on],
                batch.actions[goes_on],
                self.replay_buffer.positions[batch.rest[goes_on]],
            )
        parts = (batch.rewards, batch.discounts, batch.dones, complete, state_values, held_values)
        return all_persistence_targets(*map(th.as_tensor, parts)).numpy()

    def _state_values(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """V̄ of the observations in rows (n,) of the replay."""
        assert self.replay_buffer is not None
        # Each state once; with one view all rows as they are, as in SB3.
        distinct, index = (rows, None) if self.views.k_max == 1 else np.unique(rows, return_inverse=True)
        with th.no_grad():
            observations = self.replay_buffer.observations_at(distinct, self._vec_normalize_env)
            proposals = self.actor_target(observations)
            noise = th.empty_like(proposals[:, :1]).normal_(0, self.target_policy_noise)
            if self.target_value == "primitive":
                proposals = proposals[:, :1]
            proposals = smoothed_actions(proposals, noise, self.target_noise_clip)
            asked = self.critic_target.of_proposals(observations, proposals)
            values = undecided_value(actor_state_values(asked, self.target_value), self.decision_cost)
        found: NDArray[np.float32] = values.cpu().numpy()
        return found if index is None else found[index]

    def _held_values(
        self, rows: NDArray[np.int64], actions: NDArray[Any], positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """min_i Q̄_i(s',a,k−ℓ), of actions (n, size) that are held on; all arguments (n, ...)."""
        assert self.replay_buffer is not None
        observations = self.replay_buffer.observations_at(rows, self._vec_normalize_env)
        held = th.as_tensor(actions, device=self.device).unsqueeze(1)
        values = self.critic_target.of_proposals(observations, held)[:, :, 0].min(dim=0).values
        found: NDArray[np.float32] = values.cpu().numpy()
        return found[np.arange(len(positions)), positions]

    def _learn_values(self, batch: OptionBatch, targets: NDArray[np.float32]) -> float:
        """A step of the critics: the mean over K·B tuples of weight · (Q_i(s,a,k) − target)², summed over i."""
        n_views = len(targets)
        shown = batch.actions[0] if batch.is_shared else batch.actions.reshape(-1, batch.actions.shape[-1])
        goal = th.as_tensor(targets, device=self.device)
        weights = None if batch.weights is None else th.as_tensor(batch.weights, device=self.device)
        losses, errors = [], []
        for values in self.critic(batch.observations, th.as_tensor(shown, device=self.device)):
            chosen = values.T if batch.is_shared else values.view(n_views, -1, n_views).diagonal(dim1=0, dim2=2).T
            squared = F.mse_loss(chosen, goal, reduction="none")
            losses.append((squared if weights is None else weights * squared).mean())
            errors.append((chosen - goal).detach())
        loss = th.stack(losses).sum()
        self._check_loss(loss.item())
        self.critic.optimizer.zero_grad()
        loss.backward()
        self.critic.optimizer.step()
        td_errors = th.stack(errors).mean(dim=0).cpu().numpy()
        assert self.replay_buffer is not None
        self.replay_buffer.update_priorities_of(batch, td_errors)
        self.update_statistics.add(np.square(td_errors), targets, batch.is_there)
        return loss.item()

    def _learn_actor(self, batch: OptionBatch) -> None:
        """A step of the actor towards larger mean_k Q_1(s, μ_k(s), k)."""
        proposals = self.actor(batch.observations)
        loss = actor_loss(self.critic.first_of_proposals(batch.observations, proposals))
        self.actor.optimizer.zero_grad()
        loss.backward()
        self.actor.optimizer.step()
        self.logger.record_mean("train/actor_loss", loss.item())

    def _move_targets(self) -> None:
        polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
        polyak_update(self.actor.parameters(), self.actor_target.parameters(), self.tau)
        # Running statistics are copied, as in SB3.
        polyak_update(self.critic_batch_norm_stats, self.critic_batch_norm_stats_target, 1.0)
        polyak_update(self.actor_batch_norm_stats, self.actor_batch_norm_stats_target, 1.0)
