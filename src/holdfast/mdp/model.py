"""A Markov decision process that is known exactly."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from holdfast.core.checks import check_discount
from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.rewards import LARGEST_REWARD
from holdfast.core.user_code import user_code
from holdfast.mdp.kernels import DeterministicKernel, Kernel, SparseKernel, kernel_from
from holdfast.mdp.toy_text import read_transition_table, without_harmless_wrappers

__all__ = ["TabularMDP"]


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class TabularMDP:
    """(S, A, P, r, γ) with finitely many states and actions, frozen and validated.

    Terminal states are absorbing with reward 0 and are worth 0, whatever ``P`` and ``r`` contain for them.

    Args:
        P: Transition kernel: a dense array (S,A,S) of probabilities; or, if deterministic, an integer array (S,A)
            of next states; or sparse, as a matrix (S·A,S) or a sequence of A matrices (S,S).
        r: Rewards (S,A), or (S,A,S) by next state (for sparse P also A sparse matrices (S,S)).
        gamma: Discount factor in [0, 1].
        initial: The start: a state's number, a distribution (S,), or None if it does not matter.
        terminal: Mask (S,) of bools, the numbers of the terminal states, or None if there are none.

    Attributes:
        kernel: P in its given form, with methods for expectations.
        reward: Expected reward, (S,A).
        outcome_reward: Reward by next state, (S,A,S) or A sparse matrices (S,S), if it was given that way and P is
            not deterministic; else None.
        gamma: Discount factor.
        initial: Distribution (S,) or None.
        terminal: Mask (S,).
    """

    kernel: Kernel
    reward: NDArray[np.float64]
    outcome_reward: Any
    gamma: float
    initial: NDArray[np.float64] | None
    terminal: NDArray[np.bool_]

    def __init__(
        self,
        P: Any,
        r: Any,
        gamma: float,
        initial: int | ArrayLike | None = None,
        terminal: ArrayLike | None = None,
    ) -> None:
        kernel = kernel_from(P)
        terminal_mask = _terminal_mask(terminal, kernel.n_states)
        if terminal_mask.any():
            kernel = kernel.absorbing(terminal_mask)
        kernel = kernel.checked()
        reward, outcome_reward = _rewards(r, kernel, terminal_mask)
        start = _initial_distribution(initial, kernel.n_states)
        _freeze(kernel.table, outcome_reward, reward, terminal_mask, start)
        for name, value in (
            ("kernel", kernel),
            ("reward", reward),
            ("outcome_reward", outcome_reward),
            ("gamma", check_discount(gamma)),
            ("initial", start),
            ("terminal", terminal_mask),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def from_gymnasium(cls, env: Any, gamma: float) -> TabularMDP:
        """The model of a Gymnasium environment that exposes its transition table, as the toy_text environments do.

        If some state is entered both by transitions that end the episode and by others (as in Taxi), one terminal
        state is appended and the ending transitions lead there.

        Args:
            env: An environment, possibly within wrappers that do not change the problem, that has
                ``tabular_mdp(gamma)`` or a table
                ``P[s][a] = [(probability, s', reward, terminated), ...]``.
            gamma: Discount factor in [0, 1].
        """
        gamma = check_discount(gamma)
        unwrapped = without_harmless_wrappers(env)
        what = f"env must have a readable transition table, and that of {type(unwrapped).__name__}"
        is_own = type(unwrapped).__module__.startswith("holdfast.")
        with nullcontext() if is_own else user_code(what, InputError):
            if not hasattr(unwrapped, "tabular_mdp"):
                table = read_transition_table(unwrapped)
                return cls(table.P, table.r, gamma, table.initial, table.terminal)
            model = unwrapped.tabular_mdp(gamma)
        if not isinstance(model, cls):
            raise InputTypeError(f"tabular_mdp() of {type(unwrapped).__name__} must return a TabularMDP")
        return model

    @property
    def n_states(self) -> int:
        """S."""
        return self.kernel.n_states

    @property
    def n_actions(self) -> int:
        """A."""
        return self.kernel.n_actions

    @property
    def P(self) -> Any:  # noqa: N802 - the paper's letter
        """The kernel's table: dense (S,A,S), next states (S,A), or A sparse matrices (S,S)."""
        return self.kernel.table

    @property
    def r(self) -> NDArray[np.float64]:
        """Expected reward (S,A)."""
        return self.reward

    def __repr__(self) -> str:
        kind = type(self.kernel).__name__.removesuffix("Kernel").lower()
        return (
            f"TabularMDP({kind}, n_states={self.n_states}, n_actions={self.n_actions}, gamma={self.gamma}, "
            f"{int(self.terminal.sum())} terminal)"
        )


def _terminal_mask(terminal: ArrayLike | None, n_states: int) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = np.zeros(n_states, dtype=np.bool_)
    if terminal is None:
        return mask
    message = f"terminal must be a mask of {n_states} bools or state numbers in 0..{n_states - 1}"
    given = np.atleast_1d(_regular_array(terminal, message))
    if given.dtype == np.bool_:
        if given.shape != (n_states,):
            raise InputError(f"{message}, not a mask of shape {given.shape}")
        return given.copy()
    if given.size == 0:
        return mask
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"{message}, not an array of shape {given.shape} and type {given.dtype}")
    if np.any((given < 0) | (given >= n_states)):
        raise InputError(message)
    if len(given) == n_states > 2 and len(np.unique(given)) < n_states:
        raise InputError(f"{message}; {n_states} numbers with repetitions look like a mask: give it as bools")
    mask[given] = True
    return mask


def _rewards(r: Any, kernel: Kernel, terminal: NDArray[np.bool_]) -> tuple[NDArray[np.float64], Any]:
    """Expected rewards (S,A), and rewards by next state if ``r`` has them and they add information."""
    S, A = kernel.n_states, kernel.n_actions
    if isinstance(kernel, SparseKernel) and isinstance(r, list | tuple) and r and sp.issparse(r[0]):
        if len(r) != A or any(matrix.shape != (S, S) for matrix in r):
            raise InputError(f"r must be {A} sparse matrices of shape ({S}, {S}) to go with P")
        live = sp.diags_array((~terminal).astype(np.float64))
        by_outcome: Any = tuple(sp.csr_array(live @ matrix, dtype=np.float64) for matrix in r)
        values = np.concatenate([matrix.data for matrix in by_outcome])
    else:
        try:
            given = np.array(r, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"r must be an array of numbers of shape ({S}, {A}) or ({S}, {A}, {S})") from None
        if given.shape not in ((S, A), (S, A, S)):
            raise InputError(f"r must have shape ({S}, {A}) or ({S}, {A}, {S}) to go with P, not {given.shape}")
        given[terminal] = 0.0
        values = given
        by_outcome = given if given.ndim == 3 else None
    if not np.all(np.isfinite(values)):
        raise InputError("r must hold finite rewards: it has NaN or infinite entries")
    if not np.all(np.abs(values) <= LARGEST_REWARD):
        raise InputError(f"r must hold rewards of at most {LARGEST_REWARD:g} in size: larger sums overflow")
    if by_outcome is None:
        return given, None
    reward = kernel.expect_pairwise(by_outcome)
    return reward, None if isinstance(kernel, DeterministicKernel) else by_outcome


def _initial_distribution(initial: int | ArrayLike | None, n_states: int) -> NDArray[np.float64] | None:
    if initial is None:
        return None
    message = f"initial must be a state in 0..{n_states - 1} or {n_states} probabilities that sum to 1"
    given = _regular_array(initial, message)
    if given.ndim == 0 and np.issubdtype(given.dtype, np.integer) and 0 <= given < n_states:
        distribution = np.zeros(n_states)
        distribution[int(given)] = 1.0
        return distribution
    if given.shape == (n_states,) and np.issubdtype(given.dtype, np.number):
        distribution = given.astype(np.float64)
        if np.all(distribution >= 0.0) and abs(distribution.sum() - 1.0) <= 1e-8:
            return distribution
    raise InputError(message)


def _regular_array(values: ArrayLike, message: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"{message}, not a ragged list") from None


def _freeze(*tables: Any) -> None:
    """Write-protect arrays, and tuples of sparse matrices."""
    for table in tables:
        if isinstance(table, tuple):
            for matrix in table:
                _freeze(matrix.data, matrix.indices, matrix.indptr)
        elif table is not None:
            table.flags.writeable = False
