"""What users of SB3's TD3 and SAC expect of an agent with continuous actions, with the class swapped in."""

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

from tests.conformance.agents import CONTINUOUS, same, weights
from tests.conformance.test_modes import Noisy

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


class Echo(gymnasium.Env):
    """Shows what it draws, and pays most for an action whose first number is the first that was shown."""

    def __init__(self, shown: spaces.Box, actions: spaces.Box) -> None:
        self.observation_space, self.action_space = shown, actions

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self._shown, self._age = self.observation_space.sample(), 0
        return self._shown, {}

    def step(self, action):
        assert self.action_space.contains(action)
        reward = 1.0 - abs(float(action.flat[0]) - float(self._shown.flat[0]))
        self._shown, self._age = self.observation_space.sample(), self._age + 1
        return self._shown, reward, False, self._age == 25, {}


NUMBER = spaces.Box(-1.0, 1.0, (1,), np.float32)


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
    loaded = type(model).load(tmp_path / "model", env=Pushed())
    loaded.load_replay_buffer(tmp_path / "replay")
    observations = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    ours, theirs = (agent.predict(observations, deterministic=True)[0] for agent in (loaded, model))
    assert np.array_equal(ours, theirs)
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


@agents
def test_the_same_seed_is_the_same_training(make: Any):
    first, second = (make(Pushed()).learn(50) for _ in range(2))
    assert same(weights(first.policy), weights(second.policy))
    other = make(Pushed(), seed=1).learn(50)
    assert not same(weights(first.policy), weights(other.policy))


@agents
def test_parameters_can_be_taken_over(make: Any):
    model, other = make(Pushed()).learn(40), make(Pushed(), seed=1)
    observations = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    before = model.predict(observations, deterministic=True)[0]
    assert not np.array_equal(other.predict(observations, deterministic=True)[0], before)
    other.set_parameters(model.get_parameters(), exact_match=True, device="cpu")
    assert np.array_equal(other.predict(observations, deterministic=True)[0], before)
    with pytest.raises(ValueError, match="elsewhere"):
        other.set_parameters({"policy": model.policy.state_dict(), "elsewhere": {}}, exact_match=True)


@agents
@pytest.mark.parametrize(
    "box", [spaces.Box(-3.0, 1.0, (2, 3), np.float32), spaces.Box(-1.0, 2.0, (2,), np.float64)]
)
def test_actions_of_any_shape_and_precision(make: Any, box: spaces.Box):
    env = Echo(NUMBER, box)
    model = make(env, action_noise=0.1).learn(40)
    action, _ = model.predict(env.observation_space.sample())
    assert action.shape == box.shape
    assert box.contains(action.astype(box.dtype))
    assert model.replay_buffer.actions.shape[2:] == (int(np.prod(box.shape)),)


@agents
def test_images(make: Any):
    env = Echo(spaces.Box(0, 255, (36, 36, 1), np.uint8), NUMBER)
    model = make(env, "CnnPolicy", learning_starts=4, batch_size=4).learn(8)
    assert model.action_space.contains(model.predict(env.observation_space.sample())[0])


@agents
def test_batch_norm_and_dropout_are_on_in_updates_only(make: Any):
    kwargs = {"net_arch": [8], "features_extractor_class": Noisy}
    # One state is all that the first updates see, and nothing but statistics is copied to the targets.
    model = make(Pushed(), policy_kwargs=kwargs, learning_starts=0, tau=0.0)
    first_layer = model.critic_target.q_networks[0][0]
    target = weights(first_layer)
    model.learn(40)
    assert same(weights(first_layer), target)
    running, copied = (
        net.features_extractor.batch_norm.running_mean for net in (model.critic, model.critic_target)
    )
    assert th.equal(running, copied)
    assert running.abs().sum() > 0
    before = weights(model.policy)
    observations = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    first, second = (model.predict(observations, deterministic=True)[0] for _ in range(2))
    assert np.array_equal(first, second)
    assert same(weights(model.policy), before)


@agents
def test_the_networks_can_be_asked_alone(make: Any, tmp_path: Path):
    """An actor without its critics proposes what is done for one step, before and after it is saved."""
    model = make(Pushed()).learn(40)
    observations = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    alone, _ = model.actor.predict(observations, deterministic=True)
    heads = model.policy.proposals(th.as_tensor(observations)).actions
    assert alone == pytest.approx(model.policy.as_taken(heads[:, 0]), abs=1e-6)
    model.actor.save(tmp_path / "actor.pt")
    assert np.array_equal(
        type(model.actor).load(tmp_path / "actor.pt").predict(observations, deterministic=True)[0], alone
    )


@pytest.mark.slow
@agents
def test_what_is_shown_is_learned_to_be_done(make: Any):
    model = make(
        Echo(NUMBER, NUMBER),
        policy_kwargs={"net_arch": [64, 64]},
        learning_starts=100,
        batch_size=128,
        buffer_size=1000,
        gamma=0.5,
        learning_rate=2e-3,
        exploration_fraction=0.5,
    ).learn(900)
    shown = np.linspace(-0.9, 0.9, 7, dtype=np.float32)[:, None]
    found, _ = model.predict(shown, deterministic=True)
    assert np.abs(found - shown).mean() < 0.15
    # What is shown next is not known, so that nothing is to be had by holding on.
    assert np.median(model.policy.decide(shown).hold) == 1
