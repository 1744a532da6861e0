"""An option that is begun is held: in training, in ``predict``, and in the replay that is made of it."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from scipy import stats
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from tests.deep.diary import (
    Diary,
    agent,
    by_table,
    diaries,
    executed_options,
    expected_replay,
    logs,
    plain_agent,
    watch_decisions,
)
from tests.deep.literal_replay import drawable_tuples
from tests.deep.probes import OneReward


def table(best_action, best_hold, n_actions=3, k_max=3):
    """Values whose maximum is one option."""
    values = np.zeros((n_actions, k_max))
    values[best_action, best_hold - 1] = 1.0
    return values


def by_state(values):
    """Values by what is seen, the number of a state: a list of tables, taken in turn."""
    return lambda rows: [values[int(row[0] * 256 + row[1]) % len(values)] for row in rows]


def rollout(model, steps, *, state=None, keep_state=True, deterministic=True, env=None):
    """Actions of ``predict`` in an environment."""
    env = env or diaries()
    observations, starts, actions = env.reset(), np.ones(env.num_envs, dtype=bool), []
    for _ in range(steps):
        action, state = model.predict(observations, state, starts, deterministic)
        state = state if keep_state else None
        observations, _, starts, _ = env.step(action)
        actions.append(action.tolist())
    return actions


# Training --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("margin", [None, 0.05])
def test_what_is_chosen_is_held_and_stored(n_envs, epsilon, margin):
    env = diaries(n_envs)
    model = plain_agent(
        env,
        exploration_initial_eps=epsilon,
        exploration_final_eps=epsilon,
        prioritized=False,
        buffer_size=40 * n_envs,
        interrupt_margin=margin,
        learning_starts=10,
    )
    tables = np.random.default_rng(1).random((11, 3, 3))
    by_table(model.policy, by_state(tables))
    decisions = watch_decisions(model)
    model.learn(n_envs * 90)
    cut_by_choice = 0
    for index, log in enumerate(logs(env)):
        begun = [decided for decided in decisions if decided.env == index]
        for decided, option in zip(begun, executed_options(log, decisions, index), strict=True):
            assert {entry.action for entry in option} == {decided.action}
            if not decided.exploratory:
                best = np.unravel_index(np.argmax(tables[option[0].state % 11]), (3, 3))
                assert (decided.action, decided.duration - 1) == best
            assert not any(entry.terminated or entry.truncated for entry in option[:-1])
            over = option[-1].terminated or option[-1].truncated or option[-1] is log[-1]
            if len(option) < decided.duration and not over:
                assert not decided.exploratory
                cut_by_choice += 1
            assert len(option) <= decided.duration
    assert (cut_by_choice > 0) == (margin is not None and epsilon < 1.0)
    literal = expected_replay(model, decisions)
    for k, view in enumerate(drawable_tuples(model.replay_buffer), start=1):
        assert view == literal.tuples(k)


def test_a_time_limit_that_is_terminal_is_stored_as_an_end():
    model = plain_agent(diaries(), timeout_is_terminal=True, prioritized=False)
    decisions = watch_decisions(model)
    model.learn(60)
    literal = expected_replay(model, decisions)
    assert drawable_tuples(model.replay_buffer)[1] == literal.tuples(2)
    ends = [entry for entry in logs(model.env)[0] if entry.terminated or entry.truncated]
    assert sum(found.done for found in drawable_tuples(model.replay_buffer)[0].elements()) == len(ends)


def test_coins_fall_only_where_an_option_begins_one_for_each_environment(monkeypatch):
    model = plain_agent(diaries(2), exploration_initial_eps=0.5, exploration_final_eps=0.5)
    decisions = watch_decisions(model)
    coins, toss = [], np.random.rand
    monkeypatch.setattr(np.random, "rand", lambda: coins.append(toss()) or coins[-1])
    model.learn(200)
    # Before its first step SB3's exploration rate is still 0.
    assert len(coins) == len(decisions)
    explored = [coin < 0.5 for coin in coins]
    assert [decided.exploratory for decided in decisions][2:] == explored[2:]
    assert 0 < sum(explored) < len(explored)
    assert {decided.step for decided in decisions if decided.env == 0} != {
        decided.step for decided in decisions if decided.env == 1
    }


def test_before_learning_starts_options_are_random_without_coins(monkeypatch):
    model = agent(diaries(), learning_starts=50)
    decisions = watch_decisions(model)
    monkeypatch.setattr(np.random, "rand", lambda: pytest.fail("a coin was tossed"))
    model.learn(50)
    assert all(decided.exploratory for decided in decisions)
    assert {decided.duration for decided in decisions} == {1, 2, 3}


def test_exploration_is_uniform_over_actions_and_durations():
    env = diaries(4, lengths=[1000])
    model = agent(
        env, exploration_initial_eps=1.0, exploration_final_eps=1.0, learning_starts=2000, buffer_size=50
    )
    decisions = watch_decisions(model)
    model.learn(4000)
    for some in (decisions[: len(decisions) // 2], decisions[len(decisions) // 2 :]):
        counts = np.zeros((3, 3))
        for decided in some:
            counts[decided.action, decided.duration - 1] += 1
        assert stats.chisquare(counts.ravel()).pvalue > 0.01


def test_an_episode_shorter_than_an_option_just_works():
    model = agent(OneReward(), k_max=4, learning_starts=20, gradient_steps=1, policy_kwargs={"net_arch": [4]})
    decisions = watch_decisions(model)
    model.learn(40)
    assert [decided.step for decided in decisions] == list(range(40))
    assert model.replay_buffer.left[:40].tolist() == [[1]] * 40


def test_training_takes_the_first_maximum_whatever_the_tolerance():
    model = agent(diaries(lengths=[100]), decision_tolerance=5.0)
    by_table(model.policy, table(1, 1))
    decisions = watch_decisions(model)
    model.learn(10)
    assert [(decided.action, decided.duration) for decided in decisions] == [(1, 1)] * 10
    assert rollout(model, 1, env=diaries(lengths=[100])) == [[1]]


# Interruption ----------------------------------------------------------------------------------------------


def margin_values(rows):
    """Hold action 0 for three steps, but at every third state action 1 is better by ½ than going on."""
    calm, tempting = np.zeros((2, 3, 3))
    calm[0] = 0.9, 0.9, 1.0
    tempting[0], tempting[1, 2] = 1.0, 1.5
    return by_state([tempting, calm, calm])(rows)


@pytest.mark.parametrize(("margin", "kappas"), [(None, [3]), (0.6, [3]), (0.5, [3]), (0.4, [2, 1])])
def test_a_greedy_option_is_cut_when_another_is_better_by_more_than_the_margin(margin, kappas):
    model = agent(diaries(lengths=[100]), interrupt_margin=margin, prioritized=False)
    by_table(model.policy, margin_values)
    decisions = watch_decisions(model)
    model.learn(3)
    options = executed_options(logs(model.env)[0], decisions, 0)
    assert [len(option) for option in options] == kappas
    assert [option[0].action for option in options] == [0, 1][: len(kappas)]


def test_exploratory_options_are_never_cut():
    model = agent(
        diaries(lengths=[100]), interrupt_margin=0.0, exploration_initial_eps=1.0, exploration_final_eps=1.0
    )
    model.exploration_rate = 1.0
    by_table(model.policy, margin_values)
    decisions = watch_decisions(model)
    model.learn(40)
    lengths = [len(option) for option in executed_options(logs(model.env)[0], decisions, 0)]
    assert lengths[:-1] == [decided.duration for decided in decisions][:-1]
    assert max(lengths) == 3


def test_what_follows_an_interruption_is_a_decision_with_its_own_coin(monkeypatch):
    model = agent(diaries(lengths=[100]), interrupt_margin=0.2)
    by_table(model.policy, margin_values)
    tosses = iter([0.9, 0.0])
    monkeypatch.setattr(np.random, "rand", lambda: next(tosses))
    decisions = watch_decisions(model)
    model.exploration_schedule = lambda progress: 0.5
    model.learn(3)
    assert [(decided.step, decided.exploratory) for decided in decisions] == [(0, False), (2, True)]


def test_the_value_of_holding_on_is_that_of_the_steps_left():
    # Three steps of action 0 are best; once begun, the two left are worth 0.7, then the one left 0.2.
    values = np.array([[0.2, 0.7, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for margin, kappas in ((0.9, [3, 3]), (0.5, [2, 2, 2]), (0.25, [1] * 6)):
        model = agent(diaries(lengths=[100]), interrupt_margin=margin)
        by_table(model.policy, values)
        decisions = watch_decisions(model)
        model.learn(6)
        assert [len(option) for option in executed_options(logs(model.env)[0], decisions, 0)] == kappas


def test_predict_interrupts_as_training_does():
    values = np.array([[0.2, 0.7, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for margin, lefts in ((None, [2, 1, 0, 2]), (0.9, [2, 1, 0, 2]), (0.5, [2, 1, 2, 1]), (0.25, [2, 2, 2, 2])):
        model = agent(diaries(), interrupt_margin=margin)
        by_table(model.policy, values)
        state, seen = None, []
        for _ in range(4):
            _, state = model.predict(np.zeros((1, 2), np.float32), state, deterministic=True)
            seen.append(int(state[3][0]))
        assert seen == lefts


# predict ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_envs", [1, 2])
@pytest.mark.parametrize("margin", [None, 0.02])
def test_predict_with_its_state_does_what_training_does(n_envs, margin):
    model = agent(diaries(n_envs), interrupt_margin=margin)
    tables = np.random.default_rng(0).random((11, 3, 3))
    by_table(model.policy, by_state(tables))
    model.learn(60 * n_envs)
    trained = [
        list(actions) for actions in zip(*([e.action for e in log] for log in logs(model.env)), strict=True)
    ]
    assert rollout(model, 60, env=diaries(n_envs)) == trained
    assert rollout(model, 60, env=diaries(n_envs), deterministic=False) == trained


def test_predict_without_its_state_decides_at_every_call():
    model = agent(diaries())
    by_table(model.policy, by_state([table(0, 3), table(1, 3), table(2, 3)]))
    env = diaries(lengths=[50])
    assert rollout(model, 6, env=env, keep_state=False) == [[1], [2], [0], [1], [2], [0]]
    assert rollout(model, 6, env=diaries(lengths=[50])) == [[1], [1], [1], [1], [1], [1]]
    env = diaries(lengths=[50])
    by_table(model.policy, by_state([table(0, 2), table(1, 2), table(2, 2)]))
    assert rollout(model, 6, env=env) == [[1], [1], [0], [0], [2], [2]]


def test_an_episodes_start_ends_what_is_held():
    model = agent(diaries(2))
    by_table(model.policy, table(2, 3))
    observations = np.zeros((2, 2), np.float32)
    _, state = model.predict(observations, deterministic=True)
    assert state[3].tolist() == [2, 2]
    by_table(model.policy, table(1, 3))
    actions, after = model.predict(observations, state, np.array([False, True]), deterministic=True)
    assert actions.tolist() == [2, 1]
    assert after[3].tolist() == [1, 2]
    assert state[3].tolist() == [2, 2], "the caller's state was written to"


def test_predict_keeps_nothing_to_itself():
    model = agent(diaries())
    by_table(model.policy, by_state([table(0, 3), table(1, 3)]))
    _, state = model.predict(np.array([[0.0, 0.0]], np.float32), deterministic=True)
    model.predict(np.array([[0.0, 1.0]], np.float32), deterministic=True)
    for _ in range(2):
        action, _ = model.predict(np.array([[0.0, 1.0]], np.float32), state, deterministic=True)
        assert action.tolist() == [0]
    assert model.clock.idle.all()


def test_one_observation_gives_one_action():
    model = agent(diaries())
    by_table(model.policy, table(2, 2))
    action, state = model.predict(np.zeros(2, np.float32), deterministic=True)
    assert action.shape == ()
    assert action == 2
    action, state = model.predict(np.zeros(2, np.float32), state, deterministic=True)
    assert [part.tolist() for part in state] == [[2], [2], [2], [0], [False]]


def test_predict_explores_at_option_starts_unless_deterministic():
    model = agent(diaries())
    by_table(model.policy, table(0, 1))
    model.exploration_rate = 1.0
    observation = np.zeros((200, 2), np.float32)
    actions, state = model.predict(observation)
    assert set(actions) == {0, 1, 2}
    assert state[4].all()
    held = state[3] > 0
    again, _ = model.predict(observation, state)
    assert (again == actions)[held].all()
    assert (again != actions)[~held].any()
    assert set(model.predict(observation, deterministic=True)[0]) == {0}
    assert set(model.policy.predict(observation)[0]) == {0}


def test_tolerance_holds_longer_when_deterministic_only():
    values = np.array([[0.2, 1.0, 0.95], [0.9, 0.9, 0.9], [0.0, 0.0, 0.0]])
    for tolerance, hold in ((0.0, 2), (0.04, 2), (0.06, 3)):
        model = agent(diaries(), decision_tolerance=tolerance)
        by_table(model.policy, values)
        observation = np.zeros((1, 2), np.float32)
        for predict in (model.predict, model.policy.predict):
            _, state = predict(observation, deterministic=True)
            assert state[1].tolist() == [hold]
            _, state = predict(observation, deterministic=False)
            assert state[1].tolist() == [2]
        assert model.policy.decide(observation).hold.tolist() == [hold]


def test_decide_says_what_and_for_how_long():
    model = agent(diaries(start=5))
    by_table(model.policy, table(1, 3))
    action, hold, values = model.policy.decide(np.zeros(2, np.float32))
    assert (action, hold) == (6, 3)
    assert isinstance(action, int)
    assert isinstance(hold, int)
    np.testing.assert_array_equal(values, table(1, 3))
    decision = model.policy.decide(np.zeros((4, 2), np.float32))
    assert decision.action.tolist() == [6] * 4
    assert decision.hold.tolist() == [3] * 4
    assert decision.values.shape == (4, 3, 3)


def test_decide_reads_the_network():
    model = agent(diaries())
    observation = np.array([[0.0, 3.0]], np.float32)
    tensor, _ = model.policy.obs_to_tensor(observation)
    expected = model.q_net(tensor).detach().numpy()
    np.testing.assert_allclose(model.policy.decide(observation).values, expected, rtol=1e-4, atol=1e-6)


def test_evaluate_policy_works_and_holds():
    model = agent(diaries())
    by_table(model.policy, by_state([table(0, 3), table(1, 3), table(2, 3), table(1, 2), table(0, 1)]))
    env = Monitor(Diary())
    rewards, lengths = evaluate_policy(model, env, n_eval_episodes=4, return_episode_rewards=True)
    assert lengths == [7, 4, 1, 9]
    training = agent(diaries())
    training.policy.option_values = model.policy.option_values
    training.learn(21)
    log = env.unwrapped.log[:21]
    assert [entry.action for entry in log] == [entry.action for entry in logs(training.env)[0]]
    assert sum(rewards) == pytest.approx(sum(entry.reward for entry in log))


# Actions that do not begin at 0 -----------------------------------------------------------------------------


def test_actions_that_begin_at_five():
    model = plain_agent(
        diaries(start=5), exploration_initial_eps=0.5, exploration_final_eps=0.5, prioritized=False
    )
    decisions = watch_decisions(model)
    model.learn(80)
    (log,) = logs(model.env)
    assert {entry.action for entry in log} == {5, 6, 7}
    assert model.replay_buffer.actions[:80].ravel().tolist() == [entry.action - 5 for entry in log]
    assert drawable_tuples(model.replay_buffer)[2] == expected_replay(model, decisions).tuples(3)
    by_table(model.policy, table(2, 1))
    assert model.predict(np.zeros((1, 2), np.float32), deterministic=True)[0].tolist() == [7]
    assert model.predict(np.zeros(2, np.float32), deterministic=True)[0] == 7
    model.exploration_rate = 1.0
    assert set(model.predict(np.zeros((100, 2), np.float32))[0]) == {5, 6, 7}


class Fifths(gym.Env):
    """One step; only action 6 of 5, 6, 7 is rewarded."""

    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(3, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(1, np.float32), {}

    def step(self, action):
        return np.ones(1, np.float32), float(action == 6), True, False, {}


def test_the_right_one_of_actions_from_five_is_learned():
    model = agent(
        Fifths(),
        learning_starts=20,
        gradient_steps=1,
        exploration_initial_eps=1.0,
        exploration_final_eps=1.0,
        learning_rate=0.01,
    )
    model.learn(200)
    assert model.predict(np.ones(1, np.float32), deterministic=True)[0] == 6
    assert model.policy.decide(np.ones(1, np.float32)).action == 6
