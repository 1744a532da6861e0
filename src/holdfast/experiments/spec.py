"""What an experiment is: a list of jobs, what each of them computes, and the picture of all their rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.core.checks import check_choice, check_integer
from holdfast.core.errors import InputError
from holdfast.core.saved_fields import json_copy
from holdfast.core.user_code import user_code
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from holdfast.experiments.guests import Guest

__all__ = ["SCALES", "Experiment", "Job", "differing_names", "no_plan"]

SCALES = ("smoke", "laptop", "paper")
"""Seconds, to check that it works; minutes to an hour on two cores; the paper's own numbers."""

_ID_DIGITS = 12
_LONGEST_VALUE = 40
"""Characters of a value in a title; all arguments of an algorithm would fill a terminal."""


@dataclass(frozen=True)
class Job:
    """One setting with one seed: the unit that is run, stored and never run again.

    Attributes:
        study: Study of its experiment.
        setting: Names and JSON values: strings, numbers and lists of them.
        seed: Root of its random numbers.
        revision: Revision of the experiment; a job of another revision is another job.
    """

    study: str
    setting: Mapping[str, Any]
    seed: int
    revision: int = 1

    def __post_init__(self) -> None:
        if not all(isinstance(name, str) and name.isidentifier() for name in self.setting):
            raise InputError(f"setting must have Python identifiers as names, not {list(self.setting)}")
        object.__setattr__(self, "setting", json_copy(dict(self.setting)))
        check_integer("seed", self.seed, 0)
        check_integer("revision", self.revision)

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that identify the job: the same on every machine and every day."""
        named = {"study": self.study, "revision": self.revision, "setting": self.setting, "seed": self.seed}
        text = json.dumps(named, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:_ID_DIGITS]

    @property
    def title(self) -> str:
        """The job in one line, with long values cut short: ``k_max=8, rule=all, seed 3``."""
        told = [f"{name}={_shortened(str(value))}" for name, value in self.setting.items()]
        return ", ".join([*told, f"seed {self.seed}"])

    def told(self, names: Sequence[str]) -> str:
        """The job in one line, with some names of its setting and its seed."""
        told = [f"{name}={self.setting[name]}" for name in names if name in self.setting]
        return ", ".join([*told, f"seed {self.seed}"])


def _shortened(value: str) -> str:
    return value if len(value) <= _LONGEST_VALUE else f"{value[: _LONGEST_VALUE - 3]}..."


def differing_names(jobs: Sequence[Job]) -> list[str]:
    """Names of the settings in which the jobs differ."""
    names = dict.fromkeys(name for job in jobs for name in job.setting)
    return [name for name in names if len({json.dumps(job.setting.get(name)) for job in jobs}) > 1]


def no_plan(reason: str, scale: str) -> NoReturn:
    """The ``plan`` of an experiment whose jobs come from elsewhere; give it ``reason`` with ``partial``."""
    raise InputError(reason)


@dataclass(frozen=True)
class Experiment:
    """A figure, from its settings to its picture.

    Attributes:
        label: ``fig:sync``; users type it with or without the prefix.
        title: What it shows, in one line.
        columns: Columns of the rows that ``run`` returns. If ``seed`` is among them, a job stands for several
            runs, and its own seed is not a column.
        plan: Settings and seeds at a scale: ``plan("smoke")`` gives (setting, seed) pairs.
        run: Returns the rows of one job: all columns, as sequences of numbers of the same length. The second
            argument is the job's own folder, not yet made, which outlives an interrupted job: use it to train in.
        draw: Draws all rows, with the columns of the settings and the seed beside them. Jobs may be missing.
        summary: Lines to print about the same rows, of at most 80 characters.
        notes: Sentences to print below: what the numbers are, and how this differs from the paper.
        revision: Raise it when ``run`` changes, so that old rows are not mistaken for new ones.
        shared: Name of a study that several experiments draw, with the same ``run``, columns and revision. They
            share their jobs: the rows of one serve the others. None if no other experiment has such jobs.
        alone: Whether to run jobs one at a time, because they measure time.
        join: Returns the figure with other agents beside its own; call ``with_guests``. None if no agent can join.
        job_title: Returns what a running job is called, the most telling first. None for its seed and the settings
            in which the jobs differ.
        reference: Where another process finds the experiment; ``find_experiment`` fills it in.
    """

    label: str
    title: str
    columns: tuple[str, ...]
    plan: Callable[[str], Iterable[tuple[Mapping[str, Any], int]]]
    run: Callable[[Job, Path], Mapping[str, Sequence[float] | Any]]
    draw: Callable[[Table], Figure]
    summary: Callable[[Table], Sequence[str]]
    notes: tuple[str, ...] = ()
    revision: int = 1
    shared: str | None = None
    alone: bool = False
    join: Callable[[Sequence[Guest]], Experiment] | None = None
    job_title: Callable[[Job], str] | None = None
    reference: str = ""

    @property
    def name(self) -> str:
        """The label without its prefix, as typed by users and used in file names."""
        return self.label.removeprefix("fig:")

    @property
    def study(self) -> str:
        """The study that its jobs belong to."""
        return self.label if self.shared is None else self.shared

    def jobs(self, scale: str) -> list[Job]:
        """All jobs of a scale.

        Raises:
            ValueError: There is no such scale, or the plan is not valid.
        """
        check_choice("scale", scale, SCALES)
        if self.label.startswith("fig:"):
            return self.jobs_of(self.plan(scale))
        with user_code(f"plan of {self.label}"):
            plan = list(self.plan(scale))
        if not all(
            isinstance(pair, Sequence) and len(pair) == 2 and isinstance(pair[0], Mapping) for pair in plan
        ):
            raise InputError(f"plan of {self.label} must give pairs of a setting and a seed")
        return self.jobs_of(plan)

    def jobs_of(self, plan: Iterable[tuple[Mapping[str, Any], int]]) -> list[Job]:
        """The jobs of (setting, seed) pairs, which must be distinct."""
        jobs = [Job(self.study, setting, seed, self.revision) for setting, seed in plan]
        if len({job.id for job in jobs}) != len(jobs):
            raise InputError(f"plan must list each setting with each seed once for {self.label}")
        for job in jobs:
            twice = [name for name in job.setting if name in (*self.columns, "seed")]
            if twice:
                raise InputError(f"setting must not have the name of a column, {twice[0]!r}")
        return jobs
