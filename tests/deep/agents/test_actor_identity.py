"""With one persistence and the parent's update alone, PerTD3 is SB3's TD3 and PerSAC its SAC, bit for bit."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3 import SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

from holdfast.deep import PerSAC, PerTD3

SHARED: dict[str, Any] = {
    "buffer_size": 900,  # overwritten
    "learning_starts": 150,
    "batch_size": 32,
    "tau": 0.01,
    "policy_kwargs": {"net_arch": [24, 16]},
    "seed": 7,
    "device": "cpu",
}
OURS = {TD3: (PerTD3, PerTD3.td3()), SAC: (PerSAC, PerSAC.sac())}


def gaussian() -> NormalActionNoise:
    return NormalActionNoise(np.zeros(1), np.full(1, 0.3))


def trained(algorithm: Any, env_id: str, steps: int, n_envs: int = 1, noise: Any = None, **arguments: Any) -> Any:
    env = make_vec_env(env_id, n_envs=n_envs, seed=3)
    settings = {**SHARED, "action_noise": noise, **arguments}
    # SB3's SAC writes into policy_kwargs.
    return algorithm("MlpPolicy", env, **copy.deepcopy(settings)).learn(steps)


def assert_same(parent: Any, env_id: str, steps: int, **arguments: Any) -> None:
    theirs = trained(parent, env_id, steps, **arguments)
    after = th.get_rng_state()
    own, update = OURS[parent]
    ours = trained(own, env_id, steps, k_max=1, **update, **arguments)
    assert th.equal(th.get_rng_state(), after)
    pairs = zip(ours.policy.parameters(), theirs.policy.parameters(), strict=True)
    assert all(th.equal(mine, other) for mine, other in pairs)
    assert ours._n_updates == theirs._n_updates > 0
    if parent is SAC:
        assert ours.alpha == (theirs.ent_coef_tensor if theirs.log_ent_coef is None else theirs.log_ent_coef.exp())
        assert ours.target_entropy == theirs.target_entropy
    observation = ours._last_obs
    for deterministic in (True, False):
        predicted = []
        for model in (ours, theirs):
            th.manual_seed(1)
            predicted.append(model.predict(observation, deterministic=deterministic)[0])
        assert np.array_equal(*predicted)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["Pendulum-v1", "MountainCarContinuous-v0"])
@pytest.mark.parametrize(
    ("parent", "arguments"),
    [(TD3, {"noise": gaussian()}), (SAC, {}), (SAC, {"ent_coef": 0.2})],
    ids=["td3", "sac", "sac-fixed"],
)
def test_the_weights_are_those_of_the_parent(parent, env_id, arguments):
    assert_same(parent, env_id, 2000, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"train_freq": 3, "gradient_steps": 2, "policy_delay": 3, "target_policy_noise": 0.4},
        {"n_envs": 2, "policy_kwargs": {"net_arch": {"pi": [8], "qf": [12]}, "n_critics": 3}},
        {"noise": OrnsteinUhlenbeckActionNoise(np.zeros(1), np.full(1, 0.5))},
        # Each environment has a process of its own.
        {"noise": OrnsteinUhlenbeckActionNoise(np.zeros(1), np.full(1, 0.5)), "n_envs": 2},
    ],
)
def test_the_weights_are_those_of_td3_with_other_arguments(arguments):
    assert_same(TD3, "Pendulum-v1", 300, **{"noise": gaussian(), **arguments})


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"ent_coef": "auto_0.3", "target_entropy": -0.4, "noise": gaussian()},
        # 5 is odd: to count targets from the beginning of the training would be something else.
        {"ent_coef": 0.2, "train_freq": 3, "gradient_steps": 5, "target_update_interval": 2},
        {"n_envs": 2, "policy_kwargs": {"net_arch": {"pi": [8], "qf": [12]}, "n_critics": 3}},
        {"policy_kwargs": {"net_arch": [], "share_features_extractor": True}},
    ],
)
def test_the_weights_are_those_of_sac_with_other_arguments(arguments):
    assert_same(SAC, "Pendulum-v1", 300, **arguments)


@pytest.mark.parametrize(("parent", "layer"), [(TD3, "mu"), (SAC, "latent_pi")])
def test_another_persistence_would_show(parent, layer):
    theirs = trained(parent, "Pendulum-v1", 250)
    own, update = OURS[parent]
    ours = trained(own, "Pendulum-v1", 250, k_max=2, **update)
    mine, other = (getattr(model.policy.actor, layer)[0].weight for model in (ours, theirs))
    assert mine.shape == other.shape
    assert not th.equal(mine, other)
