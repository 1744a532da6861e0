"""The formulas of the actor-critic over options: by hand, and as a contraction for fixed policies."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.core.actor_critic import (
    actor_objective,
    actor_state_value,
    clipped_minimum,
    held_entropy,
    proposed_values,
    smoothed_actions,
    soft_actor_objective,
    soft_persistence_target,
    soft_state_value,
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


# Entropy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "value"), [("options", 3.0), ("primitive", 2.0)])
def test_entropy_is_part_of_a_states_value(kind, value):
    # The heads are worth 1 and 4; their actions have log π of −2 and 2, and α is 0.5: 1 + 1 and 4 − 1.
    assert soft_state_value(VALUES, np.array([[-2.0, 2.0]]), 0.5, kind).tolist() == [value]


def test_a_soft_actor_maximises_value_and_entropy_of_all_heads():
    assert soft_actor_objective(VALUES, np.array([[-2.0, 2.0]]), 0.5) == 2.5  # (2 + 3) / 2


def test_undecided_steps_are_paid_from_the_second_on():
    # 0, 0, 0.9·2, 0.9·2 + 0.81·2
    assert held_entropy(3, 0.9, 2.0) == pytest.approx([0.0, 0.0, 1.8, 3.42])


def test_a_soft_target_by_hand():
    # Three steps of reward 1 in all, γ = 1/2, αH̄ = −4, V(s') = 16, Q(s',a,k−3) = 8. Two steps inside the tuple are
    # paid −2 and −1.
    shared = {"reward": 1.0, "gamma": 0.5, "length": 3, "next_state_value": 16.0, "next_held_value": 8.0}
    whole = soft_persistence_target(**shared, complete=True, terminated=False, payment=-4.0)
    assert whole == 0.0  # 1 − 3 + 16/8
    # Held on, s' is a step that decides nothing.
    part = soft_persistence_target(**shared, complete=False, terminated=False, payment=-4.0)
    assert part == -1.5  # 1 − 3 + (8 − 4)/8
    ended = soft_persistence_target(**shared, complete=False, terminated=True, payment=-4.0)
    assert ended == -2.0


def test_a_single_step_is_sacs_own():
    assert soft_persistence_target(1.0, 0.5, 1, True, 16.0, 0.0, False, -4.0) == 9.0  # 1 + 16/2


def test_holding_and_deciding_are_paid_alike():
    """One state, no rewards, and decisions that have the entropy H̄: every option is worth Σ_{i≥1} γ^i αH̄."""
    alpha, entropy, n = 0.3, math.log(4.0), 5
    values = np.zeros(n)
    for _ in range(600):
        # Four actions are equally likely: −log π = H̄ for all of them.
        state_value = values.max() + alpha * entropy
        values = np.array(
            [
                soft_persistence_target(0.0, GAMMA, k, True, state_value, 0.0, False, alpha * entropy)
                for k in range(1, n + 1)
            ]
        )
    assert values == pytest.approx(np.full(n, GAMMA * alpha * entropy / (1.0 - GAMMA)))


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

    def held(self, state: int, action: int, length: int) -> tuple[float, int]:
        """r^ℓ of holding an action, and where it leads."""
        total = 0.0
        for step in range(length):
            total += GAMMA**step * self.rewards[state, action]
            state = int(self.next_state[state, action])
        return total, state

    def operator(self, q: NDArray[np.float64], kind: str) -> NDArray[np.float64]:
        """What tuples of κ steps make of Q (S, A, K), for fixed heads."""
        proposals = np.take_along_axis(q, self.heads[..., None], axis=1)
        state_values = actor_state_value(proposals[None], kind)
        found = np.empty_like(q)
        for state, action, position in np.ndindex(*q.shape):
            length = min(position + 1, self.kappa)
            total, place = self.held(state, action, length)
            rest = position + 1 - length
            held = q[place, action, rest - 1] if rest else 0.0
            found[state, action, position] = all_persistence_target(
                total, GAMMA**length, rest == 0, state_values[place], held, False
            )
        return found


def refuse_an_expansion(operator, random):
    """Assert that an operator on (S, A, K) brings two random tables closer, by γ at least."""
    one, other = random.normal(size=(2, 5, 4, N_DURATIONS))
    change = np.abs(operator(one) - operator(other)).max()
    assert change <= GAMMA * np.abs(one - other).max() + 1e-12


@pytest.mark.parametrize("kind", ["options", "primitive"])
def test_the_operator_of_fixed_heads_is_a_contraction(kind):
    random = np.random.default_rng(0)
    for _ in range(20):
        problem = Discretised.drawn(random)
        refuse_an_expansion(partial(problem.operator, kind=kind), random)


class Soft(NamedTuple):
    """A problem with a few actions, and heads that draw among them."""

    world: Discretised
    policies: NDArray[np.float64]  # (S, A, K) π_k(a|s)
    alpha: float
    payment: float

    @classmethod
    def drawn(cls, random: np.random.Generator) -> Soft:
        logits = random.normal(size=(5, 4, N_DURATIONS))
        policies = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        alpha = float(random.uniform(0.1, 1.0))
        return cls(Discretised.drawn(random), policies, alpha, alpha * float(random.normal()))

    def state_values(self, q: NDArray[np.float64], kind: str) -> NDArray[np.float64]:
        """V(s), in expectation over what the heads draw."""
        soft = (self.policies * (q - self.alpha * np.log(self.policies))).sum(axis=1)
        return soft[:, 0] if kind == "primitive" else soft.max(axis=1)

    def operator(self, q: NDArray[np.float64], kind: str, kappa: int) -> NDArray[np.float64]:
        """What tuples of at most κ steps make of Q (S, A, K), for fixed heads."""
        state_values, found = self.state_values(q, kind), np.empty_like(q)
        for state, action, position in np.ndindex(*q.shape):
            length = min(position + 1, kappa)
            total, place = self.world.held(state, action, length)
            rest = position + 1 - length
            held = q[place, action, rest - 1] if rest else 0.0
            found[state, action, position] = soft_persistence_target(
                total, GAMMA, length, rest == 0, state_values[place], held, False, self.payment
            )
        return found

    def solution(self, kind: str, kappa: int) -> NDArray[np.float64]:
        q = np.zeros((5, 4, N_DURATIONS))
        for _ in range(400):
            q = self.operator(q, kind, kappa)
        return q


@pytest.mark.parametrize("kind", ["options", "primitive"])
def test_the_soft_operator_of_fixed_heads_is_a_contraction(kind):
    random = np.random.default_rng(1)
    for _ in range(10):
        problem = Soft.drawn(random)
        for kappa in (1, 2, 3):
            refuse_an_expansion(partial(problem.operator, kind=kind, kappa=kappa), random)


@pytest.mark.parametrize("kind", ["options", "primitive"])
def test_its_solution_does_not_depend_on_how_long_actions_were_held(kind):
    random = np.random.default_rng(2)
    for _ in range(3):
        problem = Soft.drawn(random)
        by_steps, by_holds = problem.solution(kind, 1), problem.solution(kind, N_DURATIONS)
        assert by_steps == pytest.approx(by_holds, abs=1e-9)
        assert problem.solution(kind, 2) == pytest.approx(by_holds, abs=1e-9)


def test_the_primitive_solution_at_one_step_is_the_soft_value_of_its_first_head():
    """Against a linear system: V = Σ_a π_1 (r + γ V' − α log π_1)."""
    problem = Soft.drawn(np.random.default_rng(3))
    first, world = problem.policies[:, :, 0], problem.world
    chain = np.zeros((5, 5))
    for state, action in np.ndindex(5, 4):
        chain[state, world.next_state[state, action]] += first[state, action]
    paid = (first * (world.rewards - problem.alpha * np.log(first))).sum(axis=1)
    values = np.linalg.solve(np.eye(5) - GAMMA * chain, paid)
    expected = world.rewards + GAMMA * values[world.next_state]
    assert problem.solution("primitive", 3)[:, :, 0] == pytest.approx(expected, abs=1e-9)
