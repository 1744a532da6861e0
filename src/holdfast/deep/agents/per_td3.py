"""Persistent TD3: the actor-critic TD3 with the all-persistence Bellman operator, for continuous actions."""

from __future__ import annotations

from typing import Any, ClassVar, final

import torch as th
from stable_baselines3 import TD3
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import polyak_update

from holdfast.deep.actor_arguments import TD3_ARGUMENTS, TD3_UPDATE
from holdfast.deep.agents.actor_targets import actor_loss, actor_state_values, smoothed_actions
from holdfast.deep.agents.option_actor_critic import OptionActorCritic
from holdfast.deep.arguments import Argument
from holdfast.deep.networks.actor_networks import OptionActor, OptionCritic
from holdfast.deep.networks.holding_policy import HoldingPolicy
from holdfast.deep.networks.policies import ActorCnnPolicy, ActorMlpPolicy, ActorMultiInputPolicy
from holdfast.deep.networks.td3_policy import DeterministicActorPolicy

__all__ = ["OptionTD3", "PerTD3"]


class OptionTD3(OptionActorCritic, TD3):
    """PerTD3's networks and update, for agents of a user's own.

    An agent may override ``views``, ``_random_durations``, ``_values_of_states``, ``_actor_loss`` or ``_update``,
    which may call ``_sample``, ``_targets``, ``_clipped``, ``_learn_values``, ``_learn_actor_by`` and
    ``_move_targets``.
    """

    sb3_arguments: ClassVar[tuple[Argument, ...]] = TD3_ARGUMENTS
    policy_base: ClassVar[type[HoldingPolicy]] = DeterministicActorPolicy
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": ActorMlpPolicy,
        "CnnPolicy": ActorCnnPolicy,
        "MultiInputPolicy": ActorMultiInputPolicy,
    }

    policy: DeterministicActorPolicy
    actor: OptionActor
    actor_target: OptionActor
    critic: OptionCritic
    critic_target: OptionCritic

    def _update(self, batch_size: int, beta: float) -> float:
        batch = self._sample(batch_size, beta)
        targets = self._clipped(self._targets(batch))
        loss = self._learn_values(batch, targets)
        if (self._n_updates + 1) % self.policy_delay == 0:
            self._learn_actor_by(self._actor_loss(batch.observations, self.actor(batch.observations)))
            self._move_targets()
        return loss

    def _actor_loss(self, observations: Any, proposals: th.Tensor) -> th.Tensor:
        """−mean_k Q_1(s, μ_k(s), k), of the actor's ``proposals`` (B, K, size)."""
        return actor_loss(self.critic.first_of_proposals(observations, proposals))

    def _values_of_states(self, observations: Any) -> th.Tensor:
        proposals = self.actor_target(observations)
        noise = th.empty_like(proposals[:, :1]).normal_(0, self.target_policy_noise)
        if self.target_value == "primitive":
            proposals = proposals[:, :1]
        proposals = smoothed_actions(proposals, noise, self.target_noise_clip)
        if self.target_value == "options":
            return self.critic_target.best_of_proposals(observations, proposals)
        return actor_state_values(self.critic_target.of_proposals(observations, proposals), self.target_value)

    def _move_targets(self) -> None:
        polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
        polyak_update(self.actor.parameters(), self.actor_target.parameters(), self.tau)
        # Running statistics are copied, as in SB3.
        polyak_update(self.critic_batch_norm_stats, self.critic_batch_norm_stats_target, 1.0)
        polyak_update(self.actor_batch_norm_stats, self.actor_batch_norm_stats_target, 1.0)


@final
class PerTD3(OptionTD3):
    """Persistent TD3: it chooses a continuous action and how long to hold it.

    Critics learn Q_i(s,a,k) for every persistence at once, whatever time scale an experience was collected at. The
    actor has a head for every persistence, and the first critic chooses among what they propose. With ``k_max=1``
    and ``td3()`` it is SB3's TD3.
    """

    @staticmethod
    def td3() -> dict[str, Any]:
        """Keyword arguments for TD3's plain update, without what was added to it other than holding."""
        return dict(TD3_UPDATE)
