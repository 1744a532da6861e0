"""Stacked heads are K small networks, and the network around them does what SB3's does."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.dqn.policies import QNetwork
from torch import nn

from holdfast.deep.networks.option_network import ConvFeatures, OptionQNetwork
from holdfast.deep.networks.stacked_heads import StackedHeads, StackedLinear
from holdfast.deep.networks.trunk import SpaceScaler
from tests.deep.small_networks import BOX, network


def separate_layers(stacked):
    """The same maps as ``nn.Linear`` modules."""
    layers = []
    for weight, bias in zip(stacked.weight, stacked.bias, strict=True):
        layer = nn.Linear(weight.shape[1], weight.shape[0])
        with th.no_grad():
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
        layers.append(layer)
    return layers


@pytest.mark.parametrize("k_max", [1, 2, 5])
@pytest.mark.parametrize("shared", [False, True])
def test_stacked_linear_equals_separate_ones(k_max, shared):
    th.manual_seed(0)
    stacked = StackedLinear(k_max, 4, 3)
    layers = separate_layers(stacked)
    inputs = th.randn(6, 4) if shared else th.randn(k_max, 6, 4)
    ours, theirs = inputs.clone().requires_grad_(), inputs.clone().requires_grad_()
    found = stacked(ours)
    rows = [theirs] * k_max if shared else theirs
    expected = th.stack([layer(row) for layer, row in zip(layers, rows, strict=True)])
    assert found.shape == (k_max, 6, 3)
    th.testing.assert_close(found, expected)
    error = th.randn_like(expected)
    found.backward(error)
    expected.backward(error)
    th.testing.assert_close(ours.grad, theirs.grad)
    th.testing.assert_close(stacked.weight.grad, th.stack([layer.weight.grad for layer in layers]))
    th.testing.assert_close(stacked.bias.grad, th.stack([layer.bias.grad for layer in layers]))


def test_stacked_linear_draws_as_linears_one_after_the_other():
    th.manual_seed(3)
    stacked = StackedLinear(3, 4, 2)
    th.manual_seed(3)
    for index, layer in enumerate([nn.Linear(4, 2) for _ in range(3)]):
        assert th.equal(stacked.weight[index], layer.weight)
        assert th.equal(stacked.bias[index], layer.bias)


@pytest.mark.parametrize("k_max", [1, 3])
@pytest.mark.parametrize("head_arch", [[], [7], [7, 6]])
@pytest.mark.parametrize("state_value", [None, "heads"])
@pytest.mark.parametrize("activation_fn", [nn.ReLU, nn.Tanh])
def test_heads_on_shared_rows_equal_heads_on_their_own(k_max, head_arch, state_value, activation_fn):
    th.manual_seed(1)
    heads = StackedHeads(k_max, 4, head_arch, 3, activation_fn, state_value)
    features = th.randn(5, 4)
    before = features.clone()
    shared = heads(features)
    own = heads(features.expand(k_max, 5, 4))
    assert shared.shape == own.shape == (k_max, 5, 3)
    th.testing.assert_close(shared, own)
    assert th.equal(features, before), "the features were changed in place"


def test_heads_have_their_activation_between_the_layers_only():
    th.manual_seed(2)
    for activation in (nn.ReLU, nn.ELU):
        heads = StackedHeads(2, 4, [5], 3, activation)
        features = th.randn(2, 6, 4)
        firsts, seconds = map(separate_layers, heads.layers)
        expected = [
            second(activation()(first(row))) for first, second, row in zip(firsts, seconds, features, strict=True)
        ]
        th.testing.assert_close(heads(features), th.stack(expected))


def test_dueling_advantages_have_mean_zero():
    th.manual_seed(4)
    heads = StackedHeads(3, 4, [6], 2, nn.ReLU, state_value="heads")
    raw = []
    heads.layers[-1].register_forward_hook(lambda module, inputs, output: raw.append(output))
    features = th.randn(3, 5, 4)
    values = heads(features)
    (outputs,) = raw
    th.testing.assert_close(values.mean(dim=2), outputs[..., 0])
    th.testing.assert_close(values[..., 1] - values[..., 0], outputs[..., 2] - outputs[..., 1])


# The whole network -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k_max", [1, 4])
def test_a_network_values_every_option(k_max):
    net = network(k_max=k_max, head_arch=[6])
    observations = th.randn(k_max * 3, 5)
    values = net(observations)
    assert values.shape == (k_max * 3, 3, k_max)
    own = net.own_head_values(observations)
    assert own.shape == (k_max, 3, 3)
    for index in range(k_max):
        th.testing.assert_close(own[index], values[index * 3 : (index + 1) * 3, :, index])


def test_one_persistence_without_head_layers_is_sb3s_network():
    extractor = FlattenExtractor(BOX)
    th.manual_seed(5)
    theirs = QNetwork(BOX, spaces.Discrete(3), extractor, 5, net_arch=[8, 8])
    th.manual_seed(5)
    ours = network(net_arch=[8, 8])
    observations = th.randn(7, 5)
    assert th.equal(ours(observations)[:, :, 0], theirs(observations))
    assert th.equal(ours.own_head_values(observations)[0], theirs(observations))


def test_every_head_learns_from_its_own_rows_only():
    net = network(k_max=3, head_arch=[6])
    values = net.own_head_values(th.randn(6, 5))
    values[1].sum().backward()
    for parameter in net.heads.parameters():
        assert (parameter.grad[[0, 2]] == 0).all()
        assert (parameter.grad[1] != 0).any()


def test_a_network_without_a_trunk():
    assert network(net_arch=[], k_max=2)(th.randn(4, 5)).shape == (4, 3, 2)


# Scaling ---------------------------------------------------------------------------------------------------


def test_finite_bounds_are_scaled_and_others_left_alone():
    space = spaces.Box(
        np.array([-2.0, 0.0, -np.inf, 0.0, -3.4e38, 5.0], dtype=np.float32),
        np.array([4.0, 1.0, np.inf, np.inf, 3.4e38, 5.0], dtype=np.float32),
    )
    scaler = SpaceScaler(space)
    observations = th.tensor(
        [[-2.0, 0.0, 7.0, 3.0, 8.0, 5.0], [4.0, 1.0, -7.0, 0.0, 2.0, 5.0], [1.0, 0.5, 0, 0, 0, 5]]
    )
    expected = [[-1.0, -1.0, 7.0, 3.0, 8.0, 5.0], [1.0, 1.0, -7.0, 0.0, 2.0, 5.0], [0.0, 0.0, 0, 0, 0, 5]]
    th.testing.assert_close(scaler(observations), th.tensor(expected))


def test_scaling_happens_inside_the_network():
    space = spaces.Box(np.array([0.0, -np.inf], np.float32), np.array([10.0, np.inf], np.float32))
    scaled, plain = network(space, scale_to_space=True), network(space)
    plain.load_state_dict(scaled.state_dict())
    th.testing.assert_close(scaled(th.tensor([[10.0, 3.0]])), plain(th.tensor([[1.0, 3.0]])))


class Recorder(FlattenExtractor):
    """Keeps what it is shown."""

    def forward(self, observations):
        self.seen = observations
        if isinstance(observations, dict):
            return th.cat([value.flatten(1) for value in observations.values()], dim=1)
        return super().forward(observations)


def test_in_a_dictionary_boxes_are_scaled_and_images_only_divided_by_255():
    space = spaces.Dict(
        {
            "place": spaces.Box(0.0, 4.0, (2,), np.float32),
            "picture": spaces.Box(0, 255, (1, 40, 40), np.uint8),
            "gear": spaces.Discrete(3),
        }
    )
    extractor = Recorder(space)
    net = OptionQNetwork(
        space, spaces.Discrete(2), extractor, 2 + 1600 + 3, net_arch=[4], k_max=2, scale_to_space=True
    )
    net(
        {
            "place": th.tensor([[4.0, 0.0]]),
            "picture": th.full((1, 1, 40, 40), 51, dtype=th.uint8),
            "gear": th.tensor([2]),
        }
    )
    th.testing.assert_close(extractor.seen["place"], th.tensor([[1.0, -1.0]]))
    th.testing.assert_close(extractor.seen["picture"], th.full((1, 1, 40, 40), 0.2))
    assert extractor.seen["gear"].flatten().tolist() == [0.0, 0.0, 1.0]


def test_the_scaler_is_no_part_of_the_saved_weights_and_has_no_integers():
    net = network(scale_to_space=True)
    assert not [name for name in net.state_dict() if "scaler" in name]
    assert all(value.is_floating_point() for value in net.buffers())


# Convolutions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("side", "channels", "width"), [(84, 4, 3136), (36, 1, 64), (64, 3, 1024)])
def test_the_papers_convolutions(side, channels, width):
    features = ConvFeatures(spaces.Box(0, 255, (channels, side, side), np.uint8))
    assert features.features_dim == width
    assert features(th.rand(2, channels, side, side)).shape == (2, width)


def test_convolutions_need_images():
    with pytest.raises(ValueError, match="ConvFeatures needs image observations, not Box"):
        ConvFeatures(BOX)


@pytest.mark.parametrize(("height", "width"), [(35, 36), (84, 20), (20, 20)])
def test_convolutions_refuse_an_image_that_is_too_small(height, width):
    with pytest.raises(
        ValueError, match=f"ConvFeatures needs images of at least 36x36 pixels, not {height}x{width}"
    ):
        ConvFeatures(spaces.Box(0, 255, (3, height, width), np.uint8))


# One state value for all options ---------------------------------------------------------------------------


def test_a_state_value_that_all_options_share_by_hand():
    # Two persistences, two actions; the third head is the state value, of which the mean counts.
    heads = StackedHeads(2, 1, [], 2, nn.ReLU, state_value="options")
    with th.no_grad():
        heads.layers[0].weight.zero_()
        heads.layers[0].bias.copy_(th.tensor([[1.0, 2.0], [3.0, 6.0], [10.0, 20.0]]))
    # V = 15, advantages of mean 3.
    expected = th.tensor([[[13.0, 14.0]], [[15.0, 18.0]]])
    th.testing.assert_close(heads(th.ones(1, 1)), expected)
    th.testing.assert_close(heads(th.ones(3, 1, 1)), expected)
    th.testing.assert_close(heads.by_hand(th.ones(1, 1)), expected)


@pytest.mark.parametrize("head_arch", [[], [6]])
def test_the_mean_over_all_options_is_the_state_value(head_arch):
    th.manual_seed(4)
    heads = StackedHeads(3, 4, head_arch, 2, nn.ReLU, state_value="options")
    raw = []
    heads.layers[-1].register_forward_hook(lambda module, inputs, output: raw.append(output))
    values = heads(th.randn(5, 4))
    assert values.shape == (3, 5, 2)
    (outputs,) = raw
    th.testing.assert_close(values.mean(dim=(0, 2)), outputs[-1].mean(dim=1))


def test_own_rows_of_a_shared_state_value_are_the_diagonal():
    th.manual_seed(5)
    net = network(k_max=3, head_arch=[6], dueling="options")
    observations = th.randn(6, 5)
    own, table = net.own_head_values(observations), net(observations)
    for view in range(3):
        for row in range(2):
            th.testing.assert_close(own[view, row], table[2 * view + row, :, view])


# Norms -----------------------------------------------------------------------------------------------------


def test_a_normalised_trunk_by_hand():
    # One layer of two units sees (3, 1): mean 2, deviation 1; then 2·(1, −1) + ½ and a ReLU: (2½, 0).
    space = spaces.Box(-9.0, 9.0, (2,), np.float32)
    net = network(space, 1, net_arch=[2], layer_norm=True)
    linear, norm, activation = net.trunk
    assert (type(norm), type(activation)) == (nn.LayerNorm, nn.ReLU)
    (head,) = net.heads.layers
    with th.no_grad():
        linear.weight.copy_(th.eye(2))
        linear.bias.zero_()
        norm.weight.fill_(2.0)
        norm.bias.fill_(0.5)
        head.weight.copy_(th.tensor([[[10.0, 100.0]]]))
        head.bias.zero_()
    assert net(th.tensor([[3.0, 1.0]])).item() == pytest.approx(25.0, rel=1e-4)


@pytest.mark.parametrize("net_arch", [[], [4], [4, 3]])
def test_there_is_a_norm_behind_each_layer_and_none_without(net_arch):
    for layer_norm in (False, True):
        net = network(net_arch=net_arch, layer_norm=layer_norm, k_max=2)
        kinds = [type(layer) for layer in net.trunk]
        one = [nn.Linear, nn.LayerNorm, nn.ReLU] if layer_norm else [nn.Linear, nn.ReLU]
        assert kinds == one * len(net_arch)


def test_a_normalised_network_gives_the_same_with_and_without_calling_its_modules():
    th.manual_seed(6)
    net = network(k_max=2, net_arch=[7, 6], head_arch=[4], layer_norm=True)
    observations = th.randn(9, 5)
    assert net.is_plain
    quick = net(observations)
    net.trunk[1].register_forward_hook(lambda *_: None)
    assert not net.is_plain
    assert th.equal(net(observations), quick)


def test_norms_are_made_without_drawing():
    th.manual_seed(7)
    plain = network(k_max=2, net_arch=[7, 6], head_arch=[4])
    th.manual_seed(7)
    normal = network(k_max=2, net_arch=[7, 6], head_arch=[4], layer_norm=True)
    for (one, _), (other, _) in zip(plain.trunk_layers, normal.trunk_layers, strict=True):
        assert th.equal(one.weight, other.weight)
