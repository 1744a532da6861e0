"""Target values that are kept until they change: what the target network said of a ring row's observation.

Between two updates of the target network its answer to an observation is always the same, and prioritised replay
asks for the same ones again and again. Values are kept by ring row and dropped when the row is overwritten or the
target network changes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["KeptValues"]

Rows = NDArray[np.int64]


class KeptValues:
    """Values of a fixed shape per row, computed when first asked for.

    Args:
        n_rows: Rows to begin with; more are added when they are asked for.
        shape: Shape of one row's values.
    """

    def __init__(self, n_rows: int, shape: tuple[int, ...]) -> None:
        self.values = np.zeros((n_rows, *shape), dtype=np.float32)
        self.known = np.zeros(n_rows, dtype=np.bool_)

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return self.values.nbytes + self.known.nbytes

    def get(self, rows: Rows, compute: Callable[[Rows], NDArray[np.float32]]) -> NDArray[np.float32]:
        """The values of distinct ``rows``; ``compute`` is asked for those that are not known."""
        self._grow(int(rows.max()) + 1)
        missing = rows[~self.known[rows]]
        if len(missing):
            self.values[missing] = compute(missing)
            self.known[missing] = True
        return self.values[rows]

    def drop(self, rows: Rows | None = None) -> None:
        """Forget the values of ``rows``, or all."""
        if rows is None:
            self.known[:] = False
        else:
            self.known[rows[rows < len(self.known)]] = False

    def _grow(self, n_rows: int) -> None:
        if n_rows > len(self.known):
            more = max(n_rows - len(self.known), 64, len(self.known) // 8)
            self.values = np.concatenate([self.values, np.zeros((more, *self.values.shape[1:]), np.float32)])
            self.known = np.concatenate([self.known, np.zeros(more, dtype=np.bool_)])
