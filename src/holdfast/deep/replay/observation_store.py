"""Where a ring keeps its observations: rows that are written, read and compared by number.

The ring's own rows come first (one per slot and environment); rows for observations that no slot holds, the last
ones of episodes, come after them and are lent out one at a time. Another way of keeping observations, such as
``FrameStore``, only needs what ``ObservationStore`` has; ``stores.py`` chooses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take_array, take_mapping

__all__ = ["ArrayStore", "DictStore", "ObservationStore", "Rows"]

Rows = NDArray[np.int64]


class ObservationStore(Protocol):
    """Rows of observations."""

    def put(self, rows: Rows, observations: Any) -> None:
        """Write one observation into each row."""
        ...

    def get(self, rows: Rows) -> Any:
        """A copy of the observations in the rows, in the rows' shape."""
        ...

    def same(self, rows: Rows, observations: Any) -> NDArray[np.bool_]:
        """Whether each row holds exactly that observation."""
        ...

    def lend(self) -> int:
        """The number of a free row behind the ring's own."""
        ...

    def give_back(self, row: int) -> None:
        """A lent row is free again."""
        ...

    def state(self, n_rows: int) -> dict[str, Any]:
        """A copy of the first ``n_rows`` rows and of all that are lent."""
        ...

    def restore(self, state: Mapping[str, Any], n_rows: int, lent: Rows) -> None:
        """Go on from what ``state`` returned for ``n_rows`` rows, of which the rows in ``lent`` are lent."""
        ...

    @property
    def own(self) -> Any:
        """The observations in the ring's own rows."""
        ...

    @property
    def lent(self) -> Any:
        """The observations in the rows behind them."""
        ...

    @property
    def free(self) -> list[int]:
        """Which of these are free, counted from the ring's end."""
        ...

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        ...


class ArrayStore:
    """Observations of one shape and type in one array, lent rows in a second one that grows.

    Args:
        n_rows: The ring's own rows.
        shape: Shape of an observation.
        dtype: Its type.
    """

    def __init__(self, n_rows: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.own = np.zeros((n_rows, *shape), dtype=dtype)
        self.lent = np.zeros((0, *shape), dtype=dtype)
        self.free: list[int] = []

    def put(self, rows: Rows, observations: NDArray[Any]) -> None:
        """Write one observation into each row."""
        observations = np.asarray(observations).reshape(len(rows), *self.own.shape[1:])
        own = rows < len(self.own)
        if own.all():
            self.own[rows] = observations
        else:
            self.own[rows[own]] = observations[own]
            self.lent[rows[~own] - len(self.own)] = observations[~own]

    def get(self, rows: Rows) -> NDArray[Any]:
        """A copy of the observations in the rows."""
        own = rows < len(self.own)
        if own.all():
            return self.own[rows]
        result = self.own[np.where(own, rows, 0)]
        result[~own] = self.lent[rows[~own] - len(self.own)]
        return result

    def same(self, rows: Rows, observations: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each row holds exactly that observation."""
        # As it would be stored: an environment may give float64 where its space says float32.
        observations = np.asarray(observations).astype(self.own.dtype, copy=False)
        observations = observations.reshape(len(rows), *self.own.shape[1:])
        return np.equal(self.get(rows), observations).reshape(len(rows), -1).all(axis=1)

    def lend(self) -> int:
        """The number of a free row behind the ring's own."""
        if not self.free:
            count = len(self.lent)
            more = max(64, count)
            self.lent = np.concatenate([self.lent, np.zeros((more, *self.lent.shape[1:]), self.lent.dtype)])
            self.free = list(range(count + more - 1, count - 1, -1))
        return len(self.own) + self.free.pop()

    def give_back(self, row: int) -> None:
        """A lent row is free again."""
        self.free.append(row - len(self.own))

    def state(self, n_rows: int) -> dict[str, Any]:
        """A copy of the first ``n_rows`` rows and of all that are lent."""
        return {
            "own": self.own[:n_rows].copy(),
            "lent": self.lent.copy(),
            "free": np.array(self.free, dtype=np.int64),
        }

    def restore(self, state: Mapping[str, Any], n_rows: int, lent: Rows) -> None:
        """Go on from what ``state`` returned for ``n_rows`` rows, of which the rows in ``lent`` are lent."""
        shape, dtype = self.own.shape[1:], self.own.dtype
        own = take_array(state, "own", dtype, (n_rows, *shape))
        # At most all rows of the ring lend one each, and room for them is made by doubling.
        longest = 2 * len(self.own) + 128
        behind = take_array(state, "lent", dtype, (None, *shape), longest)
        free = take_array(state, "free", np.int64, (None,), longest)
        if not np.array_equal(np.sort(np.append(free, lent - len(self.own))), np.arange(len(behind))):
            raise InputError("the saved state must have each row behind its ring either lent or free")
        self.own[:n_rows] = own
        self.own[n_rows:] = 0
        self.lent, self.free = behind.copy(), free.tolist()

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return len(self.own) + len(self.lent)

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return self.own.nbytes + self.lent.nbytes


class DictStore:
    """One store per key, all with the same row numbers."""

    def __init__(self, parts: Mapping[str, ObservationStore]) -> None:
        self.parts = parts

    def put(self, rows: Rows, observations: dict[str, NDArray[Any]]) -> None:
        """Write one observation into each row."""
        for key, part in self.parts.items():
            part.put(rows, observations[key])

    def get(self, rows: Rows) -> dict[str, NDArray[Any]]:
        """A copy of the observations in the rows."""
        return {key: part.get(rows) for key, part in self.parts.items()}

    def same(self, rows: Rows, observations: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Whether each row holds exactly that observation."""
        return np.logical_and.reduce([part.same(rows, observations[key]) for key, part in self.parts.items()])

    def lend(self) -> int:
        """The number of a free row behind the ring's own."""
        # Every part lends, and they take back together, so that their numbers agree.
        lent = [part.lend() for part in self.parts.values()]
        return lent[0]

    def give_back(self, row: int) -> None:
        """A lent row is free again."""
        for part in self.parts.values():
            part.give_back(row)

    def state(self, n_rows: int) -> dict[str, Any]:
        """A copy of the first ``n_rows`` rows and of all that are lent."""
        return {key: part.state(n_rows) for key, part in self.parts.items()}

    def restore(self, state: Mapping[str, Any], n_rows: int, lent: Rows) -> None:
        """Go on from what ``state`` returned for ``n_rows`` rows, of which the rows in ``lent`` are lent."""
        for key, part in self.parts.items():
            part.restore(take_mapping(state, key), n_rows, lent)
        if len({tuple(part.free) for part in self.parts.values()}) > 1:
            raise InputError("the saved state must have the same free rows for every key")

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return min(part.n_rows for part in self.parts.values())

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return sum(part.nbytes for part in self.parts.values())
