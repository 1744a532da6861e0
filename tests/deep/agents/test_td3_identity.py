"""PerTD3 with one persistence and TD3's update alone is SB3's TD3, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3 import TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

from holdfast.deep import PerTD3

SHARED: dict[str, Any] = {
    "buffer_size": 900,  # overwritten
    "learning_starts": 150,
    "batch_size": 32,
    "tau": 0.01,
    "policy_kwargs": {"net_arch": [24, 16]},
    "seed": 7,
    "device": "cpu",
}


def gaussian() -> NormalActionNoise:
    return NormalActionNoise(np.zeros(1), np.full(1, 0.3))


def trained(algorithm: Any, env_id: str, steps: int, n_envs: int = 1, noise: Any = None, **arguments: Any) -> Any:
    env = make_vec_env(env_id, n_envs=n_envs, seed=3)
    settings = {**SHARED, "action_noise": noise or gaussian(), **arguments}
    return algorithm("MlpPolicy", env, **settings).learn(steps)


def assert_same(ours: Any, theirs: Any) -> None:
    pairs = zip(ours.policy.parameters(), theirs.policy.parameters(), strict=True)
    assert all(th.equal(mine, other) for mine, other in pairs)
    assert ours._n_updates == theirs._n_updates > 0
    observation = ours._last_obs
    assert np.array_equal(ours.predict(observation)[0], theirs.predict(observation)[0])


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_the_weights_are_those_of_td3(env_id):
    theirs = trained(TD3, env_id, 2000)
    ours = trained(PerTD3, env_id, 2000, k_max=1, **PerTD3.td3())
    assert_same(ours, theirs)


@pytest.mark.parametrize(
    "arguments",
    [
        {"train_freq": 3, "gradient_steps": 2, "policy_delay": 3, "target_policy_noise": 0.4},
        {"n_envs": 2, "policy_kwargs": {"net_arch": {"pi": [8], "qf": [12]}, "n_critics": 3}},
        {"noise": OrnsteinUhlenbeckActionNoise(np.zeros(1), np.full(1, 0.5))},
    ],
)
def test_the_weights_are_those_of_td3_with_other_arguments(arguments):
    theirs = trained(TD3, "Pendulum-v1", 300, **arguments)
    ours = trained(PerTD3, "Pendulum-v1", 300, k_max=1, **PerTD3.td3(), **arguments)
    assert_same(ours, theirs)


def test_another_persistence_would_show():
    theirs = trained(TD3, "Pendulum-v1", 250)
    ours = trained(PerTD3, "Pendulum-v1", 250, k_max=2, **PerTD3.td3())
    assert ours.policy.actor.mu[0].weight.shape == theirs.policy.actor.mu[0].weight.shape
    assert not th.equal(ours.policy.actor.mu[0].weight, theirs.policy.actor.mu[0].weight)
