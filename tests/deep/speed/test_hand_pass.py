"""The passes by hand give autograd's values and gradients, and are made where they can be made only."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from holdfast.deep.agents import regression
from holdfast.deep.agents.regression import regress, regress_by_autograd, regress_by_hand
from holdfast.deep.networks.option_network import ConvFeatures, OptionQNetwork
from holdfast.deep.speed.optimizer_step import optimizer_step
from tests.deep.diary import LEARNING, agent, plain_agent
from tests.deep.probes import Pictures, Pier
from tests.deep.small_networks import BOX, gradients, lesson, network

K_MAX = [1, 2, 8]
HEADS = [[], [5], [5, 4]]
TRUNKS = [[], [6], [6, 7]]

UNEVEN = spaces.Box(np.array([-2.0, 0.0, -np.inf], np.float32), np.array([4.0, 0.5, np.inf], np.float32))


def made(seed=0, space=BOX, **arguments):
    th.manual_seed(seed)
    return network(space, **arguments)


def assert_same_gradients(found, expected, exactly=False):
    assert found.keys() == expected.keys()
    for name in expected:
        if exactly:
            assert th.equal(found[name], expected[name]), name
        else:
            th.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=1e-7, msg=name)


def of_every_shape(test):
    """Run a test for every number of heads, shape of them and of the trunk, with state values and without."""
    for name, values, ids in (
        ("dueling", [False, True], ["plain", "dueling"]),
        ("net_arch", TRUNKS, str),
        ("head_arch", HEADS, str),
        ("k_max", K_MAX, None),
    ):
        test = pytest.mark.parametrize(name, values, ids=ids)(test)
    return test


# Values and gradients --------------------------------------------------------------------------------------


@of_every_shape
@pytest.mark.parametrize("scaled", [False, True], ids=["as seen", "scaled"])
def test_the_passes_are_those_of_autograd(k_max, head_arch, net_arch, dueling, scaled):
    net = made(
        space=UNEVEN, k_max=k_max, head_arch=head_arch, net_arch=net_arch, dueling=dueling, scale_to_space=scaled
    )
    observations = th.randn(k_max * 4, 3)
    values = net.own_head_values(observations)
    slopes = th.randn_like(values)
    (values * slopes).sum().backward()
    expected = gradients(net)
    net.zero_grad()

    with th.no_grad():
        outputs = net.hand_pass.values(observations)
        delta = slopes
        if dueling:
            advantages = outputs[..., 1:]
            delta = th.cat([slopes.sum(2, keepdim=True), slopes - slopes.mean(2, keepdim=True)], dim=2)
            outputs = outputs[..., :1] + advantages - advantages.mean(2, keepdim=True)
        net.hand_pass.backward(delta)
    exactly = k_max == 1 and not dueling
    if exactly:
        assert th.equal(outputs, values)
    th.testing.assert_close(outputs, values.detach())
    assert_same_gradients(gradients(net), expected, exactly)
    assert max(gradient.abs().max() for gradient in expected.values()) > 0.01


@of_every_shape
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_a_regression_by_hand_is_one_by_autograd(k_max, head_arch, net_arch, dueling, weighted):
    net = made(k_max=k_max, head_arch=head_arch, net_arch=net_arch, dueling=dueling)
    rows = lesson(net, weighted=weighted)
    expected = regress_by_autograd(net, *rows)
    by_autograd = gradients(net)
    found = regress_by_hand(net, *rows)
    by_hand = gradients(net)

    assert_same_gradients(by_hand, by_autograd, exactly=k_max == 1 and not dueling)
    assert type(found.loss) is type(expected.loss) is float
    assert found.loss == pytest.approx(expected.loss, rel=1e-6)
    for ours, theirs in zip(found[1:], expected[1:], strict=True):
        assert ours.dtype == theirs.dtype == np.float32
        assert ours.shape == theirs.shape == (k_max, 12)
        if k_max == 1 and not dueling:
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert (np.abs(expected.td_errors) < 1.0).any()
    assert (np.abs(expected.td_errors) > 1.0).any()


@given(
    seed=st.integers(0, 2**31),
    k_max=st.integers(1, 5),
    batch=st.integers(1, 9),
    n_actions=st.integers(1, 4),
    head_arch=st.lists(st.integers(1, 6), max_size=3),
    net_arch=st.lists(st.integers(1, 6), max_size=3),
    dueling=st.booleans(),
)
@settings(max_examples=60)
def test_a_regression_by_hand_is_one_by_autograd_whatever_its_shape(
    seed, k_max, batch, n_actions, head_arch, net_arch, dueling
):
    arguments = {"k_max": k_max, "n_actions": n_actions, "dueling": dueling}
    net = made(seed, head_arch=head_arch, net_arch=net_arch, **arguments)
    rows = lesson(net, batch, seed=seed)
    expected = regress_by_autograd(net, *rows)
    by_autograd = gradients(net)
    found = regress_by_hand(net, *rows)
    assert_same_gradients(gradients(net), by_autograd)
    np.testing.assert_allclose(found.td_errors, expected.td_errors, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batch", [1, 32, 256])
def test_one_persistence_is_rounded_as_autograd_rounds(batch):
    # The widths of SB3's default network.
    net = made(k_max=1, net_arch=[64, 64], head_arch=[64])
    for seed in range(5):
        rows = lesson(net, batch, weighted=seed % 2 == 0, seed=seed)
        expected = regress_by_autograd(net, *rows)
        by_autograd = gradients(net)
        found = regress_by_hand(net, *rows)
        assert_same_gradients(gradients(net), by_autograd, exactly=True)
        np.testing.assert_array_equal(found.td_errors, expected.td_errors)
        np.testing.assert_array_equal(found.row_losses, expected.row_losses)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-3.0, 3.0, (2, 3), np.float32),
        spaces.Box(-5, 5, (4,), np.int64),
        spaces.Box(-3.0, 3.0, (2,), np.float64),
    ],
    ids=["matrix", "integers", "64 bits"],
)
@pytest.mark.parametrize("scaled", [False, True], ids=["as seen", "scaled"])
def test_other_vectors(space, scaled):
    net = made(space=space, k_max=2, head_arch=[5], scale_to_space=scaled)
    assert net.is_plain
    rows = lesson(net)
    before = rows.observations.clone()
    regress_by_autograd(net, *rows)
    by_autograd = gradients(net)
    regress_by_hand(net, *rows)
    assert_same_gradients(gradients(net), by_autograd)
    assert th.equal(rows.observations, before)


# Layer norms, shared rows and shared state values ----------------------------------------------------------


def with_norms(seed=0, **arguments):
    """A network whose norms do something."""
    net = made(seed, net_arch=[6, 7], **arguments)
    with th.no_grad():
        for layer in net.trunk:
            if isinstance(layer, nn.LayerNorm):
                layer.weight.uniform_(0.5, 2.0)
                layer.bias.uniform_(-0.5, 0.5)
    return net


# Gradients from before -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [regress_by_hand, regress_by_autograd])
@pytest.mark.parametrize("k_max", [1, 3])
def test_gradients_from_before_are_overwritten(way, k_max):
    net = made(k_max=k_max, head_arch=[5])
    rows = lesson(net)
    way(net, *rows)
    expected = gradients(net)
    for left in (7.0, float("nan")):
        for parameter in net.parameters():
            parameter.grad = th.full_like(parameter, left)
        way(net, *rows)
        assert_same_gradients(gradients(net), expected, exactly=True)
    way(net, *lesson(net, batch=3, seed=1))
    way(net, *rows)
    assert_same_gradients(gradients(net), expected, exactly=True)


def test_some_gradients_from_before_and_some_not():
    net = made(k_max=2, head_arch=[5])
    rows = lesson(net)
    regress_by_hand(net, *rows)
    expected = gradients(net)
    for parameter in list(net.parameters())[::2]:
        parameter.grad = None
    regress_by_hand(net, *rows)
    assert_same_gradients(gradients(net), expected, exactly=True)


# Copies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_copy_makes_its_own_passes(make_copy):
    net = made(k_max=2, head_arch=[5])
    rows = lesson(net)
    regress_by_hand(net, *rows)
    before = gradients(net)
    twin = make_copy(net)
    with th.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(0.5)
    regress_by_hand(twin, *rows)
    assert_same_gradients(gradients(net), before, exactly=True)
    by_hand = gradients(twin)
    regress_by_autograd(twin, *rows)
    assert_same_gradients(by_hand, gradients(twin))
    assert not th.allclose(by_hand["trunk.0.weight"], before["trunk.0.weight"])


# Which way is taken ----------------------------------------------------------------------------------------


class Doubled(FlattenExtractor):
    """An extractor that somebody wrote."""

    def forward(self, observations):
        return 2.0 * super().forward(observations)


def with_extractor(extractor, **arguments):
    space = extractor._observation_space
    return OptionQNetwork(
        space, spaces.Discrete(3), extractor, extractor.features_dim, k_max=2, head_arch=[5], **arguments
    )


NOT_PLAIN = {
    "another activation": lambda: made(k_max=2, head_arch=[5], activation_fn=nn.Tanh),
    "another extractor": lambda: with_extractor(Doubled(BOX), net_arch=[8]),
    "images": lambda: with_extractor(ConvFeatures(spaces.Box(0, 255, (1, 36, 36), np.uint8)), net_arch=[]),
    "flattened images": lambda: made(
        space=spaces.Box(0, 255, (1, 6, 6), np.uint8), k_max=2, head_arch=[5], net_arch=[8]
    ),
}


def refuse(*arguments):
    raise AssertionError("the other way was to be taken")


def teach(net, steps=150):
    """The losses of a network that learns the same rows again and again."""
    rows = lesson(net, batch=4)
    if net.observation_space.dtype == np.uint8:
        random = np.random.default_rng(2)
        pictures = random.integers(256, size=(8, *net.observation_space.shape), dtype=np.uint8)
        rows = rows._replace(observations=th.as_tensor(pictures))
    optimizer, step = th.optim.Adam(net.parameters(), lr=0.01, fused=True), optimizer_step
    losses = []
    for _ in range(steps):
        losses.append(regress(net, *rows).loss)
        step(optimizer, 10.0)
    return losses


@pytest.mark.parametrize("kind", sorted(NOT_PLAIN))
def test_networks_that_are_not_plain_learn_by_autograd(kind, monkeypatch):
    monkeypatch.setattr(regression, "regress_by_hand", refuse)
    th.manual_seed(0)
    net = NOT_PLAIN[kind]()
    assert not net.is_plain
    before = [parameter.detach().clone() for parameter in net.parameters()]
    losses = teach(net, steps=60 if kind == "images" else 150)
    assert losses[-1] < 0.3 * losses[0]
    assert all((now != then).any() for now, then in zip(net.parameters(), before, strict=True))


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_plain_networks_learn_by_hand(dueling, scaled, monkeypatch):
    monkeypatch.setattr(regression, "regress_by_autograd", refuse)
    net = made(k_max=2, head_arch=[5], dueling=dueling, scale_to_space=scaled)
    losses = teach(net)
    assert losses[-1] < 0.1 * losses[0]


def test_layers_that_are_frozen_stay_frozen():
    net = made(k_max=2, head_arch=[5], net_arch=[6, 7])
    for parameter in net.trunk.parameters():
        parameter.requires_grad_(False)
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    losses = teach(net)
    assert losses[-1] < 0.5 * losses[0]
    moved = {name for name, parameter in net.named_parameters() if not th.equal(parameter, before[name])}
    assert moved == {name for name in before if name.startswith("heads")}


def agent_weights(**arguments):
    model = plain_agent(Pier(), **{**LEARNING, **arguments}).learn(60)
    return th.cat([parameter.detach().flatten() for parameter in model.q_net.parameters()])


@pytest.mark.parametrize("dueling", [False, True])
def test_an_agent_that_learns_by_autograd_ends_up_the_same(dueling, monkeypatch):
    by_hand = agent_weights(dueling=dueling, normalize_observations="space")

    monkeypatch.setattr(regression, "regress_by_hand", regress_by_autograd)
    by_autograd = agent_weights(dueling=dueling, normalize_observations="space")
    th.testing.assert_close(by_hand, by_autograd, rtol=1e-4, atol=1e-5)
    monkeypatch.undo()
    assert not th.allclose(by_hand, agent_weights(dueling=dueling, seed=1), atol=1e-2)


@pytest.mark.parametrize(
    ("make_env", "arguments"),
    [
        (Pier, {"policy_kwargs": {"net_arch": [16], "activation_fn": nn.Tanh}}),
        (Pier, {"policy_kwargs": {"net_arch": [16], "features_extractor_class": Doubled}}),
        (Pictures, {"policy": "CnnPolicy", "policy_kwargs": {}}),
        (lambda: gym.make("FrozenLake-v1"), {}),
    ],
    ids=["another activation", "another extractor", "images", "discrete"],
)
def test_agents_whose_networks_are_not_plain_learn_by_autograd(make_env, arguments, monkeypatch):
    monkeypatch.setattr(regression, "regress_by_hand", refuse)
    model = agent(make_env(), **{**LEARNING, **arguments})
    before = [parameter.detach().clone() for parameter in model.q_net.parameters()]
    model.learn(25)
    assert model._n_updates > 0
    assert all((now != then).any() for now, then in zip(model.q_net.parameters(), before, strict=True))
