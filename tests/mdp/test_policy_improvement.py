"""Solving deterministic models: the same values as by other ways, however far they have to travel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from holdfast.mdp import NoConvergenceError, TabularMDP, bellman_optimality, q_star
from holdfast.mdp.policy_improvement import ImprovementWaves, is_better
from tests.mdp.random_mdps import RandomMDP, random_mdps


def corridor(length: int, gamma: float) -> TabularMDP:
    """States 0..length in a row, the last one terminal and worth 1 to enter; actions back and forth."""
    states = np.arange(length + 1)
    following = np.stack([np.maximum(states - 1, 0), np.minimum(states + 1, length)], axis=1)
    reward = np.zeros((length + 1, 2))
    reward[length - 1, 1] = 1.0
    return TabularMDP(following, reward, gamma, terminal=[length])


def grid_moves(side: int) -> np.ndarray:
    """Where left, down, right and up lead in a square whose border blocks, (S,4)."""
    row, column = np.divmod(np.arange(side * side), side)
    moves = [(row, column - 1), (row + 1, column), (row, column + 1), (row - 1, column)]
    return np.stack([np.clip(r, 0, side - 1) * side + np.clip(c, 0, side - 1) for r, c in moves], axis=1)


class TestSpread:
    def test_by_hand(self) -> None:
        # 0-1-2-3, 3 terminal, γ = ½. That 2 is worth 1 was just found: 1 is worth ½ then, and 0 is worth ¼. From
        # there it goes no further: back to 1 offers 2 a quarter only.
        values, policy = np.array([0.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 0])
        ImprovementWaves(corridor(3, 0.5)).spread(values, policy, np.array([2]))
        assert values.tolist() == [0.25, 0.5, 1.0, 0.0]
        assert policy.tolist() == [1, 1, 1, 0]

    def test_of_several_better_steps_the_best_is_taken(self) -> None:
        # From 0 to 1 for 2, 7 or 3.
        mdp = TabularMDP([[1, 1, 1], [1, 1, 1]], [[2.0, 7.0, 3.0], [0.0, 0.0, 0.0]], 0.5)
        values, policy = np.array([0.0, 0.0]), np.array([0, 0])
        ImprovementWaves(mdp).spread(values, policy, np.array([1]))
        assert (values.tolist(), policy.tolist()) == ([7.0, 0.0], [1, 0])

    def test_what_nothing_leads_to_changes_nothing(self) -> None:
        mdp = TabularMDP([[1], [1]], [[1.0], [0.0]], 0.5)
        values, policy = np.array([1.0, 0.0]), np.array([0, 0])
        ImprovementWaves(mdp).spread(values, policy, np.array([0]))
        assert values.tolist() == [1.0, 0.0]

    def test_it_does_not_go_round_for_ever(self) -> None:
        # A state that pays 1 for ever is worth 10^6, which waves of one step each would need millions for.
        values, policy = np.array([1.0]), np.array([0])
        ImprovementWaves(TabularMDP([[0]], [[1.0]], 0.999999)).spread(values, policy, np.array([0]))
        assert 1.0 < values[0] < 100.0


def test_better_is_better_beyond_rounding() -> None:
    offered = np.array([1.0, 1.0 + 1e-15, 1.0 + 1e-12, 1e-30, 1e-320, -1.0])
    held = np.array([1.0, 1.0, 1.0, 0.0, 0.0, -1.1])
    assert is_better(offered, held).tolist() == [False, False, True, True, False, True]


@given(random=random_mdps(gamma=st.floats(0.0, 0.99), max_states=8, deterministic=True))
def test_the_same_as_with_linear_equations(random: RandomMDP) -> None:
    """Given as probabilities, the model is solved by sweeps and linear systems."""
    P, r, gamma = random.plain()
    followed, solved = q_star(random.tabular("next states")), q_star(random.tabular("dense"))
    assert np.abs(followed - solved).max() <= 1e-12 * (1.0 + np.abs(solved).max())
    # And it is what the operator leaves as it is.
    values = np.where(random.terminal, 0.0, followed.max(axis=1))
    assert np.abs(r + gamma * P @ values - followed).max() <= 1e-12 * (1.0 + np.abs(solved).max())


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("seed", range(3))
def test_step_costs_measure_the_distance(gamma: float, seed: int) -> None:
    """V* = −(1−γ^d)/(1−γ) where every step costs 1 and d is the distance to the end that Dijkstra finds."""
    # A square with walls at random, which block: some cells are closed in, ways around are long.
    side = 40
    walls = np.random.default_rng(seed).random(side * side) < 0.35
    following = grid_moves(side)
    following = np.where(walls[following], np.arange(side * side)[:, None], following)
    terminal = [int(np.flatnonzero(~walls)[0])]
    mdp = TabularMDP(following, -np.ones(following.shape), gamma, terminal=terminal)
    edges = (np.ones(following.size), (following.ravel(), np.repeat(np.arange(side * side), 4)))
    distance = dijkstra(csr_array(edges), indices=terminal[0], unweighted=True)
    assert np.isinf(distance[~walls]).any()
    assert distance[np.isfinite(distance)].max() > 60
    assert q_star(mdp).max(axis=1) == pytest.approx(-(1 - gamma**distance) / (1 - gamma), rel=1e-13)


@pytest.mark.parametrize("gamma", [0.9, 0.99])
def test_far_values_are_right_to_the_last_digits(gamma: float) -> None:
    q = q_star(corridor(5000, gamma))
    assert q[:-1, 1] == pytest.approx(gamma ** np.arange(4999, -1, -1.0), rel=1e-12)
    assert np.all(q[:-1].argmax(axis=1) == 1)


def test_values_that_are_too_small_for_a_number_come_to_an_end() -> None:
    # .9^6557 is the last one above 1e-300.
    q = q_star(corridor(20_000, 0.9))
    assert q[20_000 - 6000, 1] == pytest.approx(0.9**5999, rel=1e-12)
    assert np.all(q[:5000] <= 1e-300)


@pytest.mark.parametrize("gamma", [0.9, 0.9999])
def test_models_of_nothing_but_circles(gamma: float) -> None:
    # Everything leads anywhere, for any reward, and never ends: what is right leaves T* nothing to change.
    rng = np.random.default_rng(0)
    mdp = TabularMDP(rng.integers(3000, size=(3000, 4)), rng.normal(size=(3000, 4)), gamma)
    q = q_star(mdp)
    assert np.abs(bellman_optimality(mdp)(q) - q).max() <= 1e-14 * np.abs(q).max()


def test_equal_ways_with_values_near_zero_come_to_an_end() -> None:
    # Each step costs .01 and the end brings what 30 of them cost: 30 steps away values are 0 but for rounding,
    # and in an open grid most cells have two ways of the same length.
    side, gamma = 24, 0.99
    following = grid_moves(side)
    worth = 0.01 * (1 - gamma**30) / (1 - gamma) / gamma**29
    reward = np.where(following == 0, worth - 0.01, -0.01)
    distance = np.add(*np.divmod(np.arange(side * side), side))
    expected = gamma ** np.maximum(distance - 1, 0) * worth - 0.01 * (1 - gamma**distance) / (1 - gamma)
    values = q_star(TabularMDP(following, reward, gamma, terminal=[0])).max(axis=1)
    assert values[1:] == pytest.approx(expected[1:], abs=1e-15)


def test_too_few_improvements_are_an_error() -> None:
    with pytest.raises(NoConvergenceError, match=r"^no optimal policy within 1 improvements$"):
        q_star(corridor(5, 0.9), max_iterations=1)
