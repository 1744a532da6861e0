"""A second device that every machine has: tensors that say they are elsewhere, and refuse those of the CPU.

PyTorch's device ``meta`` lends its name. A tensor there holds a tensor of the CPU, with which its operations are
computed; one with operands on both sides fails as it does with CUDA. Numbers are those of the CPU, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch as th
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

OTHER = th.device("meta")
_CPU = th.device("cpu")

# What PyTorch lets go from one device to another.
_MAY_CROSS = {th.ops.aten.copy_.default, th.ops.aten._to_copy.default}


class MixedDevicesError(RuntimeError):
    """An operation met tensors of two devices."""


class Elsewhere(th.Tensor):
    """A tensor on the other device."""

    inner: th.Tensor

    @staticmethod
    def __new__(cls, inner: th.Tensor) -> Elsewhere:
        made = th.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=OTHER,
        )
        made.inner = inner
        return made

    def __repr__(self, **_: Any) -> str:
        return f"Elsewhere({self.inner})"

    def __deepcopy__(self, memo: dict[int, Any]) -> th.Tensor:
        copied: th.Tensor = Elsewhere(self.inner.detach().clone())
        copied = copied.requires_grad_(self.requires_grad)
        return th.nn.Parameter(copied, self.requires_grad) if isinstance(self, th.nn.Parameter) else copied

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        return _computed(function, arguments, keywords or {})


class _Watch(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        return _computed(function, arguments, keywords or {})


def _computed(function: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
    given = tree_flatten((arguments, keywords))[0]
    tensors = [part for part in given if isinstance(part, th.Tensor)]
    places = {isinstance(part, Elsewhere) for part in tensors if part.dim() > 0 or isinstance(part, Elsewhere)}
    if len(places) == 2 and function not in _MAY_CROSS:
        raise MixedDevicesError(f"{function} of tensors on {OTHER} and on {_CPU}")
    wanted = keywords.get("device")
    goes_elsewhere = any(places) if wanted is None else th.device(wanted) == OTHER
    if function is th.ops.aten.copy_.default:
        goes_elsewhere = isinstance(tensors[0], Elsewhere)
    outer = {id(part.inner): part for part in tensors if isinstance(part, Elsewhere)}
    inside = {**keywords, "device": _CPU} if wanted is not None else keywords
    # Before the list of tensors: what is written in place is given back as it came.
    arguments, inside = tree_map(
        lambda part: part.inner if isinstance(part, Elsewhere) else part, (arguments, inside)
    )
    found = function(*arguments, **inside)

    def placed(part: Any) -> Any:
        if not isinstance(part, th.Tensor) or not goes_elsewhere:
            return part
        return outer[id(part)] if id(part) in outer else Elsewhere(part)

    return tree_map(placed, found)


@contextmanager
def second_device() -> Iterator[th.device]:
    """Inside, tensors can be made on and moved to the device that is yielded."""
    swaps = th.__future__.get_swap_module_params_on_conversion()
    # A network that is moved keeps its parameters, as on a device of which there is one.
    th.__future__.set_swap_module_params_on_conversion(True)
    th._C._set_only_lift_cpu_tensors(True)
    try:
        with _Watch():
            yield OTHER
    finally:
        th._C._set_only_lift_cpu_tensors(False)
        th.__future__.set_swap_module_params_on_conversion(swaps)
