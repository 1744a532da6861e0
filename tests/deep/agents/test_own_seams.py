"""What a user's agent supplies is checked where it is used: one sentence that names the method."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch as th

from holdfast.deep import OptionDQN, OptionSAC, OptionTD3, OptionValueDQN, Views
from tests.deep.slider import Slider, actions_of


class Own(OptionValueDQN):
    """An agent as a user writes it."""

    @property
    def views(self) -> Views:
        return Views(self.k_max)

    def _random_durations(self, n: int) -> Any:
        return np.random.randint(1, self.k_max + 1, size=n)  # noqa: NPY002


def drawing(drawn: Any) -> type[Own]:
    return type("Drawing", (Own,), {"_random_durations": lambda self, n: drawn(n)})


def showing(views: Any) -> type[Own]:
    return type("Showing", (Own,), {"views": views})


def made(agent: type[Own], **arguments: Any) -> Own:
    small = {"policy_kwargs": {"net_arch": [4]}, "head_arch": [4], "batch_size": 4, "learning_starts": 10}
    return agent("MlpPolicy", "CartPole-v1", k_max=3, seed=0, **{**small, **arguments})


@pytest.mark.parametrize(
    "drawn",
    [
        lambda n: np.full(n, 4),
        lambda n: np.zeros(n, dtype=int),
        lambda n: np.full(n, 1.5),
        lambda n: np.ones(n + 1, dtype=int),
        lambda n: None,
    ],
    ids=["too long", "no step", "not whole", "too many", "none"],
)
def test_random_durations_are_whole_numbers_up_to_k_max(drawn):
    with pytest.raises(ValueError, match=r"^_random_durations\(1\) must return 1 whole numbers in 1..k_max, not "):
        made(drawing(drawn)).learn(5)


@pytest.mark.parametrize(
    ("views", "sentence"),
    [
        (property(lambda self: None), "views must be a property that returns Views"),
        (lambda self: Views(3), "views must be a property that returns Views"),
        (property(lambda self: Views("many")), "k_max of views must be a whole number of at least 1, not 'many'"),
        (property(lambda self: Views(3, persistences=(1, 2))), "persistences of views must end with its k_max, 3"),
        (property(lambda self: Views(3, persistences=(2, 3))), "persistences of views must begin with 1"),
    ],
)
def test_views_are_views(views, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        made(showing(views))


def test_an_update_returns_its_loss():
    agent = type("Silent", (Own,), {"_update": lambda self, batch_size, beta: None})
    with pytest.raises(ValueError, match=r"^_update must return its loss, a number, as _learned does, not None"):
        made(agent).learn(20)


@pytest.mark.parametrize("mean", [float("nan"), 0.0])
def test_the_mean_of_random_holds_is_a_duration(mean):
    agent = type("Lost", (Own,), {"_mean_random_hold": lambda self: mean})
    with pytest.raises(ValueError, match=r"^what _mean_random_hold returns must be a finite number of at least 1"):
        made(agent)


def test_a_counter_that_is_not_there_is_named():
    agent = type("Counting", (Own,), {"own_counters": (*OptionDQN.own_counters, "_resets")})
    with pytest.raises(ValueError, match=r"^own_counters names '_resets', which must be a whole number, not None"):
        made(agent).learn(5).state()
    counted = type("Counted", (agent,), {"_resets": 2})
    assert made(counted).learn(5).state()["counters"]["_resets"] == 2


# With an actor --------------------------------------------------------------------------------------------------


def acting(kind: Any, **own: Any) -> Any:
    agent = type("Acting", (kind,), own)
    small = {"policy_kwargs": {"net_arch": [4]}, "batch_size": 4, "learning_starts": 10, "seed": 0}
    return agent("MlpPolicy", Slider(length=10_000), k_max=6, exploration_final_eps=1.0, **small)


@pytest.mark.parametrize("views", [Views(1), Views(6, persistences=(1, 2, 6))], ids=str)
@pytest.mark.parametrize("kind", [OptionTD3, OptionSAC])
def test_random_holds_last_as_long_as_was_drawn(kind, views):
    """Also those for which no head is, as in εz-greedy exploration with values of single steps alone."""
    model = acting(kind, views=property(lambda self: views), _random_durations=lambda self, n: np.full(n, 5))
    _, began = actions_of(model, 40)
    # Every option is a random one: those before learning starts, and those after it.
    assert np.flatnonzero(began).tolist() == list(range(0, 40, 5))


def test_random_holds_are_those_that_have_values_unless_an_agent_says_otherwise():
    model = acting(OptionTD3, views=property(lambda self: Views(3, persistences=(1, 3))))
    assert set(model._random_durations(100)) == {1, 3}
    # The mean by which ε counts steps.
    assert model._random_hold == 2.0


@pytest.mark.parametrize("kind", [OptionValueDQN, OptionTD3, OptionSAC])
def test_views_are_not_longer_than_holds_may_be(kind):
    agent = type("Long", (kind,), {"views": property(lambda self: Views(6)), "_random_durations": drawing})
    env = "CartPole-v1" if kind is OptionValueDQN else Slider()
    with pytest.raises(ValueError, match=r"^k_max of views must be at most the agent's k_max, which is 3, not 6$"):
        agent("MlpPolicy", env, k_max=3)


@pytest.mark.parametrize("kind", [OptionTD3, OptionSAC])
@pytest.mark.parametrize(
    ("method", "returned", "sentence"),
    [
        (
            "_values_of_states",
            lambda seen: th.zeros(len(seen), 1),
            r"a tensor of shape \(\d,\), not one of shape \(",
        ),
        (
            "_values_of_states",
            lambda seen: th.zeros(2 * len(seen)),
            r"a tensor of shape \(\d,\), not one of shape \(",
        ),
        ("_values_of_states", lambda seen: np.zeros(len(seen)), r"a tensor of shape \(\d,\), not "),
        ("_actor_loss", lambda seen: th.zeros(len(seen)), r"a tensor of shape \(\), not one of shape \(4,\)"),
        ("_actor_loss", lambda seen: 0.5, r"a tensor of shape \(\), not 0.5"),
    ],
)
def test_what_an_actor_critic_learns_from_is_a_tensor_of_its_shape(kind, method, returned, sentence):
    model = acting(kind, **{method: lambda self, seen, *others: returned(seen)})
    with pytest.raises(ValueError, match=f"^{method} must return {sentence}"):
        model.learn(30)


@pytest.mark.parametrize(("kind", "name", "value"), [(OptionSAC, "ent_coef", 0.3), (OptionTD3, "tau", 0.5)])
def test_an_argument_of_sb3s_can_be_fixed(kind, name, value):
    agent = type("Fixed", (kind,), {"stands_for": {name: value}})
    # What its parent fixes stays fixed.
    assert agent.stands_for == {**kind.stands_for, name: value}
    names = list(inspect.signature(agent).parameters)
    assert name not in names
    assert f"{name}:" not in agent.__doc__
    assert f"{name}:" in kind.__doc__
    # Arguments without a name are those that are shown.
    before = ["MlpPolicy", Slider(), 1e-3, 500, 10, 8]
    model = agent(*before, *([0.9] if name == "tau" else [0.1, 0.9]), seed=0)
    assert getattr(model, name) == value
    assert (model.gamma, model.batch_size) == (0.9, 8)
    with pytest.raises(TypeError, match=f"^{name} must not be given to Fixed, which stands for {name}={value}$"):
        agent("MlpPolicy", Slider(), **{name: value})
