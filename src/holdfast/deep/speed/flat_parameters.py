"""The parameters of a network in one array, which PyTorch's parameters are views of.

Compiled code reads and writes the array; PyTorch, whoever loads weights and the target update go on through the
parameters as before. Whether these are still the views that were made is looked at before every use.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch as th
from numpy.typing import NDArray

__all__ = ["FlatAdam", "FlatParameters"]

Floats = NDArray[np.float32]

_KEPT = ("exp_avg", "exp_avg_sq", "step")


class FlatParameters:
    """One array for all parameters.

    Args:
        parameters: float32 on the CPU; from now on views of ``values``, with the same numbers.

    Attributes:
        values: (n,) all of them, one parameter behind the other.
        offsets: Where each of them begins.
    """

    def __init__(self, parameters: Sequence[th.Tensor]) -> None:
        sizes = [part.numel() for part in parameters]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._tensor = th.empty(int(self.offsets[-1]), dtype=th.float32)
        self.values: Floats = self._tensor.numpy()
        self._gradients: th.Tensor | None = None
        self._gradient_places: list[int] = []
        with th.no_grad():
            for part, view in zip(parameters, self.views(self._tensor, parameters), strict=True):
                view.copy_(part)
                part.data = view
        self._places = [part.data_ptr() for part in parameters]

    def views(self, flat: th.Tensor, parameters: Sequence[th.Tensor]) -> list[th.Tensor]:
        """Parts of an array like this one, in the shapes of the parameters."""
        return [
            flat[begin : begin + part.numel()].view(part.shape)
            for begin, part in zip(self.offsets[:-1].tolist(), parameters, strict=True)
        ]

    def are_of(self, parameters: Sequence[th.Tensor]) -> bool:
        """Whether the parameters are still views of the array."""
        return [part.data_ptr() for part in parameters] == self._places

    def gradients(self, parameters: Sequence[th.Tensor]) -> Floats:
        """An array for the gradients, of which those of the parameters are views."""
        if self._gradients is None or any(
            part.grad is None or part.grad.data_ptr() != place
            for part, place in zip(parameters, self._gradient_places, strict=True)
        ):
            self._gradients = th.zeros_like(self._tensor)
            for part, view in zip(parameters, self.views(self._gradients, parameters), strict=True):
                if part.grad is not None:
                    view.copy_(part.grad)
                part.grad = view
            self._gradient_places = [part.grad.data_ptr() for part in parameters if part.grad is not None]
        return self._gradients.numpy()


class FlatAdam:
    """The state of an Adam in arrays, which those of the optimiser are views of.

    Args:
        optimizer: One that has made its first step, with these parameters in this order.
        flat: Their array.
        parameters: They.

    Attributes:
        averages: (n,) of the gradients.
        squares: (n,) of their squares.
        steps: (parameters,) that were made.
    """

    def __init__(
        self, optimizer: th.optim.Optimizer, flat: FlatParameters, parameters: Sequence[th.Tensor]
    ) -> None:
        states = [optimizer.state[part] for part in parameters]
        tensors = [th.empty(int(flat.offsets[-1])) for _ in range(2)]
        steps = th.empty(len(parameters))
        for name, tensor in zip(("exp_avg", "exp_avg_sq"), tensors, strict=True):
            for state, view in zip(states, flat.views(tensor, parameters), strict=True):
                view.copy_(state[name])
                state[name] = view
        for index, state in enumerate(states):
            steps[index] = state["step"]
            state["step"] = steps[index]
        self.averages, self.squares = (tensor.numpy() for tensor in tensors)
        self.steps: Floats = steps.numpy()
        self._states = [(state, tuple(id(state[name]) for name in _KEPT)) for state in states]

    def is_of(self, optimizer: th.optim.Optimizer, parameters: Sequence[th.Tensor]) -> bool:
        """Whether the optimiser's state is still made of views of these arrays."""
        found = optimizer.state
        return all(
            found.get(part) is state and tuple(id(state[name]) for name in _KEPT) == kept  # type: ignore[index]
            for part, (state, kept) in zip(parameters, self._states, strict=True)
        )
