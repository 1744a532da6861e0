"""Passes of a plain network whose heads all see the same rows, each compiled as a whole.

Vectors, or the features of boards, go through linear layers, layer normalisation if there is any, and ReLUs, then
through all heads. All parameters lie in one array θ. Outputs have the axes (row, head, action).

    forward   y = x·Wᵀ + b,  x̂ = (y − mean y)/σ,  next x = max(0, x̂·g + β)
    backward  δx̂ = δ·g,  δy = (δx̂ − mean δx̂ − x̂ · mean(δx̂·x̂))/σ,  ∂W = δyᵀ·x,  δx = δy·W, and 0 where x is 0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.core.array_types import Floats32, Integers
from holdfast.core.compiling import compiled
from holdfast.deep.networks.small_convolutions import CHANNELS, KERNEL
from holdfast.deep.speed.board_kernels import Boards, convolution_gradient, convolve
from holdfast.deep.speed.hand_pass import huber_gradient, huber_loss
from holdfast.deep.speed.target_cache import ValuedTuples, kept_targets

__all__ = ["Inputs", "Layout", "gradient", "joined_values", "outputs_of"]


_huber_loss = compiled(huber_loss)
_huber_gradient = compiled(huber_gradient)


class Layout(NamedTuple):
    """What of θ is where.

    Attributes:
        layers: (layers, 7) of each: where its weight and its bias begin, its inputs and outputs (of one head),
            where gain and shift of its normalisation begin or −1, and whether it is one of the heads'.
        n_heads: Heads that are asked, that of a shared state value included.
        state_value: 0 without any, 1 where each head has its own first, 2 where the last head is that of all.
        epsilon: Of the normalisation.
        filters: Where the weight of the convolution over boards begins, its bias behind it; −1 without one.
    """

    layers: Integers
    n_heads: int
    state_value: int
    epsilon: float
    filters: int


class Inputs(NamedTuple):
    """What the rows of a pass are made of.

    Attributes:
        vectors: (rows, ·) what the first linear layer sees; (0, 0) if those are the features of boards.
        boards: (rows, channels, height, width); (0, 0, 0, 0) of vectors.
    """

    vectors: Floats32
    boards: Boards


# Forward --------------------------------------------------------------------------------------------------------


@compiled
def _matrix(theta: Floats32, begin: int, n_rows: int, n_columns: int) -> Floats32:
    return theta[begin : begin + n_rows * n_columns].reshape(n_rows, n_columns)


@compiled
def _filters(array: Floats32, layout: Layout, boards: Boards) -> tuple[Floats32, Floats32]:
    """The part of an array like θ that belongs to the convolution's weight, flat, and to its bias."""
    _, depth, _, _ = boards.shape
    behind = layout.filters + CHANNELS * depth * KERNEL * KERNEL
    return array[layout.filters : behind], array[behind : behind + CHANNELS]


@compiled
def _normalize(
    values: Floats32, gain: Floats32, shift: Floats32, epsilon: float, unit: Floats32, inverse: Floats32
) -> None:
    """Normalise rows and cut them off at 0, in place; ``unit`` becomes x̂ and ``inverse`` 1/σ."""
    n_rows, width = values.shape
    share, ones = np.float32(1.0 / width), np.ones(width, dtype=np.float32)
    for row in range(n_rows):
        # Sums as products: those are vectorised.
        mean = np.dot(values[row], ones) * share
        for i in range(width):
            unit[row, i] = values[row, i] - mean
        variance = np.dot(unit[row], unit[row]) * share
        inverse[row] = np.float32(1.0) / np.sqrt(variance + np.float32(epsilon))
        for i in range(width):
            unit[row, i] *= inverse[row]
            values[row, i] = max(unit[row, i] * gain[i] + shift[i], np.float32(0.0))


@compiled
def _rectify(values: Floats32) -> None:
    flat = values.reshape(-1)
    for i in range(len(flat)):
        flat[i] = max(flat[i], np.float32(0.0))


@compiled
def _add_to_rows(values: Floats32, bias: Floats32) -> None:
    for row in range(values.shape[0]):
        for i in range(values.shape[1]):
            values[row, i] += bias[i]


@compiled
def _forward(theta: Floats32, layout: Layout, inputs: Inputs) -> tuple[Floats32, Floats32, Floats32, Floats32]:
    """Outputs (rows, heads, ·), and what a backward pass needs: inputs of all layers, x̂ and 1/σ, laid out flat."""
    layers, n_heads = layout.layers, layout.n_heads
    n, n_layers = max(len(inputs.vectors), len(inputs.boards)), len(layers)
    kept_width, unit_width = 0, 0
    for layer in range(n_layers):
        is_behind_heads = layer > 0 and layers[layer - 1, 6]
        kept_width += layers[layer, 2] * (n_heads if is_behind_heads else 1)
        unit_width += 0 if layers[layer, 6] else layers[layer, 3]
    kept = np.empty(n * kept_width, dtype=np.float32)
    units = np.empty(n * unit_width, dtype=np.float32)
    inverses = np.empty((n_layers, n), dtype=np.float32)
    outputs = np.empty((n, n_heads, layers[n_layers - 1, 3]), dtype=np.float32)
    first = _matrix(kept, 0, n, layers[0, 2])
    if len(inputs.boards):
        weight, bias = _filters(theta, layout, inputs.boards)
        convolve(weight, bias, inputs.boards, first)
    else:
        first[:] = inputs.vectors
    at, unit_at = 0, 0
    for layer in range(n_layers):
        n_in, n_out, is_head = layers[layer, 2], layers[layer, 3], layers[layer, 6]
        is_last = layer == n_layers - 1
        if not is_head:
            seen = _matrix(kept, at, n, n_in)
            at += n * n_in
            found = _matrix(kept, at, n, n_out)
            np.dot(seen, _matrix(theta, layers[layer, 0], n_out, n_in).T, found)
            _add_to_rows(found, theta[layers[layer, 1] : layers[layer, 1] + n_out])
            if layers[layer, 4] >= 0:
                gain = theta[layers[layer, 4] : layers[layer, 4] + n_out]
                shift = theta[layers[layer, 5] : layers[layer, 5] + n_out]
                unit = _matrix(units, unit_at, n, n_out)
                _normalize(found, gain, shift, layout.epsilon, unit, inverses[layer])
            else:
                _rectify(found)
            unit_at += n * n_out
            continue
        if layer == 0 or not layers[layer - 1, 6]:
            # The first layer of the heads: they all see the same.
            seen = _matrix(kept, at, n, n_in)
            at += n * n_in
            together = np.dot(seen, _matrix(theta, layers[layer, 0], n_heads * n_out, n_in).T)
            _add_to_rows(together, theta[layers[layer, 1] : layers[layer, 1] + n_heads * n_out])
            if is_last:
                outputs[:] = together.reshape(n, n_heads, n_out)
            else:
                for head in range(n_heads):
                    following = _matrix(kept, at + head * n * n_out, n, n_out)
                    for row in range(n):
                        for i in range(n_out):
                            following[row, i] = max(together[row, head * n_out + i], np.float32(0.0))
            continue
        begin = at
        at += n_heads * n * n_in
        for head in range(n_heads):
            seen = _matrix(kept, begin + head * n * n_in, n, n_in)
            weight = _matrix(theta, layers[layer, 0] + head * n_out * n_in, n_out, n_in)
            found = np.dot(seen, weight.T)
            _add_to_rows(found, theta[layers[layer, 1] + head * n_out : layers[layer, 1] + (head + 1) * n_out])
            if is_last:
                outputs[:, head] = found
            else:
                _rectify(found)
                _matrix(kept, at + head * n * n_out, n, n_out)[:] = found
    return outputs, kept, units, inverses


@compiled
def outputs_of(theta: Floats32, layout: Layout, inputs: Inputs) -> Floats32:
    """What the heads give, (rows, heads, ·)."""
    return _forward(theta, layout, inputs)[0]


@compiled
def joined_values(outputs: Floats32, state_value: int) -> Floats32:
    """Values (rows, A, K) of what the heads give (rows, heads, ·)."""
    n = len(outputs)
    n_options = outputs.shape[1] - (1 if state_value == 2 else 0)
    first_action = 1 if state_value == 1 else 0
    n_actions = outputs.shape[2] - first_action
    values = np.empty((n, n_actions, n_options), dtype=np.float32)
    for row in range(n):
        shared = np.float32(0.0)
        if state_value == 2:
            # V + U(a,k) − mean U, V being the mean of the last head's outputs.
            shared = np.mean(outputs[row, n_options]) - np.mean(outputs[row, :n_options])
        for index in range(n_options):
            own = shared
            if state_value == 1:
                own = outputs[row, index, 0] - np.mean(outputs[row, index, 1:])
            for action in range(n_actions):
                values[row, action, index] = outputs[row, index, first_action + action] + own
    return values


# Backward -------------------------------------------------------------------------------------------------------


@compiled
def _backward(
    theta: Floats32,
    layout: Layout,
    boards: Boards,
    kept: Floats32,
    units: Floats32,
    inverses: Floats32,
    delta: Floats32,
    grad: Floats32,
) -> None:
    """Write the gradient of every parameter, given that of the outputs of the first rows, (rows, heads, ·)."""
    layers, n_heads = layout.layers, layout.n_heads
    m, n, n_layers = len(delta), inverses.shape[1], len(layers)
    at = len(kept)
    unit_at = len(units)
    # Of the heads behind their first layer, (heads, rows, ·).
    by_head = np.ascontiguousarray(delta.transpose(1, 0, 2))
    rows = np.empty((m, 0), dtype=np.float32)
    for back in range(n_layers):
        layer = n_layers - 1 - back
        n_in, n_out, is_head = layers[layer, 2], layers[layer, 3], layers[layer, 6]
        if is_head and layer > 0 and layers[layer - 1, 6]:
            at -= n_heads * n * n_in
            following = np.empty((n_heads, m, n_in), dtype=np.float32)
            for head in range(n_heads):
                seen = _matrix(kept, at + head * n * n_in, n, n_in)[:m]
                own = by_head[head]
                begin = layers[layer, 0] + head * n_out * n_in
                np.dot(own.T, seen, _matrix(grad, begin, n_out, n_in))
                _sum_rows(own, grad[layers[layer, 1] + head * n_out : layers[layer, 1] + (head + 1) * n_out])
                np.dot(own, _matrix(theta, begin, n_out, n_in), following[head])
                _keep_where_positive(following[head], seen)
            by_head = following
            continue
        at -= n * n_in
        seen = _matrix(kept, at, n, n_in)[:m]
        if is_head:
            rows = np.ascontiguousarray(by_head.transpose(1, 0, 2)).reshape(m, n_heads * n_out)
            n_out *= n_heads
        else:
            unit_at -= n * n_out
            if layers[layer, 4] >= 0:
                unit = _matrix(units, unit_at, n, n_out)
                _through_norm(
                    rows,
                    theta[layers[layer, 4] : layers[layer, 4] + n_out],
                    unit,
                    inverses[layer],
                    grad[layers[layer, 4] : layers[layer, 4] + n_out],
                    grad[layers[layer, 5] : layers[layer, 5] + n_out],
                )
        np.dot(rows.T, seen, _matrix(grad, layers[layer, 0], n_out, n_in))
        _sum_rows(rows, grad[layers[layer, 1] : layers[layer, 1] + n_out])
        if layer > 0 or layout.filters >= 0:
            rows = np.dot(rows, _matrix(theta, layers[layer, 0], n_out, n_in))
            _keep_where_positive(rows, seen)
    if layout.filters >= 0:
        weight, bias = _filters(grad, layout, boards)
        convolution_gradient(rows, boards, weight, bias)


@compiled
def _sum_rows(values: Floats32, total: Floats32) -> None:
    total[:] = np.float32(0.0)
    for row in range(values.shape[0]):
        for i in range(values.shape[1]):
            total[i] += values[row, i]


@compiled
def _keep_where_positive(delta: Floats32, seen: Floats32) -> None:
    for row in range(delta.shape[0]):
        for i in range(delta.shape[1]):
            if seen[row, i] <= np.float32(0.0):
                delta[row, i] = np.float32(0.0)


@compiled
def _through_norm(
    delta: Floats32, gain: Floats32, unit: Floats32, inverse: Floats32, grad_gain: Floats32, grad_shift: Floats32
) -> None:
    """From δ of a normalisation's outputs to that of its inputs, in place."""
    n_rows, width = delta.shape
    share, ones = np.float32(1.0 / width), np.ones(width, dtype=np.float32)
    grad_gain[:] = np.float32(0.0)
    grad_shift[:] = np.float32(0.0)
    for row in range(n_rows):
        for i in range(width):
            grad_gain[i] += delta[row, i] * unit[row, i]
            grad_shift[i] += delta[row, i]
            delta[row, i] *= gain[i]
        mean = np.dot(delta[row], ones) * share
        along = np.dot(delta[row], unit[row]) * share
        for i in range(width):
            delta[row, i] = inverse[row] * (delta[row, i] - mean - unit[row, i] * along)


# Learning -------------------------------------------------------------------------------------------------------


@compiled
def gradient(
    theta: Floats32,
    layout: Layout,
    inputs: Inputs,
    index: Integers,
    target_values: Floats32,
    tuples: ValuedTuples,
    bounds: tuple[float, float],
    weights: Floats32,
    grad: Floats32,
) -> tuple[Floats32, tuple[float, Floats32, Floats32]]:
    """Write the gradient of the mean over K·B tuples of weight · Huber(Q(s,a,k) − target).

    Args:
        theta: Parameters.
        layout: Theirs.
        inputs: The B first states that all views share, then those last states whose best option is asked for.
        index: (K, B) which of the latter a tuple's is, −1 for none.
        target_values: Q⁻ by row of the replay.
        tuples: What else the targets are made of.
        bounds: Of the targets.
        weights: (K, B).
        grad: Is written.

    Returns:
        The targets (K, B); loss, row losses and errors.
    """
    n_views, batch = tuples.rewards.shape
    outputs, kept, units, inverses = _forward(theta, layout, inputs)
    values = joined_values(outputs, layout.state_value)
    chosen = np.full(index.shape, -1, dtype=np.int64)
    for view in range(n_views):
        for b in range(batch):
            if index[view, b] >= 0:
                chosen[view, b] = np.argmax(values[batch + index[view, b]])
    targets = kept_targets(target_values, chosen, tuples)
    low, high = np.float32(bounds[0]), np.float32(bounds[1])
    row_losses, errors = np.empty_like(targets), np.empty_like(targets)
    delta = np.zeros((batch, outputs.shape[1], outputs.shape[2]), dtype=np.float32)
    share = np.float32(1.0 / (n_views * batch))
    first_action = 1 if layout.state_value == 1 else 0
    n_actions = outputs.shape[2] - first_action
    total = 0.0
    for b in range(batch):
        of_state = np.float32(0.0)
        for view in range(n_views):
            action = tuples.actions[view, b]
            targets[view, b] = min(max(targets[view, b], low), high)
            error = values[b, action, view] - targets[view, b]
            errors[view, b] = error
            row_losses[view, b] = _huber_loss(error)
            total += weights[view, b] * row_losses[view, b]
            slope = np.float32(_huber_gradient(error)) * weights[view, b] * share
            delta[b, view, first_action + action] += slope
            of_state += slope
            if layout.state_value == 1:
                delta[b, view, 0] = slope
                delta[b, view, 1:] -= slope / np.float32(n_actions)
        if layout.state_value == 2:
            delta[b, :n_views] -= of_state / np.float32(n_views * n_actions)
            delta[b, n_views] = of_state / np.float32(n_actions)
    _backward(theta, layout, inputs.boards, kept, units, inverses, delta, grad)
    return targets, (total / (n_views * batch), row_losses, errors)
