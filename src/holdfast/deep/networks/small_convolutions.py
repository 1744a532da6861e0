"""The small convolution that is customary for MinAtar's boards."""

from __future__ import annotations

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from holdfast.core.errors import InputError

__all__ = ["CHANNELS", "KERNEL", "SmallConvolutions"]

CHANNELS = 16
KERNEL = 3


class SmallConvolutions(BaseFeaturesExtractor):
    """One convolution, 16 channels of 3×3 cells, flattened; the layers after it belong to the heads.

    MinAtar's authors put 128 units behind it: ``head_arch=[128]`` with ``net_arch=[]`` gives them to every k, as
    the paper does for Atari, and ``net_arch=[128]`` to all k together.

    Args:
        observation_space: Boards, (channels, height, width).
    """

    def __init__(self, observation_space: spaces.Box) -> None:
        shape = observation_space.shape or ()
        if not isinstance(observation_space, spaces.Box) or len(shape) != 3 or min(shape[1:]) < KERNEL:
            raise InputError(
                f"SmallConvolutions needs observations of channels of at least {KERNEL}x{KERNEL} cells, not "
                f"{observation_space}"
            )
        channels, height, width = shape
        super().__init__(observation_space, features_dim=CHANNELS * (height - KERNEL + 1) * (width - KERNEL + 1))
        self.layers = nn.Sequential(nn.Conv2d(channels, CHANNELS, KERNEL), nn.ReLU(), nn.Flatten())

    @property
    def convolution(self) -> nn.Conv2d:
        """The one layer with parameters."""
        return self.layers[0]  # type: ignore[return-value]

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """(B, C, H, W) → (B, features)."""
        return self.layers(observations)
