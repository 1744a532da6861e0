"""Batch norm and dropout are on in updates only, and the target network's statistics follow the online ones."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from tests.conformance.agents import same, weights
from tests.conformance.worlds import Samples, vector


class Noisy(BaseFeaturesExtractor):
    """Normalises by the batch, and drops half."""

    def __init__(self, observation_space):
        super().__init__(observation_space, get_flattened_obs_dim(observation_space))
        self.flatten = nn.Flatten()
        self.batch_norm = nn.BatchNorm1d(self.features_dim)
        self.dropout = nn.Dropout(0.5)

    def forward(self, observations):
        return self.dropout(self.batch_norm(self.flatten(observations)))


NOISY = {"policy_kwargs": {"net_arch": [16], "features_extractor_class": Noisy}, "learning_starts": 0}


def means(network):
    return network.features_extractor.batch_norm.running_mean.clone()


def test_predicting_is_deterministic_and_leaves_the_statistics_alone(make):
    model = make(vector(), **NOISY).learn(40)
    before = weights(model.policy)
    observations = np.stack([Samples().observation_space.sample() for _ in range(16)])
    # An update leaves the networks in training mode: predicting must not rely on who was there before.
    model.policy.set_training_mode(True)
    first = model.predict(observations, deterministic=True)
    values = model.policy.option_values(model.policy.obs_to_tensor(observations)[0])
    for _ in range(5):
        again = model.predict(observations, deterministic=True)
        np.testing.assert_array_equal(again[0], first[0])
        np.testing.assert_array_equal(again[1][0], first[1][0])
        now = model.policy.option_values(model.policy.obs_to_tensor(observations)[0])
        np.testing.assert_array_equal(now, values)
    assert same(before, weights(model.policy))
    assert not any(module.training for module in model.q_net.modules())


def test_collecting_leaves_the_statistics_alone(make):
    model = make(vector(2), **{**NOISY, "gradient_steps": 0})
    before = weights(model.policy)
    model.learn(60)
    assert same(before, weights(model.policy))


def test_updates_move_the_online_statistics_and_not_the_targets(make):
    model = make(vector(), **{**NOISY, "target_update_interval": 10_000}).learn(40)
    online, target = means(model.q_net), weights(model.q_net_target)
    model.train(gradient_steps=3, batch_size=8)
    assert not th.equal(means(model.q_net), online)
    assert same(weights(model.q_net_target), target)
    assert (means(model.q_net_target) == 0).all()


def test_one_update_counts_one_batch(make):
    model = make(vector(), **{**NOISY, "target_update_interval": 10_000}).learn(40)
    counted = model.q_net.features_extractor.batch_norm.num_batches_tracked
    before = int(counted)
    model.train(gradient_steps=5, batch_size=8)
    assert int(counted) == before + 5


def modes(model):
    """Of the online and of the target network."""
    return tuple({module.training for module in net.modules()} for net in (model.q_net, model.q_net_target))


def test_modes_during_an_update(make):
    model = make(vector(), **NOISY).learn(40)
    seen = []
    model.policy.optimizer.register_step_pre_hook(lambda *_: seen.append(modes(model)))
    model.train(gradient_steps=2, batch_size=8)
    assert seen == [({True}, {False})] * 2


def test_the_statistics_are_copied_even_if_the_weights_are_not(make):
    model = make(vector(), tau=0.0, **{**NOISY, "target_update_interval": 50})
    target = model.q_net_target.features_extractor.batch_norm.bias.clone()
    model.learn(40)
    assert (means(model.q_net_target) == 0).all()
    model.target_update_interval = 1
    model._on_step()
    assert th.equal(means(model.q_net_target), means(model.q_net))
    assert not (means(model.q_net) == 0).all()
    assert th.equal(model.q_net_target.features_extractor.batch_norm.bias, target)
    assert not th.equal(model.q_net.features_extractor.batch_norm.bias, target)


@pytest.mark.parametrize("value", ["options", "double"])
def test_statistics_and_modes_are_the_same_whatever_the_targets_need(make, value):
    if "target_value" not in inspect.signature(type(make(vector())).__init__).parameters:
        pytest.skip("this agent has one kind of target")
    model = make(vector(), target_value=value, **{**NOISY, "target_update_interval": 10_000}).learn(40)
    counted = model.q_net.features_extractor.batch_norm.num_batches_tracked
    before = int(counted)
    model.train(gradient_steps=3, batch_size=8)
    assert modes(model) == ({True}, {False})
    assert int(counted) == before + 3
