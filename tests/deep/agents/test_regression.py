"""Huber's loss and what a regression makes of it: numbers worked out on paper, by either way of getting them."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from holdfast.deep.agents import regression
from holdfast.deep.speed.hand_pass import huber_gradient, huber_loss
from tests.deep.small_networks import network

# Huber's loss ----------------------------------------------------------------------------------------------

ERRORS = [0.0, 0.5, 1.0, -1.0, 2.0, -3.0]
LOSSES = [0.0, 0.125, 0.5, 0.5, 1.5, 2.5]
SLOPES = [0.0, 0.5, 1.0, -1.0, 1.0, -1.0]

errors = st.floats(-4.0, 4.0)


def test_huber_by_hand():
    assert [huber_loss(error) for error in ERRORS] == LOSSES
    assert [huber_gradient(error) for error in ERRORS] == SLOPES


@given(errors)
def test_the_gradient_is_the_slope_of_the_loss(error):
    step = 1e-6
    slope = (huber_loss(error + step) - huber_loss(error - step)) / (2 * step)
    assert huber_gradient(error) == pytest.approx(slope, abs=1e-5)


@given(errors)
def test_huber_is_torchs_smooth_l1_loss(error):
    tensor = th.tensor(error, dtype=th.float64, requires_grad=True)
    loss = F.smooth_l1_loss(tensor, th.zeros_like(tensor))
    loss.backward()
    assert huber_loss(error) == pytest.approx(loss.item(), abs=1e-15)
    assert huber_gradient(error) == pytest.approx(tensor.grad.item(), abs=1e-15)


# A regression ----------------------------------------------------------------------------------------------

WAYS = {"hand": regression.regress_by_hand, "autograd": regression.regress_by_autograd}


@pytest.fixture(params=sorted(WAYS))
def regress(request):
    """Both ways to the same gradients."""
    return WAYS[request.param]


def linear(weight, bias, dueling=False):
    """A network that is one layer of heads, with weights (K, outputs, inputs), and that layer."""
    k_max, n_outputs, n_inputs = np.shape(weight)
    space = spaces.Box(-9.0, 9.0, (n_inputs,), np.float32)
    net = network(space, n_outputs - dueling, net_arch=[], k_max=k_max, dueling=dueling)
    (layer,) = net.heads.layers
    with th.no_grad():
        layer.weight.copy_(th.tensor(weight))
        layer.bias.copy_(th.tensor(bias))
    return net, layer


def floats(*rows):
    return np.array(rows, dtype=np.float32)


def test_huber_inside_a_regression(regress):
    # One action whose value is what is seen, and targets of 0: the errors are the observations.
    net, layer = linear([[[1.0]]], [[0.0]])
    observations, zeros = th.tensor(ERRORS)[:, None], np.zeros((1, 6), dtype=np.int64)
    found = regress(net, observations, zeros, floats([0.0] * 6), None)
    assert found.td_errors.tolist() == [ERRORS]
    assert found.row_losses.tolist() == [LOSSES]
    assert found.loss == pytest.approx(sum(LOSSES) / 6)
    assert layer.bias.grad.item() == pytest.approx(sum(SLOPES) / 6)
    of_weight = sum(error * slope for error, slope in zip(ERRORS, SLOPES, strict=True)) / 6
    assert layer.weight.grad.item() == pytest.approx(of_weight)


@pytest.mark.parametrize(
    ("weights", "loss", "of_weight", "of_bias"),
    [
        (None, 1.5625, [[0.25], [-1.5]], [0.25, -0.5]),
        (floats([2.0, 0.5]), 0.875, [[0.5], [-0.75]], [0.5, -0.25]),
    ],
)
def test_two_rows_by_hand(regress, weights, loss, of_weight, of_bias):
    # Values 2·1 and −1·3 + ½; errors ½ and −3½.
    net, layer = linear([[[2.0], [-1.0]]], [[0.0, 0.5]])
    found = regress(net, th.tensor([[1.0], [3.0]]), np.array([[0, 1]]), floats([1.5, 1.0]), weights)
    assert found.td_errors.tolist() == [[0.5, -3.5]]
    assert found.row_losses.tolist() == [[0.125, 3.0]]
    assert found.loss == loss
    assert layer.weight.grad.tolist() == [of_weight]
    assert layer.bias.grad.tolist() == [of_bias]


def test_dueling_heads_by_hand(regress):
    # V = 1, advantages 2, −2 and 3: Q = 1 + 2 − 1.
    net, layer = linear([[[1.0], [2.0], [-2.0], [3.0]]], [[0.0] * 4], dueling=True)
    found = regress(net, th.tensor([[1.0]]), np.array([[0]]), floats([1.25]), None)
    assert found.td_errors.tolist() == [[0.75]]
    np.testing.assert_allclose(layer.bias.grad, [[0.75, 0.5, -0.25, -0.25]], rtol=1e-6)
    np.testing.assert_allclose(layer.weight.grad[..., 0], layer.bias.grad)


def test_every_view_learns_its_own_rows_and_counts_in_the_mean(regress):
    # Values 1·1, 1·2 of the first head and −1·3, −1·4 of the second.
    net, layer = linear([[[1.0]], [[-1.0]]], [[0.0], [0.0]])
    observations, actions = th.tensor([[1.0], [2.0], [3.0], [4.0]]), np.zeros((2, 2), dtype=np.int64)
    found = regress(net, observations, actions, floats([0.5, 2.0], [-3.0, -2.0]), None)
    assert found.td_errors.tolist() == [[0.5, 0.0], [0.0, -2.0]]
    assert found.loss == (0.125 + 1.5) / 4
    assert layer.bias.grad.tolist() == [[0.5 / 4], [-1.0 / 4]]
    assert layer.weight.grad.tolist() == [[[0.5 / 4]], [[-4.0 / 4]]]


def test_rows_that_weigh_nothing_teach_nothing(regress):
    net, layer = linear([[[1.0]], [[-1.0]]], [[0.0], [0.0]])
    observations, actions = th.tensor([[1.0], [2.0], [3.0], [4.0]]), np.zeros((2, 2), dtype=np.int64)
    targets, weights = floats([0.5, 2.0], [70.0, 80.0]), floats([1.0, 1.0], [0.0, 0.0])
    found = regress(net, observations, actions, targets, weights)
    assert found.loss == 0.125 / 4
    assert found.td_errors.tolist() == [[0.5, 0.0], [-73.0, -84.0]]
    assert layer.bias.grad.tolist() == [[0.5 / 4], [0.0]]


@pytest.mark.parametrize("target", [np.nan, np.inf, -np.inf])
def test_a_target_that_is_no_number_shows_in_the_loss(regress, target):
    net, _ = linear([[[1.0]]], [[0.0]])
    found = regress(net, th.tensor([[1.0], [2.0]]), np.zeros((1, 2), np.int64), floats([0.5, target]), None)
    assert not np.isfinite(found.loss)


def test_what_is_learned_from_stays_as_it_is(regress):
    net, _ = linear([[[2.0], [-1.0]]], [[0.0, 0.5]])
    given = th.tensor([[1.0], [3.0]]), np.array([[0, 1]]), floats([1.5, 1.0]), floats([2.0, 0.5])
    before = copy.deepcopy(given)
    regress(net, *given)
    for now, then in zip(given, before, strict=True):
        np.testing.assert_array_equal(now, then)
