"""The paper's definitions written out slowly, with dense matrices and one loop per index: what the tests believe.

Nothing here imports the code under test. P (S,A,S), r (S,A) and γ are such that terminal states lead to themselves
with reward 0; ``terminal`` (S,) says which values count as 0.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def assert_near(actual: Floats, expected: Floats, tolerance: float = 1e-8) -> None:
    """Equal up to ``tolerance`` times the magnitude of the expected values."""
    scale = 1.0 + float(np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale)


def held_kernel(P: Floats, k: int) -> Floats:
    """P_k: for each action, the k-th power of its matrix."""
    return np.stack([np.linalg.matrix_power(P[:, a], k) for a in range(P.shape[1])], axis=1)


def held_reward(P: Floats, r: Floats, gamma: float, k: int) -> Floats:
    """r_k = Σ_{i<k} γ^i P^i r, each action for itself."""
    total = np.zeros(r.shape)
    for a in range(r.shape[1]):
        for i in range(k):
            total[:, a] += gamma**i * np.linalg.matrix_power(P[:, a], i) @ r[:, a]
    return total


def option_optimality(
    P: Floats, r: Floats, gamma: float, terminal: NDArray[np.bool_], f: Floats, cost: float = 0.0
) -> Floats:
    """T*_K f, where each decision costs ``cost``."""
    best = [0.0 if terminal[s] else max(f[s].ravel()) - cost for s in range(len(P))]
    return after_holding(P, r, gamma, best, f.shape[2])


def option_expectation(
    P: Floats, r: Floats, gamma: float, terminal: NDArray[np.bool_], psi: Floats, f: Floats
) -> Floats:
    """T^ψ f."""
    mean = [0.0 if terminal[s] else sum((psi[s] * f[s]).ravel()) for s in range(len(P))]
    return after_holding(P, r, gamma, mean, f.shape[2])


def after_holding(P: Floats, r: Floats, gamma: float, values: list[float], k_max: int) -> Floats:
    """r_k + γ^k Σ_s' P_k(s'|s,a) V(s')."""
    result = np.zeros((*r.shape, k_max))
    for k in range(1, k_max + 1):
        P_k, r_k = held_kernel(P, k), held_reward(P, r, gamma, k)
        for s, a in np.ndindex(r.shape):
            result[s, a, k - 1] = r_k[s, a] + gamma**k * sum(P_k[s, a, t] * values[t] for t in range(len(P)))
    return result


def bootstrap(P: Floats, r: Floats, gamma: float, terminal: NDArray[np.bool_], kappa: int, f: Floats) -> Floats:
    """T^κ f, NaN where k ≤ κ."""
    P_kappa, r_kappa = held_kernel(P, kappa), held_reward(P, r, gamma, kappa)
    result = np.full(f.shape, np.nan)
    for s, a in np.ndindex(r.shape):
        for k in range(kappa + 1, f.shape[2] + 1):
            rest = sum(P_kappa[s, a, t] * f[t, a, k - kappa - 1] for t in range(len(P)) if not terminal[t])
            result[s, a, k - 1] = r_kappa[s, a] + gamma**kappa * rest
    return result


def all_persistence(
    P: Floats, r: Floats, gamma: float, terminal: NDArray[np.bool_], kappa: int, f: Floats, cost: float = 0.0
) -> Floats:
    """H^κ f, where each decision costs ``cost``."""
    longer = np.arange(1, f.shape[2] + 1) > kappa
    return np.where(
        longer, bootstrap(P, r, gamma, terminal, kappa, f), option_optimality(P, r, gamma, terminal, f, cost)
    )


def sparse_all_persistence(
    P: Floats,
    r: Floats,
    gamma: float,
    terminal: NDArray[np.bool_],
    kappa: int,
    f: Floats,
    durations: tuple[int, ...],
    cost: float = 0.0,
) -> Floats:
    """H^κ f over a sparse set: of k steps see k, or as many of κ as leave a rest in the set, or nothing."""
    best = [0.0 if terminal[s] else max(f[s].ravel()) - cost for s in range(len(P))]
    result = np.empty(f.shape)
    for (s, a, position), value in np.ndenumerate(f):
        k = durations[position]
        seen = [length for length in range(1, kappa + 1) if length == k or k - length in durations]
        if not seen:
            result[s, a, position] = 0.0 if terminal[s] else value
            continue
        length = seen[-1]
        held, earned = held_kernel(P, length), held_reward(P, r, gamma, length)
        if length == k:
            rest = sum(held[s, a, t] * best[t] for t in range(len(P)))
        else:
            at = durations.index(k - length)
            rest = sum(held[s, a, t] * f[t, a, at] for t in range(len(P)) if not terminal[t])
        result[s, a, position] = earned[s, a] + gamma**length * rest
    return result


def policy_values(P: Floats, r: Floats, gamma: float, psi: Floats) -> Floats:
    """Q^ψ as the solution of its S·A·K linear equations (γ < 1)."""
    size = psi.size
    matrix, constant = np.eye(size), np.zeros(size)
    for row, (s, a, index) in enumerate(np.ndindex(psi.shape)):
        k = index + 1
        constant[row] = held_reward(P, r, gamma, k)[s, a]
        for column, (t, b, j) in enumerate(np.ndindex(psi.shape)):
            matrix[row, column] -= gamma**k * held_kernel(P, k)[s, a, t] * psi[t, b, j]
    return np.linalg.solve(matrix, constant).reshape(psi.shape)


def best_values(P: Floats, r: Floats, gamma: float, k_max: int) -> Floats:
    """Q*_K by trying every deterministic policy over options: (A·K)^S linear solves (γ < 1).

    Some policy is best in all states at once, so that V* is the maximum over policies in each state.
    """
    S, A = r.shape
    durations = np.arange(1, k_max + 1)
    kernels = np.stack([held_kernel(P, k) for k in durations], axis=2)  # (S,A,K,S)
    rewards = np.stack([held_reward(P, r, gamma, k) for k in durations], axis=2)  # (S,A,K)
    kernels = (gamma**durations)[:, None] * kernels
    choices = np.array(list(product(range(A * k_max), repeat=S)))  # (policies,S)
    states = np.arange(S)
    matrices = kernels.reshape(S, A * k_max, S)[states, choices]
    constants = rewards.reshape(S, A * k_max)[states, choices]
    best = np.linalg.solve(np.eye(S) - matrices, constants[:, :, None])[:, :, 0].max(axis=0)
    return rewards + kernels @ best
