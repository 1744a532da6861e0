"""TempoRL's DQN: its values in closed form, beside its tabular twin, its coins, and what it learns from."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from scipy import stats

from holdfast.deep import TempoRLDQN
from holdfast.deep.agents.targets import skip_targets
from holdfast.envs import GridWorld
from holdfast.tabular import TempoRLQLearning
from tests.deep.diary import IDLE, Diary, by_table, diaries, expected_replay, watch_decisions, watch_learning
from tests.deep.earlier_settings import earlier
from tests.deep.literal_replay import drawable_tuples
from tests.deep.probes import EAGER, Carousel, ChosenReward, DelayedReward, OneReward, Pier, Probe, SeenReward


def agent(env: Any, **arguments: Any) -> TempoRLDQN:
    return TempoRLDQN("MlpPolicy", env, **{**IDLE, **arguments})


# Values -----------------------------------------------------------------------------------------------------


def learned(env: Any, steps: int, **arguments: Any) -> TempoRLDQN:
    """An agent after some steps of random skips."""
    return TempoRLDQN("MlpPolicy", env, **earlier(TempoRLDQN, {**EAGER, **arguments})).learn(steps)


def assert_probed(probe: type[Probe], steps: int, k_max: int = 3, **arguments: Any) -> None:
    """J(s,j|a) is Q*(s,a,j) for every length j, and Q(s,a) is Q*(s,a,1)."""
    model = learned(probe(), steps, gamma=probe.gamma, k_max=k_max, **arguments)
    table = model.policy.option_values(th.as_tensor(probe.every_observation()))
    expected = probe.values(k_max)
    np.testing.assert_allclose(table[:, :, 1:], expected, rtol=0.0, atol=0.02 * np.abs(expected).max())
    np.testing.assert_allclose(table[:, :, 0], expected[:, :, 0], rtol=0.0, atol=0.02 * np.abs(expected).max())
    np.testing.assert_array_equal(model.policy.decide(probe.every_observation()).values, table[:, :, 1:])


@pytest.mark.parametrize("probe", [OneReward, SeenReward, DelayedReward, ChosenReward])
def test_the_smallest_probes(probe):
    assert_probed(probe, 700)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [{}, {"prioritized": False}], ids=["prioritised", "uniform"])
def test_skips_that_are_too_long_overshoot(arguments):
    assert_probed(Pier, 1500, k_max=4, head_arch=[64], **arguments)


@pytest.mark.slow
def test_values_go_on_beyond_a_time_limit():
    assert_probed(Carousel, 1000, normalize_observations="space")


def test_a_time_limit_that_is_terminal_ends_the_values():
    class Second(DelayedReward):
        time_limit = 1

    model = learned(Second(), 500, gamma=0.9, k_max=3, timeout_is_terminal=True)
    np.testing.assert_allclose(model.policy.decide(Second.observe(0)).values, 0.0, atol=0.02)


MAP = "S..#\n...G"


@pytest.mark.slow
def test_the_tabular_and_the_deep_learner_agree_on_a_grid():
    gamma, k_max = 0.9, 3
    grid, live = GridWorld(MAP, step_limit=30), [0, 1, 2, 4, 5, 6]
    table = TempoRLQLearning(k_max, gamma=gamma, alpha=0.5, epsilon=1.0)
    table.fit(GridWorld(MAP, step_limit=30), 4000)
    seen = gymnasium.wrappers.FlattenObservation(grid)
    wide = {"policy_kwargs": {"net_arch": [64]}, "head_arch": [64], "buffer_size": 5000}
    model = learned(seen, 2500, gamma=gamma, k_max=k_max, **wide)
    deep = model.policy.decide(np.eye(grid.observation_space.n, dtype=np.float32)[live])
    np.testing.assert_allclose(deep.values, table.policy().table[live], rtol=0.0, atol=0.05)
    actions = model.policy.option_values(th.eye(8)[live])[:, :, 0]
    np.testing.assert_allclose(actions, table.q[live, :, 0], rtol=0.0, atol=0.05)
    clear = 0
    for number, state in enumerate(live):
        # Of two ways that are equally long either may be the better by a hair.
        best = np.flatnonzero(table.q[state, :, 0] > table.q[state].max() - 1e-3)
        assert deep.action[number] in best
        clear += len(best) == 1
    assert clear >= 3


# Choosing ---------------------------------------------------------------------------------------------------

# Q(s,a), then J(s,1|a)..J(s,3|a): the best action is 1, its best skip 2; that of action 0 is 3, that of 2 is 1.
TABLE = [[1.0, 0.0, 1.0, 9.0], [2.0, 0.0, 3.0, 1.0], [0.0, 4.0, 2.0, 3.9]]
BEST_SKIP = {0: 3, 1: 2, 2: 1}


def test_greedy_it_takes_the_best_action_and_its_best_skip():
    model = agent(diaries(lengths=[50]))
    by_table(model.policy, TABLE)
    decisions = watch_decisions(model)
    model.learn(20)
    assert {(decided.action, decided.duration) for decided in decisions} == {(1, 2)}
    decision = model.policy.decide(Diary().reset()[0])
    assert (decision.action, decision.hold) == (1, 2)
    np.testing.assert_array_equal(decision.values, np.array(TABLE, np.float32)[:, 1:])


def test_a_tolerance_holds_longer():
    model = agent(diaries(), decision_tolerance=0.2)
    by_table(model.policy, [[0.0, 0.0, 0.0, 9.0], [2.0, 1.0, 0.9, 0.5], [1.0, 0.0, 0.0, 0.0]])
    decision = model.policy.decide(Diary().reset()[0])
    assert (decision.action, decision.hold) == (1, 2)


def test_a_skip_is_dropped_where_the_best_action_is_better_than_holding_on():
    # One step later Q(s,1) is 2, and holding action 1 for the one step that is left is worth 0.
    for margin, kappa in ((1.5, 1), (2.5, 2)):
        model = agent(diaries(lengths=[50]), interrupt_margin=margin)
        by_table(model.policy, TABLE)
        model.learn(20)
        assert set(model.hold_statistics.holds) == {kappa}
        observation = Diary().reset()[0]
        assert model.policy.interrupts(observation, 1, 1) == (kappa == 1)


def test_action_and_skip_have_their_own_coins(monkeypatch):
    epsilon = 0.5
    model = agent(diaries(lengths=[10**6]), exploration_initial_eps=epsilon, exploration_final_eps=epsilon)
    by_table(model.policy, TABLE)
    decisions = watch_decisions(model)
    coins, toss = [], np.random.rand
    monkeypatch.setattr(np.random, "rand", lambda: coins.append(toss() < epsilon) or float(not coins[-1]))
    model.learn(6000)
    assert len(coins) == 2 * len(decisions)
    pairs = list(zip(coins[0::2], coins[1::2], strict=True))[1:]
    counts = np.zeros((2, 2, 3, 3))
    for (draws_action, draws_hold), decided in zip(pairs, decisions[1:], strict=True):
        assert decided.exploratory == (draws_action or draws_hold)
        if not draws_action:
            assert decided.action == 1
        if not draws_hold:
            assert decided.duration == BEST_SKIP[decided.action]
        counts[int(draws_action), int(draws_hold), decided.action, decided.duration - 1] += 1
    assert stats.chisquare(counts.sum(axis=(2, 3)).ravel()).pvalue > 0.01
    assert stats.chisquare(counts[1, 1].ravel()).pvalue > 0.01
    assert stats.chisquare(counts[0, 1].sum(axis=0)).pvalue > 0.01
    assert stats.chisquare(counts[1, 0].sum(axis=1)).pvalue > 0.01


# Learning ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pad_terminal", [True, False])
def test_its_replay_holds_every_sub_transition_of_every_skip(pad_terminal):
    env = diaries(2)
    model = agent(env, pad_terminal=pad_terminal, exploration_initial_eps=1.0, exploration_final_eps=1.0)
    decisions = watch_decisions(model)
    model.learn(120)
    literal = expected_replay(model, decisions)
    literal.pad_terminal = pad_terminal
    views = drawable_tuples(model.replay_buffer)
    for k in (1, 2, 3):
        assert views[k - 1] == literal.tuples(k)
        assert sum(views[k - 1].values()) > 10
    lengths = {found.length for found in views[2]}
    assert lengths == ({1, 2, 3} if pad_terminal else {3})
    # Every step of a skip that is over is there for the action values.
    assert sum(views[0].values()) == 120 - int(model.replay_buffer.pending.sum())


def test_targets_are_those_of_the_formula_and_priorities_those_of_the_larger_error():
    random = {"exploration_initial_eps": 1.0, "exploration_final_eps": 1.0}
    model = agent(diaries(), clip_targets=False, **random).learn(60)
    with th.no_grad():
        for parameter in model.q_net_target.parameters():
            parameter += 0.1 * th.randn_like(parameter)
    known = watch_learning(model)
    before = {name: value.clone() for name, value in model.q_net.state_dict().items()}
    model.train(1, 6)
    ((batch, residuals, targets),) = known
    after = {name: value.clone() for name, value in model.q_net.state_dict().items()}
    model.q_net.load_state_dict(before)
    observations = model.replay_buffer.observations_at(batch.next_rows.ravel())
    with th.no_grad():
        expected = skip_targets(
            *(th.as_tensor(part) for part in (batch.rewards, batch.discounts, batch.dones)),
            model.q_net_target(observations)[:, :, :1],
            model.q_net(observations)[:, :, :1],
            th.arange(18).view(3, 6),
        )
    np.testing.assert_allclose(targets, expected, rtol=1e-5, atol=1e-6)
    assert any(not th.equal(before[name], after[name]) for name in before)
    for index in range(3):
        last = dict(zip(batch.rows[index].tolist(), residuals.td_errors[index].tolist(), strict=True))
        for row, error in last.items():
            found = model.replay_buffer.trees.priorities(index)[row]
            assert found == pytest.approx((abs(error) + 1e-6) ** 0.6, rel=1e-5)


def test_every_parameter_gets_a_gradient():
    model = agent(Pier(), exploration_initial_eps=1.0, exploration_final_eps=1.0).learn(30)
    model.train(1, 8)
    assert all(parameter.grad is not None for parameter in model.q_net.parameters())
    assert all(parameter.grad is None for parameter in model.q_net_target.parameters())


@pytest.mark.parametrize(
    ("name", "value", "stands_for"),
    [("bootstrap", True, "False"), ("target_value", "options", "'double'"), ("dueling", True, "False")],
)
def test_what_it_stands_for_cannot_be_given(name, value, stands_for):
    with pytest.raises(TypeError) as caught:
        TempoRLDQN("MlpPolicy", Pier(), **{name: value})
    assert str(caught.value) == f"{name} must not be given to TempoRLDQN, which stands for {name}={stands_for}"
    assert name not in inspect.signature(TempoRLDQN.__init__).parameters
    assert "k_max" in inspect.signature(TempoRLDQN).parameters
