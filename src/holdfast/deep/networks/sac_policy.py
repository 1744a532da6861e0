"""SAC's policy over persistence options: an actor whose heads draw their actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.sac.policies import SACPolicy

from holdfast.deep.networks.actor_networks import GaussianActor, OptionCritic
from holdfast.deep.networks.actor_policy import ActorPolicy, Proposals

__all__ = ["GaussianActorPolicy"]

_OF_SDE = ("use_sde", "log_std_init", "use_expln", "clip_mean")
"""What SB3's policy has for state-dependent exploration."""


class GaussianActorPolicy(ActorPolicy, SACPolicy):
    """Actor and critics of SAC; its arguments are those of ``ActorPolicy``.

    How long to hold is chosen at the middle of what each head draws from, so that luck in drawing does not choose.
    """

    actor: GaussianActor
    critic: OptionCritic
    critic_target: OptionCritic

    def make_actor(self, features_extractor: BaseFeaturesExtractor | None = None) -> GaussianActor:
        """One actor."""
        given = {name: value for name, value in self.actor_kwargs.items() if name not in _OF_SDE}
        arguments = self._update_features_extractor(given, features_extractor)
        return GaussianActor(**arguments, n_heads=len(self._durations)).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        found = super()._get_constructor_parameters()
        return {name: value for name, value in found.items() if name not in _OF_SDE}

    def _heads(self, observation: Any) -> tuple[th.Tensor, th.Tensor | None]:
        means, log_deviations = self.actor.gaussians(observation)
        return th.tanh(means), th.stack([means, log_deviations], dim=2)

    def _drawn(self, proposals: Proposals, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        assert proposals.gaussians is not None
        chosen = th.as_tensor(proposals.gaussians[np.arange(len(positions)), positions], device=self.device)
        drawn: th.Tensor = self.actor.action_dist.actions_from_params(chosen[:, 0], chosen[:, 1])
        return drawn.cpu().numpy()
