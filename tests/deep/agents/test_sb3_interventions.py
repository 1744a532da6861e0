"""Whatever somebody does to the networks of PerDQN with one persistence, it counts as it does with SB3's DQN."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
)
from torch.nn.utils import parametrizations

from holdfast.deep import PerDQN
from tests.deep.agents.test_sb3_identity import PLAIN, SHARED

OURS = {**PLAIN, "k_max": 1}
SETTINGS = {
    **SHARED,
    "learning_starts": 40,
    "buffer_size": 100,
    "target_update_interval": 60,
    "exploration_final_eps": 0.3,
}


def body(net: Any) -> nn.Sequential:
    """The layers up to the last one, which stand at the same places: linear, ReLU, linear, ReLU."""
    return net.trunk if hasattr(net, "trunk") else net.q_net


def last(net: Any) -> nn.Module:
    return net.heads.layers[0] if hasattr(net, "heads") else net.q_net[-1]


def replace_last(net: Any, module: nn.Module) -> None:
    if hasattr(net, "heads"):
        net.heads.layers[0] = module
    else:
        net.q_net[-1] = module


def made(algorithm: Any) -> Any:
    env = make_vec_env("CartPole-v1", n_envs=1, seed=3)
    policy_kwargs = {"net_arch": [16, 16], "optimizer_kwargs": {"fused": True}}
    arguments = OURS if algorithm is PerDQN else {}
    return algorithm("MlpPolicy", env, policy_kwargs=policy_kwargs, **SETTINGS, **arguments)


def both(model: Any) -> tuple[Any, Any]:
    return model.q_net, model.q_net_target


def weights(model: Any) -> list[th.Tensor]:
    return [value.detach().clone() for value in model.policy.state_dict().values()]


# What somebody may do --------------------------------------------------------------------------------------


def scaled(*arguments: Any) -> Any:
    return arguments[-1] * 0.7


def smaller_gradients(_module: Any, gradients: Any, _outputs: Any) -> Any:
    return tuple(None if gradient is None else gradient * 0.5 for gradient in gradients)


def smaller_in_place(parameter: th.Tensor) -> None:
    assert parameter.grad is not None
    parameter.grad.mul_(0.5)


class Shifted(FlattenExtractor):
    """An extractor of a user's own."""

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return super().forward(observations) - 0.5


def insert(
    place: int, make: Callable[[], nn.Module], *, target: bool, teach: bool = False
) -> Callable[[Any], None]:
    """Put a new layer in, into the target network as well or not."""

    def intervene(model: Any) -> None:
        nets = both(model) if target else (model.q_net,)
        for net in nets:
            th.manual_seed(1)
            body(net).insert(place, make())
        model.q_net_target.set_training_mode(False)
        if teach:
            model.policy.optimizer.add_param_group({"params": list(body(model.q_net)[place].parameters())})

    return intervene


def replaced_last(teach: bool) -> Callable[[Any], None]:
    def intervene(model: Any) -> None:
        for net in both(model):
            th.manual_seed(2)
            replace_last(net, nn.Linear(16, 2))
        if teach:
            model.policy.optimizer.add_param_group({"params": list(last(model.q_net).parameters())})
        else:
            # SB3 adds up the gradients of what no optimiser knows, and clips by their sum.
            model.max_grad_norm = 1e9

    return intervene


def old_norm(norm: Callable[..., nn.Module]) -> Callable[[Any], None]:
    def intervene(model: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            for net in both(model):
                th.manual_seed(4)
                norm(body(net)[2])

    return intervene


def parametrized(norm: Callable[..., nn.Module]) -> Callable[[Any], None]:
    def intervene(model: Any) -> None:
        for net in both(model):
            th.manual_seed(3)
            norm(body(net)[2])
        model.q_net_target.set_training_mode(False)
        known = {id(part) for group in model.policy.optimizer.param_groups for part in group["params"]}
        new = [part for part in body(model.q_net)[2].parameters() if id(part) not in known]
        if new:
            model.policy.optimizer.add_param_group({"params": new})

    return intervene


def patched(find: Callable[[Any], Any]) -> Callable[[Any], None]:
    def intervene(model: Any) -> None:
        module = find(model)
        original = module.forward
        module.forward = lambda inputs: 0.7 * original(inputs)

    return intervene


def another_bias(find: Callable[[nn.Sequential], Any]) -> Callable[[Any], None]:
    def intervene(model: Any) -> None:
        for net in both(model):
            body(net)[2].bias = find(body(net))

    return intervene


def frozen(find: Callable[[Any], Any]) -> Callable[[Any], None]:
    return lambda model: find(model).requires_grad_(False)


def dropout_in_the_target(model: Any) -> None:
    """Left in training mode, as somebody may want it."""
    body(model.q_net_target).insert(4, nn.Dropout(0.3))


INTERVENTIONS: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda model: None,
    "hook on the network": lambda model: model.q_net.register_forward_hook(scaled),
    "hook on the target network": lambda model: model.q_net_target.register_forward_hook(scaled),
    "hook on the extractor": lambda model: model.q_net.features_extractor.register_forward_hook(scaled),
    "hook in the extractor": lambda model: model.q_net.features_extractor.flatten.register_forward_hook(scaled),
    "hook on a layer": lambda model: body(model.q_net)[0].register_forward_hook(scaled),
    "hook on a ReLU": lambda model: body(model.q_net)[1].register_forward_hook(scaled),
    "hook on the last layer": lambda model: last(model.q_net).register_forward_hook(scaled),
    "hook on a layer of the target": lambda model: body(model.q_net_target)[2].register_forward_hook(scaled),
    "hook before a layer": lambda model: body(model.q_net)[2].register_forward_pre_hook(
        lambda _, inputs: (inputs[0] * 0.7,)
    ),
    "hook behind the gradients of a layer": lambda model: body(model.q_net)[2].register_full_backward_hook(
        smaller_gradients
    ),
    "hook on a gradient": lambda model: body(model.q_net)[0].weight.register_hook(scaled),
    "hook on a gradient that is there": lambda model: last(model.q_net).weight.register_post_accumulate_grad_hook(
        smaller_in_place
    ),
    "layer replaced": replaced_last(teach=True),
    "layer replaced and not taught": replaced_last(teach=False),
    "extractor replaced": lambda model: setattr(
        model.q_net, "features_extractor", Shifted(model.observation_space)
    ),
    "ReLU replaced": lambda model: body(model.q_net).__setitem__(1, nn.Tanh()),
    "dropout": insert(2, lambda: nn.Dropout(0.3), target=False),
    "dropout in both": insert(4, lambda: nn.Dropout(0.3), target=True),
    "dropout in a target that trains": dropout_in_the_target,
    "layer norm": insert(1, lambda: nn.LayerNorm(16), target=True, teach=True),
    "batch norm": insert(1, lambda: nn.BatchNorm1d(16), target=True, teach=True),
    "weight norm": parametrized(parametrizations.weight_norm),
    "spectral norm": parametrized(parametrizations.spectral_norm),
    "weight norm as it was": old_norm(nn.utils.weight_norm),
    "spectral norm as it was": old_norm(nn.utils.spectral_norm),
    "layer frozen": frozen(lambda model: body(model.q_net)[0]),
    "bias frozen": frozen(lambda model: last(model.q_net).bias),
    "bias shared": another_bias(lambda layers: layers[0].bias),
    "bias taken away": another_bias(lambda layers: None),
    "forward of a layer": patched(lambda model: body(model.q_net)[2]),
    "forward of the network": patched(lambda model: model.q_net),
    "forward of the target network": patched(lambda model: model.q_net_target),
}


def trained(algorithm: Any, intervene: Callable[[Any], Any], steps: int = 90) -> list[th.Tensor]:
    """The weights of an agent whose networks are changed or watched after a while."""
    model = made(algorithm).learn(steps)
    intervene(model)
    model.learn(steps, reset_num_timesteps=False)
    assert model._n_updates > 30
    return weights(model)


@pytest.fixture(scope="module")
def untouched() -> list[th.Tensor]:
    return trained(DQN, INTERVENTIONS["nothing"])


@pytest.mark.parametrize("what", INTERVENTIONS)
def test_the_weights_are_those_of_dqn(what: str, untouched: list[th.Tensor]) -> None:
    theirs, ours = (trained(algorithm, INTERVENTIONS[what]) for algorithm in (DQN, PerDQN))
    for mine, other in zip(ours, theirs, strict=True):
        assert th.equal(mine.reshape(other.shape), other)
    same = len(theirs) == len(untouched) and all(map(th.equal, theirs, untouched))
    assert same == (what == "nothing"), "the change makes no difference, so that this would show nothing"


def halved_relus(module: nn.Module, _inputs: Any, output: Any) -> Any:
    return output * 0.5 if isinstance(module, nn.ReLU) else None


def halved_layer_inputs(module: nn.Module, inputs: Any) -> Any:
    return (inputs[0] * 0.5,) if isinstance(module, nn.ReLU) else None


def halved_relu_gradients(module: nn.Module, gradients: Any, _outputs: Any) -> Any:
    return (gradients[0] * 0.5,) if isinstance(module, nn.ReLU) else None


class Removed(AbstractContextManager[None]):
    """Takes a hook on all modules away again."""

    def __init__(self, register: Callable[[Any], Any], hook: Any) -> None:
        self.handle = register(hook)

    def __exit__(self, *_: object) -> None:
        self.handle.remove()


SURROUNDINGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "nothing": nullcontext,
    "hooks on all modules": lambda: Removed(register_module_forward_hook, halved_relus),
    "hooks before all modules": lambda: Removed(register_module_forward_pre_hook, halved_layer_inputs),
    "hooks behind all gradients": lambda: Removed(register_module_full_backward_hook, halved_relu_gradients),
    "fewer bits": lambda: th.autocast("cpu", dtype=th.bfloat16, cache_enabled=False),
}


@pytest.mark.parametrize("what", SURROUNDINGS)
def test_in_any_surroundings_the_weights_are_those_of_dqn(what: str, untouched: list[th.Tensor]) -> None:
    found = []
    for algorithm in (DQN, PerDQN):
        model = made(algorithm).learn(90)
        with SURROUNDINGS[what](), warnings.catch_warnings():
            # PyTorch warns of hooks on modules whose inputs need no gradient.
            warnings.simplefilter("ignore", UserWarning)
            model.learn(90, reset_num_timesteps=False)
        found.append(weights(model))
    for theirs, ours in zip(*found, strict=True):
        assert th.equal(ours.reshape(theirs.shape), theirs)
    assert all(map(th.equal, found[0], untouched)) == (what == "nothing")


def test_every_module_is_called_as_often_as_dqn_calls_it() -> None:
    counts = []
    for algorithm in (DQN, PerDQN):
        model, seen = made(algorithm), Counter[str]()
        for name, net in zip(("online", "target"), both(model), strict=True):
            parts = {
                "network": net,
                "extractor": net.features_extractor,
                "flatten": net.features_extractor.flatten,
                **{str(number): body(net)[number] for number in range(4)},
                "last": last(net),
            }
            for part, module in parts.items():
                key = f"{name} {part}"
                module.register_forward_pre_hook(lambda *_, key=key, seen=seen: seen.update([f"before {key}"]))
                module.register_forward_hook(lambda *_, key=key, seen=seen: seen.update([f"behind {key}"]))
                module.register_full_backward_hook(
                    lambda *_, key=key, seen=seen: seen.update([f"gradients of {key}"])
                )
        with warnings.catch_warnings():
            # PyTorch warns of hooks on modules whose inputs need no gradient.
            warnings.simplefilter("ignore", UserWarning)
            model.learn(90)
        for _ in range(3):
            model.predict(np.zeros((1, 4), np.float32), deterministic=True)
        counts.append(seen)
    theirs, ours = counts
    assert ours == theirs
    assert theirs["behind online network"] > theirs["behind target network"] == 13


def test_dropout_is_off_in_acting_and_on_in_learning() -> None:
    for algorithm in (DQN, PerDQN):
        model = made(algorithm).learn(60)
        dropout = nn.Dropout(0.5)
        body(model.q_net).insert(4, dropout)
        observations = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
        model.policy.set_training_mode(True)
        assert dropout.training
        actions = [model.predict(observations, deterministic=True)[0] for _ in range(5)]
        assert not dropout.training
        assert all((action == actions[0]).all() for action in actions)
        modes: list[bool] = []
        dropout.register_forward_hook(lambda module, inputs, output, modes=modes: modes.append(module.training))
        model.train(gradient_steps=2, batch_size=8)
        assert modes == [True, True]
        assert not any(module.training for module in model.q_net_target.modules())
