from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from holdfast.core import Option, PartialHistory
from holdfast.mdp import TabularMDP
from holdfast.tabular import TempoRLQLearning
from holdfast.tabular.learner import TabularLearner
from tests.tabular.conftest import corridor
from tests.tabular.literal import as_dictionary, as_table, temporl_update
from tests.tabular.strategies import Case, cases


def skip_values(learner: TabularLearner) -> np.ndarray:
    return learner.policy().table


def test_an_update_by_hand() -> None:
    learner = TempoRLQLearning(3, alpha=0.5, gamma=0.5)
    learner.reset(4, 2)
    learner.q[1, 1, 0] = 4.0
    learner.q[2, 1, 0] = 8.0
    learner.update(PartialHistory(np.array([0, 1, 2]), 0, np.array([2.0, 6.0])))
    # While stepping: Q(0,0) = ½(2 + ½·4) = 2, then Q(1,0) = ½(6 + ½·8) = 5.
    np.testing.assert_array_equal(learner.q[:, 0, 0], [2.0, 5.0, 0.0, 0.0])
    # Then J: length 2 from 0: ½(2 + ½·6 + ¼·8) = 3.5; length 1: ½(2 + ½·5) = 2.25 and ½(6 + ½·8) = 5.
    np.testing.assert_array_equal(skip_values(learner)[0, 0], [2.25, 3.5, 0.0])
    np.testing.assert_array_equal(skip_values(learner)[1, 0], [5.0, 0.0, 0.0])
    assert not skip_values(learner)[:, 1].any()


def test_a_skip_that_ends_the_episode_teaches_all_longer_ones() -> None:
    history = PartialHistory(np.array([0, 1, 2]), 0, np.array([2.0, 6.0]), terminated=True)
    for pad_terminal, last, first in (
        (True, [6.0, 6.0, 6.0], [5.0, 5.0, 5.0]),
        (False, [6.0, 0.0, 0.0], [5.0, 5.0, 0.0]),
    ):
        learner = TempoRLQLearning(3, alpha=1.0, gamma=0.5, pad_terminal=pad_terminal)
        learner.reset(3, 1)
        learner.update(history)
        np.testing.assert_array_equal(skip_values(learner)[1, 0], last)
        np.testing.assert_array_equal(skip_values(learner)[0, 0], first)


@settings(max_examples=200)
@given(cases())
def test_the_update_is_the_literal_one(case: Case) -> None:
    learner = case.learner(TempoRLQLearning, pad_terminal=case.by.pad_terminal)
    values, skips = as_dictionary(learner.q), as_dictionary(skip_values(learner))
    temporl_update(values, skips, case.history, case.by)
    learner.update(case.history)
    for table, literal in ((learner.q, values), (skip_values(learner), skips)):
        np.testing.assert_allclose(table, as_table(literal, table.shape), rtol=0.0, atol=1e-12)


def test_padding_is_the_default() -> None:
    assert TempoRLQLearning().pad_terminal


def test_greedy_it_takes_the_first_action_and_the_longest_skip_of_equals() -> None:
    learner = TempoRLQLearning(4)
    learner.reset(2, 3)
    assert learner.act(0) == Option(0, 4)
    learner.q[0, 2, 0] = 1.0
    skip_values(learner)[0, 2] = [1.0, 2.0, 2.0, 0.0]
    assert learner.act(0) == Option(2, 3)


@pytest.mark.parametrize("loop", ["compiled", "python"])
def test_greedy_episodes_take_the_longest_skip_of_equals(loop: str) -> None:
    learner = TempoRLQLearning(4, epsilon=1.0, alpha=1e-20, initial_value=1.0)  # a rate that changes no 1.0
    state = learner.start(corridor())
    state.tables["q"][:, 1] = 2.0  # to the right, five steps
    _, log = learner.advance(corridor(), state, 1, loop=loop)
    assert (log.greedy_steps[0], log.greedy_decisions[0]) == (5, 2)


def test_action_and_skip_have_their_own_coins(cliff: TabularMDP) -> None:
    # ε = 1: per decision two coins and two draws.
    learner = TempoRLQLearning(4, epsilon=1.0)
    state = learner.start(cliff)
    after, log = learner.advance(cliff, state, 20)
    state.agent.random(4 * int(log.decisions.sum()))
    assert after.agent.bit_generator.state == state.agent.bit_generator.state


def test_the_result_has_both_tables(cliff: TabularMDP) -> None:
    result = TempoRLQLearning(5).fit(cliff, 10, seeds=(1, 2))
    assert result.q.shape == (2, 60, 4, 1)
    assert result.skip_values is not None
    assert result.skip_values.shape == (2, 60, 4, 5)
