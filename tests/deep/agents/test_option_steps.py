"""Coins and random durations."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.deep.agents.option_steps import toss_coins, uniform_durations


def test_one_coin_is_for_the_whole_option():
    np.random.seed(0)  # noqa: NPY002 - SB3's generator
    draws_action, draws_hold = toss_coins(200, 0.3, 1)
    np.testing.assert_array_equal(draws_action, draws_hold)
    assert 30 < draws_action.sum() < 90


def test_two_coins_fall_apart():
    np.random.seed(0)  # noqa: NPY002 - SB3's generator
    draws_action, draws_hold = toss_coins(2000, 0.5, 2)
    counts = np.bincount(2 * draws_action + draws_hold)
    np.testing.assert_allclose(counts / 2000, 0.25, atol=0.04)


@pytest.mark.parametrize("n_coins", [1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_without_and_with_nothing_but_exploration(n_coins, epsilon):
    for coins in toss_coins(20, epsilon, n_coins):
        assert coins.shape == (20,)
        assert (coins == bool(epsilon)).all()


def test_durations_are_uniform_and_nothing_is_drawn_where_there_is_one():
    np.random.seed(0)  # noqa: NPY002 - SB3's generator
    np.testing.assert_allclose(np.bincount(uniform_durations(4000, 4))[1:] / 4000, 0.25, atol=0.03)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    np.testing.assert_array_equal(uniform_durations(5, 1), 1)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
