"""When an update may take a short cut: kept targets, gradients by hand, one kernel for the optimiser.

What training computes is what the plain path computes: autograd, the optimiser's own step, targets from networks
that are asked. A short cut gives the same numbers for less, and is taken only while nobody has changed or watches
what it goes around. ``with plain_path():`` takes none of them. Whether a forward pass may skip the calls of its
modules is the network's own question: ``TrunkNetwork.is_plain``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch as th
from torch import nn
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer

__all__ = [
    "UnchangedModules",
    "can_keep_targets",
    "can_learn_compiled",
    "can_pass_by_hand",
    "can_run_compiled",
    "can_step_in_one_kernel",
    "plain_path",
]

_closed = 0


@contextmanager
def plain_path() -> Iterator[None]:
    """Inside, updates go the plain path: gradients by autograd, the optimiser's own step, no kept targets."""
    global _closed
    _closed += 1
    try:
        yield
    finally:
        _closed -= 1


def can_keep_targets(k_max: int, normalizer: Any) -> bool:
    """Whether what the target network says of an observation is worth keeping until the network changes.

    One view gains nothing by it, and what a training VecNormalize says of an observation changes.
    """
    return not _closed and k_max > 1 and normalizer is None


def can_pass_by_hand(parameters: list[th.Tensor] | None, observations: Any) -> bool:
    """Whether the gradients of a plain network can be written down instead of asked of autograd.

    Frozen layers, gradient hooks, parameters that layers share, mixed precision and the search for anomalies need
    autograd.

    Args:
        parameters: Those of a plain network; None of another.
        observations: What it sees.
    """
    return (
        not _closed
        and parameters is not None
        and observations.device.type == "cpu"
        and len(set(map(id, parameters))) == len(parameters)
        and all(
            part.requires_grad and not part._backward_hooks and not part._post_accumulate_grad_hooks
            for part in parameters
        )
        and not th.is_autocast_enabled("cpu")
        and not th.is_anomaly_enabled()
    )


def can_run_compiled(parameters: list[th.Tensor] | None, observations: Any) -> bool:
    """Whether a plain network's values may come from compiled code, which knows numbers of 32 bits on the CPU.

    Args:
        parameters: Those of a plain network; None of another.
        observations: What it sees.
    """
    return (
        not _closed
        and parameters is not None
        and observations.device.type == "cpu"
        and not th.is_autocast_enabled("cpu")
        and all(part.dtype is th.float32 and part.device.type == "cpu" for part in parameters)
    )


def can_learn_compiled(agent: Any, batch: Any, parameters: list[th.Tensor] | None) -> bool:
    """Whether targets and gradient of a batch may come from compiled code: that of a draw that all views share."""
    return (
        bool(batch.is_shared)
        and agent._vec_normalize_env is None
        and can_run_compiled(parameters, batch.observations)
        and can_pass_by_hand(parameters, batch.observations)
    )


def can_step_in_one_kernel(optimizer: th.optim.Optimizer) -> bool:
    """Whether the optimiser is a fused Adam on the CPU that nobody watches."""
    group = optimizer.param_groups[0]
    return (
        not _closed
        and type(optimizer) is th.optim.Adam
        and len(optimizer.param_groups) == 1
        and bool(group.get("fused"))
        and not group["amsgrad"]
        and not group.get("decoupled_weight_decay", False)
        and not isinstance(group["lr"], th.Tensor)
        # Schedulers and users watch the steps.
        and "step" not in vars(optimizer)
        and not torch_optimizer._global_optimizer_pre_hooks
        and not torch_optimizer._global_optimizer_post_hooks
        and not optimizer._optimizer_step_pre_hooks
        and not optimizer._optimizer_step_post_hooks
        and group["params"][0].device.type == "cpu"
    )


class UnchangedModules:
    """What a network was made of.

    Args:
        network: As it was just made.
    """

    def __init__(self, network: nn.Module) -> None:
        self._parts: tuple[tuple[nn.Module, type[nn.Module], Any, list[Any], list[type]], ...] = tuple(
            (
                module,
                type(module),
                type(module).forward,
                list(module._modules.values()),
                [type(part) for part in module._parameters.values()],
            )
            for module in network.modules()
        )
        self._leaves = [module for module, *_, children, _ in self._parts if not children]
        self._families = [(module, children) for module, *_, children, _ in self._parts if children]
        kinds = {type(module) for module in network.modules() if module is not network}
        self._switch_alike = all(
            kind.train is nn.Module.train and kind.__setattr__ is nn.Module.__setattr__ for kind in kinds
        )

    def holds(self) -> bool:
        """Whether all modules are those that were made, do what their classes do, and nobody watches them.

        Modules that were added, replaced, taken out, wrapped or parametrised are noticed, and so is every hook on
        one of them or on all modules there are. What the parameters are is for the caller to look at.
        """
        if (
            torch_module._global_forward_hooks
            or torch_module._global_forward_pre_hooks
            or torch_module._global_backward_hooks
            or torch_module._global_backward_pre_hooks
        ):
            return False
        for module, kind, forward, children, parameters in self._parts:
            now = module.__dict__
            if (
                type(module) is not kind
                or kind.forward is not forward
                or now["_forward_hooks"]
                or now["_forward_pre_hooks"]
                or now["_backward_hooks"]
                or now["_backward_pre_hooks"]
                or "forward" in now
                or "_compiled_call_impl" in now
                or ((now["_modules"] or children) and [*now["_modules"].values()] != children)
                or ((now["_parameters"] or parameters) and [*map(type, now["_parameters"].values())] != parameters)
            ):
                return False
        return True

    def parameters(self) -> list[th.Tensor]:
        """Every parameter once, in PyTorch's order, without the price of ``nn.Module.parameters``."""
        found = (part for module, *_ in self._parts for part in module._parameters.values() if part is not None)
        return list({id(part): part for part in found}.values())

    def buffers(self) -> list[th.Tensor]:
        """Every buffer once, likewise."""
        found = (part for module, *_ in self._parts for part in module._buffers.values() if part is not None)
        return list({id(part): part for part in found}.values())

    def is_evaluating(self) -> bool:
        """Whether all modules that were made are in evaluation mode."""
        return not any(module.training for module, *_ in self._parts)

    def switch(self, mode: bool) -> bool:
        """Put all modules into training or evaluation mode, without the price of ``nn.Module.train``.

        Returns:
            Whether those are all; if not, PyTorch's own way is the one to take.
        """
        if not self._switch_alike:
            return False
        for module in self._leaves:
            now = module.__dict__
            if now["_modules"] or "train" in now:
                return False
            now["training"] = mode
        for module, children in self._families:
            now = module.__dict__
            if [*now["_modules"].values()] != children or "train" in now:
                return False
            now["training"] = mode
        return True
