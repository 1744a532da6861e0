"""Values and gradients of a plain network by hand: the passes autograd would make, without its bookkeeping.

An update of a small network spends more time in the bookkeeping of many small operations than in the operations.
For vectors through linear layers, layer normalisation and ReLUs, which is what ``OptionQNetwork`` is unless it
reads images or dictionaries or somebody gave it other layers, the backward pass is short enough to be written down:

    from δ of a layer's output: ∂W = δᵀ·input, ∂b = Σ δ, δ of its input = δ·W, and 0 where its ReLU gave 0.

The products are autograd's own, in autograd's order, so that with one head the rounding is the same too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch import nn

from holdfast.core.compiling import compiled

if TYPE_CHECKING:
    from holdfast.deep.networks.option_network import OptionQNetwork, StackedLinear

__all__ = ["HandPass", "huber_gradient", "huber_loss"]

Floats = NDArray[np.float32]

_keep_where_positive = th.ops.aten.threshold_backward.grad_input


class _Normalized(NamedTuple):
    """What the backward pass through a layer normalisation needs."""

    inputs: th.Tensor
    mean: th.Tensor
    inverse_deviation: th.Tensor


class HandPass:
    """One forward pass, on rows that each head has of its own or that all share, and its backward pass.

    Args:
        network: One that is plain (``network.is_plain``) whenever a pass is made.
    """

    def __init__(self, network: OptionQNetwork) -> None:
        self._network = network
        self._trunk_inputs: list[th.Tensor] = []
        self._normalized: list[_Normalized | None] = []
        self._head_inputs: list[th.Tensor] = []

    def regress(
        self,
        observations: th.Tensor,
        actions: NDArray[np.int64],
        targets: Floats,
        weights: Floats | None,
        is_shared: bool = False,
    ) -> tuple[float, Floats, Floats]:
        """Set the gradient of the weighted mean of Huber's loss; that mean, the row losses and the errors."""
        with th.no_grad():
            outputs = self.values(observations, is_shared)
            weights = np.ones_like(targets) if weights is None else weights
            dueling = _DUELS[self._network.heads.dueling]
            residuals, delta = _residuals(outputs.numpy(), actions, targets, weights, dueling)
            self.backward(th.from_numpy(delta))
        return residuals

    def values(self, observations: th.Tensor, is_shared: bool = False) -> th.Tensor:
        """Outputs (K, B, A) of the last layer; state values, if any, are not added yet.

        Args:
            observations: K·B rows, view by view; B rows that are seen by all heads if ``is_shared``.
            is_shared: Whether they are.
        """
        network = self._network
        inputs = network.plain_inputs(observations)
        self._trunk_inputs, self._normalized = [], []
        for linear, norm in network.trunk_layers:
            self._trunk_inputs.append(inputs)
            inputs = th.addmm(linear.bias, inputs, linear.weight.t())
            if norm is None:
                self._normalized.append(None)
            else:
                given = inputs
                inputs, mean, inverse = th.native_layer_norm(
                    given, norm.normalized_shape, norm.weight, norm.bias, norm.eps
                )
                self._normalized.append(_Normalized(given, mean, inverse))
            inputs = inputs.relu_()
        outputs = inputs if is_shared else inputs.view(network.heads.n_heads, -1, inputs.shape[-1])
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
            delta = _through_heads(layer, inputs, delta, with_inputs=bool(depth or self._trunk_inputs))
        rows = delta.reshape(-1, delta.shape[-1])
        layers = network.trunk_layers
        for depth in reversed(range(len(self._trunk_inputs))):
            (linear, norm), inputs, normalized = layers[depth], self._trunk_inputs[depth], self._normalized[depth]
            if norm is not None and normalized is not None:
                rows = _through_norm(norm, normalized, rows)
            grad_weight, grad_bias = _gradients(linear)
            th.mm(rows.t(), inputs, out=grad_weight)
            th.sum(rows, 0, out=grad_bias)
            if depth:
                rows = th.mm(rows, linear.weight)
                _keep_where_positive(rows, inputs, 0, grad_input=rows)
        self._trunk_inputs, self._normalized, self._head_inputs = [], [], []


def _through_heads(layer: StackedLinear, inputs: th.Tensor, delta: th.Tensor, with_inputs: bool) -> th.Tensor:
    """Write a stacked layer's gradients; δ of its inputs, which have been through a ReLU."""
    grad_weight, grad_bias = _gradients(layer)
    if len(grad_weight) == 1:
        seen = inputs if inputs.dim() == 2 else inputs[0]
        th.mm(delta[0].t(), seen, out=grad_weight[0])
        th.sum(delta[0], 0, out=grad_bias[0])
        if not with_inputs:
            return delta
        delta = th.mm(delta[0], layer.weight[0]).view_as(inputs)
    elif inputs.dim() == 2:
        # All heads saw the same rows: one product for all of them.
        flat = delta.transpose(0, 1).reshape(len(inputs), -1)
        th.mm(flat.t(), inputs, out=grad_weight.view(-1, inputs.shape[1]))
        th.sum(flat, 0, out=grad_bias.view(-1))
        if not with_inputs:
            return delta
        delta = th.mm(flat, layer.weight.flatten(0, 1))
    else:
        th.bmm(delta.transpose(1, 2), inputs, out=grad_weight)
        th.sum(delta, 1, out=grad_bias)
        if not with_inputs:
            return delta
        delta = th.bmm(delta, layer.weight)
    _keep_where_positive(delta, inputs, 0, grad_input=delta)
    return delta


def _through_norm(norm: nn.LayerNorm, normalized: _Normalized, rows: th.Tensor) -> th.Tensor:
    """Write a layer normalisation's gradients; δ of its inputs."""
    delta, grad_weight, grad_bias = th.ops.aten.native_layer_norm_backward(
        rows,
        normalized.inputs,
        norm.normalized_shape,
        normalized.mean,
        normalized.inverse_deviation,
        norm.weight,
        norm.bias,
        [True, True, True],
    )
    norm.weight.grad, norm.bias.grad = grad_weight, grad_bias
    return delta


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


_DUELS = {False: 0, "heads": 1, "options": 2}


@compiled
def _residuals(
    outputs: Floats, actions: NDArray[np.int64], targets: Floats, weights: Floats, dueling: int
) -> tuple[tuple[float, Floats, Floats], Floats]:
    """Losses and errors of each row, and the gradient of the outputs, which may hold state values too.

    Args:
        outputs: (K, B, A); with a state value in each head (``dueling`` 1) (K, B, 1+A), with one head of its own
            for it (2) (K+1, B, A).
        actions: (K, B).
        targets: (K, B).
        weights: (K, B).
        dueling: One of ``_DUELS``.
    """
    k_max, batch = targets.shape
    n_outputs = outputs.shape[2]
    row_losses, errors = np.empty_like(targets), np.empty_like(targets)
    delta = np.zeros_like(outputs)
    share = np.float32(1.0) / np.float32(k_max * batch)
    total = 0.0
    state_values = np.zeros(batch, dtype=np.float32)
    if dueling == 2:
        for b in range(batch):
            # Q(s,a,k) = V + U(a,k) − mean U, V being the mean of the last head's outputs.
            state_values[b] = np.mean(outputs[k_max, b]) - np.mean(outputs[:k_max, b])
    state_slopes = np.zeros(batch, dtype=np.float32)
    for index in range(k_max):
        for b in range(batch):
            action = actions[index, b]
            if dueling == 1:
                # Q(s,a) = V + A(a) − mean A; the state value comes first.
                advantages = outputs[index, b, 1:]
                value = outputs[index, b, 0] + advantages[action] - np.mean(advantages)
            else:
                value = outputs[index, b, action]
                if dueling == 2:
                    value += state_values[b]
            error = np.float32(value - targets[index, b])
            errors[index, b] = error
            row_losses[index, b] = _huber_loss(error)
            total += weights[index, b] * row_losses[index, b]
            slope = np.float32(np.float32(_huber_gradient(error)) * (weights[index, b] * share))
            if dueling == 1:
                delta[index, b, 0] = slope
                delta[index, b, 1:] -= slope / np.float32(n_outputs - 1)
                delta[index, b, 1 + action] += slope
            else:
                delta[index, b, action] = slope
                state_slopes[b] += slope
    if dueling == 2:
        for b in range(batch):
            delta[:k_max, b] -= state_slopes[b] / np.float32(k_max * n_outputs)
            delta[k_max, b] = state_slopes[b] / np.float32(n_outputs)
    return (total / (k_max * batch), row_losses, errors), delta
