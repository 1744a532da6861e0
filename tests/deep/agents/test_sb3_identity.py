"""PerDQN with one persistence, uniform replay and no head layers is SB3's DQN, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch as th
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env

from holdfast.deep import PerDQN

SHARED: dict[str, Any] = {
    "learning_rate": 1e-3,
    "buffer_size": 1500,  # overwritten twice
    "learning_starts": 200,
    "batch_size": 32,
    "tau": 1.0,
    "gamma": 0.98,
    "train_freq": 4,
    "gradient_steps": 1,
    "target_update_interval": 250,
    "exploration_fraction": 0.5,
    "exploration_initial_eps": 1.0,
    "exploration_final_eps": 0.05,
    "max_grad_norm": 10,
    "seed": 7,
    "device": "cpu",
}


def trained(algorithm: Any, env_id: str, steps: int, **arguments: Any) -> Any:
    env = make_vec_env(env_id, n_envs=1, seed=3)
    policy_kwargs = {"net_arch": [64, 64], "optimizer_kwargs": {"fused": True}}
    settings = {**SHARED, **arguments}
    return algorithm("MlpPolicy", env, policy_kwargs=policy_kwargs, **settings).learn(steps)


PLAIN = {**PerDQN.plain(), "prioritized": False, "head_arch": []}
"""What is left is SB3's DQN, but for how many persistences there are."""


def weights(model: Any) -> list[th.Tensor]:
    return [parameter.detach() for net in (model.q_net, model.q_net_target) for parameter in net.parameters()]


def assert_same_weights(ours: Any, theirs: Any) -> None:
    for mine, other in zip(weights(ours), weights(theirs), strict=True):
        assert th.equal(mine.reshape(other.shape), other)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Acrobot-v1"])
def test_the_weights_are_those_of_dqn(env_id):
    theirs = trained(DQN, env_id, 3000)
    ours = trained(PerDQN, env_id, 3000, k_max=1, **PLAIN)
    assert theirs._n_updates == ours._n_updates == 700
    assert_same_weights(ours, theirs)
    assert ours.replay_buffer.full


def test_the_weights_are_those_of_dqn_with_soft_targets_a_tight_clip_and_time_limits():
    settings = {"tau": 0.05, "target_update_interval": 10, "max_grad_norm": 0.1, "learning_starts": 50}
    theirs = trained(DQN, "MountainCar-v0", 600, **settings)
    ours = trained(PerDQN, "MountainCar-v0", 600, k_max=1, **{**PLAIN, **settings})
    assert_same_weights(ours, theirs)


def test_another_number_of_draws_would_show():
    theirs = trained(DQN, "CartPole-v1", 400)
    ours = trained(PerDQN, "CartPole-v1", 400, k_max=2, **PLAIN)
    assert not th.equal(weights(ours)[0], weights(theirs)[0])
