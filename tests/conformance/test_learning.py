"""Agents learn what SB3 checks its own algorithms with: to name the state they are in."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.envs import IdentityEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

LEARNING = {
    "gamma": 0.4,
    "learning_rate": 1e-2,
    "learning_starts": 0,
    "batch_size": 32,
    "buffer_size": 1000,
    "seed": 3,
    "policy_kwargs": {"net_arch": [32]},
    "head_arch": [16],
}
STATES, LENGTH = 3, 40


class Named(gym.ObservationWrapper):
    """The state one-hot, under a name."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = spaces.Dict({"state": spaces.Box(0.0, 1.0, (STATES,), np.float32)})

    def observation(self, observation):
        return {"state": np.eye(STATES, dtype=np.float32)[observation]}


def identity(wrapper=lambda env: env):
    env = IdentityEnv(STATES, ep_length=LENGTH)
    env.action_space.seed(0)  # it draws its states from there, and its reset does not seed that
    return Monitor(wrapper(env))


FORMS = {
    "number": ("MlpPolicy", identity),
    "vector": ("MlpPolicy", lambda: identity(gym.wrappers.FlattenObservation)),
    "dictionary": ("MultiInputPolicy", lambda: identity(Named)),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_state_is_named_nearly_always(make, form):
    policy, make_env = FORMS[form]
    env = DummyVecEnv([make_env])
    model = make(env, policy, **LEARNING).learn(300)
    mean, _ = evaluate_policy(model, env, n_eval_episodes=2)
    assert mean >= 0.96 * LENGTH
    observation = make_env().reset()[0]
    assert np.shape(model.predict(observation, deterministic=True)[0]) == ()


def test_several_environments_teach_as_well(make):
    env = DummyVecEnv([identity] * 4)
    model = make(env, gradient_steps=-1, **LEARNING).learn(1200)
    assert evaluate_policy(model, env, n_eval_episodes=4)[0] >= 0.96 * LENGTH


def test_nothing_is_named_without_learning(make):
    env = DummyVecEnv([identity])
    model = make(env, **{**LEARNING, "gradient_steps": 0}).learn(100)
    assert evaluate_policy(model, env, n_eval_episodes=2)[0] < 0.8 * LENGTH
