"""First weights as OpenAI Baselines draws them."""

from __future__ import annotations

import math

import pytest
import torch as th

from holdfast.deep import PerDQN, TempoRLDQN
from tests.deep.probes import Pictures


def test_the_trunk_is_orthogonal_and_heads_are_uniform_each_by_itself():
    model = PerDQN(env="MountainCar-v0", **{**PerDQN.paper_mountain_car("baselines"), "buffer_size": 100})
    first, second = (layer.weight for layer in model.q_net.trunk if isinstance(layer, th.nn.Linear))
    # 128 outputs of 2 inputs: orthogonal columns; W Wᵀ = 2 where the matrix is square.
    th.testing.assert_close(first.T @ first, 2.0 * th.eye(2), atol=1e-5, rtol=0.0)
    th.testing.assert_close(second @ second.T, 2.0 * th.eye(128), atol=1e-5, rtol=0.0)
    for layer, (inputs, outputs) in zip(model.q_net.heads.layers, ((128, 64), (64, 3)), strict=True):
        bound = math.sqrt(6.0 / (inputs + outputs))
        assert layer.weight.abs().max() <= bound
        # All heads are drawn, and from the whole of the interval.
        assert (layer.weight.abs().amax(dim=(1, 2)) > 0.9 * bound).all()
        assert len(set(layer.weight[:, 0, 0].tolist())) == 8
    assert all(not parameter.any() for name, parameter in model.q_net.named_parameters() if "bias" in name)


def test_all_networks_begin_alike():
    model = PerDQN("MlpPolicy", "CartPole-v1", initialization="baselines", buffer_size=50)
    own = model.q_net.state_dict()
    for network in (model.q_net_target, model.policy.averaged_net):
        for name, value in network.state_dict().items():
            th.testing.assert_close(value, own[name], atol=0.0, rtol=0.0)


def test_convolutions_and_the_other_agents():
    settings = {**PerDQN.paper_atari("baselines"), "buffer_size": 10}
    model = PerDQN(env=Pictures(shape=(84, 84, 4)), **settings, device="cpu")
    first = model.q_net.features_extractor.layers[0]
    # 4 and 32 channels of 8×8 cells.
    assert first.weight.detach().abs().max().item() == pytest.approx(math.sqrt(6.0 / (64 * (4 + 32))), rel=0.01)
    assert not first.bias.any()
    skips = TempoRLDQN("MlpPolicy", "CartPole-v1", initialization="baselines", buffer_size=50)
    linear = [layer for layer in skips.q_net.modules() if isinstance(layer, th.nn.Linear)]
    assert linear
    assert not any(layer.bias.any() for layer in linear)


def test_a_seed_draws_the_same_weights_and_pytorchs_are_others():
    first, again, other = (
        PerDQN("MlpPolicy", "CartPole-v1", initialization=kind, buffer_size=50, seed=1).q_net.state_dict()
        for kind in ("baselines", "baselines", "pytorch")
    )
    assert all(th.equal(first[name], again[name]) for name in first)
    assert not th.equal(first["trunk.0.weight"], other["trunk.0.weight"])
