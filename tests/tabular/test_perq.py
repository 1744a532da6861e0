from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from holdfast.core import Constant, Option, PartialHistory
from holdfast.core.decomposition import backward_schedule
from holdfast.envs import make_env
from holdfast.mdp import TabularMDP, q_star_options
from holdfast.tabular import PerQLearning, QLearning
from tests.tabular.conftest import after_two_steps, corridor, random_mdp, same_episodes
from tests.tabular.literal import as_dictionary, as_table, perq_run, update
from tests.tabular.strategies import Case, cases


def test_an_update_by_hand() -> None:
    # K = 3, κ = 2, γ = α = ½: states 0, 1, 2 in a row, rewards 4 and 8, all else 0.
    q = after_two_steps(PerQLearning(3, alpha=0.5, gamma=0.5))
    # j = 2, i = 1 (R = 8, k = 1): Q(1,0,1) = ½(8 + ½·16) = 8; then d = 1, 2: ½(8 + ½·8) = 6, ½(8 + ½·4) = 5.
    # j = 2, i = 0 (R = 8, k = 2): Q(0,0,2) = ½(8 + ¼·16) = 6; then d = 1: Q(0,0,3) = ½(8 + ¼·8) = 5.
    # j = 1, i = 0 (R = 4, k = 1): V(1) = 8, so Q(0,0,1) = ½(4 + ½·8) = 4;
    #   d = 1: Q(0,0,2) = ½·6 + ½(4 + ½·8) = 7; d = 2: Q(0,0,3) = ½·5 + ½(4 + ½·6) = 6.
    np.testing.assert_array_equal(q[1, 0], [8.0, 6.0, 5.0])
    np.testing.assert_array_equal(q[0, 0], [4.0, 7.0, 6.0])
    assert not q[:2, 1].any()


def test_beyond_a_terminal_state_there_is_nothing() -> None:
    learner = PerQLearning(4, alpha=1.0, gamma=0.5, initial_value=7.0)
    learner.reset(3, 1)
    learner.update(PartialHistory(np.array([0, 1, 2]), 0, np.array([4.0, 8.0]), terminated=True))
    np.testing.assert_array_equal(learner.q[1, 0], [8.0, 8.0, 8.0, 8.0])
    np.testing.assert_array_equal(learner.q[0, 0], [8.0, 8.0, 8.0, 8.0])


def test_the_primitive_target_looks_at_one_step_only() -> None:
    for target_value, expected in (("options", 16.0), ("primitive", 8.0)):
        learner = PerQLearning(2, alpha=1.0, gamma=1.0, target_value=target_value)
        learner.reset(2, 2)
        learner.q[1] = [[8.0, 16.0], [0.0, 0.0]]
        learner.update(PartialHistory(np.array([0, 1]), 0, np.array([0.0])))
        assert learner.q[0, 0, 0] == expected


@settings(max_examples=200)
@given(cases())
def test_the_update_is_algorithm_1(case: Case) -> None:
    learner = case.learner(PerQLearning)
    values = as_dictionary(learner.q)
    update(values, case.history, case.by)
    learner.update(case.history)
    np.testing.assert_allclose(learner.q, as_table(values, learner.q.shape), rtol=0.0, atol=1e-12)


def test_the_update_keeps_the_order_of_the_schedule() -> None:
    # From the schedule itself, on a history that stays in one state, where the order shows.
    learner = PerQLearning(4, alpha=0.3, gamma=0.9, initial_std=1.0)
    learner.reset(1, 2)
    q = learner.q.copy()
    rewards = np.array([1.0, -2.0, 0.5])
    for i, j, d in backward_schedule(3, 4):
        reward = sum(0.9**n * rewards[i + n] for n in range(j - i))
        value = q[0].max() if d == 0 else q[0, 1, d - 1]
        at = j - i + d - 1
        q[0, 1, at] = 0.7 * q[0, 1, at] + 0.3 * (reward + 0.9 ** (j - i) * value)
    learner.update(PartialHistory(np.zeros(4, dtype=int), 1, rewards))
    np.testing.assert_allclose(learner.q, q, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(("alpha", "gamma", "initial_std"), [(0.5, 0.5, 0.0), (0.1, 0.99, 1.0)])
def test_whole_runs_are_the_literal_ones(
    cliff: TabularMDP, alpha: float, gamma: float, initial_std: float
) -> None:
    # Zero values tie, so there the arithmetic is one without rounding; random values never tie.
    learner = PerQLearning(4, alpha=alpha, gamma=gamma, initial_std=initial_std)
    state = learner.start(cliff, seed=3)
    after, log = learner.advance(cliff, state, 60)
    epsilons = [0.99**t for t in range(60)]
    q, episodes = perq_run(cliff, state.tables["q"], alpha, gamma, epsilons, 100, state.agent)
    np.testing.assert_allclose(after.tables["q"], q, rtol=0.0, atol=1e-12)
    expected = list(zip(log.training_returns, log.steps, log.decisions, strict=True))
    assert [tuple(map(float, row)) for row in expected] == [tuple(map(float, row)) for row in episodes]


@pytest.mark.parametrize("initial_std", [0.0, 1.0])
@pytest.mark.parametrize("world", ["grid", "random"])
def test_with_k_max_1_it_is_q_learning(cliff: TabularMDP, world: str, initial_std: float) -> None:
    mdp = cliff if world == "grid" else random_mdp()
    one = PerQLearning(1, initial_std=initial_std).fit(mdp, 300, seeds=(5, 9))
    other = QLearning(initial_std=initial_std).fit(mdp, 300, seeds=(5, 9))
    same_episodes(one, other)
    np.testing.assert_array_equal(one.q, other.q)


@pytest.mark.parametrize("target_value", ["options", "primitive"])
def test_it_converges_to_the_exact_values_on_cliff(cliff: TabularMDP, target_value: str) -> None:
    anywhere = np.where(cliff.terminal, 0.0, 1.0)
    mdp = TabularMDP(cliff.P, cliff.r, 0.99, initial=anywhere / anywhere.sum(), terminal=cliff.terminal)
    learner = PerQLearning(8, alpha=0.5, epsilon=1.0, target_value=target_value)
    result = learner.fit(mdp, 6000, evaluate=False)
    assert np.abs(result.q[0] - q_star_options(mdp, 8)).max() <= 1e-6


def test_it_comes_near_the_exact_values_where_steps_slip() -> None:
    slippery = make_env("cliff", slip=0.2).unwrapped.tabular_mdp(0.9)
    anywhere = np.where(slippery.terminal, 0.0, 1.0)
    initial = anywhere / anywhere.sum()
    mdp = TabularMDP(slippery.P, slippery.outcome_reward, 0.9, initial=initial, terminal=slippery.terminal)
    learner = PerQLearning(3, alpha=0.01, gamma=0.9, epsilon=1.0)
    result = learner.fit(mdp, 60_000, evaluate=False)
    error = np.abs(result.q[0] - q_star_options(mdp, 3))
    assert error.mean() < 0.02
    assert error.max() < 0.25  # beside the holes the targets are the noisiest


def interruptible(learner: PerQLearning) -> tuple[TabularMDP, Any]:
    """A corridor whose table makes the agent begin (right, 3) in 0 and regret it in 1."""
    mdp = corridor()
    state = learner.start(mdp)
    q = state.tables["q"]
    q[0, 1] = [0.0, 0.0, 1.0]
    q[1, 1] = [0.5, 0.2, 0.0]
    q[2, 1] = q[3, 1] = [0.5, 0.0, 0.0]
    q[4, 1] = 0.9
    return mdp, state


def test_a_greedy_option_is_cut_where_another_is_better_by_more_than_the_margin() -> None:
    for margin, decisions in ((None, 3), (0.31, 3), (0.29, 5), (0.0, 5)):
        learner = PerQLearning(3, alpha=1e-9, gamma=0.5, epsilon=0.0, interrupt_margin=margin)
        mdp, state = interruptible(learner)
        _, log = learner.advance(mdp, state, 1)
        assert (log.steps[0], log.decisions[0]) == (5, decisions)
        assert (log.greedy_steps[0], log.greedy_decisions[0]) == (5, decisions)


def test_what_was_executed_is_then_a_shorter_option() -> None:
    learner = PerQLearning(3, alpha=1.0, gamma=0.5, epsilon=0.0, interrupt_margin=0.0)
    mdp, state = interruptible(learner)
    after, _ = learner.advance(mdp, state, 1, evaluate=False)
    # One step from 0 to 1: Q(0,right,1) from V(1), Q(0,right,1+d) from Q(1,right,d).
    np.testing.assert_array_equal(after.tables["q"][0, 1], [0.25, 0.25, 0.1])


def test_exploratory_options_are_never_cut(cliff: TabularMDP) -> None:
    plain = PerQLearning(8, epsilon=1.0, initial_std=1.0).fit(cliff, 100, evaluate=False)
    eager = PerQLearning(8, epsilon=1.0, initial_std=1.0, interrupt_margin=0.0).fit(cliff, 100, evaluate=False)
    np.testing.assert_array_equal(plain.q, eager.q)
    np.testing.assert_array_equal(plain.decisions, eager.decisions)


def test_a_tolerance_makes_for_fewer_decisions_in_greedy_episodes_only(cliff: TabularMDP) -> None:
    results = {
        tolerance: PerQLearning(8, decision_tolerance=tolerance).fit(cliff, 600, seeds=range(10))
        for tolerance in (None, 0.0, 0.05)
    }
    last = {tolerance: result.greedy_decisions[:, -50:].mean() for tolerance, result in results.items()}
    assert last[0.05] <= last[0.0] < last[None]
    np.testing.assert_array_equal(results[None].q, results[0.05].q)
    assert results[0.05].greedy_returns[:, -50:].mean() == 1.0


def test_act_holds_the_best_action_as_long_as_the_tolerance_allows() -> None:
    learner = PerQLearning(4, decision_tolerance=0.1)
    learner.reset(2, 2)
    learner.q[0] = [[0.0, 0.0, 0.0, 0.0], [1.0, 0.95, 0.91, 0.5]]
    assert learner.act(0) == Option(1, 3)
    assert learner.act(1) == Option(0, 4)
    learner = PerQLearning(4)
    learner.reset(2, 2)
    assert learner.act(1) == Option(0, 1)


def test_coins_fall_only_where_an_option_begins() -> None:
    # With ε = 1 each decision takes two draws: the coin, and the option.
    learner = PerQLearning(4, epsilon=Constant(1.0))
    state = learner.start(corridor())
    after, log = learner.advance(corridor(), state, 20)
    state.agent.random(2 * int(log.decisions.sum()))
    assert after.agent.bit_generator.state == state.agent.bit_generator.state


def test_without_held_exploration_random_actions_last_one_step_and_greedy_ones_as_long_as_they_are_best() -> None:
    random = PerQLearning(4, epsilon=1.0, exploration="primitive").fit(corridor(), 20)
    np.testing.assert_array_equal(random.decisions, random.steps)
    assert (PerQLearning(4, epsilon=1.0).fit(corridor(), 20).decisions < random.steps).any()
    # interruptible() has values by which a greedy option of three steps comes first.
    learner = PerQLearning(3, alpha=1e-9, gamma=0.5, epsilon=0.0, exploration="primitive")
    mdp, state = interruptible(learner)
    _, log = learner.advance(mdp, state, 1)
    assert (log.steps[0], log.decisions[0]) == (5, 3)


def test_without_held_exploration_longer_persistences_are_still_learned() -> None:
    learner = PerQLearning(3, alpha=1.0, gamma=0.5, epsilon=1.0, exploration="primitive")
    result = learner.fit(corridor(), 200)
    np.testing.assert_allclose(result.q, PerQLearning(3, alpha=1.0, gamma=0.5, epsilon=1.0).fit(corridor(), 200).q)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"k_max": 0}, "k_max must be a whole number of at least 1, not 0"),
        ({"k_max": 2.5}, "k_max must be a whole number of at least 1, not 2.5"),
        ({"alpha": 0.0}, "alpha must be a number in (0, 1], not 0.0"),
        ({"alpha": 1.5}, "alpha must be a number in (0, 1], not 1.5"),
        ({"gamma": -0.1}, "gamma must be a number in [0, 1], not -0.1"),
        ({"epsilon": 2.0}, "epsilon must be a number in [0, 1], not 2.0"),
        ({"step_limit": 0}, "step_limit must be a whole number of at least 1, not 0"),
        ({"initial_std": -1.0}, "initial_std must be a finite number of at least 0, not -1.0"),
        ({"target_value": "double"}, "target_value must be one of 'options', 'primitive', not 'double'"),
        ({"exploration": "holds"}, "exploration must be one of 'options', 'primitive', not 'holds'"),
        ({"greedy_ties": "last"}, "greedy_ties must be one of 'first', 'random', not 'last'"),
        ({"interrupt_margin": -1.0}, "interrupt_margin must be a finite number of at least 0, not -1.0"),
        (
            {"interrupt_margin": 0.1, "decision_tolerance": 0.2},
            "interrupt_margin must be at least decision_tolerance, which is 0.2, not 0.1: "
            "a hold would be dropped as soon as it is chosen",
        ),
    ],
)
def test_bad_arguments_get_one_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        PerQLearning(**arguments)
    assert str(caught.value) == sentence
