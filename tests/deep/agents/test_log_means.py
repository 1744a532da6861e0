"""What is counted while an agent acts and learns."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.deep.agents.log_means import HoldStatistics, UpdateStatistics


def mask(*flags):
    return np.array(flags, dtype=bool)


def count(statistics, began, over, elapsed, ended):
    statistics.step(mask(*began), mask(*over), np.array(elapsed), mask(*ended))


def test_nothing_is_said_before_there_is_anything():
    assert HoldStatistics(2, window=10).means() == {}
    assert UpdateStatistics((1, 2, 3)).means() == {}


def test_decisions_and_holds_by_hand():
    statistics = HoldStatistics(2, window=10)
    count(statistics, [1, 1], [0, 1], [1, 1], [0, 0])
    count(statistics, [0, 1], [1, 0], [2, 1], [0, 0])
    count(statistics, [1, 0], [1, 1], [1, 2], [1, 1])
    assert statistics.means() == {
        "rollout/decisions_mean": 2.0,
        "rollout/hold_mean": (1 + 2 + 1 + 2) / 4,
        "rollout/interrupted_share": 0.0,
    }


def test_an_interrupted_option_counts_with_the_steps_it_ran():
    statistics = HoldStatistics(1, window=10)
    count(statistics, [1], [0], [1], [0])
    count(statistics, [0], [0], [2], [0])
    statistics.interrupted(mask(True))
    count(statistics, [1], [1], [1], [1])
    assert statistics.means() == {
        "rollout/decisions_mean": 2.0,
        "rollout/hold_mean": 1.5,
        "rollout/interrupted_share": 0.5,
    }


def test_a_dropped_episode_is_not_counted():
    statistics = HoldStatistics(1, window=10)
    count(statistics, [1], [0], [1], [0])
    statistics.drop()
    statistics.interrupted(mask(True))
    count(statistics, [1], [1], [1], [1])
    assert statistics.means()["rollout/decisions_mean"] == 1.0
    assert statistics.means()["rollout/hold_mean"] == 1.0


def test_the_window_forgets_old_episodes():
    statistics = HoldStatistics(1, window=2)
    for decisions in (5, 1, 3):
        for step in range(decisions):
            count(statistics, [1], [1], [1], [step == decisions - 1])
    assert statistics.means()["rollout/decisions_mean"] == 2.0


def test_losses_and_targets_by_persistence_since_the_last_time():
    statistics = UpdateStatistics((1, 2))
    statistics.add(np.array([[1.0, 3.0], [0.0, 0.0]]), np.array([[5.0, 5.0], [1.0, 2.0]]))
    statistics.add(np.array([[4.0, 4.0], [1.0, 1.0]]), np.array([[7.0, 7.0], [0.5, 0.5]]))
    assert statistics.means() == pytest.approx(
        {"train/loss_k1": 3.0, "train/target_k1": 6.0, "train/loss_k2": 0.5, "train/target_k2": 1.0}
    )
    assert statistics.means() == {}


def test_a_view_that_holds_nothing_is_left_out_of_its_means():
    statistics = UpdateStatistics((1, 2))
    ones = np.ones((2, 3), dtype=np.float32)
    statistics.add(9.0 * ones, 8.0 * ones, np.array([[True] * 3, [False] * 3]))
    statistics.add(1.0 * ones, 2.0 * ones, np.ones((2, 3), dtype=np.bool_))
    assert statistics.means() == pytest.approx(
        {"train/loss_k1": 5.0, "train/target_k1": 5.0, "train/loss_k2": 1.0, "train/target_k2": 2.0}
    )


def test_tuples_that_there_are_not_are_left_out_of_the_means_of_a_sparse_set():
    statistics = UpdateStatistics((1, 4))
    losses = np.array([[1.0, 2.0, 6.0], [8.0, np.nan, 4.0]], dtype=np.float32)
    there = np.array([[True, True, True], [True, False, True]])
    statistics.add(losses, 2.0 * losses, there)
    assert statistics.means() == pytest.approx(
        {"train/loss_k1": 3.0, "train/target_k1": 6.0, "train/loss_k4": 6.0, "train/target_k4": 12.0}
    )


def test_the_means_of_numbers_whose_sum_is_too_large_for_32_bits():
    statistics = UpdateStatistics((1,))
    large = np.full((1, 4), 3e38, dtype=np.float32)
    statistics.add(large, -large)
    assert statistics.means() == pytest.approx({"train/loss_k1": 3e38, "train/target_k1": -3e38})
