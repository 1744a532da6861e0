"""An actor with a head for every persistence, and critics that value an action at every persistence at once."""

from __future__ import annotations

from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import BaseModel, ContinuousCritic
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, create_mlp
from stable_baselines3.td3.policies import Actor
from torch import nn

__all__ = ["OptionActor", "OptionCritic"]


class OptionActor(Actor):
    """μ_k(s) for every persistence: SB3's actor, with K times as many outputs.

    With one persistence it is SB3's actor, drawn and rounded alike.

    Args:
        observation_space: Space of the observations.
        action_space: Box.
        net_arch: Hidden units, shared by the heads.
        features_extractor: SB3's.
        features_dim: Its output's width.
        activation_fn: Between the layers.
        normalize_images: Divide images by 255.
        n_heads: K, the number of persistences.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Box,
        net_arch: list[int],
        features_extractor: nn.Module,
        features_dim: int,
        activation_fn: type[nn.Module] = nn.ReLU,
        normalize_images: bool = True,
        n_heads: int = 1,
    ) -> None:
        # Actor's own constructor makes, and draws, layers for one head.
        super(Actor, self).__init__(
            observation_space,
            action_space,
            features_extractor=features_extractor,
            normalize_images=normalize_images,
            squash_output=True,
        )
        self.net_arch, self.features_dim, self.activation_fn = net_arch, features_dim, activation_fn
        self.n_heads, self.action_dim = n_heads, get_action_dim(action_space)
        outputs = n_heads * self.action_dim
        self.mu = nn.Sequential(*create_mlp(features_dim, outputs, net_arch, activation_fn, squash_output=True))

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "n_heads": self.n_heads}

    def forward(self, obs: Any) -> th.Tensor:
        """What every head proposes, between −1 and 1: (B, K, size)."""
        return super().forward(obs).view(-1, self.n_heads, self.action_dim)

    def _predict(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        """The action for one step, for SB3's sake."""
        return self(observation)[:, 0]


class OptionCritic(ContinuousCritic):
    """Q_i(s,a,·): SB3's critics, with an output for every persistence.

    With one persistence they are SB3's critics, drawn and rounded alike.

    Args:
        observation_space: Space of the observations.
        action_space: Box.
        net_arch: Hidden units.
        features_extractor: SB3's.
        features_dim: Its output's width.
        activation_fn: Between the layers.
        normalize_images: Divide images by 255.
        n_critics: Number of critics.
        share_features_extractor: Whether the actor's features are used, which then learn from its loss alone.
        n_heads: K, the number of persistences.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Box,
        net_arch: list[int],
        features_extractor: BaseFeaturesExtractor,
        features_dim: int,
        activation_fn: type[nn.Module] = nn.ReLU,
        normalize_images: bool = True,
        n_critics: int = 2,
        share_features_extractor: bool = True,
        n_heads: int = 1,
    ) -> None:
        # ContinuousCritic's own constructor makes, and draws, layers for one output.
        BaseModel.__init__(
            self,
            observation_space,
            action_space,
            features_extractor=features_extractor,
            normalize_images=normalize_images,
        )
        self.share_features_extractor, self.n_critics, self.n_heads = share_features_extractor, n_critics, n_heads
        inputs = features_dim + get_action_dim(action_space)
        self.q_networks: list[nn.Module] = []
        for index in range(n_critics):
            network = nn.Sequential(*create_mlp(inputs, n_heads, net_arch, activation_fn))
            self.add_module(f"qf{index}", network)
            self.q_networks.append(network)

    def first_of_proposals(self, obs: Any, proposals: th.Tensor) -> th.Tensor:
        """Q_1 of actions (B, K, size) at all durations: (B, K, K), proposals before durations.

        No gradient reaches the features.
        """
        with th.no_grad():
            features = self.extract_features(obs, self.features_extractor)
        return self._of_proposals(self.q_networks[0], features, proposals)

    def of_proposals(self, obs: Any, proposals: th.Tensor) -> th.Tensor:
        """Every critic's of actions (B, M, size) at all durations, without gradients: (C, B, M, K)."""
        with th.no_grad():
            features = self.extract_features(obs, self.features_extractor)
            return th.stack([self._of_proposals(network, features, proposals) for network in self.q_networks])

    def _of_proposals(self, network: nn.Module, features: th.Tensor, proposals: th.Tensor) -> th.Tensor:
        n, n_proposals, size = proposals.shape
        repeated = features if n_proposals == 1 else features.repeat_interleave(n_proposals, dim=0)
        values: th.Tensor = network(th.cat([repeated, proposals.reshape(n * n_proposals, size)], dim=1))
        return values.view(n, n_proposals, self.n_heads)

    def raise_values(self, by: float) -> None:
        """Raise all values by the same number, unless the output layer is no longer the one that was made."""
        for network in self.q_networks:
            last = list(network.children())[-1]
            if isinstance(last, nn.Linear) and last.bias is not None:
                with th.no_grad():
                    last.bias.add_(by)
