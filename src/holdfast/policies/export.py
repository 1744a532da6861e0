"""A policy as an ONNX file, for programs that have neither holdfast nor PyTorch."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnasium import spaces

from holdfast.core.checks import check_integer
from holdfast.core.distribution import install_command
from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_integer
from holdfast.files import make_folders, replace_file
from holdfast.policies.actors import NetworkActor, TableActor, acting_as
from holdfast.policies.export_check import ExportCheck, check_export, is_actor_policy
from holdfast.policies.onnx_actors import actor_graph
from holdfast.policies.onnx_graph import Graph, Tensor
from holdfast.policies.onnx_policies import network_graph, table_graph
from holdfast.policies.policy_files import actor_of, read_policy

__all__ = ["Export", "export_onnx"]

_SUFFIX = ".onnx"
_LARGEST_START = 2**62


@dataclass(frozen=True)
class Export:
    """An exported policy.

    Attributes:
        path: The file.
        size: Its size in bytes.
        inputs: Its inputs; shapes omit the axis of the observations.
        outputs: Its outputs.
        metadata: Its metadata.
        check: How its decisions compared with those of the policy.
    """

    path: Path
    size: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: dict[str, str]
    check: ExportCheck


def export_onnx(
    policy: str | os.PathLike[str],
    file: str | os.PathLike[str],
    decision_tolerance: float | None = None,
    interrupt_margin: float | None = None,
    check: int = 10_000,
    seed: int = 0,
    told: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> Export:
    """Write the policy of a run as an ONNX file, after checking that ONNX Runtime decides as the policy does.

    Args:
        policy: The run's folder, or the folder of a policy.
        file: File to write, ending in .onnx; missing folders are made. It is written as a whole or not at all.
        decision_tolerance: Tolerance in the graph (default: as trained).
        interrupt_margin: Margin in the metadata (default: as trained).
        check: Number of observations to compare.
        seed: Seed of the drawn observations.
        told: Called with the number compared so far, and the total.

    Raises:
        ValueError: There is no policy, it is damaged or cannot be exported, its graph decides differently, or the
            file cannot be written.
    """
    path = _target(Path(file))
    check, seed = check_integer("check", check), check_integer("seed", seed, 0)
    _require_packages()
    state = read_policy(Path(policy))
    actor = acting_as(actor_of(state), decision_tolerance, interrupt_margin)
    graph, space = _graph(actor, state)
    metadata = _metadata(actor, graph, state)
    data = _serialized(graph, metadata)
    found = check_export(data, actor, space, check, seed, told)
    try:
        make_folders(path.parent)
        with replace_file(path) as written:
            written.write(data)
    except OSError as error:
        raise InputError(
            f"file must be one that can be written, and {str(path)!r} is not: {error.strerror}", "file"
        ) from None
    return Export(path, len(data), graph.inputs, graph.outputs, metadata, found)


def _target(path: Path) -> Path:
    if path.suffix.lower() != _SUFFIX:
        raise InputError(f"file must end in {_SUFFIX}, not {str(path)!r}", "file")
    if path.is_dir():
        raise InputError(f"file must be a file, and {str(path)!r} is a folder", "file")
    return path


def _require_packages() -> None:
    try:
        for package in ("onnx", "onnxruntime"):
            importlib.import_module(package)
    except ImportError:
        raise InputError(f"export needs the packages onnx and onnxruntime: {install_command('onnx')}") from None


def _graph(actor: Any, state: Mapping[str, Any]) -> tuple[Graph, spaces.Space[Any]]:
    """The graph of a policy, and the space of its observations."""
    match actor:
        case NetworkActor():
            policy: Any = actor.policy
            graph = actor_graph(policy) if is_actor_policy(actor) else network_graph(policy)
            return graph, policy.observation_space
        case TableActor():
            first_state, _ = (
                take_integer(state, name, -_LARGEST_START, _LARGEST_START)
                for name in ("first_state", "first_action")
            )
            graph = table_graph(actor.policy, first_state, actor.choices.all_taken())
            return graph, spaces.Discrete(len(actor.policy.table), start=first_state)
    raise InputError(f"a policy of {take(state, 'algorithm')} cannot be exported")


def _metadata(actor: Any, graph: Graph, state: Mapping[str, Any]) -> dict[str, str]:
    """What a program may want to know about the policy; unknown and unset values are left out."""
    from holdfast import __version__

    about = state.get("about")
    about = about if isinstance(about, Mapping) else {}
    tolerance, margin = (None if number is None else float(number) for number in actor.acting)
    is_table = isinstance(actor, TableActor)
    # Values from the file may be anything.
    known = {
        "holdfast_version": (__version__, str),
        "algorithm": (state.get("algorithm"), str),
        "environment": (about.get("label"), str),
        "training_step": (about.get("step"), int),
        "k_max": (int(actor.policy.durations[-1]), int),
        "persistences": (_sparse_set(getattr(actor.policy, "persistences", None)), str),
        "first_state": (state["first_state"] if is_table else None, int),
        "first_action": (_first_action(actor, state), int),
        "decision_tolerance": (tolerance, float),
        "interrupt_margin": (margin, float),
        "decision_cost": (getattr(actor.policy, "decision_cost", 0.0) or None, float),
    }
    texts = {name: str(value) for name, (value, kind) in known.items() if type(value) is kind}
    return {name: text.encode(errors="replace").decode() for name, text in texts.items()}


def _first_action(actor: Any, state: Mapping[str, Any]) -> Any:
    if isinstance(actor, TableActor):
        return state["first_action"]
    space = actor.policy.action_space
    return int(space.start) if isinstance(space, spaces.Discrete) else None


def _sparse_set(persistences: tuple[int, ...] | None) -> str | None:
    return None if persistences is None else ",".join(map(str, persistences))


def _serialized(graph: Graph, metadata: Mapping[str, str]) -> bytes:
    """The serialized graph, checked by ONNX's own checker."""
    import onnx

    model = graph.model(metadata)
    try:
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())
    except Exception as error:  # the checker's own classes have no other base
        raise ValueError(f"the exported policy is not a valid ONNX model: {error}") from None
