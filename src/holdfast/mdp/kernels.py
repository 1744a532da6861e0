"""Transition kernels P(s'|s,a) in three forms with the same interface.

The library's exact computations need the expectation of V(s') under (s,a), the expectation of f(s',a) when ``a``
is held, one kernel followed by another, and the chain of a policy. Deterministic and sparse kernels provide all of
this without ever forming a dense (S,A,S) array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from holdfast.core.array_types import Floats
from holdfast.core.errors import InputError

__all__ = ["DenseKernel", "DeterministicKernel", "Kernel", "SparseKernel", "kernel_from"]


ROW_SUM_TOLERANCE = 1e-6
"""How far the sum of a user's row may be from 1, which admits single precision; the row is then rescaled."""
ROUNDING = 1e-12
_FORMS = (
    "P must be a dense array (S,A,S) of probabilities, an integer array (S,A) of next states, "
    "a sparse matrix (S*A,S), or a sequence of A sparse matrices (S,S)"
)


class Kernel(Protocol):
    """A transition kernel; ``table`` is its plain form, as a user may have given it."""

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
        """Σ_s' P(s'|s,a) f(s',a), with the same action: (S,A,...) → (S,A,...)."""
        ...

    def expect_pairwise(self, values: Any) -> Floats:
        """Σ_s' P(s'|s,a) r(s,a,s'): values (S,A,S), or A sparse (S,S) → (S,A)."""
        ...

    def then(self, other: Kernel) -> Kernel:
        """This kernel, then ``other`` under the same action; both must have the same form."""
        ...

    def absorbing(self, terminal: NDArray[np.bool_]) -> Kernel:
        """The kernel in which every terminal state leads to itself."""
        ...

    def under(self, policy: NDArray[np.int64]) -> Any:
        """The chain of a deterministic policy (S,): an array or sparse matrix (S,S)."""
        ...

    def checked(self) -> Kernel:
        """The kernel with rows that sum to 1 up to rounding; raises ValueError if they are not distributions."""
        ...


class _ArrayKernel:
    """A kernel whose table is an array (S,A,...)."""

    __slots__ = ()

    table: NDArray[Any]

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.table)

    @property
    def n_actions(self) -> int:
        """A."""
        return int(self.table.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class DenseKernel(_ArrayKernel):
    """Probabilities as an array (S,A,S)."""

    table: Floats

    def expect(self, values: Floats) -> Floats:
        """Σ_s' P(s'|s,a) V(s')."""
        return np.asarray(self.table @ values)

    def expect_held(self, values: Floats) -> Floats:
        """Σ_s' P(s'|s,a) f(s',a)."""
        by_action = np.moveaxis(self.table, 1, 0) @ np.moveaxis(values.reshape(*values.shape[:2], -1), 1, 0)
        return np.moveaxis(by_action, 0, 1).reshape(values.shape)

    def expect_pairwise(self, values: Any) -> Floats:
        """Σ_s' P(s'|s,a) r(s,a,s')."""
        return np.asarray(np.einsum("sat,sat->sa", self.table, values))

    def then(self, other: Kernel) -> DenseKernel:
        """This kernel, then ``other`` under the same action."""
        by_action = np.moveaxis(self.table, 1, 0) @ np.moveaxis(other.table, 1, 0)
        return DenseKernel(np.ascontiguousarray(np.moveaxis(by_action, 0, 1)))

    def absorbing(self, terminal: NDArray[np.bool_]) -> DenseKernel:
        """The kernel in which every terminal state leads to itself."""
        table = self.table.copy()
        states = np.flatnonzero(terminal)
        table[states] = 0.0
        table[states, :, states] = 1.0
        return DenseKernel(table)

    def under(self, policy: NDArray[np.int64]) -> Any:
        """The chain of a deterministic policy, an array (S,S)."""
        return self.table[np.arange(self.n_states), policy]

    def checked(self) -> DenseKernel:
        """Check that each row is a distribution."""
        _check_entries(self.table)
        sums = self.table.sum(axis=2)
        return DenseKernel(self.table / sums[:, :, None]) if _must_be_rescaled(sums) else self


@dataclass(frozen=True, slots=True, eq=False)
class DeterministicKernel(_ArrayKernel):
    """The next state of each (s,a), as an integer array (S,A)."""

    table: NDArray[np.int64]

    def expect(self, values: Floats) -> Floats:
        """V(s') at the only next state."""
        return np.asarray(values[self.table])

    def expect_held(self, values: Floats) -> Floats:
        """f(s',a) at the only next state."""
        return np.asarray(values[self.table, np.arange(self.n_actions)])

    def expect_pairwise(self, values: Any) -> Floats:
        """r(s,a,s') at the only next state."""
        return np.asarray(np.take_along_axis(values, self.table[:, :, None], axis=2)[:, :, 0])

    def then(self, other: Kernel) -> DeterministicKernel:
        """This kernel, then ``other`` under the same action."""
        return DeterministicKernel(other.table[self.table, np.arange(self.n_actions)])

    def absorbing(self, terminal: NDArray[np.bool_]) -> DeterministicKernel:
        """The kernel in which every terminal state leads to itself."""
        own = np.arange(self.n_states)[:, None]
        return DeterministicKernel(np.where(terminal[:, None], own, self.table))

    def under(self, policy: NDArray[np.int64]) -> Any:
        """The chain of a deterministic policy, a sparse matrix (S,S)."""
        states = np.arange(self.n_states)
        entries = (np.ones(self.n_states), (states, self.table[states, policy]))
        return sp.csr_array(entries, shape=(self.n_states, self.n_states))

    def checked(self) -> DeterministicKernel:
        """Check that each next state exists."""
        if np.any((self.table < 0) | (self.table >= self.n_states)):
            raise InputError(f"P must name next states in 0..{self.n_states - 1}: some are outside this range")
        return self


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
        """The kernel in which every terminal state leads to itself."""
        keep = sp.diags_array((~terminal).astype(np.float64))
        loops = sp.diags_array(terminal.astype(np.float64))
        return SparseKernel(tuple(sp.csr_array(keep @ matrix + loops) for matrix in self.table))

    def under(self, policy: NDArray[np.int64]) -> Any:
        """The chain of a deterministic policy, a sparse matrix (S,S)."""
        by_action = sp.vstack([matrix[np.flatnonzero(policy == a)] for a, matrix in enumerate(self.table)])
        place = np.empty(self.n_states, dtype=np.int64)
        place[np.argsort(policy, kind="stable")] = np.arange(self.n_states)
        return sp.csr_array(by_action.tocsr()[place])

    def checked(self) -> SparseKernel:
        """Check that each row is a distribution."""
        for matrix in self.table:
            _check_entries(matrix.data)
        sums: Any = np.stack([np.asarray(matrix.sum(axis=1)).ravel() for matrix in self.table], axis=1)
        if not _must_be_rescaled(sums):
            return self
        scales = [sp.diags_array(1.0 / sums[:, a]) for a in range(self.n_actions)]
        return SparseKernel(
            tuple(sp.csr_array(scale @ matrix) for scale, matrix in zip(scales, self.table, strict=True))
        )


def kernel_from(P: Any) -> Kernel:
    """The kernel that a user's ``P`` describes, as an independent copy; checks the shape only."""
    if sp.issparse(P):
        return _from_stacked_rows(P)
    if isinstance(P, Sequence) and len(P) > 0 and all(sp.issparse(matrix) for matrix in P):
        return _from_matrices(list(P))
    try:
        array = np.asarray(P)
    except ValueError:
        raise InputError(f"{_FORMS}, not a ragged list") from None
    if array.ndim == 2 and array.size and np.issubdtype(array.dtype, np.integer):
        return DeterministicKernel(np.array(array, dtype=np.int64))
    numeric = np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)
    if array.ndim == 3 and array.size and numeric and array.shape[0] == array.shape[2]:
        return DenseKernel(np.array(array, dtype=np.float64))
    raise InputError(f"{_FORMS}, not an array of shape {array.shape} and type {array.dtype}")


def _from_matrices(matrices: list[Any]) -> SparseKernel:
    shapes = {matrix.shape for matrix in matrices}
    n_states = matrices[0].shape[0]
    if shapes != {(n_states, n_states)} or n_states == 0:
        raise InputError(f"{_FORMS}, not sparse matrices of shapes {sorted(shapes)}")
    return SparseKernel(tuple(sp.csr_array(matrix, dtype=np.float64, copy=True) for matrix in matrices))


def _from_stacked_rows(stacked: Any) -> SparseKernel:
    if len(stacked.shape) != 2:
        raise InputError(f"{_FORMS}, not a sparse array of shape {stacked.shape}")
    n_rows, n_states = stacked.shape
    if n_states == 0 or n_rows == 0 or n_rows % n_states:
        raise InputError(f"{_FORMS}, not a sparse matrix of shape {stacked.shape}")
    rows = sp.csr_array(stacked, dtype=np.float64)
    n_actions = n_rows // n_states
    return SparseKernel(tuple(sp.csr_array(rows[a::n_actions]) for a in range(n_actions)))


def _check_entries(probabilities: Floats) -> None:
    if not np.all(np.isfinite(probabilities)):
        raise InputError("P must hold finite probabilities: it has NaN or infinite entries")
    if np.any(probabilities < 0.0):
        raise InputError("P must hold probabilities: it has negative entries")


def _must_be_rescaled(sums: Floats) -> bool:
    """Whether row sums (S,A) are off by more than rounding; raises ValueError beyond ``ROW_SUM_TOLERANCE``."""
    errors = np.abs(sums - 1.0)
    wrong = np.argwhere(errors > ROW_SUM_TOLERANCE)
    if len(wrong):
        state, action = map(int, wrong[0])
        raise InputError(
            f"P must have rows that sum to 1: the row of state {state}, action {action} "
            f"sums to {sums[state, action]:.10g}"
        )
    return bool(errors.max() > ROUNDING)
