"""What is easily mistaken about agents gets a sentence that names the right thing."""

from __future__ import annotations

import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import DQN, PPO

from holdfast import PerDQN


def test_a_misspelt_argument() -> None:
    with pytest.raises(TypeError, match=r"^PerDQN has no argument 'kmax'; did you mean k_max\?$"):
        PerDQN("MlpPolicy", "CartPole-v1", kmax=4)


def test_a_vector_environment_of_gymnasium() -> None:
    env = gymnasium.make_vec("CartPole-v1", 2)
    with pytest.raises(TypeError, match=r"not one made by gymnasium\.make_vec: holdfast\.make_vec_env"):
        PerDQN("MlpPolicy", env)
    env.close()


def test_files_of_another_library(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.zip", tmp_path / "theirs.zip"
    PerDQN("MlpPolicy", "CartPole-v1", k_max=4, buffer_size=100).save(ours)
    DQN("MlpPolicy", "CartPole-v1", buffer_size=100).save(theirs)
    with pytest.raises(ValueError, match=r"own class, such as PerDQN\.load"):
        DQN.load(ours)
    with pytest.raises(ValueError, match=r"load a file that holds such a policy with DQN\.load"):
        PerDQN.load(theirs)
    assert PerDQN.load(ours).k_max == 4


def test_a_file_with_defaults_is_not_of_dqn(tmp_path: Path) -> None:
    """The weights would fit, and every setting would be lost."""
    PerDQN("MlpPolicy", "CartPole-v1", buffer_size=100).save(tmp_path / "ours.zip")
    with pytest.raises(ValueError, match=r"own class, such as PerDQN\.load"):
        DQN.load(tmp_path / "ours.zip")


def test_a_policy_of_several_algorithms(tmp_path: Path) -> None:
    PPO("MlpPolicy", "CartPole-v1", device="cpu").save(tmp_path / "theirs.zip")
    with pytest.raises(ValueError, match=r"ActorCriticPolicy: .* with the class that saved it$"):
        PerDQN.load(tmp_path / "theirs.zip")


def always_holding() -> PerDQN:
    return PerDQN("MlpPolicy", "CartPole-v1", k_max=4, buffer_size=100, decision_tolerance=100.0)


def test_a_loop_that_drops_the_state_is_told_once() -> None:
    model, observation = always_holding(), np.zeros(4, np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(30):
            model.predict(observation, deterministic=True)
    (warning,) = caught
    assert "without the state that it returned" in str(warning.message)


def test_a_loop_that_hands_the_state_on_is_told_nothing() -> None:
    model, observation = always_holding(), np.zeros(4, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(30):
            state = None
            for _ in range(3):
                _, state = model.predict(observation, state, deterministic=True)
