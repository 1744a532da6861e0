"""The k-persistent model: P_k, r_k and γ^k."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from quantecon.markov import DiscreteDP

from holdfast.mdp import TabularMDP, persistent_kernel, persistent_mdp, persistent_reward, q_star
from tests.mdp.literal import assert_near, held_kernel, held_reward
from tests.mdp.random_mdps import (
    ALL_FORMS,
    GAMMA_TO_ITERATE,
    STOCHASTIC_FORMS,
    RandomMDP,
    half_as_many_examples,
    in_form,
    random_mdps,
)

# Action 0 of two states is a coin, action 1 swaps them; γ = ½.
P = np.array([[[0.75, 0.25], [0.0, 1.0]], [[0.5, 0.5], [1.0, 0.0]]])
R = np.array([[4.0, 1.0], [8.0, 2.0]])


def dense(table: Any) -> np.ndarray:
    """A table of any form as (S,A,S)."""
    if isinstance(table, tuple):
        return np.stack([matrix.toarray() for matrix in table], axis=1)
    return np.eye(len(table))[table] if table.ndim == 2 else table


@pytest.mark.parametrize("form", STOCHASTIC_FORMS)
class TestByHand:
    def test_kernel(self, form: str) -> None:
        mdp = TabularMDP(in_form(P, form), R, 0.5)
        assert np.array_equal(dense(persistent_kernel(mdp, 1)), P)
        # The coin: (.75 .25; .5 .5)² = (.6875 .3125; .625 .375); times (.75 .25; .5 .5) again:
        # .6875·.75 + .3125·.5 = .671875 and .625·.75 + .375·.5 = .65625. Two swaps are none, three are one.
        twice = [[[0.6875, 0.3125], [1.0, 0.0]], [[0.625, 0.375], [0.0, 1.0]]]
        thrice = [[[0.671875, 0.328125], [0.0, 1.0]], [[0.65625, 0.34375], [1.0, 0.0]]]
        assert np.array_equal(dense(persistent_kernel(mdp, 2)), twice)
        assert np.array_equal(dense(persistent_kernel(mdp, 3)), thrice)

    def test_reward(self, form: str) -> None:
        mdp = TabularMDP(in_form(P, form), R, 0.5)
        assert np.array_equal(persistent_reward(mdp, 1), R)
        # Coin: P r = (.75·4 + .25·8, .5·4 + .5·8) = (5, 6), so r_2 = (4 + 2.5, 8 + 3).
        # Swap: P r = (2, 1), so r_2 = (1 + 1, 2 + .5).
        assert np.array_equal(persistent_reward(mdp, 2), [[6.5, 2.0], [11.0, 2.5]])
        # Coin: P² r = (.6875·4 + .3125·8, .625·4 + .375·8) = (5.25, 5.5), a quarter of it more.
        # Swap: P² r = (1, 2), a quarter of it more.
        assert np.array_equal(persistent_reward(mdp, 3), [[7.8125, 2.25], [12.375, 3.0]])

    def test_model(self, form: str) -> None:
        held = persistent_mdp(TabularMDP(in_form(P, form), R, 0.5, initial=[0.25, 0.75]), 2)
        assert held.gamma == 0.25
        assert np.array_equal(held.reward, [[6.5, 2.0], [11.0, 2.5]])
        assert np.array_equal(dense(held.P), [[[0.6875, 0.3125], [1.0, 0.0]], [[0.625, 0.375], [0.0, 1.0]]])
        assert np.array_equal(held.initial, [0.25, 0.75])
        assert not held.terminal.any()


@pytest.mark.parametrize("form", ALL_FORMS)
def test_a_terminal_state_stops_the_clock(form: str) -> None:
    # 0 → 1 → 2 → 2 with rewards 1, 1, 1 and 2 terminal: r_3(0) = 1 + .5, whatever is held on for.
    chain = in_form(np.eye(3)[[[1], [2], [2]]], form)
    mdp = TabularMDP(chain, np.ones((3, 1)), 0.5, terminal=[2])
    assert np.array_equal(persistent_reward(mdp, 3), [[1.5], [1.0], [0.0]])
    held = persistent_mdp(mdp, 3)
    assert np.array_equal(dense(held.P)[:, 0], np.eye(3)[[2, 2, 2]])
    assert np.array_equal(held.terminal, [False, False, True])


@given(random=random_mdps(), k=st.integers(1, 6))
def test_the_kernel_is_a_matrix_power_per_action(random: RandomMDP, k: int) -> None:
    mdp, (P, _, _) = random.tabular(), random.plain()
    table = persistent_kernel(mdp, k)
    assert_near(dense(table), held_kernel(P, k), 1e-12)
    assert type(table) is type(mdp.P)  # in the form that it was given in


def test_a_table_is_never_made_denser() -> None:
    assert persistent_kernel(TabularMDP([[1], [0]], [[0.0], [0.0]], 0.5), 3).dtype == np.int64
    matrices = persistent_kernel(TabularMDP([sp.eye_array(3)], np.zeros((3, 1)), 0.5), 3)
    assert matrices[0].nnz == 3


@given(random=random_mdps(), k=st.integers(1, 6))
def test_the_reward_is_the_sum_of_discounted_powers(random: RandomMDP, k: int) -> None:
    assert_near(persistent_reward(random.tabular(), k), held_reward(*random.plain(), k), 1e-12)


@given(random=random_mdps(), k=st.integers(2, 6), data=st.data())
def test_a_longer_hold_is_a_shorter_one_and_the_rest(random: RandomMDP, k: int, data: st.DataObject) -> None:
    """r_k = r_k' + γ^k' P_k' r_{k−k'} for every k' < k.

    Paper: Lemma lem:r_k dec
    """
    first = data.draw(st.integers(1, k - 1), label="k'")
    mdp, (P, _, gamma) = random.tabular(), random.plain()
    rest = persistent_reward(mdp, k - first)
    then = np.stack([held_kernel(P, first)[:, a] @ rest[:, a] for a in range(mdp.n_actions)], axis=1)
    assert_near(persistent_reward(mdp, k), persistent_reward(mdp, first) + gamma**first * then, 1e-12)


@half_as_many_examples
@given(random=random_mdps(), data=st.data())
def test_holding_a_hold_multiplies_durations(random: RandomMDP, data: st.DataObject) -> None:
    k, times = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    twice, once = (
        persistent_mdp(persistent_mdp(random.tabular(), k), times),
        persistent_mdp(random.tabular(), k * times),
    )
    assert_near(dense(twice.P), dense(once.P), 1e-12)
    assert_near(twice.reward, once.reward, 1e-12)
    assert twice.gamma == pytest.approx(once.gamma, abs=1e-15)


@half_as_many_examples
@given(random=random_mdps(gamma=GAMMA_TO_ITERATE), k=st.sampled_from([1, 2, 3, 5]))
def test_the_optimum_of_always_holding_is_that_of_quantecon(random: RandomMDP, k: int) -> None:
    P, r, gamma = random.plain()
    P_k, r_k = held_kernel(P, k), held_reward(P, r, gamma, k)
    values = DiscreteDP(r_k, P_k, gamma**k).solve(method="policy_iteration").v
    assert_near(q_star(persistent_mdp(random.tabular(), k)), r_k + gamma**k * P_k @ values)


@pytest.mark.parametrize("function", [persistent_kernel, persistent_reward, persistent_mdp])
class TestWhatIsRefused:
    mdp = TabularMDP(P, R, 0.5)

    @pytest.mark.parametrize("k", [0, -1])
    def test_no_step(self, function: Callable[..., Any], k: int) -> None:
        with pytest.raises(ValueError, match=rf"^k must be a whole number of at least 1, not {k}$"):
            function(self.mdp, k)

    @pytest.mark.parametrize("k", [1.5, None, True, "2"])
    def test_no_whole_number(self, function: Callable[..., Any], k: Any) -> None:
        with pytest.raises(TypeError, match=r"^k must be a whole number of at least 1, not "):
            function(self.mdp, k)
