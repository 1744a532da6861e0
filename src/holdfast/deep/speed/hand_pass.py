"""Values and gradients of a plain network by hand: the passes autograd would make, without its bookkeeping.

An update of a small network spends more time in the bookkeeping of many small operations than in the operations.
For vectors through linear layers and ReLUs, which is what ``OptionQNetwork`` is unless it reads images or
dictionaries or somebody gave it other layers, the backward pass is short enough to be written down:

    from δ of a layer's output: ∂W = δᵀ·input, ∂b = Σ δ, δ of its input = δ·W, and 0 where its ReLU gave 0.

The products are autograd's own, in autograd's order, so that with one head the rounding is the same too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch as th
from torch import nn

if TYPE_CHECKING:
    from holdfast.deep.networks.option_network import OptionQNetwork, StackedLinear

__all__ = ["HandPass"]

_keep_where_positive = th.ops.aten.threshold_backward.grad_input


class HandPass:
    """One forward pass on own-head rows, and the backward pass that belongs to it.

    Args:
        network: One that is plain (``network.is_plain``) whenever a pass is made.
    """

    def __init__(self, network: OptionQNetwork) -> None:
        self._network = network
        self._trunk_inputs: list[th.Tensor] = []
        self._head_inputs: list[th.Tensor] = []

    def values(self, observations: th.Tensor) -> th.Tensor:
        """Outputs (K, B, A) of K·B observations, view by view; state values, if any, are not added yet."""
        network = self._network
        inputs = network.plain_inputs(observations)
        self._trunk_inputs = []
        for layer in network.trunk_layers:
            self._trunk_inputs.append(inputs)
            inputs = th.addmm(layer.bias, inputs, layer.weight.t()).relu_()
        outputs = inputs.view(network.k_max, -1, inputs.shape[-1])
        self._head_inputs = []
        for depth, head in enumerate(network.heads.layers._modules.values()):
            outputs = outputs.relu_() if depth else outputs
            self._head_inputs.append(outputs)
            outputs = head.forward(outputs)
        return outputs

    def backward(self, delta: th.Tensor) -> None:
        """Write the gradient of every parameter, given that of the outputs (K, B, A); what was there is lost."""
        network = self._network
        heads: list[Any] = list(network.heads.layers._modules.values())
        for depth in reversed(range(len(heads))):
            layer, inputs = heads[depth], self._head_inputs[depth]
            grad_weight, grad_bias = _gradients(layer)
            if network.k_max == 1:
                th.mm(delta[0].t(), inputs[0], out=grad_weight[0])
                th.sum(delta[0], 0, out=grad_bias[0])
            else:
                th.bmm(delta.transpose(1, 2), inputs, out=grad_weight)
                th.sum(delta, 1, out=grad_bias)
            if depth or self._trunk_inputs:
                delta = (
                    th.mm(delta[0], layer.weight[0]).unsqueeze(0)
                    if network.k_max == 1
                    else th.bmm(delta, layer.weight)
                )
                _keep_where_positive(delta, inputs, 0, grad_input=delta)
        rows = delta.view(-1, delta.shape[-1])
        linears = network.trunk_layers
        for depth in reversed(range(len(self._trunk_inputs))):
            linear, inputs = linears[depth], self._trunk_inputs[depth]
            grad_weight, grad_bias = _gradients(linear)
            th.mm(rows.t(), inputs, out=grad_weight)
            th.sum(rows, 0, out=grad_bias)
            if depth:
                rows = th.mm(rows, linear.weight)
                _keep_where_positive(rows, inputs, 0, grad_input=rows)
        self._trunk_inputs, self._head_inputs = [], []


def _gradients(layer: nn.Linear | StackedLinear) -> tuple[th.Tensor, th.Tensor]:
    """Where the gradients of a layer's weight and bias go."""
    weight, bias = layer.weight, layer.bias
    if weight.grad is None:
        weight.grad = th.empty_like(weight)
    if bias.grad is None:
        bias.grad = th.empty_like(bias)
    return weight.grad, bias.grad
