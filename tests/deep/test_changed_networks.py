"""A network that somebody changes or watches after it was made is no longer passed through by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from torch import nn
from torch.nn.utils import parametrizations

from holdfast.deep.networks import OptionQNetwork
from holdfast.deep.regression import regress
from tests.deep.small_networks import lesson, network


def plain(kind=OptionQNetwork):
    th.manual_seed(0)
    return network(kind=kind, k_max=2, head_arch=[4], net_arch=[6, 5])


def through_the_modules(net, observations):
    return net.heads.on_shared(net.trunk(observations)).permute(1, 2, 0)


def test_as_it_is_made_it_is_plain():
    assert plain().is_plain


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.trunk.append(nn.Tanh()),
        lambda net: net.trunk.__setitem__(0, nn.Linear(5, 6)),
        lambda net: parametrizations.weight_norm(net.trunk[0]),
        lambda net: net.trunk[1].register_forward_hook(lambda *_: _[2] * 2.0),
    ],
    ids=["another layer", "a layer replaced", "a norm", "a hook"],
)
def test_what_is_changed_counts(change):
    net, before = plain(), plain()
    change(net)
    observations = lesson(net).observations
    assert not net.is_plain
    assert th.equal(net(observations), through_the_modules(net, observations))
    assert not th.equal(net(observations), before(observations)) or hasattr(net.trunk[0], "parametrizations")


def test_a_norm_learns():
    net = plain()
    parametrizations.weight_norm(net.trunk[0])
    regress(net, *lesson(net))
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.trunk[0].parameters())


@pytest.mark.parametrize(
    "watch",
    [
        lambda net, seen: net.trunk[0].register_forward_hook(lambda *_: seen.append(1)),
        lambda net, seen: net.trunk[2].register_forward_pre_hook(lambda *_: seen.append(1)),
        lambda net, seen: net.trunk[2].register_full_backward_hook(lambda *_: seen.append(1)),
        lambda net, seen: net.trunk[0].weight.register_hook(lambda _: seen.append(1)),
        lambda net, seen: net.heads.stack[0].bias.register_post_accumulate_grad_hook(lambda _: seen.append(1)),
    ],
    ids=["forward", "before forward", "backward", "gradient", "gradient is there"],
)
def test_who_watches_is_told(watch):
    net, seen = plain(), []
    watch(net, seen)
    regress(net, *lesson(net))
    assert seen


def test_a_network_of_ones_own_is_asked_itself():
    class Doubled(OptionQNetwork):
        def own_head_values(self, obs):
            return 2.0 * super().own_head_values(obs)

    own, base = plain(Doubled), plain()
    task = lesson(base)
    values = regress(own, *task).td_errors + task.targets
    np.testing.assert_allclose(values, 2.0 * (regress(base, *task).td_errors + task.targets), rtol=1e-5, atol=1e-6)


def test_versions_notice_whoever_writes():
    net = plain()
    versions = [net.version()]
    for parameter in net.parameters():
        parameter.data.add_(0.5)
    versions.append(net.version())
    with th.no_grad():
        net.trunk[0].weight.mul_(2.0)
    versions.append(net.version())
    assert len(set(versions)) == 3
    assert net.version() == versions[-1]
