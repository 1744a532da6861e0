"""The formulas of the actor-critic over options: by hand, and as a contraction for fixed policies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.core.actor_critic import (
    actor_objective,
    actor_state_value,
    clipped_minimum,
    proposed_values,
    smoothed_actions,
)
from holdfast.core.targets import all_persistence_target

GAMMA, N_DURATIONS = 0.9, 3

# Two critics, one state, K = 2: rows are the proposals of the two heads, columns the two durations.
VALUES = np.array([[[[1.0, 9.0], [8.0, 5.0]]], [[[3.0, 7.0], [6.0, 4.0]]]])


def test_a_head_is_valued_at_its_own_persistence():
    assert proposed_values(VALUES).tolist() == [[[1.0, 5.0]], [[3.0, 4.0]]]


def test_the_smaller_of_the_critics_counts():
    assert clipped_minimum(proposed_values(VALUES)).tolist() == [[1.0, 4.0]]


@pytest.mark.parametrize(("kind", "value"), [("options", 4.0), ("primitive", 1.0)])
def test_the_value_of_a_state(kind, value):
    # The heads are worth min(1, 3) = 1 and min(5, 4) = 4.
    assert actor_state_value(VALUES, kind).tolist() == [value]


def test_minimum_before_maximum():
    crossed = np.zeros((2, 1, 2, 2))
    crossed[0, 0, 0, 0], crossed[1, 0, 1, 1] = 6.0, 6.0
    # Each critic has a best head worth 6, but no head is worth more than 0 to both.
    assert actor_state_value(crossed, "options").tolist() == [0.0]


def test_another_name_is_refused():
    with pytest.raises(ValueError, match=r"^target_value must be"):
        actor_state_value(VALUES, "double")


def test_noise_is_clipped_before_it_is_added_and_actions_after():
    actions, noise = np.array([0.0, 0.9, -0.2]), np.array([0.7, 0.3, -0.1])
    assert smoothed_actions(actions, noise, 0.5) == pytest.approx([0.5, 1.0, -0.3])


def test_the_actor_maximises_the_mean_over_its_heads():
    assert actor_objective(VALUES[0]) == 3.0  # (1 + 5) / 2


class Discretised(NamedTuple):
    """A deterministic problem with a few actions, and heads that choose among them."""

    next_state: NDArray[np.int64]  # (S, A)
    rewards: NDArray[np.float64]  # (S, A)
    heads: NDArray[np.int64]  # (S, K)
    kappa: int

    @classmethod
    def drawn(cls, random: np.random.Generator, n_states: int = 5, n_actions: int = 4) -> Discretised:
        return cls(
            random.integers(n_states, size=(n_states, n_actions)),
            random.normal(size=(n_states, n_actions)),
            random.integers(n_actions, size=(n_states, N_DURATIONS)),
            int(random.integers(1, N_DURATIONS + 1)),
        )

    def operator(self, q: NDArray[np.float64], kind: str) -> NDArray[np.float64]:
        """What tuples of κ steps make of Q (S, A, K), for fixed heads."""
        proposals = np.take_along_axis(q, self.heads[..., None], axis=1)
        state_values = actor_state_value(proposals[None], kind)
        found = np.empty_like(q)
        for state, action, position in np.ndindex(*q.shape):
            length, place, total = min(position + 1, self.kappa), state, 0.0
            for step in range(length):
                total += GAMMA**step * self.rewards[place, action]
                place = self.next_state[place, action]
            rest = position + 1 - length
            held = q[place, action, rest - 1] if rest else 0.0
            found[state, action, position] = all_persistence_target(
                total, GAMMA**length, rest == 0, state_values[place], held, False
            )
        return found


@pytest.mark.parametrize("kind", ["options", "primitive"])
def test_the_operator_of_fixed_heads_is_a_contraction(kind):
    random = np.random.default_rng(0)
    for _ in range(20):
        problem = Discretised.drawn(random)
        one, other = random.normal(size=(2, 5, 4, N_DURATIONS))
        change = np.abs(problem.operator(one, kind) - problem.operator(other, kind)).max()
        assert change <= GAMMA * np.abs(one - other).max() + 1e-12
