"""Networks and optimisers of a user's own, and dictionaries that stay the user's."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from holdfast.deep import CnnPolicy, MlpPolicy, MultiInputPolicy, OptionReplayBuffer
from tests.conformance.agents import same, weights
from tests.conformance.worlds import OBSERVATIONS, Samples, vector


class Own(BaseFeaturesExtractor):
    """A layer whose width is the user's."""

    def __init__(self, observation_space, features_dim=5):
        super().__init__(observation_space, features_dim)
        self.layer = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(observation_space.shape)), features_dim))
        self.calls = 0

    def forward(self, observations):
        self.calls += 1
        return self.layer(observations)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh])
@pytest.mark.parametrize("net_arch", [[], [7], [6, 5]], ids=str)
def test_layers(make, net_arch, activation):
    model = make(vector(), policy_kwargs={"net_arch": net_arch, "activation_fn": activation})
    widths = [layer.out_features for layer in model.q_net.modules() if isinstance(layer, nn.Linear)]
    assert widths == net_arch
    before = weights(model.q_net)
    model.learn(30)
    for start, now in zip(before, weights(model.q_net), strict=True):
        assert not th.equal(start, now)
    kinds = {type(module) for module in model.q_net.modules()}
    assert activation in kinds
    assert ({nn.ReLU, nn.Tanh} - {activation}).isdisjoint(kinds)


def test_an_extractor(make, tmp_path):
    kwargs = {
        "features_extractor_class": Own,
        "features_extractor_kwargs": {"features_dim": 9},
        "net_arch": [4],
    }
    model = make(vector(), policy_kwargs=kwargs)
    assert isinstance(model.q_net.features_extractor, Own)
    assert model.q_net.features_extractor is not model.q_net_target.features_extractor
    assert model.q_net.features_extractor.features_dim == 9
    before = weights(model.q_net.features_extractor)
    model.learn(30)
    assert model.q_net.features_extractor.calls > 0
    assert model.q_net_target.features_extractor.calls > 0
    assert not same(before, weights(model.q_net.features_extractor))
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model", device="cpu")
    assert same(weights(loaded.policy), weights(model.policy))


OPTIMISERS = [
    (th.optim.RMSprop, {"alpha": 0.9, "eps": 1e-4, "weight_decay": 0.1}),
    (RMSpropTFLike, {"eps": 1e-3}),
    (th.optim.AdamW, {"weight_decay": 0.2}),
    (th.optim.Adam, {"betas": (0.7, 0.8), "weight_decay": 0.3, "amsgrad": True}),
    (th.optim.Adam, {"eps": 0.1}),
    (th.optim.SGD, {"momentum": 0.5, "nesterov": True}),
]


@pytest.mark.parametrize(("kind", "arguments"), OPTIMISERS, ids=lambda value: getattr(value, "__name__", ""))
def test_optimisers(make, tmp_path, kind, arguments):
    kwargs = {"net_arch": [8], "optimizer_class": kind, "optimizer_kwargs": arguments}
    model = make(vector(), policy_kwargs=kwargs, learning_rate=1e-3)
    optimiser = model.policy.optimizer
    assert type(optimiser) is kind
    (group,) = optimiser.param_groups
    assert {name: group[name] for name in arguments} == arguments
    assert group["lr"] == 1e-3
    assert {id(parameter) for parameter in group["params"]} == {id(p) for p in model.q_net.parameters()}
    before = weights(model.q_net)
    model.learn(15)
    assert not same(before, weights(model.q_net))
    assert all(th.isfinite(value).all() for value in weights(model.q_net))
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model", env=vector(), device="cpu").learn(15)
    assert type(loaded.policy.optimizer) is kind


@pytest.mark.parametrize(("kind", "arguments"), OPTIMISERS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_step_is_the_optimisers_own(make, kind, arguments):
    kwargs = {"net_arch": [8], "optimizer_class": kind, "optimizer_kwargs": arguments}
    model = make(vector(), policy_kwargs=kwargs, learning_rate=1e-3, gradient_steps=0).learn(30)
    for _ in range(3):
        twins = [parameter.detach().clone().requires_grad_() for parameter in model.q_net.parameters()]
        other = kind(twins, lr=1e-3, **arguments)
        other.load_state_dict(copy.deepcopy(model.policy.optimizer.state_dict()))
        model.train(gradient_steps=1, batch_size=8)
        for twin, parameter in zip(twins, model.q_net.parameters(), strict=True):
            twin.grad = parameter.grad.clone()
        other.step()
        for twin, parameter in zip(twins, model.q_net.parameters(), strict=True):
            th.testing.assert_close(twin.detach(), parameter.detach(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "kind", "space"),
    [
        ("MlpPolicy", MlpPolicy, OBSERVATIONS["float32"]),
        ("CnnPolicy", CnnPolicy, spaces.Box(0, 255, (1, 36, 36), np.uint8)),
        ("MultiInputPolicy", MultiInputPolicy, OBSERVATIONS["dict"]),
    ],
)
def test_a_policy_may_be_named_or_given(make, name, kind, space):
    named, given = (make(Samples(space), policy) for policy in (name, kind))
    assert type(named.policy) is type(given.policy) is kind
    assert same(weights(named.policy), weights(given.policy))
    assert named.q_net is named.policy.q_net
    assert named.q_net_target is named.policy.q_net_target

    class Mine(kind):
        pass

    assert type(make(Samples(space), Mine).policy) is Mine


def test_a_copy_of_a_policy_stands_alone(make):
    model = make(vector()).learn(30)
    observations = np.stack([Samples().observation_space.sample() for _ in range(10)])
    copied = copy.deepcopy(model.policy)
    np.testing.assert_array_equal(copied.predict(observations)[0], model.policy.predict(observations)[0])
    copied.set_training_mode(True)
    assert not model.q_net.training
    before = model.policy.option_values(th.as_tensor(observations))
    with th.no_grad():
        for parameter in copied.q_net.parameters():
            parameter.zero_()
    assert not copied.option_values(th.as_tensor(observations)).any()
    np.testing.assert_array_equal(model.policy.option_values(th.as_tensor(observations)), before)


def test_calling_a_policy_gives_the_actions_of_predicting(make):
    model = make(vector()).learn(30)
    observations = np.stack([Samples().observation_space.sample() for _ in range(10)])
    called = model.policy(th.as_tensor(observations), deterministic=True)
    assert called.tolist() == model.predict(observations, deterministic=True)[0].tolist()


def test_the_users_dictionaries_are_read_only(make):
    policy_kwargs = {
        "net_arch": [6],
        "optimizer_kwargs": {"eps": 1e-3},
        "features_extractor_class": Own,
        "features_extractor_kwargs": {"features_dim": 4},
    }
    replay_buffer_kwargs = {"handle_timeout_termination": False}
    before = copy.deepcopy((policy_kwargs, replay_buffer_kwargs))
    model = make(vector(), policy_kwargs=policy_kwargs, replay_buffer_kwargs=replay_buffer_kwargs).learn(20)
    assert (policy_kwargs, replay_buffer_kwargs) == before
    # They can be used again, and what becomes of them later is nothing to the agent.
    make(vector(), policy_kwargs=policy_kwargs, replay_buffer_kwargs=replay_buffer_kwargs).learn(20)
    assert (policy_kwargs, replay_buffer_kwargs) == before
    policy_kwargs["net_arch"] = [1, 2, 3]
    replay_buffer_kwargs["handle_timeout_termination"] = True
    assert model.policy_kwargs["net_arch"] == [6]
    assert model.replay_buffer_kwargs == before[1]
    assert model.replay_buffer.handle_timeout_termination is False


@pytest.mark.parametrize("name", ["policy_kwargs", "replay_buffer_kwargs"])
def test_arguments_nobody_knows(make, name):
    with pytest.raises(TypeError, match="never_heard_of"):
        make(vector(), **{name: {"never_heard_of": 1}})
    with pytest.raises(TypeError, match="never_heard_of"):
        make(vector(), never_heard_of=1)


def test_the_names_that_sb3s_users_know(make):
    model = make(vector()).learn(20)
    assert isinstance(model.replay_buffer, OptionReplayBuffer)
    for name in ("q_net", "q_net_target", "exploration_schedule", "exploration_rate", "batch_norm_stats"):
        assert hasattr(model, name), name
    assert set(model.policy_aliases) == {"MlpPolicy", "CnnPolicy", "MultiInputPolicy"}
    # What is no parameter is copied to the target network as a running mean is, which no integer survives.
    assert all(buffer.is_floating_point() for buffer in model.policy.buffers())


def test_making_an_agent_in_two_steps(make):
    model = make(vector(), _init_setup_model=False)
    assert not hasattr(model, "policy") or model.policy is None
    model._setup_model()
    assert model.learn(20).num_timesteps == 20


def test_an_agent_without_an_environment_can_be_described(make):
    model = make(None, _init_setup_model=False)
    assert model.get_env() is None
