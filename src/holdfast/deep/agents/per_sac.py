"""Persistent SAC: the soft actor-critic with the all-persistence Bellman operator, for continuous actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np
import torch as th
from stable_baselines3 import SAC
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import polyak_update

from holdfast.core.saved_fields import take_array
from holdfast.deep.actor_arguments import SAC_ARGUMENTS, SAC_UPDATE
from holdfast.deep.agents.actor_targets import soft_actor_loss, soft_state_values
from holdfast.deep.agents.option_actor_critic import OptionActorCritic
from holdfast.deep.arguments import Argument
from holdfast.deep.exact.agent_state import as_array
from holdfast.deep.networks.actor_networks import GaussianActor, OptionCritic
from holdfast.deep.networks.holding_policy import HoldingPolicy
from holdfast.deep.networks.policies import GaussianCnnPolicy, GaussianMlpPolicy, GaussianMultiInputPolicy
from holdfast.deep.networks.sac_policy import GaussianActorPolicy

__all__ = ["OptionSAC", "PerSAC"]


class OptionSAC(OptionActorCritic, SAC):
    """PerSAC's networks and update, for agents of a user's own.

    An agent may override ``views``, ``_random_durations``, ``_values_of_states``, ``_actor_loss`` or ``_update``,
    which may call ``_sample``, ``_targets``, ``_learn_values``, ``_learn_actor_by``, ``_learn_alpha`` and
    ``_move_targets``.
    """

    sb3_arguments: ClassVar[tuple[Argument, ...]] = SAC_ARGUMENTS
    # Rewards put no bounds on entropy.
    stands_for: ClassVar[dict[str, Any]] = {"clip_targets": False}
    policy_base: ClassVar[type[HoldingPolicy]] = GaussianActorPolicy
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": GaussianMlpPolicy,
        "CnnPolicy": GaussianCnnPolicy,
        "MultiInputPolicy": GaussianMultiInputPolicy,
    }
    critic_loss_scale: ClassVar[float] = 0.5

    policy: GaussianActorPolicy
    actor: GaussianActor
    critic: OptionCritic
    critic_target: OptionCritic
    target_entropy: float
    _updates_before: int

    def _setup_model(self) -> None:
        # SB3 expects this attribute; nothing else remains of state-dependent exploration.
        self.policy_kwargs.pop("use_sde", None)
        super()._setup_model()

    @property
    def optimizers(self) -> dict[str, th.optim.Optimizer]:
        """The actor's, the critics', and that of α if it is learned."""
        found = super().optimizers
        return found if self.ent_coef_optimizer is None else {**found, "alpha_optimizer": self.ent_coef_optimizer}

    @property
    def alpha(self) -> th.Tensor:
        """α, the current weight of the entropy."""
        return self.ent_coef_tensor if self.log_ent_coef is None else th.exp(self.log_ent_coef.detach())

    def kept_values(self) -> dict[str, Any]:
        """What the exploration noise remembers, and log α if it is learned."""
        learned = {} if self.log_ent_coef is None else {"log_alpha": as_array(self.log_ent_coef)}
        return {**super().kept_values(), **learned}

    def keep_values(self, state: Mapping[str, Any]) -> None:
        """Restore what ``kept_values`` returned."""
        super().keep_values(state)
        if self.log_ent_coef is not None:
            saved = take_array(state, "log_alpha", np.float32, tuple(self.log_ent_coef.shape))
            self.log_ent_coef.data.copy_(th.from_numpy(saved.copy()))

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Update the networks ``gradient_steps`` times; SB3 counts from here when the targets are due."""
        self._updates_before = self._n_updates
        super().train(gradient_steps, batch_size)

    def _update(self, batch_size: int, beta: float) -> float:
        batch = self._sample(batch_size, beta)
        actions, log_prob = self.actor.drawn(batch.observations)
        loss = self._learn_values(batch, self._targets(batch))
        self._learn_actor_by(self._actor_loss(batch.observations, actions, log_prob))
        self._learn_alpha(log_prob.detach())
        if (self._n_updates - self._updates_before) % self.target_update_interval == 0:
            self._move_targets()
        return loss

    def _actor_loss(self, observations: Any, actions: th.Tensor, log_prob: th.Tensor) -> th.Tensor:
        """Mean of α log π_k(a_k|s) − min_i Q_i(s,a_k,k), of the actor's ``actions`` (B, K, size)."""
        return soft_actor_loss(self.critic.of_proposals(observations, actions), log_prob, self.alpha)

    def _values_of_states(self, observations: Any) -> th.Tensor:
        actions, log_prob = self.actor.drawn(observations)
        if self.target_value == "options":
            return self.critic_target.best_of_proposals(observations, actions, -self.alpha * log_prob)
        actions, log_prob = actions[:, :1], log_prob[:, :1]
        asked = self.critic_target.of_proposals(observations, actions)
        return soft_state_values(asked, log_prob, self.alpha, self.target_value)

    def _sees_batches(self) -> bool:
        """Batch normalisation, in front of critics and actor alike: the actor is asked while it learns."""
        return bool(self.batch_norm_stats)

    def _held_payment(self) -> float:
        """αH̄."""
        return self.alpha.item() * self.target_entropy

    def _learn_alpha(self, log_prob: th.Tensor) -> None:
        """A step of log α, if it is learned: up where decisions have less entropy than H̄, down where more."""
        self.logger.record_mean("train/ent_coef", self.alpha.item())
        self.logger.record_mean("train/entropy", -log_prob.mean().item())
        if self.ent_coef_optimizer is None or self.log_ent_coef is None:
            return
        loss = -(self.log_ent_coef * (log_prob + self.target_entropy)).mean()
        self.ent_coef_optimizer.zero_grad()
        loss.backward()
        self.ent_coef_optimizer.step()
        self.logger.record_mean("train/ent_coef_loss", loss.item())

    def _move_targets(self) -> None:
        polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
        # Running statistics are copied, as in SB3.
        polyak_update(self.batch_norm_stats, self.batch_norm_stats_target, 1.0)


@final
class PerSAC(OptionSAC):
    """Persistent SAC: it chooses a continuous action and how long to hold it, and is rewarded for entropy.

    Critics learn Q_i(s,a,k) for every persistence at once, whatever time scale an experience was collected at. The
    actor has a head for every persistence, which draws its action. Decisions are rewarded for their entropy, and
    steps that decide nothing for the target entropy. With ``k_max=1`` and ``sac()`` it is
    SB3's SAC.
    """

    @staticmethod
    def sac() -> dict[str, Any]:
        """Keyword arguments for SAC's plain update, without what was added to it other than holding."""
        return dict(SAC_UPDATE)
