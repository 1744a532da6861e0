"""An optimiser step without PyTorch's per-call overhead."""

from __future__ import annotations

from collections.abc import Collection

import torch as th

from holdfast.deep.speed.shortcuts import can_step_in_one_kernel

__all__ = ["clip_each_gradient", "clip_gradients", "optimizer_step"]


def clip_gradients(gradients: list[th.Tensor], max_norm: float) -> None:
    """Scale gradients that all live on one device to a norm of ``max_norm`` at most, as PyTorch's clip does."""
    if not gradients:
        return
    norm = th.linalg.vector_norm(th.stack(th._foreach_norm(gradients)))
    scale = max_norm / (norm + 1e-6)
    if scale.item() < 1.0:
        th._foreach_mul_(gradients, scale)


def clip_each_gradient(gradients: list[th.Tensor], max_norm: float) -> None:
    """Scale each gradient by itself: g · max_norm / max(‖g‖, max_norm), as OpenAI Baselines does."""
    if gradients:
        norms = th.stack(th._foreach_norm(gradients))
        th._foreach_mul_(gradients, (max_norm / norms.clamp(min=max_norm)).tolist())


@th.no_grad()
def optimizer_step(
    optimizer: th.optim.Optimizer, max_norm: float, stacked: Collection[th.Tensor] | None = None
) -> None:
    """Clip the gradients to ``max_norm``, then make the optimiser's step.

    A fused Adam without hooks is one kernel, called here without the overhead of ``Adam.step``.
    Every other optimiser makes its own step.

    Args:
        optimizer: Of parameters with gradients.
        max_norm: Largest norm.
        stacked: Clip each gradient by itself; these parameters are several, stacked along the first axis. None
            clips all gradients together.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if stacked is None:
        clip_gradients(gradients, max_norm)
    else:
        several = {id(parameter.grad) for parameter in stacked}
        parts = [part.unbind(0) if id(part) in several else (part,) for part in gradients]
        clip_each_gradient([one for part in parts for one in part], max_norm)
    states = [optimizer.state.get(parameter, {}) for parameter in parameters]
    # The first step creates the state.
    if len(gradients) != len(parameters) or not all(states) or not can_step_in_one_kernel(optimizer):
        optimizer.step()
        return
    averages, squares, steps = ([state[name] for state in states] for name in ("exp_avg", "exp_avg_sq", "step"))
    group = optimizer.param_groups[0]
    beta1, beta2 = group["betas"]
    th._foreach_add_(steps, 1)
    th._fused_adam_(
        parameters,
        gradients,
        averages,
        squares,
        [],
        steps,
        lr=group["lr"],
        beta1=beta1,
        beta2=beta2,
        weight_decay=group["weight_decay"],
        eps=group["eps"],
        amsgrad=False,
        maximize=group["maximize"],
        grad_scale=None,
        found_inf=None,
    )
