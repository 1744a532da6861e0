"""Regression of TempoRL's action and skip values on targets: Huber's loss, weighted, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from holdfast.core.array_types import Floats32
from holdfast.deep.agents.regression import Residuals, forget_gradients
from holdfast.deep.networks.skip_network import SkipQNetwork

__all__ = ["larger_errors", "regress_skips"]


def larger_errors(action_errors: Floats32, skip_errors: Floats32) -> Floats32:
    """What the priorities of the tuples go by, (K, B): of tuples that teach two values the larger error.

    Args:
        action_errors: (B,) Q(s,a) − target of the tuples of one step.
        skip_errors: (K, B) J(s,j|a) − target of all tuples.
    """
    found = skip_errors.copy()
    first = found[0]
    found[0] = np.where(np.abs(action_errors) > np.abs(first), action_errors, first)
    return found


def regress_skips(
    network: SkipQNetwork,
    observations: Any,
    actions: NDArray[np.int64],
    targets: Floats32,
    weights: Floats32 | None,
    optimizer: th.optim.Optimizer | None = None,
) -> Residuals:
    """Set the gradient of TempoRL's loss on every parameter of ``network``.

    The loss is the sum of two means of weight · Huber: that of Q(s,a) over the B tuples of one step, and that of
    J(s,j|a) over the K·B tuples of every length. Each tuple goes through the trunk once.

    Args:
        network: What is to learn.
        observations: (K·B, ...) tensors, view by view: the tuples of one step come first.
        actions: (K, B).
        targets: (K, B).
        weights: (K, B) importance weights, or None for 1.
        optimizer: What is to make the step; other parameters that it has get no gradient.

    Returns:
        The row losses are those of the skip values, the errors the larger ones.
    """
    device = network.device
    k_max, batch = actions.shape
    chosen = th.as_tensor(actions, device=device)
    goals = th.as_tensor(targets, device=device)
    weight = th.ones_like(goals) if weights is None else th.as_tensor(weights, device=device)
    all_actions, all_skips = network(observations, taught=chosen)
    action_values = all_actions.gather(1, chosen[0].unsqueeze(1)).squeeze(1)
    # A tuple of view j is one of length j: the diagonal of (view, ·, length).
    skip_values = all_skips.view(k_max, batch, k_max).diagonal(dim1=0, dim2=2).t()
    action_losses = F.smooth_l1_loss(action_values, goals[0], reduction="none")
    skip_losses = F.smooth_l1_loss(skip_values, goals, reduction="none")
    loss = (weight[0] * action_losses).mean() + (weight * skip_losses).mean()
    forget_gradients(network, optimizer)
    loss.backward()
    errors = larger_errors(
        (action_values - goals[0]).detach().cpu().numpy(), (skip_values - goals).detach().cpu().numpy()
    )
    return Residuals(loss.item(), skip_losses.detach().cpu().numpy(), errors)
