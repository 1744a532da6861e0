"""What a fixed skip costs: exactly, against brute force; estimated, against the exact."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from holdfast.advice.fixed_skips.skips import (
    ExactSkip,
    bellman_residual,
    estimate_skips,
    exact_skips,
    selection_index,
)
from holdfast.deep import OptionReplayBuffer
from holdfast.envs import GridWorld
from holdfast.mdp import TabularMDP, k_values
from tests.advice.fixed_skips.rings import random_ring
from tests.mdp.random_mdps import GAMMA_TO_ITERATE, half_as_many_examples, random_mdps

# A corridor of four cells to a goal that pays 1 on entering; left, right and a border that blocks. With γ = 1/2,
# right reaches the goal from 0 in three steps, whatever the skip: V = 1/4.
CORRIDOR = TabularMDP(
    np.array([[0, 1], [0, 2], [1, 3], [3, 3]]), np.array([[0, 0], [0, 0], [0, 1], [0, 0]]), 0.5, 0, terminal=[3]
)
# The same with a hole behind the second cell to the right, and the goal below that cell: right twice would fall.
# 0 → 1 by right, 1 → hole by right (−1), 1 → goal by down (1); down in 0 stays.
CORNER = TabularMDP(np.array([[1, 0], [2, 3], [2, 2], [3, 3]]), [[0, 0], [-1, 1], [0, 0], [0, 0]], 0.5, 0, [2, 3])


def with_start(mdp):
    model = mdp.tabular()
    return TabularMDP(
        model.P, model.reward, model.gamma, np.full(model.n_states, 1 / model.n_states), model.terminal
    )


class TestExact:
    def test_by_hand(self):
        assert exact_skips(CORRIDOR, (1, 2, 3)) == [ExactSkip(k, 0.25, 0.0) for k in (1, 2, 3)]
        # Free: right, down: 1/2. Two at a time: right falls, −1/2; down twice stays for ever: 0. That is the best.
        assert exact_skips(CORNER, [1, 2]) == [ExactSkip(1, 0.5, 0.0), ExactSkip(2, 0.0, 0.5)]

    def test_it_is_not_the_k_value(self):
        # Down twice, and then free: 1/4 of the free value.
        assert k_values(CORNER, 2)[0, 1] == pytest.approx(0.125)

    @given(
        mdp=random_mdps(gamma=st.sampled_from([0.0, 0.5, 0.7]), deterministic=True, max_states=3),
        k=st.integers(1, 3),
    )
    @half_as_many_examples
    def test_brute_force_over_all_policies(self, mdp, k):
        model = with_start(mdp)
        S, A = model.reward.shape
        P, r, gamma = mdp.plain()
        moves = P.argmax(axis=2)
        best = np.full(S, -np.inf)
        for policy in itertools.product(range(A), repeat=S):
            for start in range(S):
                state, total, discount = start, 0.0, 1.0
                for step in range(60 * k):
                    if step % k == 0:
                        held = policy[state]
                    total += discount * r[state, held]
                    state, discount = moves[state, held], discount * gamma
                best[start] = max(best[start], total)
        (found,) = exact_skips(model, [k])
        assert found.value == pytest.approx(best.mean(), abs=1e-6)

    @given(mdp=random_mdps(gamma=GAMMA_TO_ITERATE), k=st.integers(1, 4), times=st.integers(1, 4))
    @half_as_many_examples
    def test_a_multiple_of_a_skip_is_never_better(self, mdp, k, times):
        one, shorter, longer = exact_skips(with_start(mdp), (1, k, k * times))
        scale = 1.0 + abs(one.value)
        assert one.loss == 0.0
        assert longer.value <= shorter.value + 1e-8 * scale
        assert shorter.value <= one.value + 1e-8 * scale

    def test_without_discount_an_endless_walk_has_no_value(self):
        # Each step costs 1, and two at a time never stop between the border and the goal: 0 → 1 is the only way.
        P = np.array([[1, 0], [0, 2], [2, 2]])
        mdp = TabularMDP(P, [[-1, -1], [-1, -1], [0, 0]], 1.0, 0, terminal=[2])
        one, two = exact_skips(mdp, (1, 2))
        assert (one.value, one.loss) == (-2.0, 0.0)
        assert (two.value, two.loss) == (None, None)
        assert two.note == "without a discount, holding every action for 2 steps has no finite value"

    def test_bad_input(self):
        with pytest.raises(ValueError, match=r"^mdp must have an initial state"):
            exact_skips(TabularMDP(np.array([[0]]), [[0]], 0.5), [1])
        with pytest.raises(ValueError, match=r"^a skip in ks must be a whole number of at least 1, not 0$"):
            exact_skips(CORRIDOR, [0])
        with pytest.raises(ValueError, match=r"^ks must name at least one skip$"):
            exact_skips(CORRIDOR, [])


class TestFormulas:
    def test_selection_index_by_hand(self):
        # ‖·‖ = (1·|2| + 3·|−1|)/4 = 5/4, and 1/(1 − 1/4) = 4/3: 3 − 5/3.
        assert selection_index(3.0, [2.0, -1.0], [1.0, 3.0], 0.5, 2) == pytest.approx(4 / 3)
        assert selection_index(3.0, [0.0], [1.0], 0.5, 1) == 3.0

    def test_there_is_none_without_discount(self):
        with pytest.raises(ValueError, match=r"^gamma must be below 1 for B_k"):
            selection_index(0.0, [1.0], [1.0], 1.0, 2)

    def test_bellman_residual_by_hand(self):
        # (1·2² + 3·2²)/4 = 4, and (1·4² + 3·0²)/4 = 4.
        assert bellman_residual([0.0, 1.0], [2.0, -1.0], [1.0, 3.0]) == 2.0
        assert bellman_residual([0.0, 1.0], [4.0, 1.0], [1.0, 3.0]) == 2.0


def grid(**rules):
    """A small grid that is entered anywhere, as a dense model."""
    model = GridWorld("S..#\n.#..\n...G", **rules).tabular_mdp(0.9)
    S, A = model.reward.shape
    P = np.zeros((S, A, S))
    if model.P[0].ndim == 1:
        np.put_along_axis(P, model.P[:, :, None], 1.0, axis=2)
    else:
        P = np.stack([matrix.toarray() for matrix in model.P], axis=1)
    anywhere = ~model.terminal / np.count_nonzero(~model.terminal)
    return TabularMDP(P, model.reward, model.gamma, anywhere, model.terminal)


class TestEstimate:
    @pytest.mark.parametrize("numbers", [False, True])
    @pytest.mark.parametrize("rules", [{}, {"slip": 0.2, "step_reward": -0.02}], ids=["certain", "slippery"])
    def test_random_options_on_a_grid_give_the_exact_values(self, rules, numbers):
        mdp, ks = grid(**rules), (1, 2, 3, 4)
        ring = random_ring(mdp, 20_000, 5, numbers=numbers)
        rows = estimate_skips(ring, ks)
        exact = exact_skips(mdp, ks)
        assert max(row.loss for row in exact) > 0.1
        for row, truth in zip(rows, exact, strict=True):
            assert row.value == pytest.approx(truth.value, abs=0.05), row
            assert row.index <= row.value
            assert row.note is None

    def test_a_chain_in_closed_form(self):
        # Forward goes round five cells and pays 1 for the step from the last to the first; back leads to the first
        # without pay. Forward for ever is the best with any skip: V = γ^4 (1 + γ^5 + γ^10 + …).
        P = np.zeros((5, 2, 5))
        for s in range(5):
            P[s, 0, (s + 1) % 5] = P[s, 1, 0] = 1.0
        r = np.zeros((5, 2))
        r[4, 0] = 1.0
        mdp = TabularMDP(P, r, 0.8, 0)
        for row in estimate_skips(random_ring(mdp, 10_000, 6), range(1, 6)):
            assert row.value == pytest.approx(0.8**4 / (1 - 0.8**5), abs=0.02)
            assert row.residual < 0.02
            assert row.index == pytest.approx(row.value, abs=0.05)

    def test_losses_are_against_the_smallest_skip_that_has_a_value(self):
        ring = random_ring(grid(), 5_000, 4)
        four, one, two = estimate_skips(ring, (4, 1, 2))
        assert one.loss == 0.0
        assert (two.loss, four.loss) == (one.value - two.value, one.value - four.value)
        # Three is no multiple of two: either may be the better one. Of seven there are no samples.
        three, two, four, seven = estimate_skips(ring, (3, 2, 4, 7))
        assert (three.loss, two.loss, four.loss) == (None, 0.0, two.value - four.value)
        assert three.value is not None
        assert seven.loss is None

    def test_the_same_seed_the_same_rows(self):
        ring = random_ring(grid(slip=0.2), 2_000, 4)
        one, two, other = (estimate_skips(ring, [2], seed=seed) for seed in (3, 3, 4))
        assert one == two != other

    def test_too_few_samples_of_one_skip_leave_the_others(self):
        ring = random_ring(grid(), 2_000, 3)
        one, four = estimate_skips(ring, (1, 4))
        assert one.value is not None
        assert dataclasses.asdict(four) == {
            "k": 4,
            "tuples": 0,
            "value": None,
            "loss": None,
            "residual": None,
            "index": None,
            "note": "0 samples of holding for 4 steps are too few: 100 are needed",
            "undiscounted": None,
        }

    def test_without_discount_there_is_a_value_and_no_index(self):
        mdp = grid()
        ring = random_ring(TabularMDP(mdp.P, mdp.reward, 1.0, mdp.initial, mdp.terminal), 5_000, 2)
        (row,) = estimate_skips(ring, [1])
        assert row.value == pytest.approx(1.0, abs=0.01)
        assert row.residual is not None
        assert row.index is None
        assert row.note == "B_k needs a discount factor below 1"

    def test_samples_that_are_all_alike_are_said_to_tell_nothing(self):
        mdp = TabularMDP(np.eye(2)[[[0, 1], [0, 1]]], -np.ones((2, 2)), 0.9, 0)
        for row in estimate_skips(random_ring(mdp, 2_000, 3), (1, 2)):
            assert row.value == pytest.approx(-10.0, abs=0.01)
            assert row.loss is None
            assert (
                row.note == "all samples pay the same and none ends the episode: they say nothing about this skip"
            )

    def test_starts_may_be_given(self):
        mdp = grid()
        ring = random_ring(mdp, 10_000, 2)
        goal = int(np.flatnonzero(mdp.terminal)[-1])
        (row,) = estimate_skips(ring, [1], starts=np.eye(mdp.n_states, dtype=np.float32)[[goal - 1]])
        assert row.value == pytest.approx(1.0, abs=0.01)

    def test_without_a_first_observation_they_have_to_be(self):
        mdp = grid()
        empty = OptionReplayBuffer(
            5, random_ring(mdp, 50, 1).observation_space, random_ring(mdp, 50, 1).action_space, device="cpu"
        )
        with pytest.raises(ValueError, match=r"^the replay has no first observation of an episode"):
            estimate_skips(empty, [1])

    def test_one_option_alone_tells_nothing(self):
        """None is left to fit to where one is held out."""
        ring = OptionReplayBuffer(
            200, spaces.Discrete(201), spaces.Discrete(2), device="cpu", gamma=0.9, prioritized=False
        )
        for step in range(200):
            last = np.array([step == 199])
            ring.add(np.array([step]), np.array([step + 1]), np.zeros(1, dtype=int), -np.ones(1), last, [{}], last)
        (found,) = estimate_skips(ring, [4])
        assert (found.tuples >= 100, found.value, found.index) == (True, None, None)
        assert found.note == "all samples of holding for 4 steps come from one option: two are needed"
