"""What an experiment is: a list of jobs, what each of them computes, and what is drawn of all their rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.checks import check_choice, check_integer
from holdfast.core.errors import InputError
from holdfast.core.saved_fields import json_copy
from holdfast.core.user_code import user_code
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SCALES", "Experiment", "Job", "differing_names"]

SCALES = ("smoke", "laptop", "paper")
"""Seconds, to see that it works; minutes to an hour on two cores; the paper's own numbers."""

_ID_DIGITS = 12


@dataclass(frozen=True)
class Job:
    """One setting with one seed: what is run, stored and never run again.

    Attributes:
        study: Of its experiment.
        setting: Names and JSON values; texts, numbers and lists of them.
        seed: Root of its random numbers.
        revision: Of the experiment; a job of another revision is another job.
    """

    study: str
    setting: Mapping[str, Any]
    seed: int
    revision: int = 1

    def __post_init__(self) -> None:
        if not all(isinstance(name, str) and name.isidentifier() for name in self.setting):
            raise InputError(f"setting must have names as Python has them, not {list(self.setting)}")
        object.__setattr__(self, "setting", json_copy(dict(self.setting)))
        check_integer("seed", self.seed, 0)
        check_integer("revision", self.revision)

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that name the job: the same on every machine, on every day."""
        named = {"study": self.study, "revision": self.revision, "setting": self.setting, "seed": self.seed}
        text = json.dumps(named, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:_ID_DIGITS]

    @property
    def title(self) -> str:
        """The job in a line: ``k_max=8, rule=all, seed 3``."""
        return self.told(list(self.setting))

    def told(self, names: Sequence[str]) -> str:
        """The job in a line with some names of its setting, and its seed."""
        told = [f"{name}={self.setting[name]}" for name in names if name in self.setting]
        return ", ".join([*told, f"seed {self.seed}"])


def differing_names(jobs: Sequence[Job]) -> list[str]:
    """Names of the settings in which jobs differ."""
    names = dict.fromkeys(name for job in jobs for name in job.setting)
    return [name for name in names if len({json.dumps(job.setting.get(name)) for job in jobs}) > 1]


@dataclass(frozen=True)
class Experiment:
    """A figure, from its settings to its picture.

    Attributes:
        label: ``fig:sync``; what users type, with or without the prefix.
        title: What it shows, in a line.
        columns: Of the rows that ``run`` returns. With a column ``seed`` among them a job stands for several runs,
            and its own seed is no column.
        plan: Settings and seeds at a scale: ``plan("smoke")`` gives (setting, seed) pairs.
        run: The rows of one job: all columns, as sequences of numbers of one length. The second argument is a
            folder of the job's own, not made yet, that outlives a job that was stopped: for training into.
        draw: The picture of all rows, with the settings' columns and the seed's beside them. Jobs may be missing.
        summary: What is to be printed of the same rows, in lines of at most 80 letters.
        notes: Sentences to be printed below: what the numbers are, and where this differs from the paper.
        revision: To be raised when ``run`` changes, so that old rows are not taken for new ones.
        shared: Name of a study that several experiments draw, with the same ``run``, columns and revision. A job
            of theirs is one job: the rows of one are taken for another. None where nobody else has such jobs.
        alone: Whether jobs are run one at a time: they measure time.
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
    reference: str = ""

    @property
    def name(self) -> str:
        """The label without its prefix, as users type it and files are called."""
        return self.label.removeprefix("fig:")

    @property
    def study(self) -> str:
        """What its jobs belong to."""
        return self.label if self.shared is None else self.shared

    def jobs(self, scale: str) -> list[Job]:
        """All jobs of a scale.

        Raises:
            ValueError: There is no such scale, or the plan is not one.
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
        """The jobs of (setting, seed) pairs, which must differ."""
        jobs = [Job(self.study, setting, seed, self.revision) for setting, seed in plan]
        if len({job.id for job in jobs}) != len(jobs):
            raise InputError(f"plan must list each setting with each seed once for {self.label}")
        for job in jobs:
            twice = [name for name in job.setting if name in (*self.columns, "seed")]
            if twice:
                raise InputError(f"setting must not have the name of a column, {twice[0]!r}")
        return jobs
