from __future__ import annotations

import numpy as np
import pytest

from holdfast.core import PartialHistory
from holdfast.envs import make_env
from holdfast.tabular import QLearning, equal_updates_per_step
from tests.tabular.conftest import corridor


def test_an_update_by_hand() -> None:
    learner = QLearning(alpha=0.5, gamma=0.5)
    learner.reset(3, 2)
    learner.q[1, :, 0] = [4.0, 8.0]
    learner.q[0, 1, 0] = 2.0
    learner.update(PartialHistory(np.array([0, 1]), 1, np.array([6.0])))
    assert learner.q[0, 1, 0] == 0.5 * 2.0 + 0.5 * (6.0 + 0.5 * 8.0)
    learner.update(PartialHistory(np.array([1, 2]), 0, np.array([6.0]), terminated=True))
    assert learner.q[1, 0, 0] == 0.5 * 4.0 + 0.5 * 6.0


def test_a_longer_history_is_learned_from_step_by_step() -> None:
    learner = QLearning(alpha=1.0, gamma=0.5)
    learner.reset(3, 1)
    learner.update(PartialHistory(np.array([0, 1, 0, 1]), 0, np.array([1.0, 2.0, 4.0])))
    # Q(0) = 1 + ½·0, Q(1) = 2 + ½·1, Q(0) = 4 + ½·2.5
    np.testing.assert_array_equal(learner.q[:, 0, 0], [5.25, 2.5, 0.0])


def test_several_updates_per_step_are_one_with_a_larger_rate() -> None:
    learner = QLearning(alpha=0.5, gamma=0.0, updates_per_step=3)
    learner.reset(2, 1)
    learner.update(PartialHistory(np.array([0, 1]), 0, np.array([1.0])))
    assert learner.q[0, 0, 0] == 1.0 - 0.5**3


def test_a_fraction_of_an_update_is_carried_over() -> None:
    learner = QLearning(alpha=0.5, gamma=0.0, updates_per_step=2.5)
    learner.reset(2, 1)
    history = PartialHistory(np.array([0, 1]), 0, np.array([1.0]))
    learner.update(history)
    assert learner.q[0, 0, 0] == 1.0 - 0.5**2
    learner.update(history)
    assert learner.q[0, 0, 0] == 1.0 - 0.5**5


def test_the_carry_goes_over_the_ends_of_episodes_and_runs() -> None:
    learner = QLearning(updates_per_step=1.75, epsilon=1.0)
    state = learner.start(corridor())
    after, log = learner.advance(corridor(), state, 7)
    assert after.carry[0] == (1.75 * log.steps.sum()) % 1.0


def test_the_number_of_updates_that_perq_makes() -> None:
    assert equal_updates_per_step(1) == 1.0
    assert equal_updates_per_step(4) == 6.5
    assert round(equal_updates_per_step(8), 1) == 20.8
    assert round(equal_updates_per_step(16), 1) == 73.5


def test_every_step_is_a_decision() -> None:
    result = QLearning().fit(corridor(), 20)
    np.testing.assert_array_equal(result.steps, result.decisions)
    np.testing.assert_array_equal(result.greedy_steps, result.greedy_decisions)


@pytest.mark.parametrize("number", [0.5, 1e9])
def test_updates_per_step_out_of_range_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match=r"updates_per_step must be a number in \[1, 1e\+06\]"):
        QLearning(updates_per_step=number)


def test_the_published_learning_curve_on_zigzag() -> None:
    # TempoRL's authors give .01, .21 and .68 after 300, 600 and 1000 episodes for plain Q-learning, 100 seeds.
    learner = QLearning(alpha=0.5, gamma=0.99, epsilon=0.1)
    result = learner.fit(make_env("zigzag"), 1000, seeds=range(200))
    assert result.greedy_returns[:, 990:].mean() == pytest.approx(0.68, abs=0.1)
    assert result.greedy_returns[:, 295:305].mean() == pytest.approx(0.01, abs=0.1)
    assert result.greedy_returns[:, 595:605].mean() == pytest.approx(0.21, abs=0.12)
    arrived = result.greedy_returns[:, -1] == 1.0
    lengths, counts = np.unique(result.greedy_steps[arrived, -1], return_counts=True)
    assert lengths.min() == lengths[counts.argmax()] == 20
