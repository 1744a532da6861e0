"""A network that somebody changes or watches after it was made is no longer passed through by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch as th
from torch import nn
from torch.nn.utils import parametrizations

from holdfast.deep import PerDQN, TempoRLDQN
from holdfast.deep.agents.regression import regress
from holdfast.deep.networks.option_network import OptionQNetwork
from holdfast.deep.networks.stacked_heads import StackedHeads, StackedLinear
from tests.deep.earlier_settings import earlier
from tests.deep.small_networks import lesson, network


def plain(kind=OptionQNetwork):
    th.manual_seed(0)
    return network(kind=kind, k_max=2, head_arch=[4], net_arch=[6, 5])


def through_the_modules(net, observations):
    return net.heads(net.trunk(observations)).permute(1, 2, 0)


def test_as_it_is_made_it_is_plain():
    assert plain().is_plain


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.trunk.append(nn.Tanh()),
        lambda net: net.trunk.__setitem__(0, nn.Linear(5, 6)),
        lambda net: parametrizations.weight_norm(net.trunk[0]),
        lambda net: net.trunk[1].register_forward_hook(lambda *_: _[2] * 2.0),
        lambda net: net.heads.layers.__setitem__(0, StackedLinear(2, 5, 4)),
        lambda net: net.heads.layers.__setitem__(1, StackedLinear(2, 4, 3)),
        lambda net: net.heads.layers.__setitem__(0, nn.Linear(5, 4)),
        lambda net: net.heads.layers.__setitem__(1, nn.Linear(4, 3)),
        lambda net: net.heads.layers.insert(1, nn.LayerNorm(4)),
        lambda net: parametrizations.spectral_norm(net.heads.layers[1]),
        lambda net: setattr(net.heads, "activation", nn.Tanh()),
        lambda net: setattr(net, "heads", StackedHeads(2, 5, [], 3, nn.ReLU)),
        lambda net: setattr(net.trunk[2], "forward", lambda inputs: 2.0 * inputs[:, :5]),
    ],
    ids=[
        "another layer",
        "a layer replaced",
        "a norm",
        "a hook",
        "a head layer replaced",
        "the last layer replaced",
        "a head layer shared",
        "the last layer shared",
        "another head layer",
        "a norm of a head layer",
        "an activation replaced",
        "heads replaced",
        "another forward",
    ],
)
def test_what_is_changed_counts(change):
    net, before = plain(), plain()
    change(net)
    net.eval()
    observations = lesson(net).observations
    assert not net.is_plain
    assert th.equal(net(observations), through_the_modules(net, observations))
    # Row by row through the head of its own, as an update sees it.
    own, table = net.own_head_values(observations), net(observations).view(2, 12, 3, 2)
    for index in range(2):
        th.testing.assert_close(own[index], table[index, ..., index])
    assert net.device == th.device("cpu")
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
        lambda net, seen: net.heads.layers[0].bias.register_post_accumulate_grad_hook(lambda _: seen.append(1)),
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


def test_a_forward_of_ones_own_decides_what_is_learned():
    class Doubled(OptionQNetwork):
        def forward(self, obs):
            return 2.0 * super().forward(obs)

    own, base, patched = plain(Doubled), plain(), plain()
    patched.forward = lambda obs: 2.0 * base(obs)
    task = lesson(base)
    expected = 2.0 * (regress(base, *task).td_errors + task.targets)
    for net in (own, patched):
        values = regress(net, *task).td_errors + task.targets
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)


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


def test_the_version_of_a_network_that_is_watched_is_always_new():
    net = plain()
    hook = net.trunk.register_forward_hook(lambda *_: None)
    assert net.version() != net.version()
    hook.remove()
    assert net.version() == net.version()


# Whole agents, with several persistences -------------------------------------------------------------------

AGENTS = {
    "options": (PerDQN, {}),
    "dueling, double": (PerDQN, {"dueling": True, "target_value": "double"}),
    "shared draws": (
        PerDQN,
        {
            "shared_draws": True,
            "importance": "batch",
            "explore_by": "steps",
            "dueling": "options",
            "layer_norm": True,
            "target_value": "double",
        },
    ),
    "skips": (TempoRLDQN, {}),
}
OBSERVATION = np.zeros((1, 4), np.float32)


@pytest.fixture(params=sorted(AGENTS))
def make(request):
    """Makes an agent that acts with the weights that it learns, and whose targets may be anything."""
    kind, arguments = AGENTS[request.param]
    settings = {"k_max": 4, "learning_starts": 20, "policy_kwargs": {"net_arch": [8, 8]}, "seed": 0, **arguments}
    return lambda **more: kind("MlpPolicy", "CartPole-v1", **earlier(kind, {**settings, **more}))


@pytest.fixture
def model(make):
    return make().learn(60)


def called_modules(net):
    """Those that have a forward pass."""
    names = {name: module for name, module in net.named_modules() if type(module) is not nn.ModuleList}
    return {name: module for name, module in names.items() if type(module) is not nn.ModuleDict}


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_hooks_on_every_module_fire_in_acting_learning_and_targets(model, register):
    nets = {"online": model.q_net, "target": model.q_net_target}
    seen = Counter()
    for which, net in nets.items():
        for name, module in called_modules(net).items():
            getattr(module, register)(lambda *_, key=(which, name): seen.update([key]))
    model.predict(OBSERVATION, deterministic=True)
    assert set(seen) == {("online", name) for name in called_modules(model.q_net)}
    seen.clear()
    model.train(gradient_steps=3, batch_size=8)
    assert {name for which, name in seen if which == "online"} == set(called_modules(model.q_net))
    assert seen["online", ""] >= 3
    assert seen["target", ""] == seen["target", "trunk"] == seen["target", "features_extractor"] == 3


def test_what_a_hook_makes_of_the_target_network_counts_at_once_and_no_longer_than_it_is_there(model):
    batch = model.replay_buffer.sample(32)
    before = model._targets(batch)
    hook = model.q_net_target.register_forward_hook(lambda *arguments: arguments[-1] + 100.0)
    during = model._targets(batch)
    hook.remove()
    np.testing.assert_allclose(model._targets(batch), before, rtol=1e-5)
    np.testing.assert_allclose(
        during - before, 100.0 * batch.discounts * (1.0 - batch.dones), rtol=1e-3, atol=1e-3
    )


def test_a_target_network_that_draws_is_asked_each_time(model):
    batch = model.replay_buffer.sample(32)
    model.q_net_target.trunk.append(nn.Dropout(0.5))
    assert (model._targets(batch) != model._targets(batch)).any()


def heads_of(net):
    return net.heads if hasattr(net, "heads") else net.action_head


def test_a_head_layer_that_is_replaced_is_used_and_learns(model):
    head = heads_of(model.q_net)
    values = model.policy.decide(OBSERVATION).values
    k_max, units, width = head.layers[0].weight.shape
    new = StackedLinear(k_max, width, units)
    head.layers[0] = new
    assert any(parameter is new.weight for parameter in model.q_net.parameters())
    if model.valued == "options":
        assert (model.policy.decide(OBSERVATION).values != values).any()
    model.policy.optimizer.add_param_group({"params": list(new.parameters())})
    before = new.weight.detach().clone()
    model.train(gradient_steps=2, batch_size=8)
    assert (new.weight != before).any()


def test_dropout_that_is_added_is_off_in_acting_and_in_the_values_that_choose_targets(model):
    dropout = nn.Dropout(0.5)
    model.q_net.trunk.append(dropout)
    modes = []
    dropout.register_forward_hook(lambda module, *_: modes.append(module.training))
    model.policy.set_training_mode(True)
    tables = [model.policy.decide(OBSERVATION).values for _ in range(4)]
    assert modes == [False] * 4
    assert all((table == tables[0]).all() for table in tables)
    modes.clear()
    model.train(gradient_steps=1, batch_size=8)
    # A double target asks the online network as well.
    assert modes == ([False, True] if model.target_value == "double" else [True])
    assert not any(module.training for module in model.q_net_target.modules())


def test_an_agent_that_is_watched_stops_and_goes_on_exactly(make):
    def watched():
        twin = make(schedule_steps=80)
        for net in (twin.q_net, twin.q_net_target):
            net.trunk.register_forward_hook(lambda *arguments: arguments[-1] * 0.5)
        return twin

    whole, state, second = watched().learn(80), watched().learn(40).state(), watched()
    second.restore(state)
    second.learn(40, reset_num_timesteps=False)
    for one, other in zip(whole.policy.parameters(), second.policy.parameters(), strict=True):
        assert th.equal(one, other)
