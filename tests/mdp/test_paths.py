"""How few decisions an optimal path needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.mdp import TabularMDP, fewest_decisions, q_star, q_star_options
from tests.mdp.random_mdps import RandomMDP, in_form, random_mdps

# 0-1-2-3-4 in a row, 4 terminal; actions left, right.
CORRIDOR = TabularMDP(
    [[0, 1], [0, 2], [1, 3], [2, 4], [4, 4]], [[0, 0], [0, 0], [0, 0], [0, 1], [0, 0]], 0.9, terminal=4
)
# 0-1-2 to the right, then 2-3-4 down, 4 terminal; actions right, down; every other move is a bump.
BEND = TabularMDP(
    [[1, 0], [2, 1], [2, 3], [3, 4], [4, 4]], [[0, 0], [0, 0], [0, 0], [0, 1], [0, 0]], 0.9, terminal=4
)


@pytest.mark.parametrize(
    ("mdp", "k_max", "start", "decisions"),
    [
        (CORRIDOR, 1, 0, 4),  # four single steps
        (CORRIDOR, 2, 0, 2),  # 2 + 2
        (CORRIDOR, 3, 0, 2),  # 3 + 1, or 1 + 3
        (CORRIDOR, 4, 0, 1),  # 4
        (CORRIDOR, 9, 0, 1),  # 4, 5, ... 9: the terminal state ends it
        (CORRIDOR, 3, 1, 1),
        (CORRIDOR, 1, 3, 1),
        (CORRIDOR, 3, 4, 0),  # already there
        (BEND, 1, 0, 4),
        (BEND, 2, 0, 2),  # right twice, down twice
        (BEND, 3, 0, 2),  # a third step to the right is a bump and costs: the corner needs its own decision
        (BEND, 9, 0, 2),
        (BEND, 9, 1, 2),  # right once, down
        (BEND, 9, 2, 1),
    ],
)
def test_by_hand(mdp: TabularMDP, k_max: int, start: int, decisions: int) -> None:
    assert fewest_decisions(mdp, q_star_options(mdp, k_max), start) == decisions


def test_cut_to_single_steps_it_is_the_length_of_the_path() -> None:
    for mdp in (CORRIDOR, BEND):
        assert fewest_decisions(mdp, q_star_options(mdp, 8)[:, :, :1], 0) == 4


def test_only_optimal_options_count_up_to_the_tolerance() -> None:
    # 0 → 2 at once for ½, or by way of 1 for 1 at the end (γ = .9: worth .9). 2 is terminal.
    mdp = TabularMDP([[2, 1], [2, 2], [2, 2]], [[0.5, 0.0], [1.0, 1.0], [0.0, 0.0]], 0.9, terminal=[2])
    q = q_star_options(mdp, 1)
    assert fewest_decisions(mdp, q, 0) == 2
    # .4 less, which is .444 of the .9 that the rewards of the best path add up to.
    assert fewest_decisions(mdp, q, 0, tolerance=0.44) == 2
    assert fewest_decisions(mdp, q, 0, tolerance=0.45) == 1


def test_far_from_the_end_small_differences_count_too() -> None:
    # Two ways from 0 to the end, where the one reward is. One has 40 steps and asks for the other action after
    # each of them; one has 41 steps of action 1. At γ = ½ they are worth 2^-39 and 2^-40, 2e-12 and 1e-12.
    winding, straight, end = np.arange(1, 40), np.arange(40, 80), 80
    following = np.repeat(np.arange(81)[:, None], 2, axis=1)
    following[0] = winding[0], straight[0]
    following[winding, winding % 2] = [*winding[1:], end]
    following[straight, 1] = [*straight[1:], end]
    reward = np.zeros((81, 2))
    reward[winding[-1], winding[-1] % 2] = reward[straight[-1], 1] = 1.0
    mdp = TabularMDP(following, reward, 0.5, terminal=[end])
    assert fewest_decisions(mdp, q_star_options(mdp, 8), 0) == 40
    # On the other way it would be 5 holds of 8 steps and one of 1.
    assert fewest_decisions(mdp, q_star_options(mdp, 8), 0, tolerance=0.6) == 6


def test_none_where_the_best_is_never_to_end() -> None:
    # Staying pays 1 each time, leaving nothing.
    mdp = TabularMDP([[0, 1], [1, 1]], [[1.0, 0.0], [0.0, 0.0]], 0.9, terminal=[1])
    assert fewest_decisions(mdp, q_star_options(mdp, 3), 0) is None
    assert fewest_decisions(mdp, q_star_options(mdp, 3), 1) == 0


def test_none_where_no_way_leads() -> None:
    # 0 and 1 lead to each other, 2 is terminal.
    mdp = TabularMDP([[1], [0], [2]], np.zeros((3, 1)), 0.9, terminal=[2])
    assert fewest_decisions(mdp, q_star_options(mdp, 4), 0) is None


def test_none_without_a_terminal_state() -> None:
    mdp = TabularMDP([[1], [0]], np.zeros((2, 1)), 0.9)
    assert fewest_decisions(mdp, q_star_options(mdp, 2), 0) is None


@given(random=random_mdps(gamma=st.just(0.75), max_states=6, deterministic=True), k_max=st.integers(1, 4))
def test_it_is_what_trying_finds(random: RandomMDP, k_max: int) -> None:
    mdp = random.tabular("next states")
    q = q_star_options(mdp, k_max)
    for start in range(mdp.n_states):
        assert fewest_decisions(mdp, q, start, tolerance=1e-6) == found_by_trying(random, q, start)


def found_by_trying(random: RandomMDP, q: np.ndarray, start: int) -> int | None:
    """Decision by decision, all states that optimal options lead to, walking each option step by step."""
    reached, decisions = {start}, 0
    while not any(random.terminal[s] for s in reached):
        further = set(reached)
        for s in reached:
            for a, index in np.ndindex(q.shape[1:]):
                if q[s, a, index] >= q[s].max() - 1e-6:
                    position = s
                    for _ in range(index + 1):
                        if not random.terminal[position]:
                            position = int(random.P[position, a].argmax())
                    further.add(position)
        if further == reached:
            return None
        reached, decisions = further, decisions + 1
    return decisions


@pytest.mark.parametrize("form", ["dense", "sparse", "stacked"])
def test_a_model_that_may_be_stochastic_is_refused(form: str) -> None:
    mdp = TabularMDP(in_form(np.eye(2)[[[1], [1]]], form), [[1.0], [0.0]], 0.9, terminal=[1])
    sentence = r"^mdp must be deterministic \(given by next states\) to count decisions on a path$"
    with pytest.raises(ValueError, match=sentence):
        fewest_decisions(mdp, q_star(mdp)[:, :, None], 0)


@pytest.mark.parametrize(("start", "error"), [(-1, ValueError), (0.5, TypeError), (None, TypeError)])
def test_a_start_that_is_no_state_is_refused(start: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^start must be a whole number of at least 0, not "):
        fewest_decisions(CORRIDOR, q_star_options(CORRIDOR, 2), start)


@pytest.mark.parametrize(
    ("q", "start", "sentence"),
    [
        (np.zeros((2, 1, 1)), 5, r"start must be a state in 0\.\.1, not 5"),
        (np.zeros((2, 1)), 0, r"q must have shape \(2, 1, k_max\), not \(2, 1\)"),
        (np.zeros((3, 1, 2)), 0, r"q must have shape \(2, 1, k_max\)"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(q: np.ndarray, start: int, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fewest_decisions(TabularMDP([[1], [1]], [[0.0], [0.0]], 0.9), q, start)


def test_the_tolerance_is_relative_to_the_values() -> None:
    # From 0: into the hole at once (-1e-10), or in two steps to the goal (+1e-10).
    mdp = TabularMDP(
        [[1, 2], [1, 1], [3, 3], [3, 3]], [[-1e-10, 0.0], [0, 0], [1e-10, 1e-10], [0, 0]], 0.99, terminal=[1, 3]
    )
    assert fewest_decisions(mdp, q_star_options(mdp, 1), 0) == 2
