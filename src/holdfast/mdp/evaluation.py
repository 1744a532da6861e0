"""The value of a policy: V^π from V = r_π + γ P_π V."""

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

    In deterministic models, paths are followed to their ends, in time and memory proportional to S. In others,
    (I − γ P_π) V = r_π is solved, which suits models of moderate size.
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

    The sum over 2n steps is the sum over n steps plus γ^n times the sum over n steps from the state they lead to.
    It therefore takes log₂ n passes until γ^n underflows to 0 or the rest of every path has no reward. The
    rounding error is that of adding the numbers one by one.

    Args:
        following: The next state of each state, (S,).
        reward: The reward of the step from each state, (S,).
        gamma: Discount factor. If it is 1, paths are cut off once they must have repeated a state: after S steps
            or more.
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
