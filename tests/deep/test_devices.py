"""Training elsewhere than on the CPU: no operation meets tensors of two devices, and the numbers are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from holdfast.deep import OptionDQN
from holdfast.deep.networks.option_network import ConvFeatures
from holdfast.deep.networks.small_convolutions import SmallConvolutions
from holdfast.deep.speed.shortcuts import UnchangedModules, plain_path
from holdfast.policies import ALGORITHMS
from tests.conformance.agents import AGENTS, weights
from tests.conformance.worlds import Samples
from tests.deep.other_device import Elsewhere, MixedDevicesError, second_device

# The device that stands for another one has no fused Adam.
OWN_STEP: dict[str, Any] = {"optimizer_kwargs": {"fused": False}}
NETWORKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "MLP": (spaces.Box(-1.0, 1.0, (3,), np.float32), {"net_arch": [8]}),
    "boards": (
        spaces.Box(0, 1, (2, 6, 6), np.uint8),
        {"net_arch": [8], "features_extractor_class": SmallConvolutions},
    ),
    "screens": (
        spaces.Box(0, 255, (2, 36, 36), np.uint8),
        {"net_arch": [], "features_extractor_class": ConvFeatures},
    ),
}
LEVERS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "plain": {
        "dueling": False,
        "layer_norm": False,
        "target_value": "options",
        "clip_targets": False,
        "average_rate": 0.0,
    },
}


def trained(algorithm: str, network: str, levers: str, device: Any, steps: int = 40) -> OptionDQN:
    space, kwargs = NETWORKS[network]
    arguments = {
        "policy_kwargs": {**kwargs, **OWN_STEP},
        "target_update_interval": 8,
        "learning_rate": 1e-3,
        "device": device,
    }
    policy = "MlpPolicy" if network == "MLP" else "CnnPolicy"
    known = ALGORITHMS[algorithm].arguments()
    own = {name: value for name, value in LEVERS[levers].items() if name in known}
    agent = AGENTS[algorithm](Samples(space), policy, **arguments, **own)
    for net in (agent.q_net, agent.q_net_target, agent.policy.averaged_net):
        # The parameters of that device are of a class of their own; those of a real one are not.
        net._as_made = UnchangedModules(net)
    agent.learn(steps)
    assert agent._n_updates > 20
    return agent


@pytest.mark.parametrize("levers", LEVERS)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("algorithm", AGENTS)
def test_a_training_on_another_device_is_the_same(algorithm: str, network: str, levers: str) -> None:
    with plain_path():
        here = trained(algorithm, network, levers, "cpu")
    with second_device() as device:
        there = trained(algorithm, network, levers, device)
        assert {type(part) for part in there.policy.parameters()} <= {Elsewhere, th.nn.Parameter}
        assert {part.device for part in there.policy.parameters()} == {device}
        moved = [part.cpu() for part in weights(there.policy)]
        observation = there.observation_space.sample()
        decision = there.policy.decide(observation)
    for mine, other in zip(moved, weights(here.policy), strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-3, atol=2e-4)
    np.testing.assert_allclose(decision.values, here.policy.decide(observation).values, rtol=1e-3, atol=1e-4)


def test_the_device_refuses_the_cpus_tensors() -> None:
    with second_device() as device:
        there = th.ones(2, device=device)
        with pytest.raises(MixedDevicesError):
            there + th.ones(2)
        # As on any device, a number that is a tensor may be anywhere.
        assert (there + th.tensor(1.0)).cpu().tolist() == [2.0, 2.0]
        with pytest.raises((RuntimeError, TypeError)):
            there.numpy()


def test_a_target_that_is_left_on_the_cpu_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.deep.agents import regression

    class Forgetful:
        """``torch``, but for ``as_tensor``, which does not hear the device."""

        def __getattr__(self, name: str) -> Any:
            return getattr(th, name)

        def as_tensor(self, values: Any, device: Any = None) -> th.Tensor:
            return th.as_tensor(values)

    monkeypatch.setattr(regression, "th", Forgetful())
    with second_device() as device, pytest.raises(MixedDevicesError):
        trained("perdqn", "MLP", "defaults", device)
