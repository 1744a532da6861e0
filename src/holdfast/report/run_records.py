"""Runs as records: what their folders hold, read without running or importing anything that they name."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.core.array_types import Floats
from holdfast.core.errors import InputError
from holdfast.files import read_json, read_numbers, read_rows
from holdfast.policies.algorithms import algorithm_title
from holdfast.report.commands import run_command
from holdfast.report.records import Holds, Record, Trace
from holdfast.runs.config import RunConfig
from holdfast.runs.curves import holds_over_training, rolling_mean
from holdfast.runs.directory import RunFolder
from holdfast.runs.session import EVALUATION_COLUMNS, METRIC_COLUMNS

__all__ = ["WINDOW", "flat_setting", "run_record"]

WINDOW = 20
"""Training episodes that a point of a curve is the mean of."""


def run_record(path: Path, name: str) -> Record:
    """The record of a run.

    Args:
        path: Its folder.
        name: What it is called on the page.

    Raises:
        ValueError: The run is damaged.
    """
    folder = RunFolder(path)
    status = folder.status(is_thorough=False)
    if status.problem is not None:
        raise InputError(status.problem)
    config = status.config
    assert config is not None
    is_by_steps = config.steps is not None
    return Record(
        name=name,
        task=_task(config),
        agent=algorithm_title(config.algo),
        algo=config.algo,
        setting=flat_setting(
            {"algorithm": config.algo, "n_envs": config.n_envs, **_map(config), **config.arguments}
        ),
        seed=config.seed,
        axis="steps",
        traces=_traces(folder),
        status={"resumable": "unfinished"}.get(status.status, status.status),
        done=float(status.steps if is_by_steps else status.episodes),
        planned=config.steps if is_by_steps else config.episodes,
        versions=_versions(folder),
        seconds=_seconds(folder),
        holds=_holds(folder),
        folder=str(path),
        unit="steps" if is_by_steps else "episodes",
        again=run_command(path, config),
    )


def flat_setting(setting: dict[str, Any]) -> dict[str, Any]:
    """A setting without levels: what is within a dictionary has a name with a dot."""
    found: dict[str, Any] = {}
    for name, value in setting.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": deeper for inner, deeper in flat_setting(value).items()}
        else:
            found[name] = value
    return found


def _task(config: RunConfig) -> str:
    told = ", ".join(f"{name}={value}" for name, value in config.env_kwargs.items() if name != "map")
    return f"{config.label}, {told}" if told else config.label


def _map(config: RunConfig) -> dict[str, str]:
    """What tells two maps with the same file name apart."""
    drawn = config.env_kwargs.get("map")
    return {} if drawn is None else {"map": hashlib.sha256(repr(drawn).encode()).hexdigest()[:8]}


def _traces(folder: RunFolder) -> dict[str, Trace]:
    found: dict[str, Trace] = {}
    if folder.evaluations.is_there:
        rows = read_numbers(folder.evaluations, EVALUATION_COLUMNS)
        if len(rows["step"]):
            found["greedy"] = _trace(folder, rows["step"], rows["return_mean"])
            found["decisions"] = _trace(folder, rows["step"], rows["decisions_mean"])
            found["length"] = _trace(folder, rows["step"], rows["length_mean"])
            held = rows["length_mean"] / np.maximum(rows["decisions_mean"], 1e-9)
            found["hold"] = _trace(folder, rows["step"], held)
    if folder.metrics.is_there:
        rows = read_numbers(folder.metrics, METRIC_COLUMNS)
        if len(rows["step"]):
            found["training"] = _trace(folder, rows["step"], rolling_mean(rows["return"], WINDOW))
            if "decisions" not in found:
                decisions, length = (rolling_mean(rows[name], WINDOW) for name in ("decisions", "length"))
                found["decisions"] = _trace(folder, rows["step"], decisions)
                found["length"] = _trace(folder, rows["step"], length)
                found["hold"] = _trace(folder, rows["step"], length / np.maximum(decisions, 1e-9))
    return found


def _trace(folder: RunFolder, x: Floats, y: Floats) -> Trace:
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError(f"{folder.path} is damaged: its rows must have finite numbers")
    if np.any(np.diff(x) < 0.0):
        raise InputError(f"{folder.path} is damaged: the steps of its rows must rise")
    return Trace(x, y)


def _holds(folder: RunFolder) -> Holds | None:
    if not folder.holds.is_there:
        return None
    try:
        steps, shares, _ = holds_over_training(folder.path)
    except InputError:
        return None
    return Holds(steps, shares)


def _versions(folder: RunFolder) -> dict[str, str]:
    document = read_json(folder.config_file)
    versions = document.get("versions") if isinstance(document, dict) else None
    return {str(name): str(value) for name, value in versions.items()} if isinstance(versions, dict) else {}


def _seconds(folder: RunFolder) -> float | None:
    if not folder.timing.is_there:
        return None
    try:
        seconds = read_rows(folder.timing, ("seconds",))["seconds"]
    except InputError:
        return None
    # One row per checkpoint, with the time since the one before.
    return float(sum(seconds)) if seconds else None
