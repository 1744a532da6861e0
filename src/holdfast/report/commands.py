"""The commands that run trainings and jobs again, as far as their folders say how they were run."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.envs import is_own_environment
from holdfast.experiments.figures import LABELS
from holdfast.experiments.manifest import Manifest
from holdfast.experiments.spec import SCALES
from holdfast.experiments.sweep import SWEEP, train_options
from holdfast.experiments.trade_off import TRADE_OFF, is_solved, training_options
from holdfast.experiments.tuning.trials import TUNE, trial_options
from holdfast.policies.own_algorithms import is_own_algorithm
from holdfast.runs.config import RunConfig

__all__ = ["job_command", "run_command"]


def run_command(path: Path, config: RunConfig) -> str:
    """The command that trains a run again; code is named in it, because code named in a file is not run."""
    environment = [config.environment] if is_own_environment(config.environment) else []
    agent = ["--algo", config.algo] if is_own_algorithm(config.algo) else []
    return shlex.join(["holdfast", "train", *environment, *agent, "--config", f"{path}/config.json"])


def job_command(manifest: Manifest, job_id: str) -> str | None:
    """The command that runs a job again, for a figure with all its jobs; None if the manifest does not tell."""
    if manifest.label in LABELS and manifest.scale in SCALES:
        name = manifest.label.removeprefix("fig:")
        return shlex.join(["holdfast", "reproduce", name, "--scale", str(manifest.scale), "--fresh"])
    entry = manifest.jobs[job_id]
    try:
        return _own_command(manifest.label, entry["setting"], entry["seed"])
    except (AttributeError, LookupError, TypeError, ValueError):
        # A manifest may be anybody's.
        return None


def _own_command(label: str, setting: Mapping[str, Any], seed: int) -> str | None:
    """The command for a job of a sweep, a study or a trade-off."""
    if label == TRADE_OFF.label:
        return _solve_command(setting) if is_solved(setting) else _train_command(training_options(setting), seed)
    if label == SWEEP.label:
        return _train_command(train_options(setting), seed)
    if label == TUNE.label:
        return _train_command(trial_options(setting), seed)
    return None


def _solve_command(setting: Mapping[str, Any]) -> str:
    words = ["holdfast", "tradeoff", setting["environment"], "--costs", f"{setting['decision_cost']}"]
    words += ["--persistences", ",".join(map(str, setting["persistences"])), "--gamma", f"{setting['gamma']}"]
    words += ["--episodes", str(setting["evaluation_episodes"])]
    return shlex.join([*words, *_pairs("--env-kwargs", setting.get("env_kwargs", {}))])


def _train_command(options: Mapping[str, Any], seed: int) -> str:
    words = ["holdfast", "train", options["environment"]]
    for name in ("algo", "steps", "episodes", "eval_every", "eval_episodes", "n_envs", "threads", "device"):
        if name in options:
            words += [f"--{name.replace('_', '-')}", str(options[name])]
    words += [*_pairs("--set", options["set"]), *_pairs("--env-kwargs", options.get("env_kwargs", {}))]
    return shlex.join([*words, "--seed", str(seed)])


def _pairs(option: str, arguments: Mapping[str, Any]) -> list[str]:
    return [option, *(f"{name}={_typed(value)}" for name, value in arguments.items())] if arguments else []


def _typed(value: Any) -> str:
    """A value as it is typed: a Python literal, or a text that is not one."""
    if not isinstance(value, str):
        return repr(value)
    try:
        ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
    return repr(value)
