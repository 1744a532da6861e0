"""Tabular learners with a cost for each decision and with sparse sets of persistences."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import Option, PartialHistory
from holdfast.envs import make_env
from holdfast.mdp import TabularMDP, q_star_options
from holdfast.tabular import GreedyPolicy, MSAQLearning, PerQLearning, TempoRLQLearning
from tests.tabular.conftest import after_two_steps, random_mdp, same_episodes
from tests.tabular.literal import as_dictionary, as_table, msa_update, update
from tests.tabular.strategies import Case, cases


def test_an_update_by_hand() -> None:
    # 1, 2 and 4 steps, κ = 2, γ = α = ½, c = 4: states 0, 1, 2 in a row, rewards 4 and 8, all else 0.
    q = after_two_steps(PerQLearning(persistences=(1, 2, 4), alpha=0.5, gamma=0.5, decision_cost=4.0))
    # j = 2, i = 1 (R = 8, one step), V(2) = 16 − 4: Q(1,0,1) = ½(8 + ½·12) = 7; k = 2 by Q(2,0,1): ½(8 + 4) = 6;
    #   k = 4 would need Q(2,0,3), which there is not.
    # j = 2, i = 0 (R = 8, two steps): Q(0,0,2) = ½(8 + ¼·12) = 5.5; k = 4 by Q(2,0,2): ½(8 + ¼·4) = 4.5.
    # j = 1, i = 0 (R = 4, one step), V(1) = 7 − 4: Q(0,0,1) = ½(4 + ½·3) = 2.75;
    #   k = 2 by Q(1,0,1) = 7: ½·5.5 + ½(4 + 3.5) = 6.5; k = 4 by none.
    np.testing.assert_array_equal(q[1, 0], [7.0, 6.0, 0.0])
    np.testing.assert_array_equal(q[0, 0], [2.75, 6.5, 4.5])
    assert not q[:2, 1].any()


def test_a_hold_that_ended_the_episode_fixes_every_longer_one() -> None:
    learner = PerQLearning(persistences=(1, 2, 8), alpha=1.0, gamma=0.5, initial_value=7.0, decision_cost=3.0)
    learner.reset(3, 1)
    learner.update(PartialHistory(np.array([0, 1, 2]), 0, np.array([4.0, 8.0]), terminated=True))
    # Nothing is decided behind the end, so nothing is paid there. In 1 the episode ends whatever k is: 8. From 0,
    # k = 1: 4 + ½(8 − 3) = 6.5; all longer ones: 4 + ½·8.
    np.testing.assert_array_equal(learner.q[1, 0], [8.0, 8.0, 8.0])
    np.testing.assert_array_equal(learner.q[0, 0], [6.5, 8.0, 8.0])


@settings(max_examples=200)
@given(case=cases(), others=st.sets(st.integers(2, 6)), cost=st.sampled_from([0.0, 0.5, 4.0]))
def test_updates_are_the_literal_ones(case: Case, others: set[int], cost: float) -> None:
    durations = (1, *sorted(k for k in others if k < case.by.k_max), case.by.k_max)
    durations = tuple(dict.fromkeys(durations))
    by = case.by._replace(durations=durations, cost=cost)
    kinds: list[tuple[Any, Any, dict[str, Any]]] = [
        (PerQLearning, update, {}),
        (MSAQLearning, msa_update, {"pad_terminal": by.pad_terminal}),
    ]
    for kind, literal_update, own in kinds:
        learner = kind(
            persistences=durations, alpha=by.alpha, gamma=by.gamma, initial_std=1.0, decision_cost=cost, **own
        )
        learner.reset(case.n_states, by.n_actions, case.seed)
        values = as_dictionary(learner.q, durations)
        literal_update(values, case.history, by)
        learner.update(case.history)
        expected = as_table(values, learner.q.shape, durations)
        np.testing.assert_allclose(learner.q, expected, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("kind", [PerQLearning, MSAQLearning])
@pytest.mark.parametrize("arguments", [{}, {"decision_cost": 0.01}])
def test_a_full_set_is_k_max_to_the_last_bit(kind: Any, arguments: dict[str, Any]) -> None:
    mdp = random_mdp()
    one = kind(4, initial_std=0.1, **arguments).fit(mdp, 150, seeds=(1, 2))
    other = kind(persistences=(1, 2, 3, 4), initial_std=0.1, **arguments).fit(mdp, 150, seeds=(1, 2))
    same_episodes(one, other)
    assert one.q.tobytes() == other.q.tobytes()


def anywhere(mdp: TabularMDP) -> TabularMDP:
    """The same model, with episodes that begin in every live state."""
    live = np.where(mdp.terminal, 0.0, 1.0)
    return TabularMDP(mdp.P, mdp.r, mdp.gamma, initial=live / live.sum(), terminal=mdp.terminal)


@pytest.mark.parametrize(
    ("durations", "cost"), [((1, 2, 4, 8), 0.0), ((1, 2, 4, 8), 0.1), (tuple(range(1, 9)), 0.1)]
)
@pytest.mark.parametrize("grid", ["cliff", "zigzag"])
def test_perq_converges_to_the_exact_values(grid: str, durations: tuple[int, ...], cost: float) -> None:
    mdp = anywhere(TabularMDP.from_gymnasium(make_env(grid), 0.99))
    learner = PerQLearning(persistences=durations, alpha=0.5, epsilon=1.0, decision_cost=cost)
    found = learner.fit(mdp, 6000, evaluate=False).q[0]
    exact = q_star_options(mdp, decision_cost=cost, persistences=durations)
    assert np.abs(found - exact).max() <= 1e-6


def test_msa_converges_to_the_exact_values() -> None:
    mdp = anywhere(TabularMDP.from_gymnasium(make_env("cliff"), 0.99))
    learner = MSAQLearning(persistences=(1, 2, 4), alpha=0.5, epsilon=1.0, decision_cost=0.1, pad_terminal=True)
    exact = q_star_options(mdp, decision_cost=0.1, persistences=(1, 2, 4))
    assert np.abs(learner.fit(mdp, 8000, evaluate=False).q[0] - exact).max() <= 1e-6


def test_a_cost_buys_fewer_decisions_and_returns_are_told_without_it() -> None:
    mdp = anywhere(TabularMDP.from_gymnasium(make_env("cliff"), 0.99))
    values = PerQLearning(8, alpha=0.5, epsilon=1.0, decision_cost=0.1).fit(mdp, 6000, evaluate=False).q
    start = TabularMDP.from_gymnasium(make_env("cliff"), 0.99)
    learner = PerQLearning(8, alpha=1e-9, epsilon=0.0, decision_cost=0.1)
    state = learner.start(start)
    state.tables["q"][:] = values[0]
    _, log = learner.advance(start, state, 1)
    assert (log.greedy_returns[0], log.greedy_steps[0], log.greedy_decisions[0]) == (1.0, 15, 4)
    assert (log.training_returns[0], log.decisions[0]) == (1.0, 4)


class TestPolicy:
    q = np.array([[[1.0, 2.0, 1.5], [0.0, 0.0, 0.0]]])

    def test_holds_are_those_of_the_set(self) -> None:
        assert GreedyPolicy(self.q, persistences=(1, 4, 9)).act(0) == Option(0, 4)
        assert GreedyPolicy(self.q, decision_tolerance=0.5, persistences=(1, 4, 9)).act(0) == Option(0, 9)
        assert GreedyPolicy(self.q).act(0) == Option(0, 2)

    def test_what_is_left_goes_by_the_longest_within_it(self) -> None:
        policy = GreedyPolicy(self.q, interrupt_margin=0.5, decision_cost=0.5, persistences=(1, 4, 9))
        # 3 steps left go by k = 1, which is worth 1 less than the best; 4 to 8 by k = 4; 9 by k = 9, .5 less.
        assert [policy.interrupts(0, Option(0, left)) for left in (1, 3, 4, 8, 9)] == [
            True,
            True,
            False,
            False,
            False,
        ]


# What is refused, and in which words:


@pytest.mark.parametrize("kind", [PerQLearning, MSAQLearning])
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"decision_cost": -1.0}, "decision_cost must be a finite number of at least 0, not -1.0"),
        ({"decision_cost": np.nan}, "decision_cost must be a finite number of at least 0, not nan"),
        ({"decision_cost": np.inf}, "decision_cost must be a finite number of at least 0, not inf"),
        (
            {"persistences": (2, 4)},
            "persistences must begin with 1 and increase, as [1, 2, 4, 8] does, not [2, 4]",
        ),
        ({"persistences": [1, 4, 2]}, "persistences must begin with 1 and increase"),
        ({"persistences": [1, 2, 2]}, "persistences must begin with 1 and increase"),
        (
            {"k_max": 5, "persistences": [1, 2]},
            "k_max must be 2, the last of persistences, or be left out, not 5",
        ),
    ],
)
def test_what_is_refused(kind: Any, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        kind(**arguments)


def test_a_margin_below_the_cost_is_refused() -> None:
    sentence = r"^interrupt_margin must be at least decision_cost, which is 0\.2, not 0\.1: dropping a hold "
    with pytest.raises(ValueError, match=sentence):
        PerQLearning(decision_cost=0.2, interrupt_margin=0.1)
    with pytest.raises(ValueError, match=sentence):
        GreedyPolicy(np.zeros((1, 1, 1)), interrupt_margin=0.1, decision_cost=0.2)
    PerQLearning(decision_cost=0.2, interrupt_margin=0.2)


def test_a_primitive_target_with_a_cost_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^target_value must not be 'primitive' if decision_cost is above 0"):
        PerQLearning(decision_cost=0.2, target_value="primitive")
    PerQLearning(decision_cost=0.0, target_value="primitive")


def test_temporl_has_no_cost() -> None:
    with pytest.raises(TypeError):
        TempoRLQLearning(decision_cost=0.1)  # type: ignore[call-arg]
