"""H steps of random options as one Markov chain.

An agent draws an action from π(·|s) and a persistence from ω, holds the action, and draws again. Its next state
depends on what it is holding, so its states do not form a Markov chain. Observed every H steps, when every hold is
cut off, they do:

    P_H = Σ_{k ≤ min(H,K)} ω̃_{k,min(H,K)} · P^π_k · P_{H−k},    P_0 = I

Rows sum to 1, and the factor on the left happens first. No P^π_k is formed: holding for one more step is one more
product with that action's matrix.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError, InputTypeError
from holdfast.mdp.kernels import ROW_SUM_TOLERANCE, DenseKernel, DeterministicKernel, Kernel, SparseKernel
from holdfast.mdp.model import TabularMDP

__all__ = ["ChainOperator", "persistent_chain", "reduced_distribution"]


_BLOCK_BYTES = 128 * 2**20
"""Memory limit for the columns in progress, including everything remembered about them."""


def reduced_distribution(omega: ArrayLike, H: int) -> Floats:
    """ω̃_{·,H}: the distribution of persistences when only H steps are left and longer holds are cut to H.

    Paper: Definition reduced-distribution

    Args:
        omega: Probabilities (K,) of the persistences 1..K.
        H: Number of steps left, at least 1.

    Returns:
        (K,): ω_k for k < H, the sum of all ω_l with l ≥ H for k = H, and 0 beyond.
    """
    probabilities = _persistence_distribution(omega, None)
    H = check_integer("H", H)
    if len(probabilities) <= H:
        return probabilities
    reduced = np.zeros_like(probabilities)
    reduced[: H - 1] = probabilities[: H - 1]
    reduced[H - 1] = probabilities[H - 1 :].sum()
    return reduced


def persistent_chain(
    model: TabularMDP | Kernel,
    H: int,
    k_max: int | None = None,
    pi: ArrayLike | None = None,
    omega: ArrayLike | None = None,
) -> Floats:
    """P_H(s'|s), (S,S): where H steps of random options lead; rows sum to 1.

    Paper: Equation eq:P_pers

    Args:
        model: A model, or its kernel.
        H: Number of steps, at least 1; a hold that would last longer is cut off.
        k_max: K; may be left out if ``omega`` is given.
        pi: π(a|s) as (S,A), or as (A,) if it is the same in every state; None means uniform.
        omega: Probabilities (K,) of the persistences 1..K; None means uniform.
    """
    return ChainOperator(model, H, k_max, pi, omega).matrix()


@dataclass(frozen=True, slots=True, eq=False, init=False)
class ChainOperator:
    """P_H as an operator on functions and distributions, without its matrix; suited to many states.

    The arguments are those of ``persistent_chain``.

    Attributes:
        H: Number of steps.
        pi: π(a|s), (S,A).
        omega: Probabilities (K,) of the persistences 1..K.
    """

    H: int
    pi: Floats
    omega: Floats
    _moves: tuple[Any, ...]
    _weights: list[Floats]

    def __init__(
        self,
        model: TabularMDP | Kernel,
        H: int,
        k_max: int | None = None,
        pi: ArrayLike | None = None,
        omega: ArrayLike | None = None,
    ) -> None:
        kernel = _kernel(model)
        H = check_integer("H", H)
        probabilities = _persistence_distribution(omega, k_max)
        shape = (kernel.n_states, kernel.n_actions)
        for name, value in (
            ("H", H),
            ("pi", _policy(pi, *shape)),
            ("omega", probabilities),
            ("_moves", tuple(kernel.under(np.full(shape[0], action)) for action in range(shape[1]))),
            ("_weights", _reduced_weights(probabilities, H)),
        ):
            object.__setattr__(self, name, value)

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.pi)

    @property
    def k_max(self) -> int:
        """K."""
        return len(self.omega)

    def apply(self, values: Floats) -> Floats:
        """Σ_s' P_H(s'|s) f(s'): the expectation of ``values`` (S,) or (S,m) H steps later."""
        pi = self.pi.reshape(*self.pi.shape, *[1] * (values.ndim - 1))
        later: deque[Floats] = deque([values], maxlen=self.k_max)
        for h in range(1, self.H + 1):
            # later[k-1] is the expectation over the h−k steps that remain after a hold of k steps.
            free = [weight * value for weight, value in zip(self._weights_of(h), later, strict=False)]
            expected = np.zeros_like(values)
            for action, move in enumerate(self._moves):
                held = move @ free[-1]
                for value in reversed(free[:-1]):
                    held += value
                    held = move @ held
                held *= pi[:, action]
                expected += held
            later.appendleft(expected)
        return later[0]

    def apply_transposed(self, weights: Floats) -> Floats:
        """Σ_s f(s) P_H(s'|s): a distribution ``weights`` (S,), or each column of (S,m), H steps later."""
        pi = self.pi.reshape(*self.pi.shape, *[1] * (weights.ndim - 1))
        moves = [move.T for move in self._moves]
        # arriving[h]: the weight that makes a new decision with h steps left.
        arriving = [np.zeros_like(weights) for _ in range(self.H)] + [weights]
        for h in range(self.H, 0, -1):
            for action, move in enumerate(moves):
                held = pi[:, action] * arriving[h]
                for k, weight in enumerate(self._weights_of(h), start=1):
                    held = move @ held
                    arriving[h - k] += weight * held
        return arriving[0]

    def _weights_of(self, h: int) -> Floats:
        """ω̃ of 1..min(h,K) when h steps are left; for h ≥ K it is ω itself."""
        return self._weights[min(h, self.k_max) - 1]

    def matrix(self) -> Floats:
        """P_H, (S,S): takes 8 S² bytes; if moves are sparse, time grows with S² · A · Σ_{h ≤ H} min(h,K)."""
        n_states = self.n_states
        columns = max(1, _BLOCK_BYTES // (8 * n_states * (min(self.H, self.k_max) + 3)))
        matrix = np.empty((n_states, n_states))
        for first in range(0, n_states, columns):
            width = min(columns, n_states - first)
            matrix[:, first : first + width] = self.apply(np.eye(n_states, width, -first))
        return matrix


def _reduced_weights(omega: Floats, H: int) -> list[Floats]:
    """ω̃_{1..h,h} for h = 1..min(H,K): never more than can be held, however large H or K."""
    return [reduced_distribution(omega, h)[:h].copy() for h in range(1, min(H, len(omega)) + 1)]


def _kernel(model: Any) -> Kernel:
    if isinstance(model, TabularMDP):
        return model.kernel
    if isinstance(model, DenseKernel | DeterministicKernel | SparseKernel):
        return model
    raise InputTypeError(f"model must be a TabularMDP or the kernel of one, not {type(model).__name__}")


def _persistence_distribution(omega: ArrayLike | None, k_max: int | None) -> Floats:
    """ω, (K,)."""
    if omega is None:
        if k_max is None:
            raise InputTypeError("k_max or omega must be given")
        k_max = check_integer("k_max", k_max)
        return np.full(k_max, 1.0 / k_max)
    if k_max is None:
        return _distributions("omega", omega, ndim=1)
    k_max = check_integer("k_max", k_max)
    return _distributions("omega", omega, ndim=1, shape=(k_max,))


def _policy(pi: ArrayLike | None, n_states: int, n_actions: int) -> Floats:
    """π, (S,A)."""
    if pi is None:
        return np.full((n_states, n_actions), 1.0 / n_actions)
    if np.ndim(pi) == 1:
        return np.tile(_distributions("pi", pi, ndim=1, shape=(n_actions,)), (n_states, 1))
    return _distributions("pi", pi, ndim=2, shape=(n_states, n_actions))


def _distributions(name: str, given: ArrayLike, ndim: int, shape: tuple[int, ...] | None = None) -> Floats:
    """A copy of ``given`` whose last axis sums to 1 up to rounding."""
    message = f"{name} must be probabilities of shape {shape or '(K,)'} that sum to 1"
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{message}, not {given!r}") from None
    if array.ndim != ndim or array.size == 0 or (shape is not None and array.shape != shape):
        raise InputError(f"{message}, not an array of shape {array.shape}")
    if not np.all(np.isfinite(array)) or np.any(array < 0.0):
        raise InputError(f"{message}: some are negative or not finite")
    sums = array.sum(axis=-1, keepdims=True)
    worst = float(sums.ravel()[np.argmax(np.abs(sums - 1.0))])
    if abs(worst - 1.0) > ROW_SUM_TOLERANCE:
        raise InputError(f"{message}, not to {worst:.10g}")
    return np.asarray(array / sums)
