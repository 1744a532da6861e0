"""TempoRL's network and its loss, against the formulas written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import FlattenExtractor

from holdfast.deep.agents.skip_regression import larger_errors, regress_skips
from holdfast.deep.networks.skip_network import EMBEDDING_UNITS, SkipQNetwork

BOX = spaces.Box(-1.0, 1.0, (5,), np.float32)
N_ACTIONS, K_MAX, BATCH = 3, 4, 6


@pytest.fixture(params=[[], [7], [7, 6]], ids=str)
def net(request):
    th.manual_seed(0)
    extractor = FlattenExtractor(BOX)
    return SkipQNetwork(
        BOX, spaces.Discrete(N_ACTIONS), extractor, 5, net_arch=[8], k_max=K_MAX, head_arch=request.param
    )


def by_layers(head, inputs):
    """A head's outputs, layer by layer."""
    for depth, layer in enumerate(head.layers):
        inputs = th.relu(inputs) if depth else inputs
        inputs = inputs @ layer.weight[0].t() + layer.bias[0]
    return inputs


def lesson(seed=0):
    random = np.random.default_rng(seed)
    return (
        th.as_tensor(random.normal(size=(K_MAX * BATCH, 5)).astype(np.float32)),
        random.integers(N_ACTIONS, size=(K_MAX, BATCH)),
        random.normal(scale=2.0, size=(K_MAX, BATCH)).astype(np.float32),
        random.uniform(0.1, 1.0, size=(K_MAX, BATCH)).astype(np.float32),
    )


def test_every_action_has_its_value_and_that_of_each_of_its_skips(net):
    observations = th.randn(2, 5)
    with th.no_grad():
        table = net(observations)
        features = th.relu(net.trunk[0](observations))
        assert table.shape == (2, N_ACTIONS, 1 + K_MAX)
        th.testing.assert_close(table[:, :, 0], by_layers(net.action_head, features))
        for action in range(N_ACTIONS):
            told = net.embedding.weight[action].expand(2, EMBEDDING_UNITS)
            th.testing.assert_close(
                table[:, action, 1:], by_layers(net.skip_head, th.cat((features, told), dim=1))
            )
        th.testing.assert_close(net.bootstrap_values(observations), table[:, :, :1])
        assert net._predict(observations).tolist() == table[:, :, 0].argmax(dim=1).tolist()


def test_heads_are_as_wide_as_those_of_the_other_agents(net):
    widths = [[layer.bias.shape[1] for layer in head.layers][:-1] for head in (net.action_head, net.skip_head)]
    assert widths == [net._get_constructor_parameters()["head_arch"]] * 2
    assert net.embedding.weight.shape == (N_ACTIONS, 10)


def test_it_is_plain_until_somebody_watches(net):
    assert net.is_plain
    before = net.version()
    hook = net.embedding.register_forward_hook(lambda *_: None)
    assert not net.is_plain
    hook.remove()
    assert net.is_plain
    with th.no_grad():
        net.action_head.layers[-1].bias += 1.0
    assert net.version() != before


def test_the_loss_is_that_of_the_actions_plus_that_of_the_skips(net):
    observations, actions, targets, weights = lesson()
    residuals = regress_skips(net, observations, actions, targets, weights)
    with th.no_grad():
        table = net(observations).numpy().reshape(K_MAX, BATCH, N_ACTIONS, 1 + K_MAX)
    action_losses, skip_losses, errors = [], [], np.zeros((K_MAX, BATCH))
    for view in range(K_MAX):
        for b in range(BATCH):
            row, goal, weight = table[view, b, actions[view, b]], targets[view, b], weights[view, b]
            errors[view, b] = row[view + 1] - goal
            skip_losses.append(weight * huber(errors[view, b]))
            assert residuals.row_losses[view, b] == pytest.approx(huber(errors[view, b]), rel=1e-4)
            if view == 0:
                action_losses.append(weight * huber(row[0] - goal))
                errors[view, b] = max(errors[view, b], row[0] - goal, key=abs)
    assert residuals.loss == pytest.approx(np.mean(action_losses) + np.mean(skip_losses), rel=1e-5)
    np.testing.assert_allclose(residuals.td_errors, errors, rtol=1e-4, atol=1e-5)


def huber(error):
    return 0.5 * error**2 if abs(error) < 1.0 else abs(error) - 0.5


def test_the_gradients_are_the_slopes_of_the_loss(net):
    net.double()
    observations, actions, targets, weights = lesson()
    given = (net, observations.double(), actions, targets.astype(np.float64), weights.astype(np.float64))
    net.trunk_features = lambda obs, by_hand: th.relu(net.trunk[0](obs))
    regress_skips(*given)
    slopes = {name: parameter.grad.clone() for name, parameter in net.named_parameters()}
    for name, parameter in net.named_parameters():
        place = int(slopes[name].abs().argmax())
        with th.no_grad():
            flat = parameter.view(-1)
            flat[place] += 1e-6
            above = regress_skips_loss(*given)
            flat[place] -= 2e-6
            below = regress_skips_loss(*given)
            flat[place] += 1e-6
        assert slopes[name].view(-1)[place].item() == pytest.approx((above - below) / 2e-6, rel=1e-4), name


def regress_skips_loss(*given):
    with th.enable_grad():
        return regress_skips(*given).loss


def test_a_tuple_that_weighs_nothing_teaches_nothing(net):
    observations, actions, targets, weights = lesson()
    weights[2] = 0.0
    regress_skips(net, observations, actions, targets, weights)
    before = {name: parameter.grad.clone() for name, parameter in net.named_parameters()}
    targets[2] += 5.0
    regress_skips(net, observations, actions, targets, weights)
    for name, parameter in net.named_parameters():
        assert th.equal(parameter.grad, before[name]), name


def test_without_weights_all_weigh_one(net):
    observations, actions, targets, _ = lesson()
    plain = regress_skips(net, observations, actions, targets, None)
    ones = regress_skips(net, observations, actions, targets, np.ones_like(targets))
    assert plain.loss == ones.loss


def test_of_two_errors_the_larger_counts():
    skips = np.array([[1.0, -3.0, 0.0], [2.0, 2.0, 2.0]], np.float32)
    actions = np.array([-2.0, 1.0, 0.5], np.float32)
    np.testing.assert_array_equal(larger_errors(actions, skips), [[-2.0, -3.0, 0.5], [2.0, 2.0, 2.0]])
    np.testing.assert_array_equal(skips[0], [1.0, -3.0, 0.0])
