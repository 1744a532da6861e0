"""Compiled passes against autograd and PyTorch's own Adam."""

from __future__ import annotations

import copy
import itertools
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from holdfast import PerDQN
from holdfast.deep import OptionReplayBuffer
from holdfast.deep.networks.small_convolutions import SmallConvolutions
from holdfast.deep.speed import compiled_pass
from holdfast.deep.speed.board_kernels import convolution_gradient, convolve
from holdfast.deep.speed.shortcuts import compiled_parameters, plain_path
from tests.deep.boards import Boards

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


def agent_on_boards(net_arch: Any = (12, 9), boards: Boards | None = None, **arguments: Any) -> PerDQN:
    network = {"net_arch": list(net_arch), "features_extractor_class": SmallConvolutions}
    given = {**LEVERS, "persistences": [1, 2, 4], **arguments}
    return PerDQN("CnnPolicy", boards or Boards(), policy_kwargs=network, **given)


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
    refuse_another_update(agent(average_rate=0.05, **given))


@pytest.mark.parametrize(
    ("arguments", "highest"),
    [
        ({}, 1),
        ({"target_value": "primitive", "dueling": "heads", "head_arch": [7]}, 1),
        ({"target_value": "options", "layer_norm": False, "dueling": False}, 1),
        # No trunk: the first layer of the heads sees the features.
        ({"net_arch": [], "head_arch": [7, 5]}, 1),
        ({"net_arch": []}, 1),
        # One view, and cells that hold other numbers than 1.
        ({"persistences": [1], "prioritized": False}, 200),
    ],
    ids=str,
)
def test_a_compiled_update_on_boards_is_that_of_autograd(arguments: dict[str, Any], highest: int) -> None:
    model = agent_on_boards(boards=Boards(highest), average_rate=0.05, **arguments)
    refuse_another_update(model)


def refuse_another_update(model: PerDQN) -> None:
    """What compiled code computes of one batch, and the step that follows, must be what autograd and Adam give."""
    model.learn(150)
    assert model.replay_buffer is not None
    twin = copy.deepcopy(model.policy)
    batch = model._sample(16, 0.5)
    parameters = compiled_parameters(model, batch)
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


def test_training_on_boards_follows_the_plain_path() -> None:
    trained = []
    for is_plain in (False, True):
        model = agent_on_boards(average_rate=0.01)
        with plain_path() if is_plain else nullcontext():
            model.learn(140)
        trained.append({name: part.numpy().copy() for name, part in model.policy.state_dict().items()})
    for name in trained[0]:
        np.testing.assert_allclose(trained[0][name], trained[1][name], rtol=2e-2, atol=2e-4)


def test_training_on_boards_stops_and_goes_on_exactly() -> None:
    def make() -> PerDQN:
        return agent_on_boards(average_rate=0.01, schedule_steps=180)

    whole, state, second = make().learn(180), make().learn(110).state(), make()
    second.restore(state)
    second.learn(70, reset_num_timesteps=False)
    for one, other in zip(whole.policy.parameters(), second.policy.parameters(), strict=True):
        assert th.equal(one, other)


@pytest.mark.parametrize("highest", [1, 255])
def test_features_of_boards_are_those_of_pytorch(highest: int) -> None:
    th.manual_seed(0)
    random = np.random.default_rng(0)
    # 7 bytes beyond the last whole word, and boards of nothing and of nothing but cells.
    boards = random.integers(0, highest + 1, (5, 3, 5, 7)).astype(np.uint8)
    boards *= random.integers(0, 2, boards.shape).astype(np.uint8)
    boards[1], boards[2] = 0, highest
    layer = SmallConvolutions(spaces.Box(0, highest, (3, 5, 7), np.uint8))
    weight, bias = layer.convolution.weight, layer.convolution.bias
    assert bias is not None
    expected = layer(th.from_numpy(boards).float())
    features = np.full(expected.shape, np.nan, dtype=np.float32)
    convolve(weight.detach().flatten().numpy(), bias.detach().numpy(), boards, features)
    np.testing.assert_allclose(features, expected.detach().numpy(), rtol=1e-5, atol=1e-5 * highest)
    # The gradient of the first four.
    delta = th.randn(4, features.shape[1])
    expected[:4].backward(delta)
    grad_weight, grad_bias = np.full(weight.numel(), np.nan, np.float32), np.full(16, np.nan, np.float32)
    convolution_gradient(np.where(features[:4] > 0.0, delta.numpy(), 0.0), boards, grad_weight, grad_bias)
    assert weight.grad is not None
    assert bias.grad is not None
    np.testing.assert_allclose(grad_weight, weight.grad.flatten().numpy(), rtol=1e-4, atol=1e-5 * highest)
    np.testing.assert_allclose(grad_bias, bias.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
def test_values_of_boards_are_those_of_the_modules(dtype: Any) -> None:
    model = agent_on_boards()
    seen = th.from_numpy(np.random.default_rng(0).integers(0, 2, (11, 2, 5, 7)).astype(dtype))
    with plain_path(), th.no_grad():
        expected = model.q_net(seen).numpy()
    np.testing.assert_allclose(model.q_net.quick_values(seen).numpy(), expected, rtol=1e-4, atol=1e-6)
    turned = seen.transpose(2, 3).contiguous().transpose(2, 3)
    np.testing.assert_allclose(model.q_net.quick_values(turned).numpy(), expected, rtol=1e-4, atol=1e-6)


class Doubling(SmallConvolutions):
    def forward(self, observations: th.Tensor) -> th.Tensor:
        return 2.0 * super().forward(observations)


class Blurred(OptionReplayBuffer):
    def observations_at(self, *arguments: Any, **keywords: Any) -> Any:
        return super().observations_at(*arguments, **keywords).float()


class Cropped(OptionReplayBuffer):
    def observations_at(self, *arguments: Any, **keywords: Any) -> Any:
        return super().observations_at(*arguments, **keywords)[..., 1:]


def _replace_the_convolution(model: PerDQN) -> None:
    model.q_net.features_extractor.layers[0] = th.nn.Conv2d(2, 16, 3)


@pytest.mark.parametrize(
    ("arguments", "change"),
    [
        ({"boards": Boards(dtype=np.float32)}, lambda model: None),
        ({"boards": Boards(highest=255)}, lambda model: None),
        ({"normalize_observations": "space"}, lambda model: None),
        ({"shared_draws": False}, lambda model: None),
        ({"policy_kwargs": {"net_arch": [9], "features_extractor_class": Doubling}}, lambda model: None),
        ({}, lambda model: model.q_net.features_extractor.layers[0].register_forward_hook(lambda *_: None)),
        ({}, lambda model: model.q_net.features_extractor.layers[0].weight.requires_grad_(False)),
        ({}, lambda model: model.q_net.features_extractor.layers[0].weight.register_hook(lambda grad: None)),
        ({}, lambda model: model.q_net.features_extractor.layers[0].double()),
        ({}, _replace_the_convolution),
        ({"replay_buffer_class": Blurred}, lambda model: None),
        ({"replay_buffer_class": Cropped}, lambda model: None),
    ],
    ids=[
        "floats",
        "images",
        "scaled",
        "own draws",
        "subclass",
        "hook",
        "frozen",
        "gradient hook",
        "64 bits",
        "replaced",
        "floats from the replay",
        "smaller boards from the replay",
    ],
)
def test_what_is_not_plain_on_boards_goes_through_autograd(arguments: dict[str, Any], change: Any) -> None:
    network = {"net_arch": [9], "features_extractor_class": SmallConvolutions}
    given = {**LEVERS, "persistences": [1, 2, 4], "policy_kwargs": network, **arguments}
    model = PerDQN("CnnPolicy", given.pop("boards", Boards()), **given)
    # A network of these boards could not learn from smaller ones at all.
    model.learn(80 if given.get("replay_buffer_class") is not Cropped else 15)
    change(model)
    assert compiled_parameters(model, model._sample(16, 0.5)) is None


@pytest.mark.parametrize("shape", [(1, 1, 5, 7), (1, 4, 5, 7), (1, 2, 6, 7)])
def test_boards_of_another_shape_fail_without_short_cuts_and_with_them(shape: tuple[int, ...]) -> None:
    model = agent_on_boards()
    with plain_path(), pytest.raises(RuntimeError):
        model.q_net.quick_values(th.ones(shape, dtype=th.uint8))
    with pytest.raises((RuntimeError, ValueError)):
        model.q_net.quick_values(th.ones(shape, dtype=th.uint8))


def test_no_boards_have_no_values() -> None:
    model = agent_on_boards()
    none = th.zeros((0, *model.observation_space.shape), dtype=th.uint8)
    assert len(model.q_net.quick_values(none)) == 0


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
