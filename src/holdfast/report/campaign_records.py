"""Campaigns as records: sweeps, figures of the paper and kept rows, one record for each seed of each job."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.core.array_types import Floats
from holdfast.core.errors import InputError
from holdfast.experiments.figures import LABELS, find_experiment
from holdfast.experiments.manifest import Manifest, read_manifest
from holdfast.experiments.spec import Experiment
from holdfast.experiments.store import RowFolder, Store, read_manifest_and_rows, row_folder
from holdfast.experiments.sweep import SWEEP
from holdfast.experiments.tables import Table
from holdfast.experiments.trade_off import TRADE_OFF
from holdfast.policies.algorithms import ALGORITHMS
from holdfast.report.commands import job_command
from holdfast.report.exhibits import figure_exhibit, text_exhibit
from holdfast.report.records import Findings, Problem, Record, Trace
from holdfast.report.run_records import WINDOW, flat_setting, run_record
from holdfast.runs.curves import rolling_mean
from holdfast.runs.directory import RunFolder

__all__ = ["campaign_findings"]

_AXES = {"step": "steps", "episode": "episodes", "iteration": "iterations"}
_TASKS = ("environment", "env_label", "task", "world", "map", "grid", "env")
_AGENTS = ("agent", "driver", "algo", "algorithm", "method", "rule")
_CLASSES = {
    "DQN": "dqn",
    "PerDQN": "perdqn",
    "MSADQN": "msa-dqn",
    "TempoRLDQN": "temporl-dqn",
    "EZGreedyDQN": "ez-dqn",
    "TD3": "td3",
    "PerTD3": "pertd3",
    "SAC": "sac",
    "PerSAC": "persac",
    "QLearning": "q",
    "PerQLearning": "perq",
    "MSAQLearning": "msa-q",
    "TempoRLQLearning": "temporl-q",
    "EZGreedyQLearning": "ez-q",
}
"""What an algorithm's class is called here."""


def campaign_findings(folder: Path, name: str) -> Findings:
    """What a campaign, a sweep or a folder of kept rows has to show.

    Args:
        folder: Its folder.
        name: What it is called on the page.

    Raises:
        ValueError: It is damaged as a whole.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"{folder} must be the folder of a campaign, and has no manifest.json")
    found = Findings()
    rows, stored = row_folder(folder), set(row_folder(folder).stored())
    for job_id in manifest.jobs:
        try:
            found.records += _job_records(rows, manifest, job_id, name, job_id in stored)
        except (InputError, OSError) as error:
            found.problems.append(Problem(f"{name}, job {job_id}", " ".join(str(error).split())))
    missing = [job_id for job_id in manifest.jobs if job_id not in stored]
    failures = [str(manifest.jobs[job_id]["failed"]) for job_id in missing if "failed" in manifest.jobs[job_id]]
    total = len(manifest.jobs)
    if failures:
        found.problems.append(
            Problem(name, f"failed: {len(failures)} of its {total} jobs, the last with: {failures[-1]}")
        )
    if len(missing) > len(failures):
        found.problems.append(
            Problem(name, f"unfinished: {len(missing) - len(failures)} of its {total} jobs have no rows yet")
        )
    if stored:
        _show_figure(folder, manifest, name, found)
    return found


def _job_records(rows: RowFolder, manifest: Manifest, job_id: str, name: str, is_stored: bool) -> Iterator[Record]:
    """The record of a job's own run if it has one, else those of the seeds in its rows, or one without curves."""
    about = _about(manifest, job_id)
    place = rows.job_folder(job_id).path if isinstance(rows, Store) else None
    if place is not None and RunFolder(place).is_run:
        record = run_record(place, f"{name}/runs/{job_id}")
        if record.status == "unfinished":
            # A job that is over knows better than its run, which could be continued.
            failed = "failed" in manifest.jobs[job_id]
            record = replace(
                record, status="stopped early" if is_stored else "failed" if failed else record.status
            )
        yield replace(record, **{key: value for key, value in about.items() if value})
        return
    if not is_stored:
        return
    entry = manifest.jobs[job_id]
    table = rows.read(job_id, manifest)
    setting = flat_setting(dict(entry["setting"]))
    family, algo = _agent(setting)
    job = Record(
        name=f"{name}, job {job_id}",
        task=_task(setting, manifest),
        agent=family,
        algo=algo,
        setting=setting,
        seed=entry["seed"],
        axis="rows",
        traces={},
        status="failed" if "failed" in entry else "finished",
        done=float(max(map(len, table.values()), default=0)),
        again=job_command(manifest, job_id),
        **about,
    )
    axis = next((column for column in _AXES if column in table), None)
    if axis is None:
        yield job
        return
    seeds = table.get("seed", np.full(len(table[axis]), entry["seed"], dtype=np.float64))
    if not (np.isfinite(table[axis]).all() and np.isfinite(seeds).all()):
        raise InputError(f"{rows.path_of(job_id)} is damaged: {axis} and seed must be finite numbers")
    parts = {
        seed: {column: values[seeds == seed] for column, values in table.items()} for seed in np.unique(seeds)
    }
    traces = {seed: _traces(part, axis, manifest) for seed, part in parts.items()}
    if not all(traces.values()) or any(np.any(np.diff(part[axis]) <= 0.0) for part in parts.values()):
        # Rows have a further axis, such as the persistence: they are no curve.
        yield job
        return
    for seed, part in parts.items():
        yield replace(
            job,
            name=job.name + (f", seed {seed:g}" if "seed" in table else ""),
            seed=int(seed),
            axis=_AXES[axis],
            traces=traces[seed],
            done=float(part[axis][-1]),
        )


def _about(manifest: Manifest, job_id: str) -> dict[str, Any]:
    """What a manifest says of a job; what is not of its kind is left out, since a manifest may be anybody's."""
    session = manifest.session_of(job_id) or {}
    versions, commit, seconds = (
        session.get("versions"),
        session.get("commit"),
        manifest.jobs[job_id].get("seconds"),
    )
    return {
        "versions": {str(name): str(value) for name, value in versions.items()}
        if isinstance(versions, dict)
        else {},
        "commit": commit if isinstance(commit, str) else None,
        "seconds": float(seconds) if isinstance(seconds, int | float) and math.isfinite(seconds) else None,
    }


def _traces(part: Table, axis: str, manifest: Manifest) -> dict[str, Trace]:
    """Those of the columns that this page knows, by the names of its quantities."""
    names = {"greedy": "greedy", "decisions": "decisions", "length": "length", "training_return": "training"}
    if "training_return" in part:
        names["return"] = "greedy"
    elif "greedy" in part or manifest.label == SWEEP.label:
        names["return"] = "training"
    else:
        names["return"] = "return"
    x = part[axis]
    found = {}
    for column, quantity in names.items():
        if column in part and np.isfinite(part[column]).all():
            is_per_episode = manifest.label == SWEEP.label
            found[quantity] = Trace(x, rolling_mean(part[column], WINDOW) if is_per_episode else part[column])
    if "decisions" in found and "length" in found:
        held: Floats = found["length"].y / np.maximum(found["decisions"].y, 1e-9)
        found["hold"] = Trace(x, held)
    return found


def _task(setting: Mapping[str, Any], manifest: Manifest) -> str:
    for name in _TASKS:
        if isinstance(setting.get(name), str):
            return str(setting[name])
    return manifest.title


def _agent(setting: Mapping[str, Any]) -> tuple[str, str]:
    """What the kind of an agent is called, and the algorithm whose colour it has."""
    named = next((str(setting[name]) for name in _AGENTS if setting.get(name) is not None), "all jobs")
    kind = str(setting.get("algorithm", setting.get("algo", named)))
    algo = _CLASSES.get(kind, kind if kind in ALGORITHMS else "")
    if named in ALGORITHMS:
        return ALGORITHMS[named].title, named
    return named, algo


def _show_figure(folder: Path, manifest: Manifest, name: str, found: Findings) -> None:
    """The experiment's own picture and numbers, unless the experiment is a user's code, which is not run here."""
    experiment = _experiment(manifest)
    if experiment is None:
        return
    try:
        _, rows = read_manifest_and_rows(folder, experiment)
        lines = experiment.summary(rows)
        picture = figure_exhibit(experiment.draw(rows), manifest.title, name, is_wide=True)
    except (InputError, OSError, ArithmeticError, LookupError, ValueError) as error:
        found.problems.append(
            Problem(name, f"its picture cannot be drawn from these rows: {' '.join(str(error).split())}")
        )
        return
    found.exhibits += [picture, text_exhibit("\n".join(lines), f"{manifest.title}: the numbers", name)]


def _experiment(manifest: Manifest) -> Experiment | None:
    for known in (SWEEP, TRADE_OFF):
        if manifest.label == known.label:
            return known
    return find_experiment(manifest.label) if manifest.label in LABELS else None
