"""Training mode reaches every module, also of changed networks; the plain path takes no short cut."""

from __future__ import annotations

import copy
import pickle
from contextlib import nullcontext

import numpy as np
import pytest
import torch as th
from torch import nn

from holdfast.deep import PerDQN
from holdfast.deep.speed.hand_pass import HandPass
from holdfast.deep.speed.shortcuts import plain_path
from holdfast.deep.speed.target_cache import TargetCache
from tests.deep.earlier_settings import earlier
from tests.deep.small_networks import network


class Stubborn(nn.BatchNorm1d):
    """Stays in evaluation mode, as a frozen norm does."""

    def train(self, mode=True):
        return super().train(False)


def changed(net):
    """With modules of every kind of its own."""
    net.trunk.append(nn.Sequential(nn.Dropout(), nn.Identity()))
    net.trunk.append(Stubborn(8))
    net.heads.extra = th.jit.script(nn.Dropout())
    net.nothing = None
    net.register_module("nobody", None)
    return net


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize("mode", [True, False])
def test_modes_are_switched_as_pytorch_switches_them(mode):
    ours, theirs = changed(network(k_max=2)), changed(network(k_max=2))
    for net in (ours, theirs):
        nn.Module.train(net, not mode)
    assert ours.train(mode) is ours
    nn.Module.train(theirs, mode)
    modes = [{name: module.training for name, module in net.named_modules()} for net in (ours, theirs)]
    assert modes[0] == modes[1]
    assert modes[0]["trunk.3"] is False
    assert modes[0]["trunk.2.0"] is modes[0]["heads.extra"] is mode


def test_a_train_of_ones_own_is_asked():
    net, asked = network(), []
    net.trunk[0].train = asked.append
    net.eval()
    assert asked == [False]


def test_a_mode_is_true_or_false():
    with pytest.raises(ValueError, match="mode must be True or False, not 'yes'"):
        network().train("yes")


@pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_copy_is_plain_and_notices_changes_of_its_own(make_copy):
    net = network(k_max=2, head_arch=[4], scale_to_space=True)
    twin = make_copy(net)
    assert twin.is_plain
    twin.trunk[1].register_forward_hook(lambda *_: None)
    assert net.is_plain
    assert not twin.is_plain


@pytest.mark.parametrize(
    "watch",
    [
        lambda net: net.register_forward_hook(lambda *_: None),
        lambda net: net.features_extractor.register_forward_pre_hook(lambda *_: None),
        lambda net: net.features_extractor.flatten.register_forward_hook(lambda *_: None),
        lambda net: net.scalers["all"].register_forward_hook(lambda *_: None),
        lambda net: net.heads.register_full_backward_hook(lambda *_: None),
        lambda net: net.heads.layers[0].register_full_backward_pre_hook(lambda *_: None),
        lambda net: net.heads.activation.register_forward_hook(lambda *_: None),
        lambda net: nn.modules.module.register_module_forward_hook(lambda *_: None),
        lambda net: nn.modules.module.register_module_full_backward_pre_hook(lambda *_: None),
    ],
    ids=[
        "network",
        "extractor",
        "flatten",
        "scaler",
        "heads",
        "head layer",
        "activation",
        "all modules",
        "all gradients",
    ],
)
def test_it_is_plain_again_when_nobody_watches_any_more(watch):
    net = network(k_max=2, head_arch=[4], scale_to_space=True)
    assert net.is_plain
    hook = watch(net)
    assert not net.is_plain
    hook.remove()
    assert net.is_plain


def test_a_class_whose_forward_is_replaced_is_noticed(monkeypatch):
    net = network()
    with monkeypatch.context() as patch:
        patch.setattr(nn.Linear, "forward", lambda self, inputs: nn.functional.linear(inputs, self.weight))
        assert not net.is_plain
    assert net.is_plain


# The plain path -------------------------------------------------------------------------------------------------


def weights_after_training(plainly: bool, **arguments) -> np.ndarray:
    settings = {"seed": 0, "buffer_size": 200, "learning_starts": 20, "device": "cpu", **arguments}
    model = PerDQN("MlpPolicy", "CartPole-v1", **earlier(PerDQN, settings))
    with plain_path() if plainly else nullcontext():
        model.learn(80)
    return np.concatenate([part.detach().numpy().ravel() for part in model.q_net.parameters()])


def test_the_plain_path_of_dqn_gives_the_same_weights():
    arguments = {"k_max": 1, "prioritized": False, "head_arch": []}
    np.testing.assert_array_equal(
        weights_after_training(True, **arguments), weights_after_training(False, **arguments)
    )


@pytest.mark.parametrize("target_value", ["options", "primitive", "double"])
def test_the_plain_path_learns_what_the_short_cuts_learn(target_value):
    plain, quick = (
        weights_after_training(plainly, k_max=3, target_value=target_value) for plainly in (True, False)
    )
    np.testing.assert_allclose(plain, quick, atol=1e-4)


@pytest.mark.parametrize("target_value", ["options", "primitive", "double"])
@pytest.mark.parametrize("shared_draws", [False, True])
def test_the_plain_path_learns_what_the_short_cuts_learn_of_a_sparse_set(target_value, shared_draws):
    levers = {"persistences": (1, 3, 4, 8), "target_value": target_value, "shared_draws": shared_draws}
    levers |= {"layer_norm": True, "dueling": "options", "clip_targets": True, "importance": "batch"}
    plain, quick = (weights_after_training(plainly, **levers) for plainly in (True, False))
    np.testing.assert_allclose(plain, quick, atol=2e-3)


@pytest.mark.parametrize("target_value", ["options", "primitive", "double"])
@pytest.mark.parametrize("arguments", [{"k_max": 4}, {"persistences": (1, 2, 5, 8)}], ids=str)
@pytest.mark.parametrize("shared_draws", [False, True])
def test_targets_of_the_plain_path_are_the_kept_ones(target_value, arguments, shared_draws):
    model = PerDQN(
        "MlpPolicy",
        "CartPole-v1",
        seed=0,
        buffer_size=200,
        learning_starts=20,
        target_update_interval=30,
        device="cpu",
        target_value=target_value,
        shared_draws=shared_draws,
        **arguments,
    ).learn(150)
    for _ in range(5):
        batch = model.replay_buffer.sample(32)
        quick = model._targets(batch)
        with plain_path():
            plain = model._targets(batch)
        np.testing.assert_allclose(quick[batch.is_there], plain[batch.is_there], rtol=1e-5, atol=1e-5)
        assert batch.dones.any()
        assert (batch.rest > 0).any()


def test_the_plain_path_takes_no_short_cut(monkeypatch):
    def refuse(*arguments, **keywords):
        raise AssertionError("a short cut was taken")

    monkeypatch.setattr(HandPass, "regress", refuse)
    monkeypatch.setattr(TargetCache, "targets", refuse)
    weights_after_training(True, k_max=3)
    with pytest.raises(AssertionError, match="a short cut was taken"):
        weights_after_training(False, k_max=3)
