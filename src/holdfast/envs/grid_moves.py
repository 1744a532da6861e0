"""Where the steps of a grid lead, as tables: the geometry alone, independent of the cells' contents."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from holdfast.envs.grid_map import GridMap

__all__ = ["move_matrix", "neighbours"]


def neighbours(map: GridMap, outside: int | None = None) -> NDArray[np.int64]:  # noqa: A002 (as in GridWorld)
    """The cell that a step left, down, right and up from each cell leads to, (cells, 4).

    Args:
        map: The map.
        outside: Number of the place beyond the border; None if the border blocks.
    """
    cells = np.arange(map.n_cells, dtype=np.int64).reshape(map.shape)
    framed = np.pad(cells, 1, mode="edge") if outside is None else np.pad(cells, 1, constant_values=outside)
    moves = (framed[1:-1, :-2], framed[2:, 1:-1], framed[1:-1, 2:], framed[:-2, 1:-1])
    return np.stack([move.ravel() for move in moves], axis=1)


def move_matrix(next_states: NDArray[np.int64], outcomes: Iterable[tuple[float, int]]) -> sparse.csr_array:
    """Probabilities (S, S) of the next states of a step that may slip; directions to the same state add up.

    Args:
        next_states: The next state in each direction, (S, directions).
        outcomes: Probabilities and directions, as from ``GridRules.outcomes``.
    """
    n_states = len(next_states)
    probabilities, directions = zip(*outcomes, strict=True)
    entries = sparse.coo_array(
        (
            np.repeat(probabilities, n_states),
            (np.tile(np.arange(n_states), len(directions)), next_states[:, directions].T.ravel()),
        ),
        shape=(n_states, n_states),
    )
    return sparse.csr_array(entries)
