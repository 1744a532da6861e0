"""TD3's policy over persistence options: an actor whose heads propose one action each."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.td3.policies import TD3Policy

from holdfast.deep.networks.actor_networks import OptionActor, OptionCritic
from holdfast.deep.networks.actor_policy import ActorPolicy, Proposals

__all__ = ["DeterministicActorPolicy"]


class DeterministicActorPolicy(ActorPolicy, TD3Policy):
    """Actor and critics of TD3; its arguments are those of ``ActorPolicy``."""

    actor: OptionActor
    actor_target: OptionActor
    critic: OptionCritic
    critic_target: OptionCritic

    def make_actor(self, features_extractor: BaseFeaturesExtractor | None = None) -> OptionActor:
        """One actor."""
        arguments = self._update_features_extractor(self.actor_kwargs, features_extractor)
        return OptionActor(**arguments, n_heads=len(self._durations)).to(self.device)

    def _heads(self, observation: Any) -> tuple[th.Tensor, th.Tensor | None]:
        return self.actor(observation), None

    def _drawn(self, proposals: Proposals, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        return proposals.of(positions)
