"""Networks that value every persistence option: a shared trunk and K stacked heads.

Head k values the options (·, k). The heads' weights are stacked, so that all heads on all rows, or each head on
its own rows, are one batched product per layer.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from holdfast.core.errors import InputError
from holdfast.core.options import persistence_set
from holdfast.deep.networks.trunk import SpaceScaler, TrunkNetwork
from holdfast.deep.speed.compiled_pass import CompiledPass
from holdfast.deep.speed.hand_pass import HandPass
from holdfast.deep.speed.shortcuts import can_run_compiled

__all__ = ["ConvFeatures", "OptionQNetwork", "SpaceScaler", "StackedHeads", "StackedLinear"]


class StackedLinear(nn.Module):
    """K linear maps side by side, each initialised as ``nn.Linear`` is.

    Args:
        k_max: K.
        in_features: Inputs of each.
        out_features: Outputs of each.
    """

    def __init__(self, k_max: int, in_features: int, out_features: int) -> None:
        super().__init__()
        layers = [nn.Linear(in_features, out_features) for _ in range(k_max)]
        self.weight = nn.Parameter(th.stack([layer.weight.detach() for layer in layers]))
        self.bias = nn.Parameter(th.stack([layer.bias.detach() for layer in layers]))

    def forward(self, inputs: th.Tensor) -> th.Tensor:
        """Map k on its own inputs, (K, B, in) → (K, B, out), or all maps on the same, (B, in) → (K, B, out)."""
        # Read once: a parametrised weight is computed whenever it is asked for.
        weight, bias = self.weight, self.bias
        k_max, out_features, _ = weight.shape
        is_shared = inputs.dim() == 2
        if k_max == 1:
            # The plain product rounds as nn.Linear does, the batched one need not.
            return F.linear(inputs if is_shared else inputs[0], weight[0], bias[0]).unsqueeze(0)
        if is_shared:
            flat = F.linear(inputs, weight.flatten(0, 1), bias.flatten())
            return flat.view(-1, k_max, out_features).transpose(0, 1)
        return th.baddbmm(bias.unsqueeze(1), inputs, weight.transpose(1, 2))


class StackedHeads(nn.Module):
    """Small networks on one trunk, one for each persistence, each with one output per action.

    Between any two of ``layers`` there is the activation. A layer may be replaced by any module that maps the last
    axis of its inputs, (K, B, ·); one without an axis of its own for the persistences is shared by them.

    Args:
        n_heads: K, the number of persistences.
        in_features: Width of the trunk's output.
        head_arch: Hidden units of each head's layers; may be empty.
        n_actions: A.
        activation_fn: Between the layers.
        dueling: False; True or ``"heads"``: each head adds up a state value and advantages of mean 0
            over its actions; ``"options"``: one more head gives a state value, to which all others add advantages
            of mean 0 over all options.
    """

    def __init__(
        self,
        n_heads: int,
        in_features: int,
        head_arch: Sequence[int],
        n_actions: int,
        activation_fn: type[nn.Module],
        dueling: bool | str = False,
    ) -> None:
        super().__init__()
        dueling = "heads" if dueling is True else dueling
        sizes = [in_features, *head_arch, n_actions + (dueling == "heads")]
        pairs = itertools.pairwise(sizes)
        stacked = n_heads + (dueling == "options")
        self.layers = nn.ModuleList(StackedLinear(stacked, size, following) for size, following in pairs)
        self.activation = activation_fn()
        self.n_heads, self.head_arch, self.dueling = n_heads, list(head_arch), dueling

    def forward(self, features: th.Tensor) -> th.Tensor:
        """Head k on its own rows, (K, B, in) → (K, B, A), or every head on every row, (B, in) → (K, B, A)."""
        first, *others = self.layers
        if features.dim() == 2 and not isinstance(first, StackedLinear):
            features = features.expand(self.n_heads + (self.dueling == "options"), *features.shape)
        values = first(features)
        for layer in others:
            values = layer(self.activation(values))
        return self.joined(values)

    def by_hand(self, features: th.Tensor) -> th.Tensor:
        """``forward`` of heads as they were made, with ReLUs, without the cost of calling modules."""
        values = features
        for depth, layer in enumerate(self.layers._modules.values()):
            values = layer.forward(values.relu_() if depth else values)
        return self.joined(values)

    def raise_values(self, by: float) -> None:
        """Raise all values by the same number, unless the last layer is no longer the one that was made."""
        last = self.layers[-1]
        if not isinstance(last, StackedLinear):
            return
        with th.no_grad():
            # Of the advantages a common part would cancel.
            state_value = {"heads": last.bias[:, :1], "options": last.bias[-1:]}
            state_value.get(str(self.dueling), last.bias).add_(by)

    def joined(self, outputs: th.Tensor) -> th.Tensor:
        """Values (K, B, A) of what the last layer gives."""
        if self.dueling == "heads":
            state_value, advantages = outputs[..., :1], outputs[..., 1:]
            return state_value + advantages - advantages.mean(dim=-1, keepdim=True)
        if self.dueling == "options":
            # The state value is the mean of the last head's outputs.
            state_value, advantages = outputs[-1:].mean(dim=2, keepdim=True), outputs[:-1]
            return state_value + advantages - advantages.mean(dim=(0, 2), keepdim=True)
        return outputs


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
        observation_space: Space of the observations.
        action_space: Discrete.
        features_extractor: SB3's.
        features_dim: Its output's width.
        net_arch: Hidden units of the trunk's layers.
        activation_fn: Between the layers.
        normalize_images: Divide images by 255.
        scale_to_space: Scale finite Box bounds to [−1, 1].

    Its other arguments are those of the same names in ``holdfast.deep.arguments``.

    Attributes:
        hand_pass: Its passes by hand, if it is plain.
        compiled_pass: Its passes as a whole, if it is plain.
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
        persistences: Sequence[int] | None = None,
        head_arch: Sequence[int] = (),
        dueling: bool | str = False,
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
        self.durations = persistence_set(k_max, persistences)
        n_heads, n_actions = len(self.durations), int(action_space.n)
        self.heads = StackedHeads(n_heads, self.width, head_arch, n_actions, activation_fn, dueling)
        self._heads_are_made(type(self) is OptionQNetwork)
        self.hand_pass = HandPass(self)
        self.compiled_pass = CompiledPass(self)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "k_max": self.durations[-1],
            "persistences": self.durations,
            "head_arch": self.heads.head_arch,
            "dueling": self.heads.dueling,
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
        """Those of every option: (B, A, K)."""
        return self.quick_values(obs)

    def quick_values(self, obs: Any) -> th.Tensor:
        """``forward`` without gradients; with layer normalisation, of a plain network, compiled."""
        if self.layer_norm:
            parameters = self.plain_parameters()
            if can_run_compiled(parameters, obs):
                assert parameters is not None
                return th.from_numpy(self.compiled_pass.values(obs, parameters))
        return self(obs)

    def own_head_values(self, obs: Any) -> th.Tensor:
        """Values (K, B, A) of K·B observations, laid out view by view: of the rows of D_k those of head k."""
        is_own_forward = type(self).forward is OptionQNetwork.forward and "forward" not in self.__dict__
        if is_own_forward and self.heads.dueling != "options":
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
