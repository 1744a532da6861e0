"""The model in which the likeliest outcome always happens: fast to solve, and a good starting point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.mdp.kernels import SparseKernel
from holdfast.mdp.model import TabularMDP

__all__ = ["likeliest_outcomes"]


def likeliest_outcomes(mdp: TabularMDP) -> TabularMDP:
    """The deterministic model with the likeliest next state of each (s,a) and its reward; ties go to the first.

    Args:
        mdp: A sparse model. If it has only expected rewards, those are kept.
    """
    assert isinstance(mdp.kernel, SparseKernel)
    following = np.stack([_largest_in_rows(matrix) for matrix in mdp.kernel.table], axis=1)
    reward = mdp.reward
    if mdp.outcome_reward is not None:
        states = np.arange(mdp.n_states)
        reward = np.stack([matrix[states, following[:, a]] for a, matrix in enumerate(mdp.outcome_reward)], axis=1)
    return TabularMDP(following, reward, mdp.gamma, terminal=mdp.terminal)


def _largest_in_rows(matrix: Any) -> NDArray[np.int64]:
    """The column of the largest entry of each row of a sparse matrix without empty rows."""
    n_entries = np.diff(matrix.indptr)
    largest = np.maximum.reduceat(matrix.data, matrix.indptr[:-1])
    candidates = np.flatnonzero(matrix.data == np.repeat(largest, n_entries))[::-1]
    rows = np.repeat(np.arange(len(n_entries)), n_entries)[candidates]
    columns = np.empty(len(n_entries), dtype=np.int64)
    columns[rows] = matrix.indices[candidates]  # among ties, the first is written last
    return columns
