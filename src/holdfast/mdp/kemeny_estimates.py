"""Kemeny's constant and entropies of chains with too many states for a matrix, with standard errors.

Kemeny's constant is tr A⁻¹ − 1 with A = I − P + 1uᵀ (see ``kemeny``). A trace can be estimated from products
alone: for random signs g, gᵀBg has the right mean, and its variance comes from the off-diagonal entries of B. Most
of that variance comes from the chain's few slow modes. They span an invariant subspace, so in a basis that begins
with it, A is block triangular. The trace of A⁻¹ is then the trace of the small block's inverse, which is exact,
plus that of the other block's inverse, of which only the difference from the identity has to be estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError
from holdfast.mdp.chains import ChainOperator
from holdfast.mdp.iteration import NoConvergenceError
from holdfast.mdp.kemeny import entropies

__all__ = ["EstimateWithError", "estimate_kemeny", "estimate_row_entropy", "estimate_stationary_distribution"]


_INVARIANCE = 1e-7
"""How far slow modes may be from invariant; without them the estimate is less precise but still right."""
_RESTARTS = 30
"""Restarts of the search for slow modes; each costs about as many products as there are modes."""
_RESIDUAL = 1e-7
_MOST_ITERATIONS = 400
_COLUMNS = 16
"""Vectors processed at a time: with one, calls dominate the time; with many, they no longer fit the cache."""


class EstimateWithError(NamedTuple):
    """A number and its standard error.

    Attributes:
        value: The number.
        standard_error: Its standard error; 0 if it is exact.
    """

    value: float
    standard_error: float


def estimate_kemeny(
    chain: ChainOperator, n_probes: int = 64, n_slow: int = 16, seed: int = 0
) -> EstimateWithError:
    """Kemeny's constant of a large chain, from products with it; memory grows only with S.

    Args:
        chain: P_H.
        n_probes: Number of random sign vectors; the standard error falls with the square root of this number.
        n_slow: Number of slow modes to treat exactly.
        seed: Seed of the signs; the same seed gives the same estimate.

    Raises:
        ValueError: The chain is not irreducible.
        NoConvergenceError: A linear system was not solved in 400 iterations; the chain is then almost reducible.
    """
    n_probes = check_integer("n_probes", n_probes, at_least=2)
    n_slow = check_integer("n_slow", n_slow, at_least=0)
    random = np.random.default_rng(check_integer("seed", seed, at_least=0))
    _check_reach(chain)
    S = chain.n_states
    basis, block = _slow_modes(chain, min(n_slow, S // 4), random)

    def rest(values: Floats) -> Floats:
        return values - basis @ (basis.T @ values)

    samples = []
    for first in range(0, n_probes, _COLUMNS):
        signs = random.choice((-1.0, 1.0), size=(S, min(_COLUMNS, n_probes - first)))
        probes = rest(signs)
        solved = _solve(lambda x: rest(_regular(chain, x)), probes)
        samples.append(np.einsum("sm,sm->m", probes, solved - probes))
    beyond = np.concatenate(samples)
    exact = float(np.trace(np.linalg.inv(block))) + S - basis.shape[1] - 1.0
    return EstimateWithError(exact + float(beyond.mean()), float(beyond.std(ddof=1) / np.sqrt(n_probes)))


def estimate_row_entropy(chain: ChainOperator, n_rows: int = 128, seed: int = 0) -> EstimateWithError:
    """The mean entropy of the rows of P_H, in nats, from ``n_rows`` different states drawn at random."""
    n_rows = check_integer("n_rows", n_rows, at_least=2)
    random = np.random.default_rng(check_integer("seed", seed, at_least=0))
    S = chain.n_states
    drawn = random.choice(S, size=min(n_rows, S), replace=False)
    found = []
    for states in np.array_split(drawn, -(-len(drawn) // _COLUMNS)):
        starts = np.zeros((S, len(states)))
        starts[states, np.arange(len(states))] = 1.0
        found.append(entropies(chain.apply_transposed(starts).T))
    values = np.concatenate(found)
    if len(values) == S:
        return EstimateWithError(float(values.mean()), 0.0)
    # Drawn without replacement: the larger the share of states drawn, the smaller the error.
    error = values.std(ddof=1) * np.sqrt((1.0 - len(values) / S) / len(values))
    return EstimateWithError(float(values.mean()), float(error))


def estimate_stationary_distribution(chain: ChainOperator) -> Floats:
    """π of a large chain, (S,), by solving Aᵀπ = u iteratively; the result does not depend on chance.

    Raises:
        ValueError: The chain is not irreducible.
        NoConvergenceError: The system was not solved in 400 iterations.
    """
    _check_reach(chain)
    uniform = np.full((chain.n_states, 1), 1.0 / chain.n_states)

    def transposed(weights: Floats) -> Floats:
        return np.asarray(weights - chain.apply_transposed(weights) + weights.sum(axis=0) / chain.n_states)

    pi = np.maximum(_solve(transposed, uniform)[:, 0], 0.0)
    return np.asarray(pi / pi.sum())


def _regular(chain: ChainOperator, values: Floats) -> Floats:
    """A f = f − P_H f + mean f."""
    return np.asarray(values - chain.apply(values) + values.mean(axis=0))


def _slow_modes(chain: ChainOperator, number: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """An orthonormal basis Q (S,q) of constants and slow modes, and QᵀAQ (q,q)."""
    S = chain.n_states
    constant = np.full((S, 1), S**-0.5)
    alone = constant, np.ones((1, 1))
    if number < 1:
        return alone
    # Remove the eigenvalue 1, whose modes are the constants.
    deflated = LinearOperator((S, S), matvec=lambda x: chain.apply(x.ravel()) - x.mean(), dtype=np.float64)
    try:
        modes: NDArray[Any] = eigs(
            deflated, k=number, which="LR", v0=random.normal(size=S), tol=1e-10, maxiter=_RESTARTS
        )[1]
    except ArpackNoConvergence as error:
        # The modes that were found suffice: the others are closely spaced and fast.
        modes = error.eigenvectors
    except ArpackError:
        # A chain that forgets everything in one step has no modes.
        return alone
    directions, sizes, _ = np.linalg.svd(np.hstack([constant, modes.real, modes.imag]), full_matrices=False)
    basis = directions[:, sizes > 1e-6 * sizes[0]]
    image = _regular(chain, basis)
    block = basis.T @ image
    if np.linalg.norm(image - basis @ block) > _INVARIANCE:
        return alone
    return basis, block


def _solve(operator: Callable[[Floats], Floats], right: Floats) -> Floats:
    """X with ``operator``(X) = ``right``, (S,m), by generalised conjugate residuals, column by column."""
    solution = np.zeros_like(right)
    residual = right.copy()
    sizes = np.linalg.norm(right, axis=0)
    directions: list[tuple[Floats, Floats]] = []
    for _ in range(_MOST_ITERATIONS):
        direction = residual.copy()
        image = operator(direction)
        for earlier, earlier_image in directions:
            part = np.einsum("sm,sm->m", image, earlier_image)
            image -= part * earlier_image
            direction -= part * earlier
        # A column that is already solved has no direction left.
        length = np.maximum(np.linalg.norm(image, axis=0), np.finfo(np.float64).tiny)
        image, direction = image / length, direction / length
        directions.append((direction, image))
        step = np.einsum("sm,sm->m", image, residual)
        solution += step * direction
        residual -= step * image
        if np.all(np.linalg.norm(residual, axis=0) <= _RESIDUAL * sizes):
            return solution
    raise NoConvergenceError(
        f"a linear system was not solved in {_MOST_ITERATIONS} iterations: the chain is almost reducible",
        solution,
    )


def _check_reach(chain: ChainOperator) -> None:
    """Raise ValueError unless every state can be reached from the first, and the first from every state."""
    for words, spread in (("be reached from state 0", chain.apply_transposed), ("reach state 0", chain.apply)):
        reached = np.zeros(chain.n_states)
        reached[0] = 1.0
        while True:
            following = np.where(spread(reached) + reached > 0.0, 1.0, 0.0)
            if np.array_equal(following, reached):
                break
            reached = following
        if not reached.all():
            raise InputError(
                f"the chain must lead from every state to every other, but only {int(reached.sum())} of "
                f"{chain.n_states} states can {words}: let the ends of episodes restart (holes='restart'), "
                "leave the other states out, or, if moves are periodic, use another H"
            )
