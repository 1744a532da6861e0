"""What a policy is worth: V^π from V = r_π + γ P_π V."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import spsolve

from holdfast.mdp.kernels import DeterministicKernel
from holdfast.mdp.model import TabularMDP

__all__ = ["path_values", "policy_values"]


def policy_values(mdp: TabularMDP, policy: NDArray[np.int64]) -> NDArray[np.float64]:
    """V^π of a deterministic policy (S,), for γ < 1, (S,).

    Certain moves are followed to their end, which takes time and memory as S; otherwise (I − γ P_π) V = r_π is
    solved, which is for models of moderate size.
    """
    states = np.arange(mdp.n_states)
    reward = mdp.reward[states, policy]
    if isinstance(mdp.kernel, DeterministicKernel):
        return path_values(mdp.kernel.table[states, policy], reward, mdp.gamma)
    chain = mdp.kernel.under(policy)
    if isinstance(chain, np.ndarray):
        values = np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * chain, reward)
    else:
        values = np.atleast_1d(spsolve(sp.csc_array(sp.eye_array(mdp.n_states) - mdp.gamma * chain), reward))
    return np.where(mdp.terminal, 0.0, values)


def path_values(following: NDArray[np.int64], reward: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """Σ_i γ^i r(s_i) along the path s_0 = s, s_{i+1} = following(s_i) that begins in each state s, (S,).

    The sum over 2n steps is that over n steps, and γ^n times the same from where they lead. So it takes log₂ n
    passes until γ^n is less than any number, or the path has nothing more to give, and rounding is that of
    adding as many numbers.

    Args:
        following: The next state of each state, (S,).
        reward: The reward of each state's step, (S,).
        gamma: Discount factor. If it is 1, paths are cut off once they have come round: after S steps or more.
    """
    values = np.array(reward, dtype=np.float64)
    steps = 1
    while (discount := gamma**steps) > 0.0 and (gamma < 1.0 or steps < len(values)):
        beyond = values[following]
        if not beyond.any():
            break
        values += discount * beyond
        following = following[following]
        steps *= 2
    return values
