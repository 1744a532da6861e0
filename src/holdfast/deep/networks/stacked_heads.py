"""K heads on one trunk: head k values the options (·, k).

The heads' weights are stacked, so that all heads on all rows, or each head on its own rows, are one batched
product per layer.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch as th
from torch import nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

__all__ = ["StackedHeads", "StackedLinear", "stacked_parameters"]


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
        state_value: None; ``"heads"``: each head adds up a state value and advantages of mean 0 over its actions;
            ``"options"``: one more head gives a state value, to which all others add advantages of mean 0 over all
            options.
    """

    def __init__(
        self,
        n_heads: int,
        in_features: int,
        head_arch: Sequence[int],
        n_actions: int,
        activation_fn: type[nn.Module],
        state_value: str | None = None,
    ) -> None:
        super().__init__()
        sizes = [in_features, *head_arch, n_actions + (state_value == "heads")]
        pairs = itertools.pairwise(sizes)
        stacked = n_heads + (state_value == "options")
        self.layers = nn.ModuleList(StackedLinear(stacked, size, following) for size, following in pairs)
        self.activation = activation_fn()
        self.n_heads, self.head_arch, self.state_value = n_heads, list(head_arch), state_value

    def forward(self, features: th.Tensor) -> th.Tensor:
        """Head k on its own rows, (K, B, in) → (K, B, A), or every head on every row, (B, in) → (K, B, A)."""
        first, *others = self.layers
        if features.dim() == 2 and not isinstance(first, StackedLinear):
            features = features.expand(self.n_heads + (self.state_value == "options"), *features.shape)
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
            state_value.get(str(self.state_value), last.bias).add_(by)

    def joined(self, outputs: th.Tensor) -> th.Tensor:
        """Values (K, B, A) of what the last layer gives."""
        if self.state_value == "heads":
            state_value, advantages = outputs[..., :1], outputs[..., 1:]
            return state_value + advantages - advantages.mean(dim=-1, keepdim=True)
        if self.state_value == "options":
            # The state value is the mean of the last head's outputs.
            state_value, advantages = outputs[-1:].mean(dim=2, keepdim=True), outputs[:-1]
            return state_value + advantages - advantages.mean(dim=(0, 2), keepdim=True)
        return outputs


def stacked_parameters(network: nn.Module) -> list[nn.Parameter]:
    """The parameters of a network that are those of several heads, stacked along the first axis."""
    stacks = (module for module in network.modules() if isinstance(module, StackedLinear))
    return [parameter for module in stacks for parameter in (module.weight, module.bias)]
