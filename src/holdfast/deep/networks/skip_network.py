"""TempoRL's network: values of the actions, and of holding each of them for every number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from holdfast.deep.networks.option_network import StackedHeads
from holdfast.deep.networks.trunk import TrunkNetwork

__all__ = ["EMBEDDING_UNITS", "SkipQNetwork"]

EMBEDDING_UNITS = 10
"""Numbers that stand for an action in the skip head."""


@final
class SkipQNetwork(TrunkNetwork):
    """Q(s,a) and J(s,j|a): a trunk that both share, an action head, and a skip head that is told the action.

    The action head is one of PerDQN's heads. The skip head has layers of the same widths; it sees the trunk's
    features beside an embedding of the action, and has one output per skip length.

    Args:
        observation_space: Space of the observations.
        action_space: Discrete.
        features_extractor: SB3's.
        features_dim: Its output's width.
        net_arch: Hidden units of the trunk's layers.
        activation_fn: Between the layers.
        normalize_images: Divide images by 255.
        k_max: K, the longest skip.
        head_arch: Hidden units of both heads' layers.
        scale_to_space: Scale finite Box bounds to [−1, 1].
        layer_norm: Normalise what a layer of the trunk gives before its activation.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Discrete,
        features_extractor: BaseFeaturesExtractor,
        features_dim: int,
        net_arch: list[int],
        activation_fn: type[nn.Module] = nn.ReLU,
        normalize_images: bool = True,
        k_max: int = 1,
        head_arch: Sequence[int] = (),
        scale_to_space: bool = False,
        layer_norm: bool = False,
    ) -> None:
        super().__init__(
            observation_space,
            action_space,
            features_extractor,
            features_dim,
            net_arch,
            activation_fn,
            normalize_images,
            scale_to_space,
            layer_norm,
        )
        self.k_max = k_max
        n_actions = int(action_space.n)
        self.action_head = StackedHeads(1, self.width, head_arch, n_actions, activation_fn)
        self.embedding = nn.Embedding(n_actions, EMBEDDING_UNITS)
        self.skip_head = StackedHeads(1, self.width + EMBEDDING_UNITS, head_arch, k_max, activation_fn)
        self._heads_are_made(is_known_class=True)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "k_max": self.k_max,
            "head_arch": self.action_head.head_arch,
        }

    def head_layers(self) -> tuple[nn.Module, ...]:
        """Those of the action head, the embedding, those of the skip head."""
        action, skip = (head.layers._modules.values() for head in (self.action_head, self.skip_head))
        return (*action, self.embedding, *skip)

    @property
    def last_bias(self) -> th.Tensor:
        """That of the action values, which all targets are made of."""
        *_, last = self.action_head.layers._modules.values()
        return last.bias  # type: ignore[return-value]

    def raise_values(self, by: float) -> None:
        """Of every action and every skip."""
        self.action_head.raise_values(by)
        self.skip_head.raise_values(by)

    def forward(self, obs: Any, skips: bool = True, taught: th.Tensor | None = None) -> Any:
        """Q(s,a), then J(s,1|a)..J(s,K|a), of every action: (B, A, 1 + K).

        Args:
            obs: Tensors.
            skips: Without them only Q(s,a): (B, A, 1).
            taught: (K, B) the actions of tuples that are laid out view by view in ``obs``. Then two tables are
                returned: Q(s,·) of the tuples of one step, (B, A), and J(s,·|a) of all, (K·B, K).
        """
        by_hand = self.is_plain
        features = self.trunk_features(obs, by_hand)
        action_head, skip_head = (head.by_hand if by_hand else head for head in (self.action_head, self.skip_head))
        if taught is not None:
            told = th.cat((features, self.embedding(taught.flatten())), dim=1)
            return action_head(features[: taught.shape[1]])[0], skip_head(told)[0]
        action_values = action_head(features)[0].unsqueeze(2)
        if not skips:
            return action_values
        n_actions = int(self.action_space.n)
        actions = th.arange(n_actions, device=features.device).repeat(len(features))
        told = th.cat((features.repeat_interleave(n_actions, dim=0), self.embedding(actions)), dim=1)
        return th.cat((action_values, skip_head(told)[0].view(-1, n_actions, self.k_max)), dim=2)

    def bootstrap_values(self, obs: Any) -> th.Tensor:
        """Those of the actions: (B, A, 1)."""
        return self(obs, skips=False)

    def _predict(self, observation: Any, deterministic: bool = True) -> th.Tensor:
        """The best action, for SB3's sake."""
        return self(observation, skips=False).squeeze(2).argmax(dim=1)
