"""Counts on optimal paths: how many steps, and how few decisions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError
from holdfast.core.options import persistence_set
from holdfast.mdp.evaluation import path_values
from holdfast.mdp.kernels import DeterministicKernel
from holdfast.mdp.model import TabularMDP
from holdfast.mdp.option_model import held_ends

__all__ = ["fewest_decisions"]


def fewest_decisions(
    mdp: TabularMDP,
    q: NDArray[np.floating],
    start: int,
    tolerance: float = 1e-9,
    *,
    persistences: Sequence[int] | None = None,
) -> int | None:
    """The smallest number of optimal options that lead from ``start`` to a terminal state.

    If ``q`` has only k = 1, this is the length of the shortest optimal path.

    Args:
        mdp: A deterministic model.
        q: Optimal values (S,A,K).
        start: A state.
        tolerance: An option is optimal if its value is this close to the best one of its state, relative to the
            discounted sum of the absolute rewards on a best path from there.
        persistences: The K durations (default: 1..K).

    Returns:
        The count, or None if no optimal option leads to a terminal state.
    """
    if not isinstance(mdp.kernel, DeterministicKernel):
        raise InputError("mdp must be deterministic (given by next states) to count decisions on a path")
    n_states, n_actions = mdp.n_states, mdp.n_actions
    start = check_integer("start", start, at_least=0)
    if start >= n_states:
        raise InputError(f"start must be a state in 0..{n_states - 1}, not {start}")
    if q.ndim != 3 or q.shape[:2] != (n_states, n_actions):
        raise InputError(f"q must have shape ({n_states}, {n_actions}, k_max), not {q.shape}")
    reached = held_ends(mdp.kernel.table, persistence_set(q.shape[2], persistences))
    optimal = q >= (q.max(axis=(1, 2)) - _allowance(mdp, q, tolerance))[:, None, None]
    first = np.concatenate([[0], np.cumsum(optimal.sum(axis=(1, 2)))])
    edges = reached[optimal]
    del reached, optimal
    graph = sp.csr_array((np.ones(len(edges)), edges, first), shape=(n_states, n_states))
    found, predecessors = breadth_first_order(graph, start)
    ends = found[mdp.terminal[found]]
    if not len(ends):
        return None
    # Back along the search tree, one decision per edge: breadth first finds the fewest.
    states = np.arange(n_states)
    back = np.where(predecessors >= 0, predecessors, states)
    decisions = path_values(back, (back != states).astype(np.float64), 1.0)
    return int(decisions[ends].min())


def _allowance(mdp: TabularMDP, q: NDArray[np.floating], tolerance: float) -> NDArray[np.float64]:
    """How far below the best option of its state an option may be, (S,).

    ``tolerance`` is relative to the sum of the absolute rewards on a best path, so that distant cells with small
    values are told apart as clearly as near ones. If there are no rewards, only rounding is allowed for.
    """
    states, policy = np.arange(mdp.n_states), q[:, :, 0].argmax(axis=1)
    scale = path_values(mdp.kernel.table[states, policy], np.abs(mdp.reward[states, policy]), mdp.gamma)
    rounding = 4.0 * np.finfo(np.float64).eps * max(float(q.max()), -float(q.min()))
    return np.where(scale > 0.0, tolerance * scale, rounding)
