"""The k-persistent model: the MDP that an agent faces if it holds every action for k steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_integer
from holdfast.core.history import discounts
from holdfast.mdp.kernels import Kernel
from holdfast.mdp.model import TabularMDP

__all__ = ["persistent_kernel", "persistent_mdp", "persistent_reward"]


def persistent_kernel(mdp: TabularMDP, k: int) -> Any:
    """P_k(s'|s,a): where holding ``a`` for ``k`` steps leads. P_1 = P, P_k = P_{k−1}·P under the same action.

    Paper: Definition persistent-kernel

    Returns:
        A table in the model's own form: dense (S,A,S), next states (S,A), or A sparse (S,S).
    """
    return _kernel_power(mdp, check_integer("k", k)).table


def persistent_reward(mdp: TabularMDP, k: int) -> NDArray[np.float64]:
    """r_k(s,a) = Σ_{i<k} γ^i (P^i r)(s,a): the discounted reward of holding ``a`` for ``k`` steps, (S,A).

    Paper: Definition persistent-reward
    """
    powers = discounts(mdp.gamma, check_integer("k", k))
    later = mdp.reward
    total = mdp.reward.copy()
    for i in range(1, k):
        later = mdp.kernel.expect_held(later)
        total += powers[i] * later
    return total


def persistent_mdp(mdp: TabularMDP, k: int) -> TabularMDP:
    """The MDP (P_k, r_k, γ^k) of an agent that holds every action for exactly ``k`` steps."""
    P_k = persistent_kernel(mdp, k)
    gamma_k = float(discounts(mdp.gamma, k)[k])
    return TabularMDP(P_k, persistent_reward(mdp, k), gamma_k, mdp.initial, mdp.terminal)


def _kernel_power(mdp: TabularMDP, k: int) -> Kernel:
    """P_k by repeated squaring, which works because the powers of one action's kernel commute."""
    power: Kernel | None = None
    square = mdp.kernel
    while True:
        if k & 1:
            power = square if power is None else power.then(square)
        k >>= 1
        if k == 0:
            assert power is not None
            return power
        square = square.then(square)
