"""Partial histories: what was seen while one action was held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_discount, check_integer

__all__ = ["PartialHistory", "discounts", "is_terminal", "k_step_return"]


def discounts(gamma: float, k_max: int) -> NDArray[np.float64]:
    """Powers γ^0..γ^k_max by repeated multiplication, shape (k_max + 1,).

    ``gamma ** k`` rounds differently in compiled code; a table that is computed once is the same everywhere.
    """
    powers = np.empty(k_max + 1)
    powers[0] = 1.0
    for k in range(1, k_max + 1):
        powers[k] = powers[k - 1] * gamma
    return powers


def k_step_return(rewards: Any, start: Any, k: Any, gamma: Any) -> Any:
    """r^k = Σ_{l<k} γ^l rewards[start + l], summed from the last reward backwards (Horner)."""
    total = 0.0
    for step in range(start + k, start, -1):
        total = rewards[step - 1] + gamma * total
    return total


def is_terminal(done: Any, timeout: Any, through_timeouts: bool) -> Any:
    """Whether steps led to terminal states: they ended their episodes, other than by a live time limit.

    Args:
        done: Above 0 where a step ended its episode; a number or an array.
        timeout: Above 0 where a time limit did.
        through_timeouts: Whether the last state before a time limit is live, so that its value counts.
    """
    return (done > 0) & ((timeout == 0) | np.logical_not(through_timeouts))


@dataclass(frozen=True, slots=True, eq=False)
class PartialHistory:
    """H_t^κ = (s_t, a, r_{t+1}, s_{t+1}, ..., s_{t+κ}): one action held for κ steps.

    A history that a time limit truncated is simply not terminated: its last state is live.

    Paper: Definition partial-history

    Args:
        states: (κ+1, ...) states s_t..s_{t+κ}: integers, or observations of any shape.
        action: The held action.
        rewards: (κ,) rewards r_{t+1}..r_{t+κ}.
        terminated: Whether s_{t+κ} is terminal.
    """

    states: NDArray[Any]
    action: int
    rewards: NDArray[np.float64]
    terminated: bool = False

    def __post_init__(self) -> None:
        # Copies: freezing must not write-protect the caller's own arrays.
        states = np.array(self.states)
        rewards = np.array(self.rewards, dtype=np.float64)
        if rewards.ndim != 1 or len(rewards) < 1:
            raise ValueError(f"rewards must be a vector of at least one reward, not of shape {rewards.shape}")
        if states.ndim < 1 or len(states) != len(rewards) + 1:
            raise ValueError(
                f"states must be one more than the {len(rewards)} rewards, not {len(np.atleast_1d(states))}"
            )
        if not np.all(np.isfinite(rewards)):
            raise ValueError("rewards must be finite")
        states.flags.writeable = False
        rewards.flags.writeable = False
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "action", check_integer("action", self.action, at_least=0))
        object.__setattr__(self, "rewards", rewards)
        object.__setattr__(self, "terminated", bool(self.terminated))

    @property
    def kappa(self) -> int:
        """κ, the number of executed steps."""
        return len(self.rewards)

    def k_step_return(self, start: int, k: int, gamma: float) -> float:
        """r^k_{t+start+1}: the discounted reward of the ``k`` steps from ``start`` on."""
        if start < 0 or k < 1 or start + k > self.kappa:
            raise ValueError(f"steps {start}..{start + k} must lie within the {self.kappa} executed steps")
        return float(k_step_return(self.rewards, start, k, check_discount(gamma)))

    def window(self, i: int, j: int) -> PartialHistory:
        """The sub-history from s_{t+i} to s_{t+j}, 0 ≤ i < j ≤ κ."""
        if not 0 <= i < j <= self.kappa:
            raise ValueError(f"a window must satisfy 0 <= i < j <= {self.kappa}, not i={i}, j={j}")
        ends_episode = self.terminated and j == self.kappa
        return PartialHistory(self.states[i : j + 1], self.action, self.rewards[i:j], ends_episode)
