"""How one held action becomes experience for every persistence.

A partial history H_t^κ is decomposed in two ways:

* ``backward_schedule``: the order in which the tabular all-persistence update (Algorithm 1) visits the
  sub-transitions s_{t+i} → s_{t+j} and the persistences they inform;
* ``sub_transitions``: the tuples that each replay buffer D_k receives (Algorithm 3), written out literally.

Algorithm 3 as printed stores, for k > κ, a tuple whose end was never observed. Once corrected, its two loops say
one thing: every executed step i gives every D_k exactly one tuple, of length min(k, κ − i). That closed form is
``window_length``, and it is the reason why K views of one ring of primitive steps can replace K buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_integer
from holdfast.core.history import PartialHistory

__all__ = [
    "ScheduledUpdate",
    "SubTransition",
    "backward_schedule",
    "equal_updates_per_step",
    "sub_transitions",
    "update_count",
    "window_length",
    "window_lengths",
]


class ScheduledUpdate(NamedTuple):
    """One update of Algorithm 1, of Q(s_{t+i}, a, j − i + d).

    With ``d = 0`` its target is T̂* at s_{t+j}; with ``d ≥ 1`` it bootstraps from Q(s_{t+j}, a, d).
    """

    i: int
    j: int
    d: int


def backward_schedule(kappa: int, k_max: int) -> Iterator[ScheduledUpdate]:
    """The updates of Algorithm 1 in order: last end first, then shortest window first, then increasing d.

    Reference: it lists what ``learn_all_persistences`` (``tabular/learning_rule.py``), the compiled Algorithm 1,
    does in training.

    Paper: Algorithm alg:pers_update

    Args:
        kappa: Number of executed steps, 1..k_max.
        k_max: Largest persistence.
    """
    _check_kappa(kappa, k_max)
    return (
        ScheduledUpdate(i, j, d)
        for j in range(kappa, 0, -1)
        for i in range(j - 1, -1, -1)
        for d in range(k_max - (j - i) + 1)
    )


def update_count(kappa: int, k_max: int) -> int:
    """Number of updates in ``backward_schedule``: Σ_{k≤κ} (κ−k+1)(K−k+1)."""
    _check_kappa(kappa, k_max)
    return sum((kappa - k + 1) * (k_max - k + 1) for k in range(1, kappa + 1))


def equal_updates_per_step(k_max: int) -> float:
    """Updates per step of PerQ-learning if κ were uniform over 1..k_max: 6.5, 20.8, 73.5 for 4, 8, 16.

    The paper compares PerQ-learning with Q-learning at k_max updates per step and calls the two numbers equal;
    with this number they would be. In a run κ is not uniform: it shifts as values are learned, and the ends of
    episodes cut it short.
    """
    lengths = range(1, check_integer("k_max", k_max) + 1)
    return sum(update_count(kappa, k_max) for kappa in lengths) / sum(lengths)


class SubTransition(NamedTuple):
    """A tuple of replay buffer D_k; its states are named by their positions in the partial history.

    Attributes:
        k: The buffer D_k it belongs to.
        start: Position of the first state.
        end: Position of the last state.
        reward: Discounted reward of the steps between.
        length: ℓ = end − start, the number of steps it actually covers.
        done: Whether the last state is terminal.
    """

    k: int
    start: int
    end: int
    reward: float
    length: int
    done: bool


def window_length(k: Any, left: Any) -> Any:
    """ℓ = min(k, left): the steps that D_k's tuple covers if it begins ``left`` steps before its option ends."""
    return np.minimum(k, left)


def window_lengths(durations: Sequence[int]) -> NDArray[np.int64]:
    """ℓ for each persistence of a sparse set, by ``left`` from 0 to the longest persistence: (n, longest + 1).

    Of a hold of k steps, an observed prefix of ℓ steps is usable if ℓ = k, or if the remaining k − ℓ steps are
    themselves a persistence of the set. ℓ is the largest such number up to ``left``, or 0 if there is none. For
    the full set 1..K this is ``window_length``. (If the hold ended the episode, ℓ = left for all k > left
    instead.)
    """
    rests, lefts = np.array([0, *durations], dtype=np.int64), np.arange(durations[-1] + 1)
    table = np.empty((len(durations), len(lefts)), dtype=np.int64)
    for row, k in zip(table, durations, strict=True):
        useful = np.sort(k - rests[rests <= k])
        row[:] = useful[np.searchsorted(useful, lefts, side="right") - 1]
    return table


def sub_transitions(history: PartialHistory, k_max: int, gamma: float) -> list[SubTransition]:
    """All tuples that the buffers D_1..D_k_max receive from one history, by the two loops of Algorithm 3.

    The first loop stores the complete windows of k steps, which exist only for k ≤ κ; the second stores those that
    the end of the history cuts short.

    Reference: in training, ``_tuples`` (``deep/replay/ring.py``) computes them from one ring when they are drawn.

    Paper: Algorithm alg:split_traj
    """
    k_max = check_integer("k_max", k_max)
    kappa = history.kappa
    tuples = []
    for k in range(1, k_max + 1):
        for tau in range(kappa - k + 1):
            tuples.append(_window(history, k, tau, tau + k, gamma))
        for tau in range(1, min(kappa, k - 1) + 1):
            tuples.append(_window(history, k, kappa - tau, kappa, gamma))
    return tuples


def _window(history: PartialHistory, k: int, start: int, end: int, gamma: float) -> SubTransition:
    reward = history.k_step_return(start, end - start, gamma)
    done = history.terminated and end == history.kappa
    return SubTransition(k, start, end, reward, end - start, done)


def _check_kappa(kappa: int, k_max: int) -> None:
    check_integer("kappa", kappa)
    check_integer("k_max", k_max)
    if kappa > k_max:
        raise ValueError(f"kappa must be at most k_max = {k_max}, not {kappa}")
