"""The network that values every persistence option, a trunk and K stacked heads, and how its values are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from holdfast.core.choice import best_option, few_decision_option, longest_skip
from holdfast.core.errors import InputError
from holdfast.core.options import persistence_set
from holdfast.deep.networks.greedy_rules import Choice, GreedyRule, ValueTable
from holdfast.deep.networks.stacked_heads import StackedHeads
from holdfast.deep.networks.trunk import TrunkNetwork
from holdfast.deep.speed.compiled_pass import CompiledPass
from holdfast.deep.speed.hand_pass import HandPass
from holdfast.deep.speed.shortcuts import can_run_compiled
from holdfast.envs.choices import Choices

__all__ = ["ConvFeatures", "OptionQNetwork", "OptionRule"]


class ConvFeatures(BaseFeaturesExtractor):
    """The paper's three convolutions, flattened; the layers after them belong to the heads."""

    def __init__(self, observation_space: spaces.Box, normalized_image: bool = False) -> None:
        if not is_image_space(observation_space, check_channels=False, normalized_image=normalized_image):
            raise InputError(f"ConvFeatures needs image observations, not {observation_space}")
        channels, height, width = observation_space.shape
        if min(height, width) < 36:
            raise InputError(f"ConvFeatures needs images of at least 36x36 pixels, not {height}x{width}")
        for kernel, stride in ((8, 4), (4, 2), (3, 1)):
            height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
        super().__init__(observation_space, features_dim=64 * height * width)
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 32, kernel_size=8, stride=4),
            nn.ReLU(),
            nn.Conv2d(32, 64, kernel_size=4, stride=2),
            nn.ReLU(),
            nn.Conv2d(64, 64, kernel_size=3, stride=1),
            nn.ReLU(),
            nn.Flatten(),
        )

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """(B, C, H, W) → (B, features)."""
        return self.layers(observations)


class OptionQNetwork(TrunkNetwork):
    """Q(s,a,k) for every option: features extractor, trunk, stacked heads.

    With one persistence and no head layers it is SB3's ``QNetwork``, drawn and rounded alike.

    Args:
        *trunk: As ``TrunkNetwork``'s.
        **keywords: As ``TrunkNetwork``'s.

    Its other arguments are those of the same names in ``holdfast.deep.arguments``.

    Attributes:
        hand_pass: Its passes by hand, if it is plain.
        compiled_pass: Its passes as a whole, if it is plain.
    """

    def __init__(
        self,
        *trunk: Any,
        k_max: int = 1,
        persistences: Sequence[int] | None = None,
        head_arch: Sequence[int] = (),
        dueling: bool | str = False,
        **keywords: Any,
    ) -> None:
        super().__init__(*trunk, **keywords)
        self.durations = persistence_set(k_max, persistences)
        n_heads, n_actions = len(self.durations), Choices(self.action_space).n
        state_value = "heads" if dueling is True else dueling or None
        self.heads = StackedHeads(n_heads, self.width, head_arch, n_actions, self.activation_fn, state_value)
        self._heads_are_made(type(self) is OptionQNetwork)
        self.hand_pass = HandPass(self)
        self.compiled_pass = CompiledPass(self)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "k_max": self.durations[-1],
            "persistences": self.durations,
            "head_arch": self.heads.head_arch,
            "dueling": self.heads.state_value or False,
        }

    def head_layers(self) -> tuple[nn.Module, ...]:
        """The stacked layers."""
        return tuple(self.heads.layers._modules.values())

    @property
    def last_bias(self) -> th.Tensor:
        """That of the outputs."""
        *_, last = self.heads.layers._modules.values()
        return last.bias  # type: ignore[return-value]

    def raise_values(self, by: float) -> None:
        """Of every option."""
        self.heads.raise_values(by)

    def forward(self, obs: Any, own_heads: bool = False) -> th.Tensor:
        """Values of every option: (B, A, K).

        Args:
            obs: Tensors.
            own_heads: K·B observations are laid out view by view, and head k sees the rows of D_k only: (K, B, A).
        """
        by_hand = self.is_plain
        features = self.trunk_features(obs, by_hand)
        if own_heads:
            features = features.view(self.heads.n_heads, -1, features.shape[-1])
        values = self.heads.by_hand(features) if by_hand else self.heads(features)
        return values if own_heads else values.permute(1, 2, 0)

    def bootstrap_values(self, obs: Any) -> th.Tensor:
        """Those of every option, without gradients: (B, A, K)."""
        return self.quick_values(obs)

    def quick_values(self, obs: Any) -> th.Tensor:
        """``forward`` without gradients, in 32 bits; with layer normalisation, of a plain network, compiled."""
        if self.layer_norm:
            parameters = self.plain_parameters()
            if can_run_compiled(parameters, obs):
                assert parameters is not None
                return th.from_numpy(self.compiled_pass.values(obs, parameters))
        with th.no_grad():
            # Under autocast the values have fewer bits.
            return self(obs).float()

    def own_head_values(self, obs: Any) -> th.Tensor:
        """Values (K, B, A) of K·B observations, laid out view by view: of the rows of D_k those of head k."""
        is_own_forward = type(self).forward is OptionQNetwork.forward and "forward" not in self.__dict__
        if is_own_forward and self.heads.state_value != "options":
            return self(obs, own_heads=True)
        # Values that all heads have a part in, or somebody else's forward, which knows nothing of views.
        values = self(obs)
        return values.view(self.heads.n_heads, -1, *values.shape[1:]).diagonal(dim1=0, dim2=3).permute(2, 0, 1)

    def all_head_values(self, obs: Any) -> th.Tensor:
        """Values (K, B, A) of B observations."""
        return self(obs).permute(2, 0, 1)

    def _predict(self, observation: Any, deterministic: bool = True) -> th.Tensor:
        """The action of the best option, for SB3's sake."""
        return self(observation).flatten(1).argmax(dim=1) // self.heads.n_heads


@final
class OptionRule(GreedyRule):
    """Actions and persistences are valued together, and chosen together: argmax Q(s,·,·)."""

    def options(self, table: ValueTable) -> ValueTable:
        """The table."""
        return table

    def best(self, table: ValueTable) -> Any:
        """That of the best option."""
        return table.max(axis=(1, 2))

    def choose(self, table: ValueTable, tolerance: float | None) -> Choice:
        """The best option; with a tolerance its action's longest hold within it."""
        return best_option(table) if tolerance is None else few_decision_option(table, tolerance)

    def hold(self, table: ValueTable, actions: NDArray[np.int64], tolerance: float | None) -> NDArray[np.int64]:
        """The best of each action's persistences, the longest of equals."""
        return longest_skip(table, actions, tolerance or 0.0)
