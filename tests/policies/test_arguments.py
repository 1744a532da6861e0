"""Arguments as they are typed, as files hold them, and as Python takes them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from holdfast.core.schedules import Constant, Exponential, Linear
from holdfast.policies import ALGORITHMS, find_algorithm
from holdfast.policies.arguments import JsonArgument, as_python
from holdfast.tabular import PerQLearning


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_defaults_of_the_list_are_those_of_the_class(name: str) -> None:
    algorithm = ALGORITHMS[name]
    complete = algorithm.complete({})
    parameters = inspect.signature(algorithm.load().__init__).parameters
    defaults = {argument: parameters[argument].default for argument in complete}
    if defaults.get("persistences") is not None:
        # Which says what the largest is.
        defaults["k_max"] = defaults["persistences"][-1]
    for argument, value in as_python(complete).items():
        default = defaults[argument]
        if argument != "policy":
            assert (list(default) if isinstance(default, tuple) else default) == value
    assert not set(complete) & set(algorithm.stands_for)


def test_what_may_be_set() -> None:
    assert set(ALGORITHMS["perq"].arguments()) == {
        *("k_max", "alpha", "gamma", "epsilon", "initial_value", "initial_std", "step_limit"),
        *("greedy_ties", "target_value", "interrupt_margin", "decision_tolerance"),
        *("persistences", "decision_cost", "exploration"),
    }
    deep = set(ALGORITHMS["perdqn"].arguments())
    assert {"policy", "learning_rate", "policy_kwargs", "schedule_steps", "k_max", "bootstrap"} <= deep
    assert not deep & {"env", "seed", "device", "verbose", "_init_setup_model"}
    ez, temporl = (set(ALGORITHMS[name].arguments()) for name in ("ez-dqn", "temporl-dqn"))
    assert ez - deep == {"durations", "mu"}
    held = {"bootstrap", "decision_tolerance", "interrupt_margin", "persistences", "decision_cost", "exploration"}
    assert deep - ez == held
    assert temporl - deep == {"pad_terminal"}
    fixed = {"bootstrap", "dueling", "target_value", "explore_by", "persistences", "shared_draws"}
    assert deep - temporl == {*fixed, "decision_cost", "exploration"}
    assert ALGORITHMS["perdqn"].holds
    assert not ALGORITHMS["dqn"].holds


@pytest.mark.parametrize(
    ("kinds", "typed", "found"),
    [
        (("int",), 3, 3),
        (("int",), 1e5, 100_000),
        (("float",), 3, 3),
        (("bool",), "true", True),
        (("int", "None"), "none", None),
        (("list",), (1, 2), [1, 2]),
        (("float", "schedule"), 0.1, 0.1),
        (("float", "schedule"), "exponential(0.9)", "exponential(0.9, 0.0)"),
        (("float", "schedule"), "linear(1, 0.1, 50)", "linear(1.0, 0.1, 50)"),
        (("float", "rate"), "lin_1e-3", "lin_1e-3"),
        (("dict", "None"), {"a": [1]}, {"a": [1]}),
    ],
)
def test_values_of_the_right_kind(kinds: tuple[str, ...], typed: Any, found: Any) -> None:
    value = JsonArgument("x", None, kinds).check(typed)
    assert value == found
    assert type(value) is type(found)


@pytest.mark.parametrize(
    ("kinds", "typed"),
    [
        (("int",), True),
        (("int",), 1.5),
        (("int",), "3"),
        (("float",), "much"),
        (("float",), True),
        (("bool",), 1),
        (("str",), 3),
        (("list",), {1, 2}),
        (("list",), [object()]),
        (("dict",), {1: 2}),
        (("float", "schedule"), "exponential(2)"),
        (("float", "schedule"), "exponential()"),
        (("float", "schedule"), "__import__('os')"),
        (("float", "schedule"), "linear(1, __import__('os'), 3)"),
        (("float", "rate"), "lin_-1"),
        (("float", "rate"), "lin_inf"),
        (("float", "rate"), "0.1"),
    ],
)
def test_values_of_another_kind_are_refused(kinds: tuple[str, ...], typed: Any) -> None:
    with pytest.raises(ValueError, match=r"^x must be "):
        JsonArgument("x", None, kinds).check(typed)


def test_texts_stand_for_schedules() -> None:
    for text, schedule in {
        "constant(0.2)": Constant(0.2),
        "linear(1, 0.1, 50)": Linear(1.0, 0.1, 50),
        "exponential(0.9, 0.05)": Exponential(0.9, 0.05),
    }.items():
        assert as_python({"epsilon": text}) == {"epsilon": schedule}
        assert PerQLearning(epsilon=schedule).epsilon == schedule


def test_a_falling_rate_ends_at_nothing() -> None:
    rate = as_python({"learning_rate": "lin_0.002"})["learning_rate"]
    assert [rate(1.0), rate(0.5), rate(0.0)] == [0.002, 0.001, 0.0]


def test_names_stand_for_activations_and_optimisers() -> None:
    from torch import nn, optim

    given = {
        "activation_fn": "Tanh",
        "optimizer_class": "RMSprop",
        "net_arch": [4],
        "optimizer_kwargs": {"eps": 1},
    }
    found = as_python({"policy_kwargs": given})["policy_kwargs"]
    assert found == {**given, "activation_fn": nn.Tanh, "optimizer_class": optim.RMSprop}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"activation_fn": "Module"}, "activation_fn in policy_kwargs must be one of"),
        ({"activation_fn": ["ReLU"]}, "activation_fn in policy_kwargs must be one of"),
        ({"optimizer_class": "Optimizer"}, "optimizer_class in policy_kwargs must be one of"),
        ({"net_arch": "big"}, "net_arch in policy_kwargs must be a list"),
        (
            {"features_extractor_class": "os.system"},
            "features_extractor_class in policy_kwargs must be one of ConvFeatures, NatureCNN, SmallConvolutions",
        ),
    ],
)
def test_what_a_policy_may_be_given(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        as_python({"policy_kwargs": given})


def test_unknown_algorithms_get_the_nearest_names() -> None:
    with pytest.raises(ValueError, match="did you mean perdqn or"):
        find_algorithm("PerDQN2")
    with pytest.raises(ValueError, match="not 3"):
        find_algorithm(3)
