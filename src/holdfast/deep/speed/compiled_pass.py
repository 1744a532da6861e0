"""A network's parameters in one array, its compiled passes over them, and Adam's step on them.

A small network spends more time on the way from Python to each product than in the products: here a pass is one
call. Compiled code reads and writes the array; PyTorch, whoever loads weights and the target update go on through
the parameters, which are views of it. Whether they still are is looked at before every use.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch as th

from holdfast.core.array_types import Floats32, Integers
from holdfast.core.compiling import compiled
from holdfast.deep.speed.pass_kernels import Inputs, Layout, gradient, joined_values, outputs_of
from holdfast.deep.speed.shortcuts import are_boards, can_step_in_one_kernel
from holdfast.deep.speed.target_cache import ValuedTuples

if TYPE_CHECKING:
    from holdfast.deep.agents.per_dqn import OptionValueDQN
    from holdfast.deep.networks.option_network import OptionQNetwork
    from holdfast.deep.replay.views import OptionBatch

__all__ = ["CompiledPass", "FlatAdam", "FlatParameters", "adam_step", "one_blas_thread"]


_DUELING = {None: 0, "heads": 1, "options": 2}

_NO_VECTORS = np.empty((0, 0), dtype=np.float32)
_NO_BOARDS = np.empty((0, 0, 0, 0), dtype=np.uint8)

_KEPT = ("exp_avg", "exp_avg_sq", "step")


class CompiledPass:
    """The passes of one network.

    Args:
        network: To be plain whenever a pass is made.
    """

    def __init__(self, network: OptionQNetwork) -> None:
        self._network = network
        self._flat: FlatParameters | None = None
        self._adam: FlatAdam | None = None
        self._layout: Layout | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> CompiledPass:
        # The copied network's parameters are views of nothing yet.
        copied = CompiledPass.__new__(CompiledPass)
        memo[id(self)] = copied
        copied.__init__(copy.deepcopy(self._network, memo))  # type: ignore[misc]
        return copied

    def __reduce__(self) -> tuple[object, ...]:
        return CompiledPass, (self._network,)

    def _theta(self, parameters: list[th.Tensor]) -> tuple[FlatParameters, Layout]:
        """The parameters in one array."""
        if self._flat is None or self._layout is None or not self._flat.are_of(parameters):
            self._flat, self._adam = FlatParameters(parameters), None
            self._layout = _layout(self._network, self._flat.offsets)
        return self._flat, self._layout

    def values(self, observations: th.Tensor, parameters: list[th.Tensor]) -> Floats32:
        """Q(s,·,·): (n, A, K)."""
        flat, layout = self._theta(parameters)
        inputs = self._inputs(observations)
        with one_blas_thread():
            return joined_values(outputs_of(flat.values, layout, inputs), layout.state_value)

    def _inputs(self, observations: th.Tensor) -> Inputs:
        """Boards as they are; otherwise what the first linear layer sees."""
        if self._network.convolutions and are_boards(self._network, observations):
            return Inputs(_NO_VECTORS, np.ascontiguousarray(observations.numpy()))
        return Inputs(self._network.plain_inputs(observations).detach().numpy(), _NO_BOARDS)

    def learn(
        self, agent: OptionValueDQN, batch: OptionBatch, parameters: list[th.Tensor], bounds: tuple[float, float]
    ) -> tuple[Floats32, tuple[float, Floats32, Floats32]]:
        """Set the gradient of the loss on a shared draw; targets, and loss, row losses and errors."""
        assert agent.replay_buffer is not None
        flat, layout = self._theta(parameters)
        observations = batch.observations
        if agent.target_value == "double":
            rows, index = agent.target_cache.valued_rows(batch)
            observations = th.cat((observations, agent.replay_buffer.observations_at(rows)))
        else:
            index = np.full(batch.next_rows.shape, -1, dtype=np.int64)
        values = agent.target_cache.values_of(agent, batch.next_rows)
        weights = np.ones_like(batch.rewards) if batch.weights is None else batch.weights
        with one_blas_thread():
            return gradient(
                flat.values,
                layout,
                self._inputs(observations),
                index,
                values,
                ValuedTuples.of_agent(agent, batch),
                bounds,
                weights,
                flat.gradients(parameters),
            )

    def step(
        self,
        optimizer: th.optim.Optimizer,
        max_norm: float,
        parameters: list[th.Tensor],
        average: CompiledPass | None,
        average_rate: float,
    ) -> bool:
        """Clip the gradient that ``learn`` set, make Adam's step, and move the averaged weights.

        Returns:
            False, with nothing done, where the optimiser must make its own step.
        """
        assert self._flat is not None
        if not can_step_in_one_kernel(optimizer):
            return False
        if self._adam is None or not self._adam.is_of(optimizer, parameters):
            if any("step" not in optimizer.state.get(part, {}) for part in parameters):
                # The first step makes the state.
                return False
            self._adam = FlatAdam(optimizer, self._flat, parameters)
        group = optimizer.param_groups[0]
        means = self._flat.values
        if average is not None:
            own = average._network.plain_parameters()
            if own is None:
                return False
            means = average._theta(own)[0].values
        adam_step(
            self._flat.values,
            self._flat.gradients(parameters),
            self._adam.averages,
            self._adam.squares,
            self._adam.steps,
            np.float32(group["lr"]),
            np.float32(group["betas"][0]),
            np.float32(group["betas"][1]),
            np.float32(group["eps"]),
            np.float32(group["weight_decay"]),
            np.float32(max_norm),
            means,
            np.float32(average_rate),
        )
        th.autograd.graph.increment_version(parameters)
        return True


def _layout(network: OptionQNetwork, offsets: Integers) -> Layout:
    """Parameters come layer by layer: weight, bias, and then gain and shift of a normalisation."""
    layers, filters, at = [], -1, 0
    if network.convolutions:
        filters, at = int(offsets[0]), 2
    epsilon = 1e-5
    for linear, norm in network.trunk_layers:
        row = [offsets[at], offsets[at + 1], linear.in_features, linear.out_features, -1, -1, 0]
        at += 2
        if norm is not None:
            row[4:6] = [offsets[at], offsets[at + 1]]
            epsilon = norm.eps
            at += 2
        layers.append(row)
    n_heads = 1
    for layer in network.head_layers():
        assert isinstance(layer.weight, th.Tensor)
        n_heads, n_out, n_in = layer.weight.shape
        layers.append([offsets[at], offsets[at + 1], n_in, n_out, -1, -1, 1])
        at += 2
    return Layout(np.array(layers, dtype=np.int64), n_heads, _DUELING[network.heads.state_value], epsilon, filters)


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
        self.values: Floats32 = self._tensor.numpy()
        self._gradients: th.Tensor | None = None
        self._gradient_places: list[int | None] = []
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

    def gradients(self, parameters: Sequence[th.Tensor]) -> Floats32:
        """An array for the gradients, of which those of the parameters are views."""
        places = [None if part.grad is None else part.grad.data_ptr() for part in parameters]
        if self._gradients is None or places != self._gradient_places:
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
        self.steps: Floats32 = steps.numpy()
        self._states: list[tuple[Any, ...]] = [(state, *(state[name] for name in _KEPT)) for state in states]

    def is_of(self, optimizer: th.optim.Optimizer, parameters: Sequence[th.Tensor]) -> bool:
        """Whether the optimiser's state is still made of views of these arrays."""
        found = optimizer.state
        # A plain loop: this is asked at every update.
        for part, (state, average, square, step) in zip(parameters, self._states, strict=True):
            now = found.get(part)
            if now is not state or now["exp_avg"] is not average or now["exp_avg_sq"] is not square:
                return False
            if now["step"] is not step:
                return False
        return True


@compiled
def adam_step(
    theta: Floats32,
    grad: Floats32,
    averages: Floats32,
    squares: Floats32,
    steps: Floats32,
    rate: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    weight_decay: Any,
    max_norm: Any,
    means: Floats32,
    mean_rate: Any,
) -> None:
    """Scale the gradient to a norm of ``max_norm`` at most, make Adam's step, and move ``means`` towards θ.

    Args:
        theta: Parameters.
        grad: Their gradient; scaled in place.
        averages: Adam's of the gradient.
        squares: Adam's of its square.
        steps: That were made, one number per parameter tensor; all alike.
        rate: Learning rate.
        beta1: Of the averages.
        beta2: Of the squares.
        epsilon: Added to the root of the squares.
        weight_decay: Added to the gradient, times the parameters.
        max_norm: Of the gradient.
        means: Averaged parameters; θ itself where there are none.
        mean_rate: By which part of the way they move.
    """
    one = np.float32(1.0)
    scale = min(max_norm / (np.sqrt(np.dot(grad, grad)) + np.float32(1e-6)), one)
    steps += one
    made = np.float64(steps[0])
    size = np.float32(rate / (1.0 - np.float64(beta1) ** made))
    root = np.float32(1.0 / np.sqrt(1.0 - np.float64(beta2) ** made))
    rest1, rest2 = one - beta1, one - beta2
    for i in range(len(grad)):
        grad[i] *= scale
    for i in range(len(grad)):
        slope = grad[i] + weight_decay * theta[i]
        averages[i] += rest1 * (slope - averages[i])
        squares[i] = beta2 * squares[i] + rest2 * slope * slope
    for i in range(len(grad)):
        # NumPy's division does not look for a zero first, and so can be vectorised.
        theta[i] -= size * np.divide(averages[i], np.sqrt(squares[i]) * root + epsilon)
    if mean_rate > np.float32(0.0):
        for i in range(len(grad)):
            means[i] += mean_rate * (theta[i] - means[i])


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, SciPy's BLAS, by which compiled code multiplies matrices, uses one thread.

    It would split even small products among all cores, and waiting for each other takes longer than the product.
    The number of threads is a setting of the process, so it is put back.
    """
    changed = [(library, before) for library in _libraries() if (before := library.get_num_threads()) != 1]
    for library, _ in changed:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, before in changed:
            library.set_num_threads(before)


@functools.cache
def _libraries() -> tuple[Any, ...]:
    """Those that SciPy brings; none where it uses a BLAS that threadpoolctl does not know."""
    import scipy.linalg.cython_blas  # noqa: F401 - loads the library
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().lib_controllers
    return tuple(library for library in found if library.user_api == "blas" and "scipy.libs" in library.filepath)
