"""A model for an agent that decides on options: where options lead, what they earn, and what policies are worth.

A policy over options picks one (a,k) in each state. If every decision costs c, the policy is worth

    V(s) = r_k(s,a) − c + γ^k Σ P_k(s'|s,a) V(s')

in live states and 0 in terminal ones. With 1 in place of r_k − c, the same equations count its decisions, each
discounted to the time when it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import spsolve

from holdfast.core.array_types import Floats, Integers
from holdfast.core.history import discounts
from holdfast.core.targets import undecided_value
from holdfast.mdp.kernels import DeterministicKernel
from holdfast.mdp.model import TabularMDP
from holdfast.mdp.operators import held_returns

__all__ = ["OptionModel", "held_ends"]


def held_ends(following: NDArray[np.integer], durations: Sequence[int]) -> NDArray[np.int32]:
    """Where holding deterministic moves for each of ``durations`` leads: next states (S,A) → (S,A,K)."""
    actions = np.arange(following.shape[1])
    ends = np.empty((*following.shape, len(durations)), dtype=np.int32)
    reached, steps = following, 1
    for index, k in enumerate(durations):
        for _ in range(k - steps):
            reached = following[reached, actions]
        ends[:, :, index], steps = reached, k
    return ends


class OptionModel:
    """The options of a model and policies over them, for γ < 1.

    Policies are arrays (S,) of flat option numbers, action · K + position of k.

    Args:
        mdp: The model.
        durations: The persistences that an option may have.

    Attributes:
        mdp: The model.
        durations: The persistences.
        rewards: (S,A,K) r_k(s,a).
    """

    def __init__(self, mdp: TabularMDP, durations: Sequence[int]) -> None:
        self.mdp = mdp
        self.durations = tuple(durations)
        self.rewards = held_returns(mdp, np.zeros(mdp.n_states), persistences=durations)
        self._discounts = discounts(mdp.gamma, self.durations[-1])[list(self.durations)]
        is_certain = isinstance(mdp.kernel, DeterministicKernel)
        self.ends = held_ends(mdp.kernel.table, durations) if is_certain else None

    def policy_values(self, policy: Integers, decision_cost: float) -> Floats:
        """V(s) of ``policy`` before the decision in s is paid for, (S,)."""
        earned = self.rewards.reshape(self.mdp.n_states, -1)[np.arange(self.mdp.n_states), policy]
        return self._accumulated(policy, np.asarray(undecided_value(earned, decision_cost)))

    def discounted_decisions(self, policy: Integers) -> Floats:
        """Σ γ^{t_i} over the times t_i at which ``policy`` decides, counted from each state, (S,)."""
        return self._accumulated(policy, np.ones(self.mdp.n_states))

    def _accumulated(self, policy: Integers, gains: Floats) -> Floats:
        """Discounted sum of ``gains`` (S,), one per decision in a live state, along ``policy``, (S,)."""
        gains = np.where(self.mdp.terminal, 0.0, gains)
        actions, positions = np.divmod(policy, len(self.durations))
        discount = self._discounts[positions]
        if self.ends is not None:
            return _along_paths(self.ends[np.arange(len(policy)), actions, positions], gains, discount)
        chain = self._chain(actions, np.array(self.durations)[positions])
        if isinstance(chain, np.ndarray):
            values = np.linalg.solve(np.eye(len(gains)) - discount[:, None] * chain, gains)
        else:
            system = sp.eye_array(len(gains)) - sp.diags_array(discount) @ chain
            values = np.atleast_1d(spsolve(sp.csc_array(system), gains))
        return np.where(self.mdp.terminal, 0.0, values)

    def _chain(self, actions: Integers, durations: Integers) -> Any:
        """The chain of the states in which options begin, (S,S): row s is that of P_k under the option of s."""
        first_steps = self.mdp.kernel.under(actions)
        options, kinds = np.unique(np.stack([actions, durations]), axis=1, return_inverse=True)
        rows = []
        for kind, (action, k) in enumerate(options.T):
            chain, matrix = first_steps[np.flatnonzero(kinds == kind)], _matrix(self.mdp, action)
            for _ in range(k - 1):
                chain = chain @ matrix
            rows.append(chain)
        place = np.argsort(np.argsort(kinds, kind="stable"))
        if isinstance(first_steps, np.ndarray):
            return np.vstack(rows)[place]
        return sp.csr_array(sp.vstack(rows).tocsr()[place])


def _matrix(mdp: TabularMDP, action: int) -> Any:
    """The chain of holding one action forever, (S,S)."""
    return mdp.kernel.table[:, action] if isinstance(mdp.kernel.table, np.ndarray) else mdp.kernel.table[action]


def _along_paths(following: NDArray[np.integer], gains: Floats, discount: Floats) -> Floats:
    """V = gains + discount · V(following), (S,), by repeatedly doubling the number of decisions counted."""
    values = gains.copy()
    while discount.any():
        beyond = values[following]
        if not beyond.any():
            break
        values += discount * beyond
        discount, following = discount * discount[following], following[following]
    return values
