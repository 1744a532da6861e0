"""Training mode reaches every module that is there, also in networks that were copied or changed."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch as th
from torch import nn

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
