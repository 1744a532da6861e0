"""Target values that are kept until they change: what the target network said of a ring row's observation.

Between two updates of the target network its answer to an observation is always the same, and prioritised replay
asks for the same ones again and again. Values are kept by ring row and dropped when the row is overwritten or the
target network changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.compiling import compiled
from holdfast.core.errors import InputError
from holdfast.core.saved import take_array

__all__ = ["TargetCache"]

Rows = NDArray[np.int64]


class TargetCache:
    """Values of a fixed shape per row, computed when first asked for.

    Args:
        n_rows: Rows to begin with; more are added when they are asked for.
        shape: Shape of one row's values.
    """

    def __init__(self, n_rows: int, shape: tuple[int, ...]) -> None:
        self.values = np.zeros((n_rows, *shape), dtype=np.float32)
        self.known = np.zeros(n_rows, dtype=np.bool_)
        self.source: Hashable = None

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return self.values.nbytes + self.known.nbytes

    def belong_to(self, source: Hashable) -> None:
        """Say where values come from; those that came from elsewhere are forgotten."""
        if source != self.source:
            self.drop()
            self.source = source

    def need(self, rows: Rows, compute: Callable[[Rows], NDArray[np.float32]]) -> None:
        """See to it that the values of ``rows`` are known; ``compute`` is asked for those that are not."""
        self._grow(int(rows.max()) + 1)
        missing = _unknown(rows.ravel(), self.known)
        if len(missing) == 0:
            return
        try:
            self.values[missing] = compute(missing)
        except BaseException:
            self.known[missing] = False
            raise

    def drop(self, rows: Rows | None = None) -> None:
        """Forget the values of ``rows``, or all."""
        if rows is None:
            self.known[:] = False
        else:
            self.known[rows[rows < len(self.known)]] = False

    def state(self) -> dict[str, Any]:
        """A copy of what is known."""
        return {"rows": np.flatnonzero(self.known), "values": self.values[self.known]}

    def restore(self, state: Mapping[str, Any], most_rows: int) -> None:
        """Know what ``state`` knew, of ``most_rows`` rows at most."""
        rows = take_array(state, "rows", np.int64, (None,), most_rows)
        values = take_array(state, "values", np.float32, (len(rows), *self.values.shape[1:]))
        if np.any((rows < 0) | (rows >= most_rows)):
            raise InputError("the saved state must keep values of rows that its replay has")
        self.drop()
        self._grow(int(rows.max(initial=-1)) + 1)
        self.values[rows], self.known[rows] = values, True

    def _grow(self, n_rows: int) -> None:
        if n_rows > len(self.known):
            more = max(n_rows - len(self.known), 64, len(self.known) // 8)
            self.values = np.concatenate([self.values, np.zeros((more, *self.values.shape[1:]), np.float32)])
            self.known = np.concatenate([self.known, np.zeros(more, dtype=np.bool_)])


@compiled
def _unknown(rows: Rows, known: NDArray[np.bool_]) -> Rows:
    """The distinct rows that are not known, which are known from now on."""
    found = np.empty_like(rows)
    count = 0
    for row in rows:
        if not known[row]:
            known[row] = True
            found[count] = row
            count += 1
    return found[:count]
