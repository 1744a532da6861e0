"""Exported policies: ONNX Runtime decides as ``load_policy`` does, and what cannot be so is not written."""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from gymnasium import spaces

import holdfast
from holdfast.core.choice import Decision
from holdfast.core.errors import InputError
from holdfast.deep.networks.option_network import ConvFeatures
from holdfast.deep.networks.option_policy import OptionPolicy
from holdfast.deep.networks.policies import CnnPolicy, MlpPolicy, MultiInputPolicy
from holdfast.deep.networks.small_convolutions import SmallConvolutions
from holdfast.files.named_errors import NamedFile
from holdfast.policies import find_algorithm, load_policy, onnx_graph, onnx_policies
from holdfast.policies.actors import NetworkActor, TableActor
from holdfast.policies.arguments import ACTIVATIONS, as_python
from holdfast.policies.export import export_onnx
from holdfast.policies.export_check import _NUMBERS_AT_ONCE, _batch_size, check_export, draw_observations
from holdfast.policies.onnx_graph import Graph
from holdfast.policies.policy_files import network_state, write_policy
from holdfast.policies.table_files import table_state
from holdfast.tabular import GreedyPolicy
from tests.files.seals import seal_anew
from tests.runs.doctored import copy_of, mutate, payload
from tests.runs.small_runs import NETWORK, TABLE, trained

PICTURE = spaces.Box(0, 255, (2, 36, 36), np.uint8)
SPACES: dict[str, spaces.Space[Any]] = {
    "box": spaces.Box(np.array([-2.0, 0.0, -1.0], np.float32), np.array([3.0, 9.0, 1.0], np.float32)),
    "matrix": spaces.Box(-1.0, 1.0, (2, 3), np.float32),
    "unbounded": spaces.Box(-np.inf, np.inf, (2,), np.float64),
    "half": spaces.Box(
        np.array([0.0, -np.inf], np.float16), np.array([np.inf, 1.0], np.float16), dtype=np.float16
    ),
    "whole": spaces.Box(-5, 9, (3,), np.int32),
    "picture": PICTURE,
    "discrete": spaces.Discrete(5),
    "many": spaces.MultiDiscrete([3, 4, 2]),
    "bits": spaces.MultiBinary(4),
    "bit table": spaces.MultiBinary([2, 3]),
    "dict": spaces.Dict(
        {
            "b": spaces.Box(0.0, 4.0, (2,)),
            "a": spaces.Discrete(3),
            "action": spaces.MultiDiscrete([2, 3]),
            "picture": spaces.Box(0, 255, (1, 36, 36), np.uint8),
            "bits": spaces.MultiBinary(3),
        }
    ),
}


def policy_for(space: Any, k_max: int = 4, seed: int = 0, **arguments: Any) -> OptionPolicy:
    """A policy with random weights, wide enough for its decisions to differ."""
    torch.manual_seed(seed)
    kind = MultiInputPolicy if isinstance(space, spaces.Dict) else CnnPolicy if space is PICTURE else MlpPolicy
    layers = {} if kind is CnnPolicy else {"net_arch": [16]}
    actions = arguments.pop("actions", spaces.Discrete(3, start=2))
    plain = {"k_max": k_max, "head_arch": [8], "layer_norm": False, "dueling": False, "average_rate": 0.0}
    if "persistences" in arguments:
        del plain["k_max"]
    policy = kind(space, actions, lambda _: 0.0, **{**layers, **plain, **arguments})
    with torch.no_grad():
        for part in policy.q_net.parameters():
            part.mul_(2.0)
        policy.q_net.heads.layers[-1].weight.mul_(4.0)
    return policy


def saved(policy: OptionPolicy, folder: Path, **about: Any) -> Path:
    """A folder with that policy."""
    folder.mkdir(exist_ok=True)
    write_policy(folder, {**network_state("perdqn", policy), **({"about": about} if about else {})})
    return folder


def table(
    folder: Path, q: Any, algorithm: str = "perq", firsts: tuple[int, int] = (0, 0), **arguments: Any
) -> Path:
    folder.mkdir(exist_ok=True)
    tables = q if isinstance(q, dict) else {"q": q}
    known = find_algorithm(algorithm)
    learner = known.load()(**as_python(known.complete(arguments)))
    write_policy(folder, table_state(algorithm, learner.policy_of(tables), *firsts))
    return folder


def session_of(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options)


def decided(path: Path, observations: Any) -> Decision:
    """What ONNX Runtime makes of a batch of observations."""
    session = session_of(path)
    if not isinstance(observations, dict):
        observations = {"observation": observations}
    names = [part.name for part in session.get_inputs()]
    found = {name: observations[name.removeprefix("observation.") if "." in name else name] for name in names}
    return Decision(*session.run(["action", "hold", "values"], found))


def sampled(space: Any, n: int) -> Any:
    """Observations as Gymnasium draws them."""
    space.seed(5)
    drawn = [space.sample() for _ in range(n)]
    if isinstance(space, spaces.Dict):
        return {key: np.stack([one[key] for one in drawn]) for key in space.spaces}
    return np.stack(drawn)


def row(batch: Any, index: Any) -> Any:
    return {key: part[index] for key, part in batch.items()} if isinstance(batch, dict) else batch[index]


def same(run: Path, file: Path, space: Any, n: int = 60) -> Decision:
    """That the file decides as the run does about many observations, together and one by one."""
    policy, batch = load_policy(run), sampled(space, n)
    ours = [policy.decide(row(batch, number)) for number in range(n)]
    together = decided(file, batch)
    assert together.action.dtype == together.hold.dtype == np.int64
    assert together.action.tolist() == [one.action for one in ours]
    assert together.hold.tolist() == [one.hold for one in ours]
    assert together.values.dtype == ours[0].values.dtype
    np.testing.assert_allclose(together.values, [one.values for one in ours], rtol=1e-4, atol=1e-5)
    for number in range(3):
        alone = decided(file, row(batch, slice(number, number + 1)))
        assert (alone.action[0], alone.hold[0]) == (ours[number].action, ours[number].hold)
    return together


# Networks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k_max", [1, 16])
@pytest.mark.parametrize("name", SPACES)
def test_every_kind_of_observation(name: str, k_max: int, tmp_path: Path) -> None:
    run = saved(policy_for(SPACES[name], k_max, seed=6, decision_tolerance=0.3), tmp_path / "run")
    found = export_onnx(run, tmp_path / "policy.onnx", check=50)
    assert found.check.equal == found.check.observations == 50
    together = same(run, tmp_path / "policy.onnx", SPACES[name])
    assert together.values.shape == (60, 3, k_max)
    assert set(together.action) <= {2, 3, 4}
    if k_max > 1:
        assert len(set(zip(together.action, together.hold, strict=True))) > 1


@pytest.mark.parametrize("name", ["box", "unbounded", "picture", "dict"])
def test_scaled_observations(name: str, tmp_path: Path) -> None:
    run = saved(policy_for(SPACES[name], normalize_observations="space", seed=1), tmp_path / "run")
    export_onnx(run, tmp_path / "policy.onnx", check=20)
    same(run, tmp_path / "policy.onnx", SPACES[name])


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation(activation: str, tmp_path: Path) -> None:
    policy = policy_for(SPACES["unbounded"], activation_fn=getattr(torch.nn, activation), head_arch=[8, 8], seed=2)
    export_onnx(saved(policy, tmp_path / "run"), tmp_path / "policy.onnx", check=20)
    same(tmp_path / "run", tmp_path / "policy.onnx", SPACES["unbounded"])


@pytest.mark.parametrize("k_max", [1, 5])
@pytest.mark.parametrize("head_arch", [[], [8], [8, 4]])
@pytest.mark.parametrize("dueling", [False, True, "options"])
def test_every_kind_of_head(head_arch: list[int], dueling: bool | str, k_max: int, tmp_path: Path) -> None:
    policy = policy_for(SPACES["box"], k_max, head_arch=head_arch, dueling=dueling, net_arch=[7, 6], seed=3)
    export_onnx(saved(policy, tmp_path / "run"), tmp_path / "policy.onnx", check=20)
    same(tmp_path / "run", tmp_path / "policy.onnx", SPACES["box"])


@pytest.mark.parametrize("head_arch", [[], [8]])
@pytest.mark.parametrize("dueling", [False, "heads", "options"])
def test_normalised_layers_and_a_sparse_set(head_arch: list[int], dueling: bool | str, tmp_path: Path) -> None:
    levers = {"layer_norm": True, "persistences": (1, 3, 8), "dueling": dueling, "head_arch": head_arch}
    policy = policy_for(SPACES["unbounded"], net_arch=[16, 24], seed=4, **levers)
    with torch.no_grad():
        for norm in (layer for layer in policy.q_net.trunk if isinstance(layer, torch.nn.LayerNorm)):
            norm.weight.uniform_(0.5, 2.0)
            norm.bias.uniform_(-1.0, 1.0)
        policy.q_net.heads.layers[-1].bias.zero_()
    export = export_onnx(saved(policy, tmp_path / "run"), tmp_path / "policy.onnx", check=50)
    same(tmp_path / "run", tmp_path / "policy.onnx", SPACES["unbounded"])
    assert (export.metadata["k_max"], export.metadata["persistences"]) == ("8", "1,3,8")
    assert export.outputs[-1].shape == (int(policy.action_space.n), 3)
    found = decided(tmp_path / "policy.onnx", sampled(SPACES["unbounded"], 200))
    assert set(np.unique(found.hold)) <= {1, 3, 8}
    assert len(np.unique(found.hold)) > 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"features_extractor_class": ConvFeatures, "net_arch": []},
        {"features_extractor_class": ConvFeatures, "net_arch": [], "normalize_images": False},
        {"features_extractor_kwargs": {"features_dim": 24}, "net_arch": [12]},
        {"normalize_images": False},
    ],
    ids=str,
)
def test_pictures(arguments: dict[str, Any], tmp_path: Path) -> None:
    run = saved(policy_for(PICTURE, **arguments), tmp_path / "run")
    export_onnx(run, tmp_path / "policy.onnx", check=20)
    same(run, tmp_path / "policy.onnx", PICTURE, 20)


def test_boards(tmp_path: Path) -> None:
    space = spaces.Box(0, 1, (4, 10, 10), np.uint8)
    arguments = {"features_extractor_class": SmallConvolutions, "net_arch": [], "head_arch": [128]}
    run = saved(policy_for(space, **arguments), tmp_path / "run")
    export_onnx(run, tmp_path / "policy.onnx", check=20)
    same(run, tmp_path / "policy.onnx", space, 20)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, 5.0, 1e300])
def test_another_tolerance(tolerance: float, tmp_path: Path) -> None:
    run = saved(policy_for(SPACES["box"], 8, decision_tolerance=0.1), tmp_path / "run")
    export_onnx(run, tmp_path / "policy.onnx", decision_tolerance=tolerance, check=50)
    batch = sampled(SPACES["box"], 50)
    with np.errstate(over="ignore"):
        ours = load_policy(run).acting_with(tolerance, None).decide(batch)
    theirs = decided(tmp_path / "policy.onnx", batch)
    assert theirs.action.tolist() == ours.action.tolist()
    assert theirs.hold.tolist() == ours.hold.tolist()
    assert tolerance < 1e300 or set(theirs.hold) == {8}


def with_values(values: Any, tolerance: float) -> OptionPolicy:
    """A policy whose values are these, (A, K), whatever it sees."""
    table = torch.as_tensor(np.asarray(values, np.float32))
    policy = policy_for(
        SPACES["bits"],
        table.shape[1],
        actions=spaces.Discrete(table.shape[0]),
        head_arch=[],
        decision_tolerance=tolerance,
    )
    with torch.no_grad():
        (layer,) = policy.q_net.heads.layers
        layer.weight.zero_()
        layer.bias.copy_(table.T)
    return policy


TIES = [
    ([[0, 1, 1], [1, 0, 1]], 0.0),
    ([[1, 0, 0], [1, 1, 1]], 0.0),
    ([[0, 0, 0], [0, 0, 0]], 0.0),
    ([[0.5, 1, 0.5], [1, 1, 1]], 0.5),
    ([[0.5, 1, 0.25], [1, 1, 1]], 0.5),
    # 0.1 is a little more in 32 bits than in 64.
    ([[0.1, 0.0, -1.0], [0.0, 0.0, 0.0]], 0.1),
    ([[-0.0, 0.0, -0.0], [0.0, -1.0, 0.0]], 0.0),
]


@pytest.mark.parametrize(("values", "tolerance"), TIES)
def test_exact_ties(values: Any, tolerance: float, tmp_path: Path) -> None:
    run = saved(with_values(values, tolerance), tmp_path / "run")
    found = export_onnx(run, tmp_path / "policy.onnx", check=20)
    assert found.check == (20, 0, 0.0)
    same(run, tmp_path / "policy.onnx", SPACES["bits"], 5)


def test_ties_by_hand(tmp_path: Path) -> None:
    run = saved(with_values([[0, 1, 1, 0], [1, 0, 1, 1]], 0.0), tmp_path / "run")
    export_onnx(run, tmp_path / "policy.onnx", check=1)
    theirs = decided(tmp_path / "policy.onnx", np.zeros((1, 4), np.int8))
    assert (theirs.action[0], theirs.hold[0]) == (0, 3)


def test_random_ties(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        run = saved(with_values(draw.integers(3, size=(3, 4)) / 2, float(draw.integers(3)) / 2), tmp_path / "run")
        assert export_onnx(run, tmp_path / "policy.onnx", check=2).check == (2, 0, 0.0)


def test_a_broken_sensor_decides_the_same(tmp_path: Path) -> None:
    run = saved(policy_for(SPACES["unbounded"], decision_tolerance=9.0), tmp_path / "run")
    export_onnx(run, tmp_path / "policy.onnx", check=5)
    batch = np.array([[np.nan, 1.0], [0.5, np.nan], [np.nan, np.nan], [0.5, 1.0]])
    ours, theirs = load_policy(run).decide(batch), decided(tmp_path / "policy.onnx", batch)
    assert theirs.action.tolist() == ours.action.tolist()
    assert theirs.hold.tolist() == ours.hold.tolist()
    assert theirs.hold[:3].tolist() == [1, 1, 1]
    assert np.isnan(theirs.values[:3]).all()
    assert not np.isnan(theirs.values[3]).any()


def test_values_that_overflow_are_chosen_as_numpy_does(tmp_path: Path) -> None:
    graph = Graph([onnx_graph.Tensor("x", "float32", (2, 2))], onnx_policies._outputs("float32", 2, 2))
    graph.decide("x", np.arange(2), 2, 0.5)
    session = onnxruntime.InferenceSession(graph.model({}).SerializeToString())
    strange = np.array(list(itertools.product([np.nan, np.inf, -np.inf, 1.0], repeat=4)), np.float32).reshape(
        -1, 2, 2
    )
    action, hold, _ = session.run(None, {"x": strange})
    with np.errstate(invalid="ignore"):
        expected = holdfast.core.choice.few_decision_option(strange, 0.5)
    assert np.array_equal(action, expected[0])
    assert np.array_equal(hold, expected[1])


def test_no_observations_give_no_decisions(tmp_path: Path) -> None:
    export_onnx(saved(policy_for(SPACES["box"]), tmp_path / "run"), tmp_path / "policy.onnx", check=1)
    found = decided(tmp_path / "policy.onnx", np.zeros((0, 3), np.float32))
    assert [part.shape for part in found] == [(0,), (0,), (0, 3, 4)]


@pytest.mark.parametrize("state", [-1, 5, -(2**40)])
def test_whole_numbers_out_of_the_space_are_refused(state: int, tmp_path: Path) -> None:
    export_onnx(saved(policy_for(SPACES["discrete"]), tmp_path / "run"), tmp_path / "policy.onnx", check=1)
    with pytest.raises(Exception, match="out of data bounds"):
        decided(tmp_path / "policy.onnx", np.array([0, state]))


# Tables ---------------------------------------------------------------------------------------------------------


def random_table(seed: int = 0, shape: tuple[int, ...] = (30, 3, 4)) -> Any:
    return np.random.default_rng(seed).integers(4, size=shape) / 4


def test_a_cost_of_decisions_is_told_and_bounds_the_margin(tmp_path: Path) -> None:
    space, file = SPACES["box"], tmp_path / "policy.onnx"
    run = saved(policy_for(space, decision_cost=0.5), tmp_path / "run")
    assert export_onnx(run, file, check=50).metadata["decision_cost"] == "0.5"
    same(run, file, space)
    # 0.5 is the margin from which on it pays to drop a hold.
    assert export_onnx(run, file, interrupt_margin=0.5, check=1).metadata["interrupt_margin"] == "0.5"
    with pytest.raises(
        ValueError, match=r"^interrupt_margin must be at least decision_cost, which is 0\.5, not 0\.4"
    ):
        export_onnx(run, file, interrupt_margin=0.4)
    free = saved(policy_for(space), tmp_path / "free")
    assert "decision_cost" not in export_onnx(free, file, check=1).metadata


@pytest.mark.parametrize("firsts", [(0, 0), (1, -2)])
@pytest.mark.parametrize("tolerance", [None, 0.0, 0.25])
def test_tables(tolerance: float | None, firsts: tuple[int, int], tmp_path: Path) -> None:
    run = table(tmp_path / "run", random_table(), firsts=firsts, k_max=4, decision_tolerance=tolerance)
    found = export_onnx(run, tmp_path / "policy.onnx", check=30)
    assert found.check == (30, 0, 0.0)
    same(run, tmp_path / "policy.onnx", spaces.Discrete(30, start=firsts[0]), 90)


def test_the_tables_of_temporl(tmp_path: Path) -> None:
    tables = {"q": random_table(1, (30, 3, 1)), "skip": random_table(2)}
    names = holdfast.TempoRLQLearning(k_max=4).table_depths()
    run = table(tmp_path / "run", dict(zip(names, tables.values(), strict=True)), "temporl-q", k_max=4)
    export_onnx(run, tmp_path / "policy.onnx", check=100)
    same(run, tmp_path / "policy.onnx", spaces.Discrete(30), 90)
    with pytest.raises(ValueError, match="must not be given for TempoRL's policy"):
        export_onnx(run, tmp_path / "policy.onnx", decision_tolerance=1.0)


@pytest.mark.parametrize("state", [0, 31, -1])
def test_states_that_there_are_not_are_refused(state: int, tmp_path: Path) -> None:
    run = table(tmp_path / "run", random_table(), firsts=(1, 0), k_max=4)
    export_onnx(run, tmp_path / "policy.onnx", check=1)
    with pytest.raises(Exception, match="out of data bounds"):
        decided(tmp_path / "policy.onnx", np.array([state]))


# The file -------------------------------------------------------------------------------------------------------


def test_what_the_file_says(tmp_path: Path) -> None:
    policy = policy_for(SPACES["box"], 4, decision_tolerance=0.25, interrupt_margin=0.5)
    run = saved(policy, tmp_path / "run", label="a robot", step=1234)
    found = export_onnx(run, tmp_path / "policy.onnx", check=1)
    model = onnx.load(tmp_path / "policy.onnx")
    said = {part.key: part.value for part in model.metadata_props}
    assert said == found.metadata
    assert said == {
        "holdfast_version": holdfast.__version__,
        "algorithm": "perdqn",
        "environment": "a robot",
        "training_step": "1234",
        "k_max": "4",
        "first_action": "2",
        "decision_tolerance": "0.25",
        "interrupt_margin": "0.5",
    }
    assert session_of(tmp_path / "policy.onnx").get_modelmeta().custom_metadata_map == said
    assert found.size == (tmp_path / "policy.onnx").stat().st_size
    changed = export_onnx(run, tmp_path / "policy.onnx", decision_tolerance=1.0, interrupt_margin=2.0, check=1)
    assert (changed.metadata["decision_tolerance"], changed.metadata["interrupt_margin"]) == ("1.0", "2.0")
    with pytest.raises(ValueError, match="interrupt_margin must be at least decision_tolerance"):
        export_onnx(run, tmp_path / "policy.onnx", decision_tolerance=1.0)


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    run = table(tmp_path / "run", random_table(), firsts=(1, 2), k_max=4)
    found = export_onnx(run, tmp_path / "policy.onnx", check=1).metadata
    assert set(found) == {"holdfast_version", "algorithm", "k_max", "first_state", "first_action"}
    assert (found["first_state"], found["first_action"]) == ("1", "2")


def test_the_file_needs_no_other_and_has_standard_operators_only(tmp_path: Path) -> None:
    run = saved(policy_for(SPACES["dict"], dueling=True), tmp_path / "run")
    found = export_onnx(run, tmp_path / "policy.onnx", check=1)
    model = onnx.load(tmp_path / "policy.onnx", load_external_data=False)
    assert {part.domain for part in model.opset_import} == {""}
    assert {node.domain for node in model.graph.node} == {""}
    assert not model.functions
    assert all(part.data_location == onnx.TensorProto.DEFAULT for part in model.graph.initializer)
    session = session_of(tmp_path / "policy.onnx")
    seen = {part.name: (part.type, part.shape) for part in session.get_inputs()}
    # No input can have the name of an output.
    assert seen == {
        "a": ("tensor(int64)", ["n"]),
        "observation.action": ("tensor(int64)", ["n", 2]),
        "b": ("tensor(float)", ["n", 2]),
        "bits": ("tensor(int8)", ["n", 3]),
        "picture": ("tensor(uint8)", ["n", 1, 36, 36]),
    }
    given = {part.name: (part.type, part.shape) for part in session.get_outputs()}
    assert given == {
        "action": ("tensor(int64)", ["n"]),
        "hold": ("tensor(int64)", ["n"]),
        "values": ("tensor(float)", ["n", 3, 4]),
    }
    assert [part.name for part in found.inputs] == list(seen)
    assert [part.name for part in found.outputs] == list(given)
    assert {path.name for path in tmp_path.iterdir()} == {"policy.onnx", "run"}


def test_keys_like_names_of_nodes(tmp_path: Path) -> None:
    keys = [f"Cast_{number}" for number in range(20, 40)]
    space = spaces.Dict({key: spaces.Box(-1.0, 1.0, (1,)) for key in keys})
    export_onnx(saved(policy_for(space), tmp_path / "run"), tmp_path / "policy.onnx", check=5)
    same(tmp_path / "run", tmp_path / "policy.onnx", space)


# The check ------------------------------------------------------------------------------------------------------


def swapping(**names: str) -> Callable[..., str]:
    """``Graph.add`` with other operators than those asked for."""
    add = Graph.add

    def swapped(graph: Graph, operator: str, *inputs: str, **attributes: Any) -> str:
        return add(graph, names.get(operator, operator), *inputs, **attributes)

    return swapped


@pytest.mark.parametrize(
    "names", [{"Relu": "Tanh"}, {"Max": "Min"}, {"Sub": "Add"}, {"ArgMax": "ArgMin"}], ids=str
)
def test_wrong_operators_are_found(names: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = saved(policy_for(SPACES["box"], decision_tolerance=20.0), tmp_path / "run")
    (tmp_path / "policy.onnx").write_text("the old one")
    monkeypatch.setattr(Graph, "add", swapping(**names))
    with pytest.raises(ValueError, match="the exported policy"):
        export_onnx(run, tmp_path / "policy.onnx", check=200)
    assert (tmp_path / "policy.onnx").read_text() == "the old one"
    assert {path.name for path in tmp_path.iterdir()} == {"policy.onnx", "run"}


def test_a_wrong_tie_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = saved(with_values([[0, 1, 1], [1, 0, 1]], 0.0), tmp_path / "run")
    monkeypatch.setattr(Graph, "add", swapping(LessOrEqual="Less"))
    with pytest.raises(ValueError, match="decides differently from the same values"):
        export_onnx(run, tmp_path / "policy.onnx", check=1)


@pytest.mark.parametrize(
    "wrong", [{"tolerance": 3.1}, {"actions": np.arange(3)}, {"persistences": range(2, 10)}], ids=str
)
def test_a_wrong_rule_is_found(wrong: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decide = Graph.decide

    def wrongly(graph: Graph, values: str, actions: Any, k: int, tolerance: float, held: Any) -> None:
        rightly = {"actions": actions, "tolerance": tolerance, "persistences": held}
        decide(graph, values, k_max=k, **{**rightly, **wrong})

    run = saved(policy_for(SPACES["box"], 8, decision_tolerance=3.0), tmp_path / "run")
    monkeypatch.setattr(Graph, "decide", wrongly)
    with pytest.raises(ValueError, match="decides differently from the same values"):
        export_onnx(run, tmp_path / "policy.onnx", check=2000)


def test_a_wrong_table_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong = (random_table(shape=(700, 2, 3)) for _ in range(2))
    wrong[17] = 1.0 - wrong[17]
    run = table(tmp_path / "run", right, k_max=3)
    real = onnx_policies.table_graph
    policy = load_policy(table(tmp_path / "other", wrong, k_max=3)).policy  # type: ignore[attr-defined]
    monkeypatch.setattr("holdfast.policies.export.table_graph", lambda _, *firsts: real(policy, *firsts))
    # Where there are as many observations as states, every state is one of them.
    with pytest.raises(ValueError, match="the exported policy's values differ"):
        export_onnx(run, tmp_path / "policy.onnx", check=700)
    assert not (tmp_path / "policy.onnx").exists()


def test_rounding_between_equals_is_counted_and_no_more() -> None:
    actor = NetworkActor(with_values([[1.0, 0.0], [1.0, 0.0]], 0.0))

    def checked(change: float) -> Any:
        other = with_values([[1.0, 0.0], [1.0 + change, 0.0]], 0.0)
        model = onnx_policies.network_graph(other).model({})
        return check_export(model.SerializeToString(), actor, SPACES["bits"], 300, 0)

    assert checked(0.0) == (300, 0, 0.0)
    found = checked(2.0**-22)
    assert found == (300, 300, 2.0**-22)
    assert found.equal == 0
    with pytest.raises(ValueError, match=r"values differ by 0\.0005"):
        checked(0.0005)


def test_observations_are_compared_one_at_a_time_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    decide = NetworkActor.decide

    def watched(actor: NetworkActor, observation: Any) -> Decision:
        found = decide(actor, observation)
        batches.append(np.size(found.action) if np.ndim(found.action) else 0)
        return found

    monkeypatch.setattr(NetworkActor, "decide", watched)
    run = saved(policy_for(SPACES["box"]), tmp_path / "run")
    told: list[tuple[int, int]] = []
    found = export_onnx(run, tmp_path / "policy.onnx", check=600, told=lambda *numbers: told.append(numbers))
    assert found.check.observations == sum(batches) == 600
    assert batches.count(0) == 32
    assert told == [(256, 600), (512, 600), (600, 600)]


@pytest.mark.parametrize("name", SPACES)
def test_observations_are_of_the_space_and_repeat_themselves(name: str) -> None:
    space = SPACES[name]
    batch = draw_observations(space, 200, np.random.default_rng(3))
    for number in range(200):
        assert space.contains(row(batch, number))
    again = draw_observations(space, 200, np.random.default_rng(3))
    assert repr(again) == repr(batch)
    assert repr(draw_observations(space, 200, np.random.default_rng(4))) != repr(batch)


def test_observations_without_bounds_have_several_sizes() -> None:
    sizes = np.abs(draw_observations(SPACES["unbounded"], 2000, np.random.default_rng(0)))
    assert np.quantile(sizes, 0.1) < 0.1
    assert 3.0 < np.quantile(sizes, 0.95) < 30.0
    largest = np.finfo(np.float32).max
    huge = spaces.Box(-largest, largest, (2,), np.float32)
    assert np.abs(draw_observations(huge, 2000, np.random.default_rng(0))).max() < 100.0


# What is refused ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("runs")
    trained(TABLE, top / "table")
    trained(NETWORK, top / "network")
    return top


def replaced(run: Path, name: str, old: str, new: str) -> None:
    path = run / "policy" / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


DOCTORED: dict[str, Callable[[Path], Any]] = {
    "a pickle": lambda run: (run / "policy/policy.safetensors").write_bytes(payload(run / "mark")),
    "cut": lambda run: os.truncate(run / "policy/policy.safetensors", 100),
    "no document": lambda run: (run / "policy/policy.json").unlink(),
    "another format": lambda run: replaced(run, "policy.json", '"format": 2', '"format": 3'),
    "an unknown kind": lambda run: replaced(run, "policy.json", '"kind": "', '"kind": "x'),
    "other persistences": lambda run: replaced(
        run, "policy.json", '"persistences": null', '"persistences": [1, 3]'
    ),
    "no number": lambda run: replaced(
        run, "policy.json", '"decision_tolerance": ', '"decision_tolerance": "x", "y": '
    ),
}


def test_a_table_from_before_its_rule_was_written_out_is_read_by_its_learner(runs: Path, tmp_path: Path) -> None:
    run = copy_of(runs / "table", tmp_path / "run")
    path = run / "policy/policy.json"
    document = json.loads(path.read_text())
    del document["policy"]
    path.write_text(json.dumps({**document, "arguments": {"k_max": 3, "decision_tolerance": 0.25}}))
    seal_anew(path)
    found = load_policy(run)
    assert isinstance(found, TableActor)
    assert found.acting == (0.25, None)
    assert found.decide(0).values.shape == (4, 3)
    path.write_text(json.dumps({**document, "algorithm": "own_agents:SmdpQ"}))
    seal_anew(path)
    with pytest.raises(InputError, match="must say by which rule its table is read"):
        load_policy(run)


@pytest.mark.parametrize("kind", ["table", "network"])
@pytest.mark.parametrize("change", DOCTORED.values(), ids=DOCTORED)
def test_doctored_policies_are_refused_as_they_are_when_loaded(
    change: Callable[[Path], Any], kind: str, runs: Path, tmp_path: Path
) -> None:
    run = copy_of(runs / kind, tmp_path / "run")
    change(run)
    with pytest.raises((InputError, OSError)) as ours:
        load_policy(run)
    with pytest.raises(type(ours.value)) as theirs:
        export_onnx(run, tmp_path / "policy.onnx")
    assert str(theirs.value) == str(ours.value)
    assert {path.name for path in tmp_path.iterdir()} == {"run"}
    assert not (run / "mark").exists()


@pytest.mark.parametrize("kind", ["table", "network"])
def test_random_changes_are_exported_or_refused(kind: str, runs: Path, tmp_path: Path) -> None:
    draw, run, file = random.Random(11), tmp_path / "run", tmp_path / "policy.onnx"
    outcomes = set()
    for _ in range(60):
        copy_of(runs / kind, run)
        done = mutate(run, draw, tmp_path / "mark")
        if "policy" not in done:
            continue
        file.unlink(missing_ok=True)
        try:
            export_onnx(run, file, check=3)
        except (InputError, OSError):
            assert not file.exists(), done
        outcomes.add(file.exists())
    assert outcomes == {True, False}
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        (spaces.Discrete(4, start=1), "the policy cannot decide about the observations of its own space"),
        (
            spaces.Dict({"a": spaces.Dict({"b": spaces.Discrete(2)})}),
            "observations of the space Dict cannot be exported",
        ),
    ],
    ids=["counts from 1", "nested"],
)
def test_spaces_that_sb3_has_no_networks_for(space: Any, sentence: str, tmp_path: Path) -> None:
    run = saved(policy_for(space), tmp_path / "run")
    with pytest.raises(ValueError, match=sentence):
        export_onnx(run, tmp_path / "policy.onnx", check=50)
    assert not (tmp_path / "policy.onnx").exists()


def test_numbers_that_no_file_can_hold(tmp_path: Path) -> None:
    run = table(tmp_path / "run", random_table(), firsts=(10**30, 0), k_max=4)
    with pytest.raises(ValueError, match="as 'first_state'"):
        export_onnx(run, tmp_path / "policy.onnx")


def test_a_policy_that_no_file_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_graph, "_LARGEST", 1000)
    with pytest.raises(ValueError, match=r"the policy is too large: an \.onnx file can hold"):
        export_onnx(saved(policy_for(SPACES["box"]), tmp_path / "run"), tmp_path / "policy.onnx")


class OtherNetwork(holdfast.deep.networks.option_network.OptionQNetwork):
    """Not one of holdfast's own."""


def test_networks_of_other_classes_are_refused() -> None:
    policy = policy_for(SPACES["box"])
    policy.q_net.__class__ = OtherNetwork
    with pytest.raises(ValueError, match="a policy with the network OtherNetwork cannot be exported"):
        onnx_policies.network_graph(policy)
    policy = policy_for(SPACES["box"], activation_fn=torch.nn.Hardswish)
    with pytest.raises(ValueError, match="a policy with the layer Hardswish cannot be exported"):
        onnx_policies.network_graph(policy)
    policy = policy_for(SPACES["box"], head_arch=[])
    policy.q_net.heads.layers[0] = torch.nn.Linear(64, 3)
    with pytest.raises(ValueError, match="a policy with the layer Linear cannot be exported"):
        onnx_policies.network_graph(policy)


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_without_the_packages_one_sentence_says_what_to_install(
    package: str, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ValueError, match=r"pip install 'holdfast-rl\[onnx\]'"):
        export_onnx(runs / "table", tmp_path / "policy.onnx")


def test_a_file_that_cannot_be_written_leaves_nothing(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = NamedFile.write

    def half(file: NamedFile, data: bytes) -> int:
        write(file, data[:100])
        raise OSError(28, "No space left on device")

    (tmp_path / "policy.onnx").write_text("the old one")
    monkeypatch.setattr(NamedFile, "write", half)
    with pytest.raises(ValueError, match=r"file must be one that can be written, .*: No space left on device"):
        export_onnx(runs / "table", tmp_path / "policy.onnx", check=1)
    assert [path.name for path in tmp_path.iterdir()] == ["policy.onnx"]
    assert (tmp_path / "policy.onnx").read_text() == "the old one"


def test_large_tables_are_compared_in_small_parts() -> None:
    wide = TableActor(GreedyPolicy(np.zeros((1, 100, 200))), 0, 0)
    assert _batch_size(wide, spaces.Discrete(1)) * 100 * 200 <= _NUMBERS_AT_ONCE
    huge = TableActor(GreedyPolicy(np.zeros((1, 2000, 3000))), 0, 0)
    assert _batch_size(huge, spaces.Discrete(1)) == 1
    # Every state comes before any comes again, whatever the parts.
    parts = [
        draw_observations(spaces.Discrete(7, start=2), 3, np.random.default_rng(0), begin) for begin in (0, 3, 6)
    ]
    assert np.concatenate(parts).tolist() == [2, 3, 4, 5, 6, 7, 8, 2, 3]
