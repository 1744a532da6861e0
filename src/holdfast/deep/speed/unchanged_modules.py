"""Whether a network is still the one that was made: the check that stands before every pass by hand.

A pass that is written out does what a network's own modules would do, unless somebody has changed or watches them.
The modules are the truth: a network is passed through by hand only while this check holds.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.modules import module as torch_module

__all__ = ["UnchangedModules"]


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
