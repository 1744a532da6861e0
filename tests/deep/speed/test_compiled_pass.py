"""Compiled passes against autograd and PyTorch's own Adam."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest
import torch as th

from holdfast import PerDQN
from holdfast.deep.speed import compiled_pass
from holdfast.deep.speed.shortcuts import plain_path

LEVERS: dict[str, Any] = {
    "shared_draws": True,
    "explore_by": "steps",
    "clip_targets": True,
    "importance": "batch",
    "learning_starts": 60,
    "buffer_size": 400,
    "target_update_interval": 40,
    "batch_size": 16,
    "seed": 3,
}


def agent(**arguments: Any) -> PerDQN:
    return PerDQN(
        "MlpPolicy",
        "CartPole-v1",
        policy_kwargs={"net_arch": [12, 9]},
        **{**LEVERS, "persistences": [1, 2, 4], **arguments},
    )


@pytest.mark.parametrize(
    ("layer_norm", "dueling", "head_arch", "target_value"),
    list(
        itertools.product(
            (False, True), (False, "heads", "options"), ([], [7], [7, 5]), ("options", "primitive", "double")
        )
    ),
)
def test_a_compiled_update_is_that_of_autograd(
    layer_norm: bool, dueling: bool | str, head_arch: list[int], target_value: str
) -> None:
    given = {"layer_norm": layer_norm, "dueling": dueling, "head_arch": head_arch, "target_value": target_value}
    model = agent(average_rate=0.05, **given)
    model.learn(150)
    assert model.replay_buffer is not None
    twin = copy.deepcopy(model.policy)
    batch = model._sample(16, 0.5)
    parameters = model.q_net.plain_parameters()
    assert parameters is not None
    targets, (loss, row_losses, errors) = model.q_net.compiled_pass.learn(
        model, batch, parameters, model._target_bounds()
    )
    found = [part.grad.clone() for part in parameters if part.grad is not None]
    with plain_path():
        expected_targets = model._targets(batch)
        residuals = model._regress(batch, expected_targets)
    np.testing.assert_allclose(targets, expected_targets, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(errors, residuals.td_errors, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(row_losses, residuals.row_losses, rtol=1e-4, atol=1e-5)
    assert loss == pytest.approx(residuals.loss, rel=1e-5)
    expected = [part.grad for part in parameters]
    for own, other in zip(found, expected, strict=True):
        assert other is not None
        np.testing.assert_allclose(own.numpy(), other.numpy(), rtol=1e-3, atol=1e-6)
    # And the step that follows.
    for part, other in zip(twin.q_net.parameters(), model.q_net.parameters(), strict=True):
        part.grad = None if other.grad is None else other.grad.clone()
    assert model.policy.step_compiled(parameters, 0.05, 1000)
    th.nn.utils.clip_grad_norm_(twin.q_net.parameters(), 0.05)
    twin.optimizer.step()
    twin.move_average(1000)
    for name, own in model.policy.state_dict().items():
        np.testing.assert_allclose(own.numpy(), twin.state_dict()[name].numpy(), rtol=1e-4, atol=1e-6)


def test_training_compiled_follows_the_plain_path() -> None:
    trained = []
    for is_plain in (False, True):
        model = agent(layer_norm=True, dueling="options", head_arch=[], target_value="double", average_rate=0.01)
        if is_plain:
            with plain_path():
                model.learn(140)
        else:
            model.learn(140)
        trained.append({name: part.numpy().copy() for name, part in model.policy.state_dict().items()})
    for name in trained[0]:
        np.testing.assert_allclose(trained[0][name], trained[1][name], rtol=2e-2, atol=2e-4)


def test_values_are_those_of_the_modules() -> None:
    for head_arch, dueling in itertools.product(([], [7]), (False, "heads", "options")):
        model = agent(layer_norm=True, head_arch=head_arch, dueling=dueling)
        seen = th.randn(11, 4)
        with th.no_grad():
            np.testing.assert_allclose(
                model.q_net.quick_values(seen).numpy(), model.q_net(seen).numpy(), rtol=1e-4, atol=1e-6
            )


def test_dueling_options_by_hand() -> None:
    # One row, two heads and that of the state value, two actions: mean U = 2.5, V = 10.
    outputs = np.array([[[1.0, 2.0], [3.0, 4.0], [9.0, 11.0]]], dtype=np.float32)
    np.testing.assert_allclose(compiled_pass.joined_values(outputs, 2), [[[8.5, 10.5], [9.5, 11.5]]])


def test_adams_step_by_hand() -> None:
    theta, means = np.array([1.0, 2.0], np.float32), np.zeros(2, np.float32)
    grad = np.array([3.0, 4.0], np.float32)  # of norm 5: halved
    averages, squares, steps = np.zeros(2, np.float32), np.zeros(2, np.float32), np.zeros(3, np.float32)
    numbers = [np.float32(number) for number in (0.1, 0.9, 0.99, 0.0, 0.0, 2.5)]
    compiled_pass.adam_step(theta, grad, averages, squares, steps, *numbers, means, np.float32(0.5))
    np.testing.assert_allclose(grad, [1.5, 2.0], rtol=1e-5)
    # The first step is the learning rate, whatever the gradient.
    np.testing.assert_allclose(theta, [0.9, 1.9], rtol=1e-5)
    np.testing.assert_allclose(means, [0.45, 0.95], rtol=1e-5)
    np.testing.assert_allclose(averages, [0.15, 0.2], rtol=1e-5)
    np.testing.assert_allclose(squares, [0.0225, 0.04], rtol=1e-5)
    assert steps.tolist() == [1.0, 1.0, 1.0]


def test_weights_that_somebody_replaces_are_taken_up() -> None:
    model = agent(layer_norm=True)
    model.learn(100)
    seen = th.randn(5, 4)
    before = model.q_net.quick_values(seen).numpy().copy()
    for part in model.q_net.parameters():
        part.data = part.data.clone() * 1.5
    with th.no_grad():
        expected = model.q_net(seen).numpy()
    assert not np.allclose(before, expected)
    np.testing.assert_allclose(model.q_net.quick_values(seen).numpy(), expected, rtol=1e-4, atol=1e-5)
    model.learn(10, reset_num_timesteps=False)
    copied = copy.deepcopy(model.policy)
    np.testing.assert_array_equal(copied.q_net.quick_values(seen).numpy(), model.q_net.quick_values(seen).numpy())
    with th.no_grad():
        for part in copied.q_net.parameters():
            part.mul_(2.0)
    assert not np.allclose(copied.q_net.quick_values(seen).numpy(), model.q_net.quick_values(seen).numpy())
