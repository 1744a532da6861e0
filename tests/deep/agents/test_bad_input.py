"""Bad input is answered in one sentence that names the argument and what it may be."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.dqn.policies import MlpPolicy as DQNMlpPolicy

from holdfast.core.errors import InputError
from holdfast.deep import OptionReplayBuffer, PerDQN
from holdfast.envs import make_minatar
from tests.deep.diary import agent, diaries
from tests.deep.probes import Pier

# Arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"k_max": 0}, ValueError, "k_max must be a whole number of at least 1, not 0"),
        ({"k_max": -3}, ValueError, "k_max must be a whole number of at least 1, not -3"),
        ({"k_max": 2.5}, TypeError, r"k_max must be a whole number of at least 1, not 2\.5"),
        ({"k_max": True}, TypeError, "k_max must be a whole number of at least 1, not True"),
        (
            {"n_steps": 3},
            ValueError,
            "n_steps must be 1, not 3: agents already learn from windows of every length",
        ),
        (
            {"interrupt_margin": 0.1, "decision_tolerance": 0.2},
            ValueError,
            r"interrupt_margin must be at least decision_tolerance, which is 0\.2, not 0\.1",
        ),
        (
            {"interrupt_margin": -1.0},
            ValueError,
            r"interrupt_margin must be a finite number of at least 0, not -1\.0",
        ),
        (
            {"decision_tolerance": "a"},
            TypeError,
            "decision_tolerance must be a finite number of at least 0, not 'a'",
        ),
        (
            {"timeout_is_terminal": True, "replay_buffer_kwargs": {"handle_timeout_termination": True}},
            ValueError,
            r"timeout_is_terminal and replay_buffer_kwargs\['handle_timeout_termination'\] say the same thing",
        ),
        ({"head_arch": 64}, TypeError, r"head_arch must be a list of layer widths such as \[64\], not 64"),
        ({"head_arch": "64"}, TypeError, r"head_arch must be a list of layer widths such as \[64\], not '64'"),
        (
            {"head_arch": [64, 0]},
            ValueError,
            "a layer width in head_arch must be a whole number of at least 1, not 0",
        ),
        (
            {"head_arch": [6.5]},
            TypeError,
            r"a layer width in head_arch must be a whole number of at least 1, not 6\.5",
        ),
        (
            {"policy_kwargs": [64]},
            TypeError,
            r"policy_kwargs must be a dictionary of keyword arguments or None, not",
        ),
        ({"replay_buffer_kwargs": 3}, TypeError, "replay_buffer_kwargs must be a dictionary of keyword arguments"),
        (
            {"target_value": "max"},
            ValueError,
            "target_value must be one of 'options', 'primitive', 'double', not 'max'",
        ),
        (
            {"target_value": None},
            ValueError,
            "target_value must be one of 'options', 'primitive', 'double', not None",
        ),
        (
            {"replay_buffer_class": ReplayBuffer},
            ValueError,
            "replay_buffer_class must be None, 'HerReplayBuffer' or a subclass of Option",
        ),
        (
            {"replay_buffer_class": 3},
            ValueError,
            "replay_buffer_class must be None, 'HerReplayBuffer' or a subclass of Option",
        ),
        (
            {"normalize_observations": "mean"},
            ValueError,
            "normalize_observations must be None or 'space', not 'mean'",
        ),
        ({"priority_alpha": -0.1}, ValueError, r"priority_alpha must be a finite number of at least 0, not -0\.1"),
        ({"priority_beta0": 1.5}, ValueError, r"priority_beta0 must be a number in \[0, 1\], not 1\.5"),
        ({"policy_kwargs": {"k_max": 5}}, ValueError, "policy_kwargs must not have 'k_max'"),
        ({"replay_buffer_kwargs": {"k_max": 5}}, ValueError, "replay_buffer_kwargs must not have 'k_max'"),
        (
            {"replay_buffer_kwargs": {"device": "cpu"}},
            ValueError,
            "replay_buffer_kwargs must not have 'device': give dev",
        ),
        (
            {"replay_buffer_kwargs": {"n_envs": 2}},
            ValueError,
            "replay_buffer_kwargs must not have 'n_envs': give env",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_arguments(arguments, error, sentence):
    with pytest.raises(error, match=f"^{sentence}"):
        PerDQN("MlpPolicy", Pier(), **{"device": "cpu", "buffer_size": 100, **arguments})


def test_continuous_actions():
    with pytest.raises(ValueError, match=r"^env must have discrete actions, not Box"):
        PerDQN("MlpPolicy", "Pendulum-v1", device="cpu")


class Number(gym.Env):
    observation_space = spaces.Box(0.0, 1.0, ())
    action_space = spaces.Discrete(2)


def test_a_single_number_is_no_observation():
    with pytest.raises(
        ValueError, match=r"^env must have observations of at least one axis, such as shape \(1,\)"
    ):
        PerDQN("MlpPolicy", Number())


class Floors(gym.Env):
    observation_space = spaces.Dict({"floor": spaces.Discrete(3, start=-1)})
    action_space = spaces.Discrete(2)


def test_numbers_of_an_observation_start_at_zero():
    with pytest.raises(ValueError, match=r"^env must have Discrete observations that start at 0, not Discrete"):
        PerDQN("MultiInputPolicy", Floors())


def test_several_numbers_of_an_observation_start_at_zero():
    env = Floors()
    env.observation_space = spaces.MultiDiscrete([3, 3], start=[0, 1])
    with pytest.raises(ValueError, match=r"^env must have MultiDiscrete observations that start at 0, not Mul"):
        PerDQN("MlpPolicy", env)


def test_a_policy_of_another_family():
    with pytest.raises(ValueError, match=r"^policy must be one of PerDQN, not Stable-Baselines3's DQNPolicy: "):
        PerDQN(DQNMlpPolicy, Pier(), device="cpu")


def test_a_replay_that_does_not_fit():
    with pytest.raises(
        ValueError, match=r"^the replay of buffer_size=10000000000000 needs \d+\.\d GB, but \d+\.\d GB"
    ):
        PerDQN("MlpPolicy", Pier(), buffer_size=10**13, device="cpu")


def test_subclasses_of_the_replay_are_welcome():
    class Mine(OptionReplayBuffer):
        pass

    model = agent(diaries(), replay_buffer_class=Mine)
    assert isinstance(model.replay_buffer, Mine)


# Environments that give nonsense ---------------------------------------------------------------------------


class Broken(gym.Env):
    """Gives a number that is no number once: at a step, at its reset, or as the last of an episode."""

    action_space = spaces.Discrete(2)

    def __init__(self, what="", when=-1, value=np.nan, nested=False):
        box = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.observation_space = spaces.Dict({"a": box, "b": box}) if nested else box
        self.what, self.when, self.value, self.nested = what, when, value, nested
        self.steps = 0

    def observe(self, broken):
        observation = np.array([0.0, self.value if broken else 1.0], np.float32)
        return {"a": np.zeros(2, np.float32), "b": observation} if self.nested else observation

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observe(self.what == "first observation"), {}

    def step(self, action):
        self.steps += 1
        now = self.steps == self.when
        reward = self.value if now and self.what == "reward" else 1.0
        last = now and self.what == "last observation"
        return self.observe((now and self.what == "observation") or last), reward, last, False, {}


@pytest.mark.parametrize("what", ["reward", "observation"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("nested", [False, True])
def test_numbers_that_are_none(what, value, nested):
    env = DummyVecEnv([lambda: Broken(nested=nested), lambda: Broken(what, 15, value, nested)])
    model = agent(env, policy="MultiInputPolicy" if nested else "MlpPolicy")
    sentence = f"environment 1 gave a.? {what} that is NaN or infinite at step 30"
    with pytest.raises(ValueError, match=sentence):
        model.learn(100)


def test_a_last_observation_that_is_none():
    model = agent(DummyVecEnv([lambda: Monitor(Broken("last observation", 15))]))
    with pytest.raises(ValueError, match=r"environment 0 gave a.? observation that is NaN or infinite at step 15"):
        model.learn(100)


def test_a_first_observation_that_is_none():
    model = agent(DummyVecEnv([Broken, lambda: Broken("first observation")]))
    with pytest.raises(ValueError, match=r"environment 1 gave a.? observation that is NaN or infinite at step 0"):
        model.learn(100)


class Exploding(Pier):
    """Rewards that no 32-bit number can hold the square of."""

    def move(self, state, action):
        following, _, over = super().move(state, action)
        return following, 3e38, over


def test_a_loss_that_is_no_number_stops_the_training():
    model = agent(Exploding(), learning_starts=10, gradient_steps=1, gamma=1.0)
    with pytest.raises(
        ValueError, match=r"^the loss became (inf|nan) at step \d+: choose a smaller learning_rate"
    ):
        model.learn(100)


# Predicting ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return agent(Pier())


def test_what_reset_returns_is_no_observation(model):
    for predict in (model.predict, model.policy.predict, model.policy.decide):
        with pytest.raises(ValueError, match=r"^observation must be an observation alone, not what reset"):
            predict(Pier().reset())


def test_a_state_of_another_batch(model):
    _, state = model.predict(Pier.every_observation(), deterministic=True)
    with pytest.raises(ValueError, match=r"state .* must have shape \(1,\)"):
        model.predict(Pier.every_observation()[:1], state, deterministic=True)


@pytest.mark.parametrize("state", [(), (np.zeros(1),), 3, np.zeros((5, 2)), "state"], ids=str)
def test_a_state_that_predict_never_returned(model, state):
    with pytest.raises(ValueError, match=r"state must be what the last call of predict returned|must have shape"):
        model.predict(Pier.every_observation()[:1], state, deterministic=True)


def test_an_episode_start_of_another_batch(model):
    _, state = model.predict(Pier.every_observation()[:3], deterministic=True)
    with pytest.raises(ValueError, match=r"episode_start must have shape \(3,\), not \(2,\)"):
        model.predict(Pier.every_observation()[:3], state, np.array([True, False]), deterministic=True)


class SmallImage(gym.Env):
    """Shows an image of 10x12 pixels, alone or beside a vector."""

    action_space = spaces.Discrete(2)

    def __init__(self, beside):
        image = spaces.Box(0, 255, (10, 12, 3), np.uint8)
        vector = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Dict({"camera": image, "speed": vector}) if beside else image

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}


@pytest.mark.parametrize(
    ("policy", "image", "remedy"),
    [
        ("MultiInputPolicy", "the image 'camera'", "flatten it in a wrapper"),
        ("CnnPolicy", "the observation", "use MlpPolicy, which flattens it"),
    ],
)
def test_images_too_small_for_the_convolutions_are_named_with_policy_and_size(policy, image, remedy):
    with pytest.raises(InputError) as caught:
        PerDQN(policy, SmallImage(beside=policy == "MultiInputPolicy"), buffer_size=100)
    assert str(caught.value) == (
        f"policy {policy} needs images of at least 36x36 pixels, and {image} has 10x12: enlarge it, or {remedy}"
    )
    assert caught.value.arguments == ("policy",)


def test_boards_too_small_for_the_convolutions_are_refused_like_images():
    with pytest.raises(InputError, match=r"CnnPolicy needs images of .* has 10x10: .* MlpPolicy"):
        PerDQN("CnnPolicy", make_minatar("Freeway"), buffer_size=100)
    assert PerDQN("MlpPolicy", make_minatar("Freeway"), buffer_size=100).k_max > 1
