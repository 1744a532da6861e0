"""Sweeps, studies and figures from a program: what the verbs ``sweep``, ``tune`` and ``reproduce`` run.

Each runs its jobs in processes of this machine, one at a time unless an engine is given, and leaves a campaign's
folder that ``read_campaign`` reads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.core.errors import InputTypeError
from holdfast.experiments.campaign import Standing, run_campaign
from holdfast.experiments.engines.base import Engine
from holdfast.experiments.engines.local import LocalEngine
from holdfast.experiments.guests import Guest, with_guests
from holdfast.experiments.shared_rows import kept_folders
from holdfast.experiments.sweep import grid_jobs
from holdfast.experiments.tuning.ranges import Range
from holdfast.experiments.tuning.study import Trial, drawn_together, make_study, run_study
from holdfast.policies.algorithms import DEFAULT_ALGORITHM
from holdfast.runs.options import named_options

__all__ = ["run_figure", "run_sweep", "run_tuning"]


def run_sweep(
    options: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    folder: str | os.PathLike[str],
    *,
    seeds: int = 3,
    engine: Engine | None = None,
    resume: bool = False,
    code: str | None = None,
) -> Standing:
    """Train an algorithm with every setting of a grid.

    Args:
        options: What all have in common, as ``holdfast.runs.train`` takes it.
        grid: Values by argument; see ``holdfast docs sweep``.
        folder: The sweep's.
        seeds: Each setting is trained with the seeds 0..seeds − 1.
        engine: Where; ``LocalEngine(2)`` runs two jobs at the same time, ``RayEngine`` on a cluster.
        resume: Whether to go on where a part of it is done.
        code: Folder with modules of your own that options or grid name.

    Returns:
        How many jobs are done, and which failed.
    """
    runner = _engine(engine)
    sweep, jobs = grid_jobs({"algo": DEFAULT_ALGORITHM, **named_options(options)}, grid, seeds)
    with runner as opened:
        return run_campaign(sweep, jobs, Path(folder), opened, resume=resume, code=code)


def run_figure(
    label: str,
    folder: str | os.PathLike[str],
    *,
    scale: str = "smoke",
    guests: Sequence[Guest] = (),
    engine: Engine | None = None,
    resume: bool = False,
    code: str | None = None,
) -> Standing:
    """Run the jobs of a figure; see ``holdfast docs reproduce``.

    Args:
        label: The figure.
        folder: The campaign's.
        scale: ``"smoke"``, ``"laptop"`` or ``"paper"``.
        guests: Algorithms that join it.
        engine: Where; see ``run_sweep``.
        resume: Whether to go on where a part of it is done.
        code: Folder with modules of your own.

    Returns:
        How many jobs are done, and which failed.
    """
    from holdfast.experiments.figures import find_experiment

    runner, guests = _engine(engine), _guests(guests)
    experiment = find_experiment(label)
    if guests:
        experiment = with_guests(experiment, guests)
    jobs = experiment.jobs(scale)
    with runner as opened:
        return run_campaign(
            experiment, jobs, Path(folder), opened, scale=scale, resume=resume, kept=kept_folders(), code=code
        )


def run_tuning(
    options: Mapping[str, Any],
    folder: str | os.PathLike[str],
    *,
    trials: int = 50,
    ranges: Mapping[str, Range | None] | None = None,
    seeds: int = 1,
    seed: int = 0,
    prunes: bool = True,
    engine: Engine | None = None,
    at_once: int | None = None,
    resume: bool = False,
    code: str | None = None,
) -> list[Trial]:
    """Tune the arguments of an algorithm; ``best.json`` in the folder has the best trial.

    Args:
        options: What all trials share, as ``holdfast.runs.train`` takes it.
        folder: The study's.
        trials: How many.
        ranges: What is drawn, by argument; None for all documented ranges; see ``holdfast docs tune``.
        seeds: Trainings of each trial.
        seed: Of what is drawn.
        prunes: Whether trials that are behind are stopped.
        engine: Where; see ``run_sweep``.
        at_once: Trials that are drawn together (default: as many as the engine runs at the same time).
        resume: Whether to go on where a part of it is done.
        code: Folder with modules of your own.

    Returns:
        The trials, by number, each with its ``parameters`` and ``score``.
    """
    runner = _engine(engine)
    width = drawn_together(runner) if at_once is None else at_once
    study = make_study(options, ranges, seeds=seeds, seed=seed, prunes=prunes)
    with runner as opened:
        return run_study(study, Path(folder), trials, opened, at_once=width, resume=resume, code=code)


def _engine(engine: Engine | None) -> Engine:
    """Where jobs are run."""
    if engine is None:
        return LocalEngine(1)
    if isinstance(engine, type) or not isinstance(engine, Engine):
        raise InputTypeError(f"engine must be a LocalEngine or a RayEngine, not {engine!r}", "engine")
    return engine


def _guests(guests: Sequence[Guest]) -> Sequence[Guest]:
    """Who joins a figure."""
    if isinstance(guests, str) or not all(isinstance(guest, Guest) for guest in guests):
        raise InputTypeError(
            f"guests must be a list such as [Guest('module:Class', {{'k_max': 8}})], not {guests!r}", "guests"
        )
    return guests
