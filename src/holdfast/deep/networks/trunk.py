"""What all value networks begin with: features of an observation, scaled if asked, and a shared trunk.

The modules say what a network computes. Vectors through linear layers and ReLUs, the usual case, go through
without the cost of calling them, as long as nobody has changed or watches any of them; so do boards through the
small convolution.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space, preprocess_obs
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, create_mlp
from torch import nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from holdfast.deep.speed.shortcuts import NetworkAsMade

__all__ = ["SpaceScaler", "TrunkNetwork"]


class SpaceScaler(nn.Module):
    """Scales the dimensions of a Box that have finite bounds to [−1, 1]; leaves all others as they are."""

    centre: th.Tensor
    half_width: th.Tensor

    def __init__(self, space: spaces.Box) -> None:
        super().__init__()
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        bounded = (np.abs(low) < 1e30) & (np.abs(high) < 1e30) & (high > low)
        low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
        centre, half_width = (high + low) / 2.0, (high - low) / 2.0
        # Derived from the space, so not part of the saved weights.
        self.register_buffer("centre", th.as_tensor(centre, dtype=th.float32), persistent=False)
        self.register_buffer("half_width", th.as_tensor(half_width, dtype=th.float32), persistent=False)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """(B, ...) → (B, ...)."""
        return (observations - self.centre) / self.half_width


class TrunkNetwork(NetworkAsMade):
    """Features extractor and trunk; a final class adds the heads, and calls ``_heads_are_made`` when they are.

    Args:
        observation_space: Space of the observations.
        action_space: Discrete.
        features_extractor: SB3's.
        features_dim: Its output's width.
        net_arch: Hidden units of the trunk's layers.
        activation_fn: Between the layers.
        normalize_images: Divide images by 255.
        scale_to_space: Scale finite Box bounds to [−1, 1].
        layer_norm: Normalise what a layer of the trunk gives before its activation.

    Attributes:
        width: Of the trunk's output.
    """

    action_space: spaces.Discrete

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Discrete,
        features_extractor: BaseFeaturesExtractor,
        features_dim: int,
        net_arch: list[int],
        activation_fn: type[nn.Module] = nn.ReLU,
        normalize_images: bool = True,
        scale_to_space: bool = False,
        layer_norm: bool = False,
    ) -> None:
        super().__init__(
            observation_space,
            action_space,
            features_extractor=features_extractor,
            normalize_images=normalize_images,
        )
        norms: list[type[nn.Module]] = [nn.LayerNorm] if layer_norm else []
        self.trunk = nn.Sequential(
            *create_mlp(features_dim, -1, net_arch, activation_fn, post_linear_modules=norms)
        )
        self.width = net_arch[-1] if net_arch else features_dim
        self.scalers = nn.ModuleDict(_scalers(observation_space) if scale_to_space else {})
        self.net_arch, self.features_dim, self.activation_fn = net_arch, features_dim, activation_fn
        self.layer_norm = layer_norm
        linears = [layer for layer in self.trunk if isinstance(layer, nn.Linear)]
        normals = [layer for layer in self.trunk if isinstance(layer, nn.LayerNorm)]
        self.trunk_layers = tuple(itertools.zip_longest(linears, normals))

    @abstractmethod
    def raise_values(self, by: float) -> None:
        """Raise all values by the same number, unless the output layer is no longer the one that was made."""

    @abstractmethod
    def quick_values(self, obs: Any) -> th.Tensor:
        """``forward`` without gradients, in 32 bits."""

    @abstractmethod
    def bootstrap_values(self, obs: Any) -> th.Tensor:
        """The values that targets are made of, (B, A, ·), without gradients."""

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "features_extractor": self.features_extractor,
            "features_dim": self.features_dim,
            "net_arch": self.net_arch,
            "activation_fn": self.activation_fn,
            "layer_norm": self.layer_norm,
            "scale_to_space": len(self.scalers) > 0,
        }

    def trunk_features(self, obs: Any, by_hand: bool) -> th.Tensor:
        """What the heads see: (B, width).

        Args:
            obs: Tensors.
            by_hand: Of a plain network: the same without the cost of calling modules.
        """
        if by_hand:
            features = self.plain_inputs(obs)
            for linear, norm in self.trunk_layers:
                features = F.linear(features, linear.weight, linear.bias)
                if norm is not None:
                    features = F.layer_norm(features, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
                features = features.relu_()
            return features
        inputs = preprocess_obs(obs, self.observation_space, normalize_images=self.normalize_images)
        for key, scaler in self.scalers.items():
            inputs = {**inputs, key: scaler(inputs[key])} if isinstance(inputs, dict) else scaler(inputs)
        return self.trunk(self.features_extractor(inputs))


def _scalers(space: spaces.Space[Any]) -> dict[str, nn.Module]:
    """A scaler for each Box that is no image, by key; one called "all" for a plain space."""
    parts = space.spaces if isinstance(space, spaces.Dict) else {"all": space}
    return {
        key: SpaceScaler(part)
        for key, part in parts.items()
        if isinstance(part, spaces.Box) and not is_image_space(part)
    }
