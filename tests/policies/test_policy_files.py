"""Policies on their own: saved, loaded, and the same decisions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN

from holdfast import EZGreedyDQN, PerDQN, TempoRLDQN
from holdfast.deep.networks.option_network import ConvFeatures
from holdfast.policies import load_policy
from holdfast.policies.policy_files import actor_of, network_state, write_policy
from holdfast.policies.spaces import space_from, space_state
from tests.runs.small_runs import TABLE, trained

SPACES = {
    "box": spaces.Box(-2.0, 3.0, (3,), np.float32),
    "unbounded": spaces.Box(-np.inf, np.inf, (2,), np.float64),
    "picture": spaces.Box(0, 255, (36, 36, 1), np.uint8),
    "discrete": spaces.Discrete(5),
    "many": spaces.MultiDiscrete([3, 4]),
    "bits": spaces.MultiBinary([2, 3]),
    "row": spaces.MultiBinary(4),
    "dict": spaces.Dict({"b": spaces.Box(0.0, 1.0, (2,)), "a": spaces.Discrete(3)}),
}


class Still(gymnasium.Env[Any, Any]):
    """Shows something of a space."""

    def __init__(self, space: Any) -> None:
        self.observation_space = space
        self.action_space = spaces.Discrete(3, start=2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), 0.0, False, True, {}


def policy_of(space: Any) -> str:
    return (
        "MultiInputPolicy"
        if isinstance(space, spaces.Dict)
        else "CnnPolicy"
        if len(space.shape) == 3
        else "MlpPolicy"
    )


def same_decisions(model: Any, loaded: Any, space: Any, n: int) -> Iterator[tuple[Any, Any]]:
    """Observations and what is decided there, once model and loaded policy agree on it to the last bit."""
    space.seed(0)
    for _ in range(n):
        seen = space.sample()
        one, two = model.policy.decide(seen), loaded.decide(seen)
        assert (one.action, one.hold) == (two.action, two.hold)
        assert np.array_equal(one.values, two.values)
        yield seen, one


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_a_space_comes_back_as_it_was(space: Any) -> None:
    # As environments compare them: [4] is another space than 4.
    assert space_from({"space": space_state(space)}, "space") == space


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_a_loaded_policy_decides_the_same(space: Any, tmp_path: Path) -> None:
    scaled = (
        "space"
        if isinstance(space, spaces.Box) and np.isfinite(space.high).all() and space.dtype == np.float32
        else None
    )
    policy = policy_of(space)
    kwargs = {"net_arch": [6], "activation_fn": torch.nn.Tanh} if policy != "CnnPolicy" else {}
    model = PerDQN(
        policy,
        Still(space),
        k_max=3,
        buffer_size=50,
        dueling=policy == "MlpPolicy",
        normalize_observations=scaled,
        decision_tolerance=0.01,
        interrupt_margin=0.05,
        policy_kwargs=kwargs,
        seed=0,
    )
    write_policy(tmp_path, network_state("perdqn", model.policy))
    loaded = load_policy(tmp_path)
    for seen, one in same_decisions(model, loaded, space, 20):
        assert loaded.interrupts(seen, one.action, 2) in (True, False)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("kind", [TempoRLDQN, EZGreedyDQN])
def test_the_policies_of_the_other_agents_decide_the_same(kind: Any, space: Any, tmp_path: Path) -> None:
    margin = {"decision_tolerance": 0.01, "interrupt_margin": 0.05} if kind is TempoRLDQN else {}
    model = kind(policy_of(space), Still(space), k_max=3, buffer_size=50, seed=0, **margin)
    write_policy(tmp_path, network_state("temporl-dqn", model.policy))
    loaded = load_policy(tmp_path)
    for seen, one in same_decisions(model, loaded, space, 10):
        assert loaded.interrupts(seen, one.action, 1) == model.policy.interrupts(seen, one.action, 1)
    assert loaded.acting == (model.decision_tolerance, model.interrupt_margin)
    assert loaded.acting_with(0.0, None).acting == (0.0, None)
    if kind is EZGreedyDQN:
        for other in ((0.1, None), (0.0, 0.1)):
            with pytest.raises(ValueError, match="a policy that holds every action for one step"):
                loaded.acting_with(*other)
    else:
        assert loaded.acting_with(1e6, None).decide(space.sample()).hold == 3


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_spaces_come_back(space: Any) -> None:
    assert space_from({"space": space_state(space)}, "space") == space


def test_discrete_spaces_come_back_with_their_first_number() -> None:
    space = spaces.Discrete(4, start=-3)
    assert space_from({"space": space_state(space)}, "space") == space


def test_spaces_that_no_file_can_hold() -> None:
    with pytest.raises(ValueError, match="cannot be saved for the space Text"):
        space_state(spaces.Text(3))


@pytest.mark.parametrize(
    "saved",
    [
        {"kind": "Rhombus"},
        {"kind": "Box", "low": np.zeros(2), "high": np.zeros(3)},
        {"kind": "Box", "low": np.array([np.nan]), "high": np.zeros(1)},
        {"kind": "Box", "low": [0.0], "high": [1.0]},
        {"kind": "Discrete", "n": 0, "start": 0},
        {"kind": "Discrete", "n": 3, "start": "0"},
        {"kind": "MultiDiscrete", "nvec": np.array([-1]), "start": np.array([0])},
        {"kind": "MultiBinary", "shape": [-1]},
        {"kind": "Dict", "parts": [["a"]]},
        {},
    ],
)
def test_damaged_spaces_are_refused(saved: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the saved state"):
        space_from({"space": saved}, "space")


class OwnFeatures(BaseFeaturesExtractor):
    """A class that no file can hold."""

    def __init__(self, space: Any) -> None:
        super().__init__(space, 4)

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        return seen


class OwnActivation(torch.nn.ReLU):
    """Another one."""


@pytest.mark.parametrize("kwargs", [{"features_extractor_class": OwnFeatures}, {"activation_fn": OwnActivation}])
def test_classes_of_the_user_are_refused(kwargs: dict[str, Any]) -> None:
    model = PerDQN("MlpPolicy", "CartPole-v1", policy_kwargs=kwargs)
    with pytest.raises(ValueError, match="must be one of"):
        network_state("perdqn", model.policy)


def test_a_run_without_a_policy(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no policy yet"):
        load_policy(tmp_path)


def test_a_table_is_loaded_without_torch(tmp_path: Path) -> None:
    trained(TABLE, tmp_path)
    code = (
        "import sys, holdfast\n"
        f"assert holdfast.load_policy({str(tmp_path)!r}).decide(0).hold >= 1\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_dictionary_that_is_larger_than_its_weights_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = PerDQN(
        "MultiInputPolicy", Still(SPACES["dict"]), k_max=2, device="cpu", policy_kwargs={"net_arch": [8]}
    )
    state = network_state("perdqn", model.policy)
    state["observation_space"]["parts"][0][1] = {"kind": "Discrete", "n": 20_000_000, "start": 0}
    write_policy(tmp_path, state)
    monkeypatch.setattr(
        "holdfast.deep.networks.policies.MultiInputPolicy.__init__", lambda *_, **__: pytest.fail("it was built")
    )
    with pytest.raises(ValueError, match="the weights of its layers, and no others"):
        load_policy(tmp_path)


def test_boxes_of_three_dimensions_that_are_no_images_need_no_weights_of_their_own(tmp_path: Path) -> None:
    space = spaces.Dict({name: spaces.Box(-1.0, 1.0, (2, 3, 4)) for name in "abc"})
    model = PerDQN("MultiInputPolicy", Still(space), k_max=2, device="cpu", policy_kwargs={"net_arch": [8]})
    write_policy(tmp_path, network_state("perdqn", model.policy))
    assert len(list(same_decisions(model, load_policy(tmp_path), space, 3))) == 3


def test_a_space_that_its_extractor_cannot_use_is_a_sentence(tmp_path: Path) -> None:
    model = PerDQN(
        "MultiInputPolicy", Still(SPACES["dict"]), k_max=2, device="cpu", policy_kwargs={"net_arch": [8]}
    )
    state = network_state("perdqn", model.policy)
    state["observation_space"] = space_state(spaces.Box(0.0, 1.0, (5,)))
    write_policy(tmp_path, state)
    with pytest.raises(ValueError, match="the saved policy cannot be built: "):
        load_policy(tmp_path)


# Levers ---------------------------------------------------------------------------------------------------------

LEVERS: dict[str, Any] = {
    "persistences": (1, 2, 4, 8),
    "layer_norm": True,
    "dueling": "options",
    "average_rate": 0.01,
}


def with_levers() -> PerDQN:
    """An agent whose averaged weights are others than those that it trains."""
    model = PerDQN("MlpPolicy", "CartPole-v1", buffer_size=200, learning_starts=20, seed=0, **LEVERS)
    model.learn(60)
    with torch.no_grad():
        for part in model.q_net.parameters():
            part.add_(torch.randn_like(part))
    return model


def test_what_is_saved_is_what_is_evaluated(tmp_path: Path) -> None:
    model = with_levers()
    write_policy(tmp_path, network_state("perdqn", model.policy))
    loaded = load_policy(tmp_path).policy
    for name, weights in model.policy.q_net_average.state_dict().items():
        assert torch.equal(loaded.q_net.state_dict()[name], weights)
        assert not torch.equal(model.q_net.state_dict()[name], weights)
    assert (loaded.average_rate, loaded.persistences, loaded.k_max) == (0.0, (1, 2, 4, 8), 8)
    assert (loaded.layer_norm, loaded.dueling) == (True, "options")
    seen = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    ours, theirs = model.policy.decide(seen), loaded.decide(seen)
    for one, two in zip(ours, theirs, strict=True):
        assert np.array_equal(one, two)
    assert set(ours.hold) <= {1, 2, 4, 8}
    assert ours.values.shape == (200, 2, 4)


def test_a_policy_from_before_there_were_levers_is_read(tmp_path: Path) -> None:
    plain = {**PerDQN.plain(), "dueling": True}
    model = PerDQN("MlpPolicy", "CartPole-v1", k_max=3, buffer_size=50, seed=0, **plain)
    state = network_state("perdqn", model.policy)
    for name in ("persistences", "layer_norm", "average_rate"):
        del state["arguments"][name]
    state["arguments"]["dueling"] = True
    write_policy(tmp_path, state)
    seen = np.zeros(4, np.float32)
    assert np.array_equal(load_policy(tmp_path).decide(seen).values, model.policy.decide(seen).values)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("persistences", [2, 4, 8], "must begin with 1 and increase"),
        ("persistences", [1, 4, 2, 8], "must begin with 1 and increase"),
        ("persistences", [1, 2, 2, 8], "must begin with 1 and increase"),
        ("persistences", [1, 2, 4.5, 8], "a whole number of at least 1"),
        ("persistences", [1, 2, 4, 9], "must have its longest persistence"),
        ("persistences", [1, 2, 8], "the weights of its layers|size|shape"),
        ("persistences", "1248", "must have a list of whole numbers as 'persistences'"),
        ("persistences", 8, "must have a list of whole numbers as 'persistences'"),
        ("persistences", None, "the weights of its layers|size|shape"),
        ("k_max", 4, "must have its longest persistence"),
        ("layer_norm", 1, "must have true or false as 'layer_norm'"),
        ("layer_norm", False, "the weights of its layers, and no others"),
        ("dueling", 1, "as 'dueling'"),
        ("dueling", "both", "as 'dueling'"),
        ("dueling", None, "as 'dueling'"),
        ("dueling", False, "the weights of its layers|size|shape"),
        ("dueling", "heads", "the weights of its layers|size|shape"),
        ("average_rate", 0.5, "must have 0 as 'average_rate'"),
        ("average_rate", None, "must have 0 as 'average_rate'"),
    ],
)
def test_damaged_levers_are_refused(name: str, value: Any, message: str, tmp_path: Path) -> None:
    state = network_state("perdqn", with_levers().policy)
    state["arguments"][name] = value
    write_policy(tmp_path, state)
    with pytest.raises(ValueError, match=message):
        load_policy(tmp_path)


def test_a_persistence_that_no_number_holds_is_refused(tmp_path: Path) -> None:
    state = network_state("perdqn", with_levers().policy)
    state["arguments"] |= {"persistences": [1, 2, 4, 10**30], "k_max": 10**30}
    write_policy(tmp_path, state)
    with pytest.raises(ValueError, match="must have a whole number from 1 to 2147483647 as 'k_max'"):
        load_policy(tmp_path)


@pytest.mark.parametrize("extractor", ["NatureCNN", "ConvFeatures"])
def test_no_layer_is_made_for_pictures_that_there_are_no_weights_for(extractor: str) -> None:
    kwargs = {"features_extractor_class": {"NatureCNN": NatureCNN, "ConvFeatures": ConvFeatures}[extractor]}
    model = PerDQN("CnnPolicy", Still(SPACES["picture"]), k_max=3, buffer_size=50, policy_kwargs=kwargs, seed=0)
    state = network_state("perdqn", model.policy)
    assert state["arguments"]["features_extractor_class"] == extractor
    for side, said in ((400, "weights of its layers, and no others"), (5000, "pictures of at most")):
        large = spaces.Box(0, 255, (1, side, side), np.uint8)
        with pytest.raises(ValueError, match=said):
            actor_of({**state, "observation_space": space_state(large)})
