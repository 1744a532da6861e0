"""Regression of chosen option values on targets: Huber's loss, weighted, and its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from holdfast.core.array_types import Floats32
from holdfast.deep.networks.option_network import OptionQNetwork
from holdfast.deep.networks.trunk import TrunkNetwork
from holdfast.deep.speed.shortcuts import can_pass_by_hand

__all__ = ["Residuals", "forget_gradients", "regress", "regress_by_autograd", "regress_by_hand"]


class Residuals(NamedTuple):
    """How far the chosen values are from their targets.

    Attributes:
        loss: Mean of the weighted row losses: what was minimised.
        row_losses: (K, B) of each row, unweighted.
        td_errors: (K, B) value − target; of several critics, the mean of its size.
    """

    loss: float
    row_losses: Floats32
    td_errors: Floats32


def regress_by_autograd(
    network: OptionQNetwork,
    observations: Any,
    actions: NDArray[np.int64],
    targets: Floats32,
    weights: Floats32 | None,
    optimizer: th.optim.Optimizer | None = None,
    is_shared: bool = False,
) -> Residuals:
    """Set the gradient of the weighted mean of Huber's loss on every parameter of ``network``.

    Args:
        network: What is to learn.
        observations: (K·B, ...) tensors, view by view; (B, ...) of rows that all views share.
        actions: (K, B).
        targets: (K, B).
        weights: (K, B) importance weights, or None for 1.
        optimizer: What is to make the step; other parameters that it has get no gradient.
        is_shared: Whether all views share the rows.
    """
    device = network.device
    chosen_actions = th.as_tensor(actions, device=device).unsqueeze(2)
    values = network.all_head_values(observations) if is_shared else network.own_head_values(observations)
    chosen = values.gather(2, chosen_actions).squeeze(2)
    goal = th.as_tensor(targets, device=device)
    row_losses = F.smooth_l1_loss(chosen, goal, reduction="none")
    loss = (row_losses if weights is None else th.as_tensor(weights, device=device) * row_losses).mean()
    forget_gradients(network, optimizer)
    loss.backward()
    errors = (chosen - goal).detach()
    return Residuals(loss.item(), row_losses.detach().cpu().numpy(), errors.cpu().numpy())


def regress_by_hand(
    network: OptionQNetwork,
    observations: th.Tensor,
    actions: NDArray[np.int64],
    targets: Floats32,
    weights: Floats32 | None,
) -> Residuals:
    """The same of a plain network, by its passes by hand."""
    return Residuals(*network.hand_pass.regress(observations, actions, targets, weights))


def regress(
    network: OptionQNetwork,
    observations: Any,
    actions: NDArray[np.int64],
    targets: Floats32,
    weights: Floats32 | None,
    optimizer: th.optim.Optimizer | None = None,
    is_shared: bool = False,
) -> Residuals:
    """``regress_by_autograd``, or a short cut to it."""
    is_simple = not (
        is_shared or network.convolutions or network.layer_norm or network.heads.state_value == "options"
    )
    if is_simple and can_pass_by_hand(network.plain_parameters(), observations):
        return regress_by_hand(network, observations, actions, targets, weights)
    return regress_by_autograd(network, observations, actions, targets, weights, optimizer, is_shared)


def forget_gradients(network: TrunkNetwork, optimizer: th.optim.Optimizer | None) -> None:
    """Of every parameter of the network, and of the optimiser, which may know some that were replaced."""
    for parameter in network.all_parameters():
        parameter.grad = None
    for group in () if optimizer is None else optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None
