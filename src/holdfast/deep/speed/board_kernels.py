"""The small convolution over boards of bytes, forward and backward, each compiled as a whole.

Few cells of a board are not 0. Each of these adds the filters' 3×3 cells to the places around it; the rest of the
board adds nothing. Sums have the channel last, so that a row of three places is one run of 48 numbers. They have a
margin of two places all around, so that no cell is at an edge.

    forward   y(i,j) = b + Σ x(i+a, j+b)·W(a,b),  features max(0, y), channel by channel as ``nn.Flatten`` has them
    backward  ∂W(a,b) = Σ x(i+a, j+b)·δ(i,j),  ∂b = Σ δ
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.array_types import Floats32, Integers
from holdfast.core.compiling import compiled
from holdfast.deep.networks.small_convolutions import CHANNELS, KERNEL

__all__ = ["Boards", "convolution_gradient", "convolve"]

Boards = NDArray[np.uint8]

_MARGIN = KERNEL - 1
_RUN = KERNEL * CHANNELS


@compiled
def _occupied(cells: Boards) -> Integers:
    """Where cells (n,) are not 0."""
    found, count = np.empty(len(cells), dtype=np.int64), 0
    # Eight at a time: most are 0.
    n_words = len(cells) // 8
    words = cells[: 8 * n_words].view(np.uint64)
    for word in range(n_words):
        if words[word] != 0:
            for cell in range(8 * word, 8 * word + 8):
                if cells[cell] != 0:
                    found[count] = cell
                    count += 1
    for cell in range(8 * n_words, len(cells)):
        if cells[cell] != 0:
            found[count] = cell
            count += 1
    return found[:count]


@compiled
def _places(height: int, width: int) -> Integers:
    """Where the sums of the places of a board begin, without the margin, in the order of the features."""
    n_down, n_along = height - _MARGIN, width - _MARGIN
    found = np.empty(n_down * n_along, dtype=np.int64)
    for i in range(n_down):
        for j in range(n_along):
            found[i * n_along + j] = ((i + _MARGIN) * (width + _MARGIN) + j + _MARGIN) * CHANNELS
    return found


@compiled
def _run_of(cell: int, height: int, width: int) -> tuple[int, int]:
    """The channel of a cell of a board, and where its first run of sums begins; the others are a row apart."""
    place = cell % (height * width)
    return cell // (height * width), (place // width * (width + _MARGIN) + place % width) * CHANNELS


@compiled
def convolve(weight: Floats32, bias: Floats32, boards: Boards, features: Floats32) -> None:
    """Write the features of boards.

    Args:
        weight: (filters, channels, 3, 3), flat.
        bias: (filters,).
        boards: (n, channels, height, width).
        features: (n, filters · places).
    """
    n, depth, height, width = boards.shape
    size, stride = depth * height * width, (width + _MARGIN) * CHANNELS
    # The filters as a cell sees them, upside down.
    taps = np.empty((depth, KERNEL, _RUN), dtype=np.float32)
    for channel in range(CHANNELS):
        for layer in range(depth):
            for a in range(KERNEL):
                for b in range(KERNEL):
                    tap = weight[((channel * depth + layer) * KERNEL + a) * KERNEL + b]
                    taps[layer, _MARGIN - a, (_MARGIN - b) * CHANNELS + channel] = tap
    cells, places = boards.reshape(-1), _places(height, width)
    occupied, at = _occupied(cells), 0
    sums = np.empty((height + _MARGIN) * stride, dtype=np.float32)
    for row in range(n):
        sums[:] = np.float32(0.0)
        while at < len(occupied) and occupied[at] < (row + 1) * size:
            cell = np.float32(cells[occupied[at]])
            layer, begin = _run_of(occupied[at] - row * size, height, width)
            at += 1
            for a in range(KERNEL):
                own, run = taps[layer, a], sums[begin + a * stride : begin + a * stride + _RUN]
                for i in range(_RUN):
                    run[i] += cell * own[i]
        for channel in range(CHANNELS):
            found = features[row, channel * len(places) : (channel + 1) * len(places)]
            of_channel, shift = sums[channel:], bias[channel]
            for place in range(len(places)):
                found[place] = max(of_channel[places[place]] + shift, np.float32(0.0))


@compiled
def convolution_gradient(delta: Floats32, boards: Boards, grad_weight: Floats32, grad_bias: Floats32) -> None:
    """Write the gradient of the filters, given that of the sums behind the features.

    Args:
        delta: (m, filters · places) of the first m boards, 0 where a feature is 0.
        boards: (n, channels, height, width).
        grad_weight: As ``weight`` of ``convolve``.
        grad_bias: (filters,).
    """
    _, depth, height, width = boards.shape
    size, stride = depth * height * width, (width + _MARGIN) * CHANNELS
    cells, places = boards[: len(delta)].reshape(-1), _places(height, width)
    occupied, at = _occupied(cells), 0
    taps = np.zeros((depth, KERNEL, _RUN), dtype=np.float32)
    # The margin stays 0: whatever a cell adds there does not count.
    sums = np.zeros((height + _MARGIN) * stride, dtype=np.float32)
    grad_bias[:] = np.float32(0.0)
    for row in range(len(delta)):
        for channel in range(CHANNELS):
            given = delta[row, channel * len(places) : (channel + 1) * len(places)]
            of_channel, total = sums[channel:], np.float32(0.0)
            for place in range(len(places)):
                of_channel[places[place]] = given[place]
                total += given[place]
            grad_bias[channel] += total
        while at < len(occupied) and occupied[at] < (row + 1) * size:
            cell = np.float32(cells[occupied[at]])
            layer, begin = _run_of(occupied[at] - row * size, height, width)
            at += 1
            for a in range(KERNEL):
                own, run = taps[layer, a], sums[begin + a * stride : begin + a * stride + _RUN]
                for i in range(_RUN):
                    own[i] += cell * run[i]
    for channel in range(CHANNELS):
        for layer in range(depth):
            for a in range(KERNEL):
                for b in range(KERNEL):
                    tap = taps[layer, _MARGIN - a, (_MARGIN - b) * CHANNELS + channel]
                    grad_weight[((channel * depth + layer) * KERNEL + a) * KERNEL + b] = tap
