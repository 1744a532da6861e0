"""What users of Stable-Baselines3's TD3 expect of an agent with continuous actions, with the class swapped in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.callbacks import CallbackList, CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise, VectorizedActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

from holdfast.deep import PerTD3
from tests.conformance.agents import CONTINUOUS

agents = pytest.mark.parametrize("make", CONTINUOUS.values(), ids=CONTINUOUS)


class Pushed(gymnasium.Env):
    """A vector that is pushed by two numbers of different bounds; shown as it is, or in a dictionary."""

    def __init__(self, in_dictionary: bool = False) -> None:
        box = spaces.Box(-5.0, 5.0, (2,), np.float32)
        self.observation_space = spaces.Dict({"place": box, "age": spaces.Discrete(9)}) if in_dictionary else box
        self.action_space = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 1.0], np.float32))
        self._in_dictionary = in_dictionary

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._place, self._age = self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32), 0
        return self._shown(), {}

    def step(self, action):
        self._place = np.clip(self._place + 0.1 * np.asarray(action, np.float32), -5.0, 5.0)
        self._age += 1
        return self._shown(), -float(self._place @ self._place), self._age == 8, False, {}

    def _shown(self):
        return {"place": self._place.copy(), "age": self._age} if self._in_dictionary else self._place.copy()


@agents
def test_it_learns_for_as_many_steps_as_it_is_told(make: Any):
    model = make(Pushed()).learn(64)
    assert model.num_timesteps == 64
    assert model.learn(10, reset_num_timesteps=False).num_timesteps == 74


@agents
def test_every_parameter_moves(make: Any):
    model = make(Pushed())
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(60)
    for old, new in zip(before, model.policy.parameters(), strict=True):
        assert not th.equal(old, new)


@agents
def test_callbacks_and_evaluation(make: Any, tmp_path: Path):
    callbacks = CallbackList(
        [
            CheckpointCallback(20, str(tmp_path)),
            EvalCallback(make_vec_env(Pushed), n_eval_episodes=1, eval_freq=25, log_path=str(tmp_path), verbose=0),
        ]
    )
    model = make(Pushed()).learn(50, callback=callbacks)
    assert len(list(tmp_path.glob("rl_model_*_steps.zip"))) == 2
    mean, _ = evaluate_policy(model, make_vec_env(Pushed), n_eval_episodes=2)
    assert np.isfinite(mean)


@agents
def test_several_environments_and_normalised_ones(make: Any):
    noise = VectorizedActionNoise(OrnsteinUhlenbeckActionNoise(np.zeros(2), np.full(2, 0.2)), 3)
    env = VecNormalize(DummyVecEnv([Pushed] * 3))
    model = make(env, action_noise=noise).learn(60)
    action, state = model.predict(env.reset())
    assert action.shape == (3, 2)
    assert len(state[0]) == 3


def test_environments_in_processes_of_their_own():
    env = SubprocVecEnv([Pushed, Pushed], start_method="spawn")
    try:
        CONTINUOUS["pertd3"](env).learn(30)
    finally:
        env.close()


@agents
def test_dictionaries(make: Any):
    model = make(Pushed(in_dictionary=True), "MultiInputPolicy").learn(40)
    action, _ = model.predict(model.get_env().reset(), deterministic=True)
    assert model.action_space.contains(action[0])


@agents
def test_save_and_load_with_replay(make: Any, tmp_path: Path):
    model = make(Pushed(), action_noise=NormalActionNoise(np.zeros(2), np.full(2, 0.2))).learn(50)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "replay")
    loaded = PerTD3.load(tmp_path / "model", env=Pushed())
    loaded.load_replay_buffer(tmp_path / "replay")
    observations = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    assert np.array_equal(loaded.predict(observations)[0], model.predict(observations)[0])
    assert np.array_equal(loaded.replay_buffer.actions, model.replay_buffer.actions)
    loaded.learn(20, reset_num_timesteps=False)
    assert loaded.num_timesteps == 70


@agents
def test_shared_features_and_several_critics(make: Any):
    kwargs = {"net_arch": [8], "n_critics": 3, "share_features_extractor": True}
    model = make(Pushed(), policy_kwargs=kwargs).learn(40)
    assert len(model.critic.q_networks) == 3
    assert model.critic.features_extractor is model.actor.features_extractor


@agents
def test_training_by_episodes(make: Any):
    model = make(Pushed(), train_freq=(1, "episode"), gradient_steps=-1).learn(40)
    assert model._n_updates > 0


@agents
def test_what_is_logged(make: Any):
    model = make(Pushed())
    model.learn(60)
    recorded = model.logger.name_to_value
    assert {"train/actor_loss", "train/critic_loss", "rollout/exploration_rate"} <= set(recorded)
