"""An actor with a head for every persistence, and critics that value an action at every persistence at once."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.distributions import SquashedDiagGaussianDistribution
from stable_baselines3.common.policies import BaseModel, BasePolicy, ContinuousCritic
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, create_mlp
from stable_baselines3.sac.policies import Actor as SACActor
from stable_baselines3.td3.policies import Actor as TD3Actor
from torch import nn

__all__ = ["GaussianActor", "OptionActor", "OptionCritic"]


class _Heads(BasePolicy):
    """Beside an actor of SB3's: it has a head for every persistence, and is drawn and rounded alike where K is 1.

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
        # The constructors of SB3's actors make, and draw, layers for one head.
        BasePolicy.__init__(
            self,
            observation_space,
            action_space,
            features_extractor=features_extractor,
            normalize_images=normalize_images,
            squash_output=True,
        )
        self.net_arch, self.features_dim, self.activation_fn = net_arch, features_dim, activation_fn
        self.n_heads, self.action_dim = n_heads, get_action_dim(action_space)
        self._make_layers(n_heads * self.action_dim)

    @abstractmethod
    def _make_layers(self, outputs: int) -> None:
        """Make the layers behind the features."""

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = ("net_arch", "features_dim", "activation_fn", "features_extractor", "n_heads")
        return {
            **BasePolicy._get_constructor_parameters(self),
            **{name: getattr(self, name) for name in own},
        }

    def _predict(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        """The action for one step, for SB3's sake."""
        return self(observation, deterministic)[:, 0]


class OptionActor(_Heads, TD3Actor):
    """μ_k(s) for every persistence: TD3's actor, with K times as many outputs."""

    def _make_layers(self, outputs: int) -> None:
        layers = create_mlp(self.features_dim, outputs, self.net_arch, self.activation_fn, squash_output=True)
        self.mu = nn.Sequential(*layers)

    def forward(self, obs: Any, deterministic: bool = True) -> th.Tensor:
        """What every head proposes, between −1 and 1: (B, K, size); nothing is drawn."""
        return TD3Actor.forward(self, obs).view(-1, self.n_heads, self.action_dim)

    @property
    def proposing_layers(self) -> nn.Sequential:
        """From features to what every head proposes."""
        return self.mu


class GaussianActor(_Heads, SACActor):
    """π_k(·|s) for every persistence, a squashed Gaussian each: SAC's actor, with K times as many outputs.

    State-dependent exploration it has not.
    """

    action_dist: SquashedDiagGaussianDistribution  # type: ignore[assignment]
    use_sde = False

    def _make_layers(self, outputs: int) -> None:
        self.latent_pi = nn.Sequential(*create_mlp(self.features_dim, -1, self.net_arch, self.activation_fn))
        width = self.net_arch[-1] if self.net_arch else self.features_dim
        self.action_dist = SquashedDiagGaussianDistribution(self.action_dim)
        self.mu: nn.Linear = nn.Linear(width, outputs)
        self.log_std: nn.Linear = nn.Linear(width, outputs)  # type: ignore[assignment]

    def gaussians(self, obs: Any) -> tuple[th.Tensor, th.Tensor]:
        """Means and logarithms of the deviations of what is squashed to an action, each (B, K, size)."""
        means, log_deviations, _ = self.get_action_dist_params(obs)
        shape = (-1, self.n_heads, self.action_dim)
        return means.view(shape), log_deviations.view(shape)

    def drawn(self, obs: Any) -> tuple[th.Tensor, th.Tensor]:
        """An action of every head (B, K, size), and log π_k(a_k|s) (B, K).

        One draw of noise serves all heads of a state, so that a maximum over them does not select lucky noise.
        """
        means, log_deviations = self.gaussians(obs)
        n, n_heads, size = means.shape
        noise = th.empty((n, 1, size), dtype=means.dtype, device=means.device).normal_()
        noise = noise.expand(n, n_heads, size).reshape(-1, size)
        squashed = self.action_dist.proba_distribution(means.view(-1, size), log_deviations.view(-1, size))
        gaussian = squashed.distribution.loc + noise * squashed.distribution.scale
        actions = th.tanh(gaussian)
        log_prob = squashed.log_prob(actions, gaussian)
        return actions.view(n, n_heads, size), log_prob.view(n, n_heads)

    def forward(self, obs: Any, deterministic: bool = False) -> th.Tensor:
        """What every head proposes, or draws, between −1 and 1: (B, K, size)."""
        return th.tanh(self.gaussians(obs)[0]) if deterministic else self.drawn(obs)[0]

    @property
    def proposing_layers(self) -> nn.Sequential:
        """From features to what every head proposes."""
        return nn.Sequential(*self.latent_pi, self.mu, nn.Tanh())


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
        """Q_1 of actions (B, M, size) at all durations: (B, M, K), proposals before durations.

        No gradient reaches the features.
        """
        return self._of_proposals(self.q_networks[0], self._still_features(obs), proposals)

    def of_proposals(self, obs: Any, proposals: th.Tensor) -> th.Tensor:
        """Every critic's of actions (B, M, size) at all durations: (C, B, M, K).

        No gradient reaches the features.
        """
        features = self._still_features(obs)
        return th.stack([self._of_proposals(network, features, proposals) for network in self.q_networks])

    def best_of_proposals(self, obs: Any, proposals: th.Tensor, added: th.Tensor | None = None) -> th.Tensor:
        """max_k (min_i Q_i(s,a_k,k) + b_k) of one proposal (B, K, size) per duration: (B,); no gradients.

        All proposals are shown to the first critic only. The others see the one that is best by it, whose minimum
        bounds the maximum from below, and those that the first critic values above that bound.

        Args:
            obs: Tensors.
            proposals: Actions between −1 and 1.
            added: (B, K) b; None for 0.
        """
        with th.no_grad():
            features = self._still_features(obs)
            first, *others = self.q_networks
            of_first = self._of_proposals(first, features, proposals).diagonal(dim1=1, dim2=2)
            offsets = th.zeros_like(of_first) if added is None else added
            limits = of_first + offsets
            if not others:
                return limits.max(dim=1).values
            states, heads = th.arange(len(limits), device=limits.device), limits.argmax(dim=1)
            found = th.full_like(limits, -math.inf)

            def ask(states: th.Tensor, heads: th.Tensor) -> None:
                inputs = th.cat([features[states], proposals[states, heads]], dim=1)
                rows = th.arange(len(states), device=states.device)
                asked = [of_first[states, heads], *(network(inputs)[rows, heads] for network in others)]
                found[states, heads] = th.stack(asked).min(dim=0).values + offsets[states, heads]

            ask(states, heads)
            open_heads = limits > found[states, heads].unsqueeze(1)
            open_heads[states, heads] = False
            if open_heads.any():
                ask(*open_heads.nonzero(as_tuple=True))
            return found.max(dim=1).values

    def _still_features(self, obs: Any) -> th.Tensor:
        with th.no_grad():
            return self.extract_features(obs, self.features_extractor)

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
