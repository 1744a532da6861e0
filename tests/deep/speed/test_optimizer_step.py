"""A step of the optimiser is PyTorch's clip and PyTorch's step, bit for bit, however the optimiser is treated."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch as th
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from holdfast.deep.speed.optimizer_step import clip_each_gradient, clip_gradients, optimizer_step
from tests.deep.diary import LEARNING, plain_agent
from tests.deep.probes import Pier

SHAPES = ((3, 4), (5,), (2, 3, 2), ())

fused = partial(th.optim.Adam, fused=True)

ONE_KERNEL = {
    "fused": fused,
    "with weight decay": partial(fused, weight_decay=0.1),
    "with other betas": partial(fused, betas=(0.5, 0.7), eps=1e-3),
    "maximising": partial(fused, maximize=True),
    "with everything": partial(fused, lr=0.3, betas=(0.2, 0.9), eps=0.1, weight_decay=0.5, maximize=True),
}

OTHER_ADAMS = {
    "not fused": th.optim.Adam,
    "not fused, one by one": partial(th.optim.Adam, foreach=False),
    "amsgrad": partial(th.optim.Adam, amsgrad=True),
    "fused amsgrad": partial(fused, amsgrad=True),
    "decoupled weight decay": partial(fused, weight_decay=0.1, decoupled_weight_decay=True),
    "a rate that is a tensor": partial(fused, lr=th.tensor(0.01)),
}

OTHERS = {
    "AdamW": th.optim.AdamW,
    "fused AdamW": partial(th.optim.AdamW, fused=True),
    "SGD": partial(th.optim.SGD, lr=0.1),
    "SGD with momentum": partial(th.optim.SGD, lr=0.1, momentum=0.9, nesterov=True),
    "RMSprop": th.optim.RMSprop,
}

KINDS = {**ONE_KERNEL, **OTHER_ADAMS, **OTHERS}


class Twins:
    """The same parameters twice: one set makes our steps, the other PyTorch's.

    Args:
        make: Makes an optimiser of a list of parameters.
        max_norm: Gradients have norms on both sides of 1.
    """

    def __init__(self, make=fused, max_norm=1.0):
        th.manual_seed(0)
        self.max_norm = max_norm
        self.ours = [th.nn.Parameter(th.randn(shape)) for shape in SHAPES]
        self.theirs = [th.nn.Parameter(parameter.detach().clone()) for parameter in self.ours]
        self.optimizers = make(self.ours), make(self.theirs)
        self.step = optimizer_step
        self.random = th.Generator().manual_seed(1)

    def walk(self, steps=10, without=()):
        """Make some steps, and compare what they led to; some parameters may have no gradient."""
        for _ in range(steps):
            size = 10.0 ** th.empty(()).uniform_(-2.0, 1.0, generator=self.random)
            for index, (mine, other) in enumerate(zip(self.ours, self.theirs, strict=True)):
                gradient = size * th.randn(mine.shape, generator=self.random)
                mine.grad, other.grad = (None, None) if index in without else (gradient.clone(), gradient)
            before = [parameter.detach().clone() for parameter in self.ours]
            self.step(self.optimizers[0], self.max_norm)
            th.nn.utils.clip_grad_norm_(self.theirs, self.max_norm)
            self.optimizers[1].step()
            self.compare()
            for index, (now, then) in enumerate(zip(self.ours, before, strict=True)):
                assert th.equal(now, then) == (index in without)

    def compare(self):
        for mine, other in zip(self.ours, self.theirs, strict=True):
            assert th.equal(mine, other)
            assert (mine.grad is None) == (other.grad is None)
            assert mine.grad is None or th.equal(mine.grad, other.grad)
        states = [optimizer.state_dict()["state"] for optimizer in self.optimizers]
        assert states[0].keys() == states[1].keys()
        for number, state in states[0].items():
            assert state.keys() == states[1][number].keys()
            for name, value in state.items():
                expected = states[1][number][name]
                assert th.equal(value, expected) if isinstance(value, th.Tensor) else value == expected, name


@pytest.fixture
def own_steps(monkeypatch):
    """A list that grows with every step that Adam makes by itself."""
    found, step = [], th.optim.Adam.step

    def spy(self, closure=None):
        found.append(self)
        return step(self, closure)

    spy.hooked = True  # as PyTorch marks a step that it need not wrap
    monkeypatch.setattr(th.optim.Adam, "step", spy)
    return found


# Steps -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_norm", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_those_of_pytorch(kind, max_norm):
    Twins(KINDS[kind], max_norm).walk(40)


@pytest.mark.parametrize("kind", [*ONE_KERNEL, *OTHER_ADAMS])
def test_a_plain_fused_adam_makes_its_first_step_only(kind, own_steps):
    twins = Twins(KINDS[kind])
    twins.walk(5)
    made = sum(optimizer is twins.optimizers[0] for optimizer in own_steps)
    assert made == (1 if kind in ONE_KERNEL else 5)


def test_two_groups_with_rates_of_their_own():
    def make(parameters):
        return fused([{"params": parameters[:2], "lr": 0.1}, {"params": parameters[2:], "weight_decay": 0.2}])

    Twins(make).walk()


def test_a_group_that_is_added_later():
    twins = Twins(lambda parameters: fused(parameters[:2]))
    twins.walk(3, without=(2, 3))
    for optimizer, parameters in zip(twins.optimizers, (twins.ours, twins.theirs), strict=True):
        optimizer.add_param_group({"params": parameters[2:], "lr": 0.05})
    twins.walk(3)


def test_a_subclass_makes_its_own_steps():
    class Counting(th.optim.Adam):
        count = 0

        def step(self, closure=None):
            self.count += 1
            return super().step(closure)

    twins = Twins(partial(Counting, fused=True))
    twins.walk(4)
    assert [optimizer.count for optimizer in twins.optimizers] == [4, 4]


# What may change in between --------------------------------------------------------------------------------


def test_the_rate_and_the_other_numbers_may_change_in_between():
    twins = Twins()
    for change in ({"lr": 0.1}, {"betas": (0.3, 0.6)}, {"weight_decay": 0.3}, {"eps": 0.5}, {"maximize": True}):
        twins.walk(3)
        for optimizer in twins.optimizers:
            optimizer.param_groups[0].update(change)
    twins.walk(3)


def test_the_clip_may_change_in_between():
    twins = Twins()
    for max_norm in (1e-4, 10.0, 0.1):
        twins.max_norm = max_norm
        twins.walk(3)


def test_another_kind_of_step_in_between():
    twins = Twins()
    for is_fused in (True, False, True):
        for optimizer in twins.optimizers:
            optimizer.param_groups[0]["fused"] = is_fused
        twins.walk(3)


@pytest.mark.parametrize("kind", ["fused", "not fused", "SGD with momentum"])
def test_a_state_that_is_loaded(kind):
    twins = Twins(KINDS[kind])
    twins.walk(4)
    saved = [copy.deepcopy(optimizer.state_dict()) for optimizer in twins.optimizers]
    twins.walk(4)
    for _ in range(2):
        for optimizer, state in zip(twins.optimizers, saved, strict=True):
            optimizer.load_state_dict(copy.deepcopy(state))
        twins.walk(4)


def test_a_state_that_is_loaded_before_the_first_step():
    before, twins = Twins(), Twins()
    before.walk(4)
    for optimizer, source in zip(twins.optimizers, before.optimizers, strict=True):
        optimizer.load_state_dict(source.state_dict())
    twins.walk(4)


@pytest.mark.parametrize("steps", [0, 3])
def test_a_state_that_is_cleared_or_merely_looked_at(steps):
    twins = Twins()
    twins.walk(steps)
    for optimizer in twins.optimizers:
        optimizer.state.clear()
    twins.walk(3)
    for optimizer, parameters in zip(twins.optimizers, (twins.ours, twins.theirs), strict=True):
        optimizer.state.clear()
        for parameter in parameters:
            # The state is a defaultdict: reading makes an empty entry.
            assert optimizer.state[parameter] == {}
    twins.walk(3)


def test_the_state_of_one_parameter_begins_anew():
    twins = Twins()
    twins.walk(3)
    for optimizer, parameters in zip(twins.optimizers, (twins.ours, twins.theirs), strict=True):
        optimizer.state[parameters[1]] = {}
    twins.walk(3)


def test_another_parameter_in_the_place_of_one():
    twins = Twins()
    twins.walk(3)
    for optimizer, parameters in zip(twins.optimizers, (twins.ours, twins.theirs), strict=True):
        parameters[1] = th.nn.Parameter(th.ones(5))
        optimizer.param_groups[0]["params"][1] = parameters[1]
        del optimizer.state[next(iter(set(optimizer.state) - set(parameters)))]
    twins.walk(3)


def test_a_parameter_without_a_gradient_stays_where_it_is():
    twins = Twins()
    twins.walk(3, without=(1,))
    twins.walk(3)
    twins.walk(3, without=(0, 3))
    twins.walk(3)
    twins.walk(1, without=range(len(SHAPES)))


def test_one_stepper_for_several_optimisers():
    one, other = Twins(), Twins(partial(fused, lr=0.2))
    other.step = one.step
    for _ in range(3):
        one.walk(2)
        other.walk(2)


def test_a_deep_copy_goes_its_own_way():
    twins = Twins()
    twins.walk(3)
    copied = copy.deepcopy(twins)
    twins.walk(3)
    then = [parameter.detach().clone() for parameter in twins.ours]
    copied.walk(5)
    for now, before in zip(twins.ours, then, strict=True):
        assert th.equal(now, before)
    twins.walk(2)
    for one, same in zip(twins.ours, copied.ours, strict=True):
        assert th.equal(one, same)


# Those who watch -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["register_step_pre_hook", "register_step_post_hook"])
def test_the_hooks_of_an_optimiser_are_called(name):
    twins, called = Twins(), []
    twins.walk(3)
    hook = getattr(twins.optimizers[0], name)(lambda *arguments: called.append(arguments[0]))
    twins.walk(4)
    assert called == [twins.optimizers[0]] * 4
    hook.remove()
    twins.walk(3)
    assert len(called) == 4


@pytest.mark.parametrize("register", [register_optimizer_step_pre_hook, register_optimizer_step_post_hook])
def test_the_hooks_of_all_optimisers_are_called(register):
    twins, called = Twins(), []
    twins.walk(3)
    hook = register(lambda *arguments: called.append(arguments[0]))
    try:
        twins.walk(4)
    finally:
        hook.remove()
    assert sum(optimizer is twins.optimizers[0] for optimizer in called) == 4


def test_a_scheduler_of_the_rate_sees_the_steps():
    twins = Twins()
    twins.walk(2)
    schedulers = [th.optim.lr_scheduler.ExponentialLR(optimizer, 0.5) for optimizer in twins.optimizers]
    for _ in range(3):
        twins.walk(2)
        for scheduler in schedulers:
            scheduler.step()  # warns if it missed the steps
    assert twins.optimizers[0].param_groups[0]["lr"] == 1e-3 / 8


# Clipping --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_norm", [1e-3, 1.0, 1e6])
def test_gradients_are_clipped_as_pytorch_does(max_norm):
    th.manual_seed(0)
    ours, theirs = ([th.nn.Parameter(th.zeros(shape)) for shape in SHAPES] for _ in range(2))
    for mine, other in zip(ours, theirs, strict=True):
        mine.grad = th.randn_like(mine)
        other.grad = mine.grad.clone()
    clip_gradients([parameter.grad for parameter in ours], max_norm)
    th.nn.utils.clip_grad_norm_(theirs, max_norm)
    for mine, other in zip(ours, theirs, strict=True):
        assert th.equal(mine.grad, other.grad)


def test_clipping_by_hand():
    gradients = [th.tensor([3.0, 0.0]), th.tensor([[4.0]])]
    clip_gradients(gradients, 10.0)
    assert [gradient.flatten().tolist() for gradient in gradients] == [[3.0, 0.0], [4.0]]
    clip_gradients(gradients, 2.5)
    th.testing.assert_close(gradients[0], th.tensor([1.5, 0.0]))
    th.testing.assert_close(gradients[1], th.tensor([[2.0]]))


def test_there_may_be_nothing_to_clip():
    clip_gradients([], 1.0)


# Agents ----------------------------------------------------------------------------------------------------


def pytorchs_step(optimizer, max_norm):
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    th.nn.utils.clip_grad_norm_(parameters, max_norm)
    optimizer.step()


def learned_weights(step, optimizer):
    """An agent that learns, is given what it once knew, goes on, and then goes on with a copy of its policy."""
    settings = {**LEARNING, "policy_kwargs": {"net_arch": [16], **optimizer}, "max_grad_norm": 0.1}
    model = plain_agent(Pier(), learning_rate=lambda left: 0.01 * (0.1 + left), **settings)
    model._optimizer_step = step
    model.learn(30)
    parameters = copy.deepcopy(model.get_parameters())
    model.train(3, 4)
    model.set_parameters(parameters)
    model.train(3, 4)
    model.policy = copy.deepcopy(model.policy)
    model._create_aliases()
    model.train(3, 4)
    return th.cat([parameter.detach().flatten() for parameter in model.policy.parameters()])


@pytest.mark.parametrize(
    "optimizer",
    [
        {},
        {"optimizer_kwargs": {"fused": True, "weight_decay": 0.01}},
        {"optimizer_class": th.optim.RMSprop},
    ],
    ids=["default", "weight decay", "RMSprop"],
)
def test_an_agent_learns_as_with_pytorchs_steps(optimizer):
    ours, theirs = (learned_weights(step, optimizer) for step in (optimizer_step, pytorchs_step))
    assert th.equal(ours, theirs)


def test_each_gradient_by_itself_by_hand():
    # Norms 5, 1 and 20: with a bound of 10 the last alone is halved.
    gradients = [th.tensor([3.0, 4.0]), th.tensor([[1.0, 0.0]]), th.tensor([12.0, 16.0])]
    clip_each_gradient(gradients, 10.0)
    assert [gradient.tolist() for gradient in gradients] == [[3.0, 4.0], [[1.0, 0.0]], [6.0, 8.0]]
    clip_each_gradient([], 10.0)


def test_of_stacked_parameters_each_head_is_one():
    plain, stacked = th.nn.Parameter(th.zeros(2)), th.nn.Parameter(th.zeros(2, 2))
    plain.grad, stacked.grad = th.tensor([0.0, 4.0]), th.tensor([[3.0, 4.0], [0.0, 0.5]])
    optimizer = th.optim.SGD([plain, stacked], lr=1.0)
    optimizer_step(optimizer, 1.0, [stacked])
    # The first head is scaled by 1/5, the second is short enough; the other parameter by 1/4.
    th.testing.assert_close(-stacked.detach(), th.tensor([[0.6, 0.8], [0.0, 0.5]]))
    th.testing.assert_close(-plain.detach(), th.tensor([0.0, 1.0]))


@pytest.mark.parametrize("shared_draws", [False, True])
def test_an_agent_clips_each_head_by_itself(shared_draws, monkeypatch):
    from holdfast.deep import PerDQN
    from holdfast.deep.networks import option_policy

    seen = []

    def watched(optimizer, max_norm, stacked=None):
        optimizer_step(optimizer, max_norm, stacked)
        seen.append([parameter.grad.clone() for parameter in model.q_net.parameters()])

    monkeypatch.setattr(option_policy, "optimizer_step", watched)
    model = PerDQN(
        "MlpPolicy",
        "CartPole-v1",
        k_max=3,
        clip_gradients="each",
        max_grad_norm=1e-3,
        learning_starts=50,
        shared_draws=shared_draws,
        seed=0,
    )
    model.learn(80)
    assert len(seen) > 20
    *trunk, weight, bias = seen[-1]
    norms = [gradient.norm() for gradient in (*trunk, *weight, *bias)]
    # Each is as long as it may be, not all of them together.
    assert max(norms) == pytest.approx(1e-3, rel=1e-4)
    assert sum(norm > 0.99e-3 for norm in norms) > len(norms) / 2
