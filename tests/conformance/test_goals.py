"""Hindsight replay as SB3's users ask for it, with every agent of the list."""

from __future__ import annotations

import numpy as np
import pytest
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import SubprocVecEnv
from stable_baselines3.her.goal_selection_strategy import GoalSelectionStrategy

from tests.conformance.agents import AGENTS, CONTINUOUS, same, weights

# Forking is quick, and what is forked here calls nothing that has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def flips(n_envs=1, n_bits=4, processes=False, **arguments):
    own = {"vec_env_cls": SubprocVecEnv, "vec_env_kwargs": {"start_method": "fork"}} if processes else {}
    return make_vec_env(lambda: BitFlippingEnv(n_bits=n_bits, **arguments), n_envs, seed=1, **own)


def with_goals(make, env, **overrides):
    return make(env, "MultiInputPolicy", **{"replay_buffer_class": HerReplayBuffer, **overrides})


@pytest.mark.parametrize("shown", [{}, {"discrete_obs_space": True}, {"image_obs_space": True}])
def test_learning_and_evaluating(make, shown):
    kwargs = {"n_sampled_goal": 2, "goal_selection_strategy": "future", "copy_info_dict": True}
    model = with_goals(make, flips(continuous=False, **shown), replay_buffer_kwargs=kwargs)
    before = weights(model.q_net)
    model.learn(60)
    assert not same(before, weights(model.q_net))
    mean, _ = evaluate_policy(
        model, Monitor(BitFlippingEnv(n_bits=4, continuous=False, **shown)), n_eval_episodes=3
    )
    assert -4 <= mean <= 0


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_actions(name):
    model = with_goals(CONTINUOUS[name], flips(2, continuous=True))
    before = weights(model.critic)
    model.learn(60)
    assert not same(before, weights(model.critic))


def test_environments_in_processes_of_their_own(make):
    env = flips(2, continuous=False, processes=True)
    try:
        model = with_goals(make, env)
        model.learn(60)
        assert model._n_updates > 10
    finally:
        env.close()


@pytest.mark.parametrize("strategy", ["final", "EPISODE", *GoalSelectionStrategy])
def test_strategies(strategy):
    model = with_goals(
        AGENTS["perdqn"],
        flips(2, continuous=False),
        replay_buffer_kwargs={"goal_selection_strategy": strategy},
    )
    model.learn(60)
    assert model._n_updates > 10


def test_saving_and_loading(make, tmp_path):
    env = flips(2, continuous=False)
    model = with_goals(make, env, replay_buffer_kwargs={"n_sampled_goal": 2}).learn(60)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model", env=env, device="cpu", custom_objects={"learning_rate": 2e-5})
    assert same(weights(loaded.policy), weights(model.policy))
    assert loaded.replay_buffer.n_sampled_goal == 2
    loaded.learn(60)
    assert not same(weights(loaded.policy), weights(model.policy))


def test_a_full_replay_without_the_episode_that_is_running(make):
    model = with_goals(make, flips(2, continuous=False), buffer_size=40).learn(150)
    buffer = model.replay_buffer
    assert buffer.full
    rows = np.unique(buffer.sample(500).rows)
    slots, envs = np.divmod(rows, 2)
    for env in range(2):
        running = [(buffer.n_added - 1 - number) % buffer.n_slots for number in range(buffer.running[env])]
        assert not set(slots[envs == env]) & set(running)


@pytest.mark.slow
@pytest.mark.parametrize("k_max", [1, 2])
def test_ten_bits_are_learned(k_max):
    """What DQN with HER is known for; DQN alone does not learn it. To hold on to a bit flips it back."""
    model = AGENTS["perdqn"](
        flips(2, n_bits=10, continuous=False),
        "MultiInputPolicy",
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 5},
        k_max=k_max,
        head_arch=(),
        policy_kwargs=None,
        learning_rate=2e-3,
        gradient_steps=2,
        learning_starts=20,
        exploration_fraction=0.1,
        exploration_final_eps=0.02,
        target_update_interval=100,
        batch_size=32,
        buffer_size=100_000,
        stats_window_size=50,
    ).learn(1500)
    assert np.mean(model.ep_success_buffer) > 0.9
