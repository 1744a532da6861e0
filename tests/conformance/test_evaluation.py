"""Agents in SB3's ``evaluate_policy``, and in a loop written by hand."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from tests.conformance.agents import decide
from tests.conformance.worlds import Echo, Samples, vector


@pytest.fixture
def model(make):
    model = make(vector(kind=Echo))
    # Holds that end with no episode of 7 steps, and that do not begin as the last one of an episode ends.
    decide(model, lambda observation: int(sum(observation)) % 3)
    return model


@pytest.mark.parametrize("n_envs", [1, 2, 5])
@pytest.mark.parametrize("of", ["agent", "policy"])
def test_episodes_are_counted_and_are_all_alike(model, n_envs, of):
    env, ends, steps = vector(n_envs, kind=Echo), [], []

    def watch(found_locals, found_globals):
        steps.append(found_locals["i"])
        assert found_locals["observations"].shape == (n_envs, 2)
        if found_locals["done"]:
            ends.append(found_locals["i"])

    who = model if of == "agent" else model.policy
    rewards, lengths = evaluate_policy(
        who, env, n_eval_episodes=6, deterministic=True, callback=watch, return_episode_rewards=True
    )
    assert lengths == [7] * 6
    assert len(ends) == 6
    assert len(steps) >= 42
    # The environment and the policy are fully determined: what an episode holds on to must not reach the next.
    assert len(set(rewards)) == 1
    mean, deviation = evaluate_policy(who, env, n_eval_episodes=6)
    assert (mean, deviation) == (rewards[0], 0.0)
    k = model.policy.k_max
    actions = [0]
    for time in range(1, 7):
        actions.append(actions[-1] if time % k else (time + actions[-1]) % 3)
    assert mean == sum(time * (action + 1) for time, action in enumerate(actions, 1))


def test_a_loop_by_hand_gets_what_the_function_gets(model):
    expected, _ = evaluate_policy(model, vector(kind=Echo), n_eval_episodes=2)
    env = vector(2, kind=Echo)
    observations, state, starts, total = env.reset(), None, np.ones(2, bool), np.zeros(2)
    for _ in range(7):
        actions, state = model.predict(observations, state, starts, deterministic=True)
        observations, rewards, starts, _ = env.step(actions)
        total += rewards
    assert starts.all()
    assert total.tolist() == [expected] * 2

    single = Echo()
    observation, _ = single.reset()
    state, over, total = None, False, 0.0
    while not over:
        action, state = model.predict(observation, state, deterministic=True)
        observation, reward, terminated, truncated, _ = single.step(action)
        over, total = terminated or truncated, total + reward
    assert total == expected


def test_exploring_evaluations_differ(model):
    model.exploration_rate = 1.0
    rewards, _ = evaluate_policy(
        model, vector(kind=Echo), n_eval_episodes=8, deterministic=False, return_episode_rewards=True
    )
    assert len(set(rewards)) > 1


def test_a_threshold(model):
    evaluate_policy(model, vector(kind=Echo), n_eval_episodes=1, reward_threshold=0.0)
    with pytest.raises(AssertionError, match="threshold"):
        evaluate_policy(model, vector(kind=Echo), n_eval_episodes=1, reward_threshold=1e6)


class Nothing(gym.RewardWrapper):
    def reward(self, reward):
        return 0.0


@pytest.mark.parametrize("vectorised", [False, True])
def test_an_environment_nobody_watches_is_warned_of(model, vectorised):
    def evaluated(make_env, **arguments):
        env = DummyVecEnv([make_env]) if vectorised else make_env()
        return evaluate_policy(model, env, n_eval_episodes=2, **arguments)[0]

    with pytest.warns(UserWarning, match="Monitor"):
        shown = evaluated(Echo)
    assert evaluated(Echo, warn=False) == shown > 0
    assert evaluated(lambda: Monitor(Echo())) == shown
    # What the innermost Monitor saw counts.
    assert evaluated(lambda: Nothing(Monitor(Echo()))) == shown
    assert evaluated(lambda: Nothing(Echo()), warn=False) == 0.0


def test_the_environment_of_training_can_be_evaluated_in(make):
    model = make(Samples()).learn(20)
    mean, _ = evaluate_policy(model, model.get_env(), n_eval_episodes=3)
    assert 0.0 <= mean <= 6.0
    assert model.learn(20).num_timesteps == 20
