from __future__ import annotations

import numpy as np
import pytest

from holdfast.core import PartialHistory
from holdfast.core.durations import duration_distribution
from holdfast.mdp import TabularMDP
from holdfast.tabular import EZGreedyQLearning, QLearning
from holdfast.tabular.compiled import draw_held_action
from tests.tabular.conftest import corridor, same_episodes

ONE = np.array([1])
"""The persistences that values of actions are of."""


def test_an_update_by_hand() -> None:
    learner = EZGreedyQLearning(4, alpha=0.5, gamma=0.5)
    learner.reset(3, 2)
    learner.q[1, 0, 0] = 8.0
    learner.update(PartialHistory(np.array([0, 1, 2]), 1, np.array([6.0, 2.0]), terminated=True))
    # Q(0,1) = ½(6 + ½·8) = 5, then Q(1,1) = ½·2 = 1.
    np.testing.assert_array_equal(learner.q[:, 1, 0], [5.0, 1.0, 0.0])


@pytest.mark.parametrize("kind", ["uniform", "zeta"])
def test_random_actions_are_held_as_long_as_the_distribution_says(kind: str) -> None:
    chances = duration_distribution(kind, 5)
    agent = np.random.default_rng(0)
    drawn = [draw_held_action(np.zeros((3, 1)), 1.0, np.cumsum(chances), ONE, agent) for _ in range(6000)]
    actions, durations, exploratory = (np.array(column) for column in zip(*drawn, strict=True))
    np.testing.assert_allclose(np.bincount(durations, minlength=6)[1:] / 6000, chances, atol=0.03)
    np.testing.assert_allclose(np.bincount(actions) / 6000, 1 / 3, atol=0.03)
    assert exploratory.all()


def test_greedy_actions_last_one_step() -> None:
    result = EZGreedyQLearning(8, epsilon=0.0).fit(corridor(), 30)
    np.testing.assert_array_equal(result.steps, result.decisions)


def test_held_actions_are_fewer_decisions(cliff: TabularMDP) -> None:
    result = EZGreedyQLearning(8, epsilon=1.0).fit(cliff, 30)
    assert 3 * result.decisions.sum() < result.steps.sum()
    np.testing.assert_array_equal(result.greedy_steps, result.greedy_decisions)


def test_without_exploration_it_is_q_learning(cliff: TabularMDP) -> None:
    one = EZGreedyQLearning(8, epsilon=0.0, initial_std=1.0).fit(cliff, 100)
    other = QLearning(epsilon=0.0, initial_std=1.0).fit(cliff, 100)
    same_episodes(one, other)
    np.testing.assert_array_equal(one.q, other.q)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"durations": "normal"}, "durations must be one of 'uniform', 'zeta', not 'normal'"),
        ({"mu": 0.0}, "mu must be a finite number above 0, not 0.0"),
        ({"k_max": 0}, "k_max must be a whole number of at least 1, not 0"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        EZGreedyQLearning(**arguments)  # type: ignore[arg-type]
    assert str(caught.value) == sentence
