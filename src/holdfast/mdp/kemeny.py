"""How fast a Markov chain moves around: Kemeny's constant, first-passage times, entropies.

A chain is a matrix (S,S), dense or sparse, whose rows sum to 1. Every function except ``row_entropy`` needs an
irreducible chain, one that leads from every state to every other; it may be periodic. For any u with sum 1,
A = I − P + 1uᵀ has an inverse, which contains all the answers: πᵀ = uᵀA⁻¹, and its eigenvalues are 1 and
1/(1 − λ_i) for every eigenvalue of P except the first. Here u is uniform. The matrices are dense, and time grows
with S³.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_choice
from holdfast.core.errors import InputError
from holdfast.mdp.kernels import ROW_SUM_TOLERANCE

__all__ = [
    "check_irreducible",
    "kemeny_constant",
    "mean_first_passage_times",
    "row_entropy",
    "stationary_distribution",
    "stationary_entropy",
]


def kemeny_constant(P: Any, method: str = "eigenvalues") -> float:
    """The expected number of steps to a state drawn from π; it does not depend on the current state.

    A state is 0 steps away from itself: the complete graph has (n−1)²/n, a walk around a cycle has (n²−1)/6.

    Paper: Proposition prop:kemeny

    Args:
        P: The chain, (S,S).
        method: ``"eigenvalues"`` computes Σ_{i≥2} 1/(1 − λ_i) as in the paper. ``"first_passage"`` computes
            Σ_j π_j m_ij, in which the π_j cancel: it is the trace of A⁻¹ minus 1, and several times faster with
            many states.
    """
    check_choice("method", method, ("eigenvalues", "first_passage"))
    chain = _irreducible(P)
    if method == "first_passage":
        return float(np.trace(_inverse(chain))) - 1.0
    eigenvalues = scipy.linalg.eigvals(chain)
    others = np.delete(eigenvalues, np.argmin(np.abs(eigenvalues - 1.0)))
    return float(np.sum(1.0 / (1.0 - others)).real)


def mean_first_passage_times(P: Any) -> Floats:
    """m_ij, (S,S): the expected number of steps from i until the chain is first in j; m_ii = 0.

    They equal (z_jj − z_ij)/π_j, where z are the entries of A⁻¹.
    """
    chain = _irreducible(P)
    inverse = _inverse(chain)
    return np.asarray((np.diag(inverse) - inverse) / _stationary(inverse))


def stationary_distribution(P: Any) -> Floats:
    """π with πᵀP = πᵀ, (S,): the share of time that the chain spends in each state."""
    chain = _irreducible(P)
    uniform = np.full(len(chain), 1.0 / len(chain))
    return _normalised(scipy.linalg.solve(_regular(chain).T, uniform, overwrite_a=True))


def row_entropy(P: Any) -> float:
    """How uncertain the next state is, in nats: the entropy of each row, averaged over all states.

    This is the entropy in the paper's figure.
    """
    return float(np.mean(entropies(_chain(P))))


def stationary_entropy(P: Any) -> float:
    """The entropy of the stationary distribution, in nats: log S if the chain visits all states equally often."""
    return float(entropies(stationary_distribution(P)))


def entropies(probabilities: Floats) -> Floats:
    """−Σ p log p in nats over the last axis."""
    logarithms = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0.0)
    return -np.asarray(np.sum(probabilities * logarithms, axis=-1))


def check_irreducible(P: Any) -> None:
    """Raise ValueError unless the chain ``P`` leads from every state to every other."""
    pattern = sp.csr_array(P)
    number, component = connected_components(pattern, connection="strong")
    if number == 1:
        return
    origins, targets = pattern.nonzero()
    leaving = component[origins[component[origins] != component[targets]]]
    closed = number - len(np.unique(leaving))
    transient = int(np.isin(component, leaving).sum())
    what = f"it has {closed} closed classes" if closed > 1 else "it has one closed class"
    if transient:
        what += f" and {transient} state{'s' if transient > 1 else ''} that it leaves for good"
    raise InputError(
        f"the chain must lead from every state to every other, but {what}: let the ends of episodes restart "
        "(holes='restart'), keep one closed class, or, if moves are periodic, use another H"
    )


def _irreducible(P: Any) -> Floats:
    chain = _chain(P)
    check_irreducible(chain)
    return chain


def _chain(P: Any) -> Floats:
    """A checked chain as a dense array."""
    message = "P must be a matrix (S,S) of probabilities whose rows sum to 1"
    try:
        chain = np.asarray(_dense(P), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{message}, not {P!r}") from None
    if chain.ndim != 2 or chain.shape[0] != chain.shape[1] or not chain.size:
        raise InputError(f"{message}, not an array of shape {chain.shape}")
    if not np.all(np.isfinite(chain)) or np.any(chain < 0.0):
        raise InputError(f"{message}: some are negative or not finite")
    sums = chain.sum(axis=1)
    row = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[row] - 1.0) > ROW_SUM_TOLERANCE:
        raise InputError(f"{message}: the row of state {row} sums to {sums[row]:.10g}")
    return chain


def _dense(P: Any) -> Any:
    return cast(Any, P).toarray() if sp.issparse(P) else P


def _regular(chain: Floats) -> Floats:
    """A = I − P + 1uᵀ, (S,S)."""
    regular = 1.0 / len(chain) - chain
    np.fill_diagonal(regular, regular.diagonal() + 1.0)
    return regular


def _inverse(chain: Floats) -> Floats:
    """A⁻¹, (S,S)."""
    return np.asarray(scipy.linalg.inv(_regular(chain), overwrite_a=True))


def _stationary(inverse: Floats) -> Floats:
    """π = uᵀ A⁻¹, (S,)."""
    return _normalised(inverse.mean(axis=0))


def _normalised(pi: Floats) -> Floats:
    """π without rounding errors: no negative entries, sum 1."""
    positive = np.maximum(pi, 0.0)
    return np.asarray(positive / positive.sum())
