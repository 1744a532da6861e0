"""Regression of chosen option values on targets: Huber's loss, weighted, and its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from holdfast.core.compiling import compiled
from holdfast.deep.networks.option_network import OptionQNetwork

__all__ = ["Residuals", "forget_gradients", "huber_gradient", "huber_loss", "regress"]

Floats = NDArray[np.float32]


class Residuals(NamedTuple):
    """How far the chosen values are from their targets.

    Attributes:
        loss: Mean of the weighted row losses: what was minimised.
        row_losses: (K, B) of each row, unweighted.
        td_errors: (K, B) value − target.
    """

    loss: float
    row_losses: Floats
    td_errors: Floats


def huber_loss(error: Any) -> Any:
    """½ error² up to 1, then |error| − ½."""
    size = abs(error)
    return 0.5 * error * error if size < 1.0 else size - 0.5


def huber_gradient(error: Any) -> Any:
    """Its derivative: the error, clipped to [−1, 1]."""
    return min(max(error, -1.0), 1.0)


def regress(
    network: OptionQNetwork,
    observations: Any,
    actions: NDArray[np.int64],
    targets: Floats,
    weights: Floats | None,
    optimizer: th.optim.Optimizer | None = None,
) -> Residuals:
    """Set the gradient of the weighted mean of Huber's loss on every parameter of ``network``.

    Args:
        network: What is to learn.
        observations: (K·B, ...) tensors, view by view.
        actions: (K, B).
        targets: (K, B).
        weights: (K, B) importance weights, or None for 1.
        optimizer: What is to make the step; other parameters that it has get no gradient.
    """
    if network.learns_by_hand(observations):
        return _by_hand(network, observations, actions, targets, weights)
    return _by_autograd(network, observations, actions, targets, weights, optimizer)


def forget_gradients(network: nn.Module, optimizer: th.optim.Optimizer | None) -> None:
    """Of every parameter of the network, and of the optimiser, which may know some that were replaced."""
    for parameter in network.parameters():
        parameter.grad = None
    for group in () if optimizer is None else optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


def _by_hand(
    network: OptionQNetwork,
    observations: th.Tensor,
    actions: NDArray[np.int64],
    targets: Floats,
    weights: Floats | None,
) -> Residuals:
    hand = network.hand_pass
    with th.no_grad():
        outputs = hand.values(observations)
        weights = np.ones_like(targets) if weights is None else weights
        residuals, delta = _residuals(outputs.numpy(), actions, targets, weights, network.heads.has_state_value)
        hand.backward(th.from_numpy(delta))
    return Residuals(*residuals)


def _by_autograd(
    network: OptionQNetwork,
    observations: Any,
    actions: NDArray[np.int64],
    targets: Floats,
    weights: Floats | None,
    optimizer: th.optim.Optimizer | None = None,
) -> Residuals:
    device = network.device
    chosen_actions = th.as_tensor(actions, device=device).unsqueeze(2)
    chosen = network.own_head_values(observations).gather(2, chosen_actions).squeeze(2)
    goal = th.as_tensor(targets, device=device)
    row_losses = F.smooth_l1_loss(chosen, goal, reduction="none")
    loss = (row_losses if weights is None else th.as_tensor(weights, device=device) * row_losses).mean()
    forget_gradients(network, optimizer)
    loss.backward()
    errors = (chosen - goal).detach()
    return Residuals(loss.item(), row_losses.detach().cpu().numpy(), errors.cpu().numpy())


_huber_loss = compiled(huber_loss)
_huber_gradient = compiled(huber_gradient)


@compiled
def _residuals(
    outputs: Floats, actions: NDArray[np.int64], targets: Floats, weights: Floats, has_state_value: bool
) -> tuple[tuple[float, Floats, Floats], Floats]:
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
