"""Transition kernels P(s'|s,a) in three forms, each answering the same three questions.

Everything the library computes exactly needs only: the expectation of V(s') under (s,a), the expectation of
f(s',a) when ``a`` is held, and what one kernel followed by another is. Deterministic and sparse kernels answer
them without ever becoming a dense (S,A,S) array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["DenseKernel", "DeterministicKernel", "Kernel", "SparseKernel", "kernel_from"]

Floats: TypeAlias = NDArray[np.float64]

ROW_SUM_TOLERANCE = 1e-8
"""Wide enough for the product of a few hundred kernels whose rows sum to 1 up to rounding."""
_FORMS = (
    "P must be a dense array (S,A,S) of probabilities, an integer array (S,A) of next states, "
    "a sparse matrix (S*A,S), or a sequence of A sparse matrices (S,S)"
)


class Kernel(Protocol):
    """A transition kernel; ``table`` is the plain form a user may have given."""

    @property
    def n_states(self) -> int:
        """S."""
        ...

    @property
    def n_actions(self) -> int:
        """A."""
        ...

    @property
    def table(self) -> Any:
        """Dense (S,A,S), next states (S,A), or A sparse matrices (S,S)."""
        ...

    def expect(self, values: Floats) -> Floats:
        """Σ_s' P(s'|s,a) V(s'): (S,) → (S,A)."""
        ...

    def expect_held(self, values: Floats) -> Floats:
        """Σ_s' P(s'|s,a) f(s',a), the action kept: (S,A,...) → (S,A,...)."""
        ...

    def expect_pairwise(self, values: Any) -> Floats:
        """Σ_s' P(s'|s,a) r(s,a,s'): values (S,A,S), or A sparse (S,S) → (S,A)."""
        ...

    def then(self, other: Kernel) -> Kernel:
        """This kernel, then ``other`` under the same action; both of one form."""
        ...

    def absorbing(self, terminal: NDArray[np.bool_]) -> Kernel:
        """The kernel with every terminal state leading to itself."""
        ...

    def check(self) -> None:
        """Raise ValueError with one sentence unless each row is a distribution over states."""
        ...

    def edges(self) -> sp.csr_array:
        """Sparse (S,S): which state some action may lead to."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DenseKernel:
    """Probabilities as an array (S,A,S)."""

    table: Floats

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.table)

    @property
    def n_actions(self) -> int:
        """A."""
        return int(self.table.shape[1])

    def expect(self, values: Floats) -> Floats:
        """Σ_s' P(s'|s,a) V(s')."""
        return np.asarray(self.table @ values)

    def expect_held(self, values: Floats) -> Floats:
        """Σ_s' P(s'|s,a) f(s',a)."""
        return np.asarray(np.einsum("sat,ta...->sa...", self.table, values))

    def expect_pairwise(self, values: Any) -> Floats:
        """Σ_s' P(s'|s,a) r(s,a,s')."""
        return np.asarray(np.einsum("sat,sat->sa", self.table, values))

    def then(self, other: Kernel) -> DenseKernel:
        """This kernel, then ``other`` under the same action."""
        return DenseKernel(np.einsum("sat,tau->sau", self.table, other.table))

    def absorbing(self, terminal: NDArray[np.bool_]) -> DenseKernel:
        """The kernel with every terminal state leading to itself."""
        table = self.table.copy()
        states = np.flatnonzero(terminal)
        table[states] = 0.0
        table[states, :, states] = 1.0
        return DenseKernel(table)

    def check(self) -> None:
        """Each row must be a distribution."""
        if not np.all(np.isfinite(self.table)):
            raise ValueError("P must hold finite probabilities: it has NaN or infinite entries")
        if np.any(self.table < 0.0):
            raise ValueError("P must hold probabilities: it has negative entries")
        _check_row_sums(self.table.sum(axis=2))

    def edges(self) -> sp.csr_array:
        """Sparse (S,S): which state some action may lead to."""
        return sp.csr_array((self.table > 0.0).any(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class DeterministicKernel:
    """The next state of each (s,a), as an integer array (S,A)."""

    table: NDArray[np.int64]

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.table)

    @property
    def n_actions(self) -> int:
        """A."""
        return int(self.table.shape[1])

    def expect(self, values: Floats) -> Floats:
        """V(s') at the one next state."""
        return np.asarray(values[self.table])

    def expect_held(self, values: Floats) -> Floats:
        """f(s',a) at the one next state."""
        return np.asarray(values[self.table, np.arange(self.n_actions)])

    def expect_pairwise(self, values: Any) -> Floats:
        """r(s,a,s') at the one next state."""
        return np.asarray(np.take_along_axis(values, self.table[:, :, None], axis=2)[:, :, 0])

    def then(self, other: Kernel) -> DeterministicKernel:
        """This kernel, then ``other`` under the same action."""
        return DeterministicKernel(other.table[self.table, np.arange(self.n_actions)])

    def absorbing(self, terminal: NDArray[np.bool_]) -> DeterministicKernel:
        """The kernel with every terminal state leading to itself."""
        own = np.arange(self.n_states)[:, None]
        return DeterministicKernel(np.where(terminal[:, None], own, self.table))

    def check(self) -> None:
        """Each next state must exist."""
        if np.any((self.table < 0) | (self.table >= self.n_states)):
            raise ValueError(f"P must name next states in 0..{self.n_states - 1}: it names others")

    def edges(self) -> sp.csr_array:
        """Sparse (S,S): which state some action may lead to."""
        rows = np.repeat(np.arange(self.n_states), self.n_actions)
        ones = np.ones(self.table.size, dtype=np.bool_)
        return sp.csr_array((ones, (rows, self.table.ravel())), shape=(self.n_states, self.n_states))


@dataclass(frozen=True, slots=True, eq=False)
class SparseKernel:
    """Probabilities as one sparse matrix (S,S) per action."""

    table: tuple[sp.csr_array, ...]

    @property
    def n_states(self) -> int:
        """S."""
        return int(self.table[0].shape[0])

    @property
    def n_actions(self) -> int:
        """A."""
        return len(self.table)

    def expect(self, values: Floats) -> Floats:
        """Σ_s' P(s'|s,a) V(s')."""
        return np.stack([matrix @ values for matrix in self.table], axis=1)

    def expect_held(self, values: Floats) -> Floats:
        """Σ_s' P(s'|s,a) f(s',a)."""
        return np.stack([matrix @ values[:, a] for a, matrix in enumerate(self.table)], axis=1)

    def expect_pairwise(self, values: Any) -> Floats:
        """Σ_s' P(s'|s,a) r(s,a,s')."""
        if isinstance(values, np.ndarray):
            values = [values[:, a, :] for a in range(self.n_actions)]
        products = [matrix.multiply(value) for matrix, value in zip(self.table, values, strict=True)]
        return np.stack([np.asarray(product.sum(axis=1)).ravel() for product in products], axis=1)

    def then(self, other: Kernel) -> SparseKernel:
        """This kernel, then ``other`` under the same action."""
        pairs = zip(self.table, other.table, strict=True)
        return SparseKernel(tuple(sp.csr_array(first @ second) for first, second in pairs))

    def absorbing(self, terminal: NDArray[np.bool_]) -> SparseKernel:
        """The kernel with every terminal state leading to itself."""
        keep = sp.diags_array((~terminal).astype(np.float64))
        loops = sp.diags_array(terminal.astype(np.float64))
        return SparseKernel(tuple(sp.csr_array(keep @ matrix + loops) for matrix in self.table))

    def check(self) -> None:
        """Each row must be a distribution."""
        for matrix in self.table:
            if not np.all(np.isfinite(matrix.data)):
                raise ValueError("P must hold finite probabilities: it has NaN or infinite entries")
            if np.any(matrix.data < 0.0):
                raise ValueError("P must hold probabilities: it has negative entries")
        sums = [np.asarray(matrix.sum(axis=1)).ravel() for matrix in self.table]
        _check_row_sums(np.stack(sums, axis=1))

    def edges(self) -> sp.csr_array:
        """Sparse (S,S): which state some action may lead to."""
        total = self.table[0]
        for matrix in self.table[1:]:
            total = total + matrix
        return sp.csr_array(total > 0.0)


def kernel_from(P: Any) -> Kernel:
    """The kernel that a user's ``P`` describes, as a copy of its own; its shape is checked here."""
    if sp.issparse(P):
        return _from_stacked_rows(P)
    if isinstance(P, Sequence) and len(P) > 0 and all(sp.issparse(matrix) for matrix in P):
        return _from_matrices(list(P))
    try:
        array = np.asarray(P)
    except ValueError:
        raise ValueError(f"{_FORMS}, not a ragged list") from None
    if array.ndim == 2 and array.size and np.issubdtype(array.dtype, np.integer):
        return DeterministicKernel(np.array(array, dtype=np.int64))
    numeric = np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)
    if array.ndim == 3 and array.size and numeric and array.shape[0] == array.shape[2]:
        return DenseKernel(np.array(array, dtype=np.float64))
    raise ValueError(f"{_FORMS}, not an array of shape {array.shape} and type {array.dtype}")


def _from_matrices(matrices: list[Any]) -> SparseKernel:
    shapes = {matrix.shape for matrix in matrices}
    n_states = matrices[0].shape[0]
    if shapes != {(n_states, n_states)} or n_states == 0:
        raise ValueError(f"{_FORMS}, not sparse matrices of shapes {sorted(shapes)}")
    return SparseKernel(tuple(sp.csr_array(matrix, dtype=np.float64, copy=True) for matrix in matrices))


def _from_stacked_rows(stacked: Any) -> SparseKernel:
    n_rows, n_states = stacked.shape
    if n_states == 0 or n_rows == 0 or n_rows % n_states:
        raise ValueError(f"{_FORMS}, not a sparse matrix of shape {stacked.shape}")
    rows = sp.csr_array(stacked, dtype=np.float64)
    n_actions = n_rows // n_states
    return SparseKernel(tuple(sp.csr_array(rows[a::n_actions]) for a in range(n_actions)))


def _check_row_sums(sums: Floats) -> None:
    """``sums`` has shape (S,A)."""
    wrong = np.argwhere(np.abs(sums - 1.0) > ROW_SUM_TOLERANCE)
    if len(wrong):
        state, action = map(int, wrong[0])
        raise ValueError(
            f"P must have rows that sum to 1: the row of state {state}, action {action} "
            f"sums to {sums[state, action]:.10g}"
        )
