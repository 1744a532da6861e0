"""Counting on optimal paths: how many steps, and how few decisions."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from holdfast.core.checks import check_integer
from holdfast.core.options import duration_at
from holdfast.mdp.kernels import DeterministicKernel
from holdfast.mdp.model import TabularMDP

__all__ = ["fewest_decisions"]


def fewest_decisions(mdp: TabularMDP, q: NDArray[np.floating], start: int, tolerance: float = 1e-9) -> int | None:
    """The least number of optimal options that lead from ``start`` to a terminal state.

    With ``q`` cut to k = 1 this is the length of the shortest optimal path.

    Args:
        mdp: A deterministic model.
        q: Optimal values (S,A,K).
        start: A state.
        tolerance: An option is optimal if its value is this close to the best, relative to the largest value.

    Returns:
        The count, or None if no optimal option leads to a terminal state.
    """
    if not isinstance(mdp.kernel, DeterministicKernel):
        raise ValueError("mdp must be deterministic (given by next states) to count decisions on a path")
    n_states, n_actions = mdp.n_states, mdp.n_actions
    start = check_integer("start", start, at_least=0)
    if start >= n_states:
        raise ValueError(f"start must be a state in 0..{n_states - 1}, not {start}")
    if q.ndim != 3 or q.shape[:2] != (n_states, n_actions):
        raise ValueError(f"q must have shape ({n_states}, {n_actions}, k_max), not {q.shape}")
    optimal = q >= q.max(axis=(1, 2), keepdims=True) - tolerance * np.abs(q).max()
    origins, ends = [], []
    reached = mdp.kernel
    for index in range(q.shape[2]):
        if duration_at(index) > 1:
            reached = reached.then(mdp.kernel)
        rows, actions = np.nonzero(optimal[:, :, index])
        origins.append(rows)
        ends.append(reached.table[rows, actions])
    rows, columns = np.concatenate(origins), np.concatenate(ends)
    graph = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_states, n_states))
    distance = dijkstra(graph, indices=np.array(start), unweighted=True)
    nearest = np.min(distance, initial=np.inf, where=mdp.terminal)
    return int(nearest) if np.isfinite(nearest) else None
