"""First weights as OpenAI Baselines' deepq draws them, on which the paper was built."""

from __future__ import annotations

import math

import torch as th
from torch import nn

from holdfast.deep.networks.stacked_heads import StackedLinear
from holdfast.deep.networks.trunk import TrunkNetwork

__all__ = ["initialize_as_baselines"]


@th.no_grad()
def initialize_as_baselines(network: TrunkNetwork) -> None:
    """Draw the weights of a network anew.

    The trunk's matrices are orthogonal times √2. Convolutions and heads, each head by itself, are uniform in
    ±√(6 / (inputs + outputs)), which is Glorot's distribution. Biases are 0.
    """
    in_trunk = set(network.trunk.modules())
    for module in network.modules():
        if isinstance(module, StackedLinear):
            for weight in module.weight:
                nn.init.xavier_uniform_(weight)
        elif module in in_trunk and isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight, math.sqrt(2.0))
        elif isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.xavier_uniform_(module.weight)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)
