"""K priority trees in one array: proportional sampling for every replay view in one compiled call.

Tree k holds one leaf per ring row, the row's priority p^α in view D_k; 0 means that the row cannot be drawn
there. Beside the sums a second array keeps the least positive priority, which fixes the largest weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.array_types import Floats, Integers
from holdfast.core.compiling import compiled
from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take_array

__all__ = ["Draw", "PriorityTrees", "importance_weight", "mean_errors"]


class Draw(NamedTuple):
    """Rows drawn from each view.

    Attributes:
        rows: (K, B) leaves; 0 where the view is empty.
        weights: (K, B) importance weights (N·P)^−β over the largest of the view or of the draw; 0 where the view
            is empty.
    """

    rows: Integers
    weights: Floats


def importance_weight(priority: float, least_priority: float, beta: float) -> float:
    """(N·P(i))^−β divided by the largest weight of a view, or of a draw, which belongs to the least likely row.

    N and the sum of the priorities cancel: (p_i / p_min)^−β.
    """
    return (priority / least_priority) ** -beta


@compiled
def mean_errors(td_errors: NDArray[np.float32], is_there: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Mean over the views (K, B) of the size of the errors of those tuples that there are: (B,)."""
    n_views, batch = td_errors.shape
    means = np.zeros(batch, dtype=np.float32)
    for b in range(batch):
        n_tuples = 0
        for index in range(n_views):
            if is_there[index, b]:
                means[b] += abs(td_errors[index, b])
                n_tuples += 1
        means[b] /= max(n_tuples, 1)
    return means


class PriorityTrees:
    """Sum and minimum trees over ``capacity`` leaves, one pair for each of ``n_trees`` views.

    Args:
        n_trees: K, the number of views.
        capacity: Leaves in each.
        alpha: Exponent of the priorities; 0 draws uniformly among the rows that can be drawn.
    """

    def __init__(self, n_trees: int, capacity: int, alpha: float) -> None:
        self.alpha = float(alpha)
        self.capacity = capacity
        self.size = 1 << max(0, int(capacity - 1).bit_length())
        self.sums = np.zeros((n_trees, 2 * self.size))
        self.least = np.full((n_trees, 2 * self.size), np.inf)
        self.largest = np.ones(n_trees)

    @staticmethod
    def bytes_needed(n_trees: int, capacity: int) -> int:
        """Memory of the two arrays."""
        return 2 * n_trees * 2 * (1 << max(0, int(capacity - 1).bit_length())) * 8

    @property
    def totals(self) -> Floats:
        """Sum of the priorities of each view, (K,)."""
        return self.sums[:, 1]

    def priorities(self, tree: int) -> Floats:
        """The stored priorities p^α of one view, (capacity,)."""
        return self.sums[tree, self.size : self.size + self.capacity].copy()

    def enter(self, rows: Integers, members: NDArray[np.bool_]) -> None:
        """Give new rows the largest priority so far, row i in the views k with members[i, k]."""
        _enter(self.sums, self.least, self.size, rows, members, self.largest**self.alpha)

    def remove(self, rows: Integers) -> None:
        """Make rows impossible to draw, in every view."""
        _remove(self.sums, self.least, self.size, rows)

    def sample(self, uniforms: Floats, beta: float, over_batch: bool = False) -> Draw:
        """Draw stratified: row b of view k from the b-th of B equal shares of its total.

        Args:
            uniforms: (K, B) numbers in [0, 1), one per draw.
            beta: Exponent of the importance weights.
            over_batch: Whether weights are divided by the largest of the rows drawn, not of the whole view.
        """
        rows = np.zeros(uniforms.shape, dtype=np.int64)
        weights = np.zeros(uniforms.shape)
        _sample(self.sums, self.least, self.size, uniforms, beta, over_batch, rows, weights)
        return Draw(rows, weights)

    def update(self, rows: Integers, priorities: Floats) -> None:
        """Set the priorities of drawn rows (K, B); rows that left the view in the meantime stay out."""
        _update(self.sums, self.least, self.size, rows, priorities, self.alpha, self.largest)

    def state(self, n_rows: int) -> dict[str, Any]:
        """A copy of the priorities of the first ``n_rows`` rows; what stands above them follows from them."""
        return {
            "leaves": self.sums[:, self.size : self.size + n_rows].copy(),
            "largest": self.largest.copy(),
        }

    def restore(self, state: Mapping[str, Any], n_rows: int) -> None:
        """Go on from what ``state`` returned for ``n_rows`` rows."""
        n_trees = len(self.largest)
        leaves = take_array(state, "leaves", np.float64, (n_trees, n_rows))
        largest = take_array(state, "largest", np.float64, (n_trees,))
        if not ((leaves >= 0.0) & np.isfinite(leaves)).all():
            raise InputError("the saved state must have finite priorities of at least 0")
        if not (np.isfinite(largest).all() and (largest > 0.0).all()):
            raise InputError("the saved state must have largest priorities above 0")
        self.largest[:] = largest
        self.sums[:], self.least[:] = 0.0, np.inf
        level = slice(self.size, self.size + leaves.shape[1])
        self.sums[:, level] = leaves
        self.least[:, level] = np.where(leaves > 0.0, leaves, np.inf)
        size = self.size
        while size > 1:
            children, parents = slice(size, 2 * size), slice(size // 2, size)
            self.sums[:, parents] = self.sums[:, children][:, 0::2] + self.sums[:, children][:, 1::2]
            self.least[:, parents] = np.minimum(self.least[:, children][:, 0::2], self.least[:, children][:, 1::2])
            size //= 2


_weight = compiled(importance_weight)


@compiled
def _set_leaf(sums: Floats, least: Floats, size: int, tree: int, row: int, priority: float) -> None:
    node = row + size
    sums[tree, node] = priority
    least[tree, node] = priority if priority > 0.0 else np.inf
    node >>= 1
    while node >= 1:
        left, right = 2 * node, 2 * node + 1
        sums[tree, node] = sums[tree, left] + sums[tree, right]
        least[tree, node] = min(least[tree, left], least[tree, right])
        node >>= 1


@compiled
def _enter(
    sums: Floats,
    least: Floats,
    size: int,
    rows: Integers,
    members: NDArray[np.bool_],
    priorities: Floats,
) -> None:
    for i in range(len(rows)):
        for tree in range(members.shape[1]):
            if members[i, tree]:
                _set_leaf(sums, least, size, tree, rows[i], priorities[tree])


@compiled
def _remove(sums: Floats, least: Floats, size: int, rows: Integers) -> None:
    for row in rows:
        for tree in range(sums.shape[0]):
            if sums[tree, row + size] > 0.0:
                _set_leaf(sums, least, size, tree, row, 0.0)


@compiled
def _sample(
    sums: Floats,
    least: Floats,
    size: int,
    uniforms: Floats,
    beta: float,
    over_batch: bool,
    rows: Integers,
    weights: Floats,
) -> None:
    n_trees, batch = uniforms.shape
    for tree in range(n_trees):
        total = sums[tree, 1]
        if total <= 0.0:
            continue
        for b in range(batch):
            mass = (b + uniforms[tree, b]) * (total / batch)
            node = 1
            while node < size:
                node *= 2
                # Rounding must never lead into an empty half.
                if mass >= sums[tree, node] and sums[tree, node + 1] > 0.0:
                    mass -= sums[tree, node]
                    node += 1
            rows[tree, b] = node - size
        reference = least[tree, 1]
        if over_batch:
            reference = np.inf
            for b in range(batch):
                reference = min(reference, sums[tree, rows[tree, b] + size])
        for b in range(batch):
            weights[tree, b] = _weight(sums[tree, rows[tree, b] + size], reference, beta)


@compiled
def _update(
    sums: Floats,
    least: Floats,
    size: int,
    rows: Integers,
    priorities: Floats,
    alpha: float,
    largest: Floats,
) -> None:
    n_trees, batch = rows.shape
    for tree in range(n_trees):
        for b in range(batch):
            row = rows[tree, b]
            if sums[tree, row + size] > 0.0:
                _set_leaf(sums, least, size, tree, row, priorities[tree, b] ** alpha)
                largest[tree] = max(largest[tree], priorities[tree, b])
