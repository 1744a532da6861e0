"""Values and gradients of a plain network by hand: the passes autograd would make, without its bookkeeping.

An update of a small network spends more time in the bookkeeping of many small operations than in the operations.
For vectors through linear layers and ReLUs, which is what ``OptionQNetwork`` is unless it reads images or
dictionaries or somebody gave it other layers, the backward pass is short enough to be written down:

    from δ of a layer's output: ∂W = δᵀ·input, ∂b = Σ δ, δ of its input = δ·W, and 0 where its ReLU gave 0.

The products are autograd's own, in autograd's order, so that with one head the rounding is the same too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch import nn

from holdfast.core.array_types import Floats32
from holdfast.core.compiling import compiled

if TYPE_CHECKING:
    from holdfast.deep.networks.option_network import OptionQNetwork
    from holdfast.deep.networks.stacked_heads import StackedLinear

__all__ = ["HandPass", "huber_gradient", "huber_loss"]


_keep_where_positive = th.ops.aten.threshold_backward.grad_input


class HandPass:
    """One forward pass on own-head rows, and the backward pass that belongs to it.

    Args:
        network: One that is plain (``network.is_plain``) whenever a pass is made, without a convolution,
            layer normalisation or a state value that all options share.
    """

    def __init__(self, network: OptionQNetwork) -> None:
        self._network = network
        self._trunk_inputs: list[th.Tensor] = []
        self._head_inputs: list[th.Tensor] = []

    def regress(
        self, observations: th.Tensor, actions: NDArray[np.int64], targets: Floats32, weights: Floats32 | None
    ) -> tuple[float, Floats32, Floats32]:
        """Set the gradient of the weighted mean of Huber's loss; that mean, the row losses and the errors."""
        with th.no_grad():
            outputs = self.values(observations)
            weights = np.ones_like(targets) if weights is None else weights
            has_state_value = self._network.heads.state_value == "heads"
            residuals, delta = _residuals(outputs.numpy(), actions, targets, weights, has_state_value)
            self.backward(th.from_numpy(delta))
        return residuals

    def values(self, observations: th.Tensor) -> th.Tensor:
        """Outputs (K, B, A) of K·B observations, view by view; state values, if any, are not added yet."""
        network = self._network
        inputs = network.plain_inputs(observations)
        self._trunk_inputs = []
        for linear, _ in network.trunk_layers:
            self._trunk_inputs.append(inputs)
            inputs = th.addmm(linear.bias, inputs, linear.weight.t()).relu_()
        outputs = inputs.view(network.heads.n_heads, -1, inputs.shape[-1])
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
            if network.heads.n_heads == 1:
                th.mm(delta[0].t(), inputs[0], out=grad_weight[0])
                th.sum(delta[0], 0, out=grad_bias[0])
            else:
                th.bmm(delta.transpose(1, 2), inputs, out=grad_weight)
                th.sum(delta, 1, out=grad_bias)
            if depth or self._trunk_inputs:
                delta = (
                    th.mm(delta[0], layer.weight[0]).unsqueeze(0)
                    if network.heads.n_heads == 1
                    else th.bmm(delta, layer.weight)
                )
                _keep_where_positive(delta, inputs, 0, grad_input=delta)
        rows = delta.view(-1, delta.shape[-1])
        linears = network.trunk_layers
        for depth in reversed(range(len(self._trunk_inputs))):
            (linear, _), inputs = linears[depth], self._trunk_inputs[depth]
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


def huber_loss(error: Any) -> Any:
    """½ error² up to 1, then |error| − ½."""
    size = abs(error)
    return 0.5 * error * error if size < 1.0 else size - 0.5


def huber_gradient(error: Any) -> Any:
    """Its derivative: the error, clipped to [−1, 1]."""
    return min(max(error, -1.0), 1.0)


_huber_loss = compiled(huber_loss)
_huber_gradient = compiled(huber_gradient)


@compiled
def _residuals(
    outputs: Floats32, actions: NDArray[np.int64], targets: Floats32, weights: Floats32, has_state_value: bool
) -> tuple[tuple[float, Floats32, Floats32], Floats32]:
    """Losses and errors of each row, and the gradient of the outputs (K, B, A), (K, B, 1+A) with state values."""
    k_max, batch, n_outputs = outputs.shape
    row_losses, errors = np.empty_like(targets), np.empty_like(targets)
    delta = np.zeros_like(outputs)
    share = np.float32(1.0) / np.float32(k_max * batch)
    total = 0.0
    for index in range(k_max):
        for b in range(batch):
            action = actions[index, b]
            if has_state_value:
                # Q(s,a) = V + A(a) − mean A; the state value comes first.
                advantages = outputs[index, b, 1:]
                value = outputs[index, b, 0] + advantages[action] - np.mean(advantages)
            else:
                value = outputs[index, b, action]
            error = np.float32(value - targets[index, b])
            errors[index, b] = error
            row_losses[index, b] = _huber_loss(error)
            total += weights[index, b] * row_losses[index, b]
            slope = np.float32(np.float32(_huber_gradient(error)) * (weights[index, b] * share))
            if has_state_value:
                delta[index, b, 0] = slope
                delta[index, b, 1:] -= slope / np.float32(n_outputs - 1)
                delta[index, b, 1 + action] += slope
            else:
                delta[index, b, action] = slope
    return (total / (k_max * batch), row_losses, errors), delta
