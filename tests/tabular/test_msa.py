from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from holdfast.core import PartialHistory
from holdfast.mdp import TabularMDP
from holdfast.tabular import MSAQLearning, PerQLearning, QLearning
from tests.tabular.conftest import same_episodes
from tests.tabular.literal import as_dictionary, as_table, msa_update
from tests.tabular.strategies import Case, cases

HISTORY = PartialHistory(np.array([0, 1, 2]), 0, np.array([4.0, 8.0]), terminated=True)


@pytest.mark.parametrize(
    ("pad_terminal", "last", "first"),
    [(False, [4.0, 0.0, 0.0, 0.0], [3.5, 4.0, 0.0, 0.0]), (True, [4.0, 4.0, 4.0, 4.0], [3.5, 4.0, 4.0, 4.0])],
)
def test_an_update_by_hand(pad_terminal: bool, last: list[float], first: list[float]) -> None:
    learner = MSAQLearning(4, alpha=0.5, gamma=0.5, pad_terminal=pad_terminal)
    learner.reset(3, 2)
    learner.q[1, 1, 3] = 6.0
    learner.update(HISTORY)
    # j = 2: Q(1,0,1) = ½·8; Q(0,0,2) = ½(4 + ½·8). j = 1: V(1) = 6, so Q(0,0,1) = ½(4 + ½·6).
    # Padded, what holds for the length that ended the episode holds for all longer ones.
    np.testing.assert_array_equal(learner.q[1, 0], last)
    np.testing.assert_array_equal(learner.q[0, 0], first)


def test_padding_changes_nothing_where_no_episode_ends() -> None:
    history = PartialHistory(np.array([0, 1, 1]), 0, np.array([4.0, 8.0]))
    tables = []
    for pad_terminal in (False, True):
        learner = MSAQLearning(4, initial_std=1.0, pad_terminal=pad_terminal)
        learner.reset(3, 2)
        learner.update(history)
        tables.append(learner.q)
    np.testing.assert_array_equal(*tables)


@settings(max_examples=200)
@given(cases())
def test_the_update_is_the_literal_one(case: Case) -> None:
    learner = case.learner(MSAQLearning, pad_terminal=case.by.pad_terminal)
    values = as_dictionary(learner.q)
    msa_update(values, case.history, case.by)
    learner.update(case.history)
    np.testing.assert_allclose(learner.q, as_table(values, learner.q.shape), rtol=0.0, atol=1e-12)


def test_one_long_option_is_learned_as_perq_learns_it() -> None:
    # With κ = K_max on a way without repetition the two differ only in what PerQ-learning bootstraps.
    history = PartialHistory(np.array([0, 1, 2, 3]), 0, np.array([1.0, 2.0, 4.0]))
    msa, perq = MSAQLearning(3, alpha=1.0), PerQLearning(3, alpha=1.0)
    for learner in (msa, perq):
        learner.reset(4, 1)
        learner.update(history)
    np.testing.assert_array_equal(msa.q[2, 0, :1], perq.q[2, 0, :1])
    assert perq.q[2, 0, 1] == 4.0
    assert msa.q[2, 0, 1] == 0.0


def test_with_k_max_1_it_is_q_learning(cliff: TabularMDP) -> None:
    one, other = MSAQLearning(1).fit(cliff, 200), QLearning().fit(cliff, 200)
    same_episodes(one, other)
    np.testing.assert_array_equal(one.q, other.q)
