"""What an engine is given, and what it tells."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from holdfast.core.errors import InputError
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.spec import Job
from holdfast.experiments.store import place_entry, table_bytes
from holdfast.files import Entry
from holdfast.runs.step_limit import step_limit

__all__ = ["THREADS", "Ended", "Engine", "Event", "Limits", "Started", "Task", "perform", "print_failure"]

THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
) | {"OMP_WAIT_POLICY": "PASSIVE", "MPLBACKEND": "Agg"}
"""Environment of a process that runs a job: one thread, since there are as many jobs as cores, and no windows."""


@dataclass(frozen=True)
class Task:
    """A job and what it needs to be run.

    Attributes:
        job: The job.
        reference: Where its experiment is found.
        place: A folder of its own within the campaign's, not made yet.
        log: The file for what it says.
        campaign: Name of the campaign in whose folder the place is.
        code: Folder with the user's own modules; None where there are none.
    """

    job: Job
    reference: str
    place: Entry
    log: Entry
    campaign: str
    code: str | None = None

    def document(self) -> dict[str, Any]:
        """What another process must know, as JSON values."""
        job = self.job
        return {
            "study": job.study,
            "setting": dict(job.setting),
            "seed": job.seed,
            "revision": job.revision,
            "reference": self.reference,
            "code": self.code,
        }

    @property
    def whole_place(self) -> Path:
        """The path of the place, from wherever another process is."""
        return self.place.path.absolute()


@dataclass(frozen=True)
class Limits:
    """How long jobs may take, and how often failed ones are repeated.

    Attributes:
        job_seconds: Time limit of a job; None for no limit.
        step_seconds: Time limit of one step or reset of its environment; None for no limit.
        retries: How often a failed job is repeated.
    """

    job_seconds: float | None = None
    step_seconds: float | None = None
    retries: int = 0

    def document(self, task: Task) -> dict[str, Any]:
        """What another process needs to run a task within the limits, as JSON values."""
        return {**task.document(), "step_seconds": self.step_seconds}

    @property
    def too_long(self) -> str:
        """Problem of a job that took too long."""
        return f"it took longer than {self.job_seconds:g} s and was ended"

    def problem_after(self, tries: int, problem: str | None) -> str | None:
        """Problem to report after the last try, with the number of tries."""
        return f"{problem} ({tries} tries)" if problem is not None and tries > 1 else problem


@dataclass(frozen=True)
class Started:
    """A job is run from now on, as far as is known."""

    job: Job


@dataclass(frozen=True)
class Ended:
    """A job is over.

    Attributes:
        job: The job.
        seconds: Time it took.
        data: Its rows as they are stored; None if it failed.
        problem: What it failed with, in a sentence.
    """

    job: Job
    seconds: float
    data: bytes | None
    problem: str | None = None


Event = Started | Ended | None
"""None every now and then, so that the caller can look at the clock."""


@runtime_checkable
class Engine(Protocol):
    """Runs jobs somewhere, for as long as it is open: ``with engine: ...``."""

    def __enter__(self) -> Self:
        """Be ready to run jobs."""
        ...

    def __exit__(self, *error: object) -> None:
        """No more jobs."""
        ...

    def run(self, tasks: Sequence[Task], alone: bool = False) -> Generator[Event, None, None]:
        """Run all tasks, and tell; closing the iterator stops what is running.

        Args:
            tasks: What to run.
            alone: Whether one at a time.
        """
        ...

    def about(self) -> dict[str, Any]:
        """What the manifest is to say of it."""
        ...


def print_failure(error: BaseException) -> None:
    """Print the traceback of a job's failure; the last line is what is told of it."""
    traceback.print_exception(error)
    if isinstance(error, InputError):
        sys.stderr.write(f"{' '.join(str(error).split())}\n")


def perform(document: Mapping[str, Any], place: Path) -> bytes:
    """Run the job of a ``Task.document`` in this process; its rows as they are stored.

    Raises:
        ValueError: The place is a link or behind one, the experiment is another one here than where the job comes
            from, or what ``run`` returned will not do.
    """
    within = place_entry(place)
    if within.is_there and not within.is_folder:
        raise InputError(f"{place} must be a folder, but is a link or something else: remove it")
    code = document["code"]
    if code is not None and code not in sys.path:
        sys.path.insert(0, code)
    experiment = find_experiment(document["reference"])
    job = Job(document["study"], document["setting"], document["seed"], document["revision"])
    if (experiment.study, experiment.revision) != (job.study, job.revision):
        raise InputError(
            f"the job is of {job.study}, revision {job.revision}, and the holdfast here has {experiment.study}, "
            f"revision {experiment.revision}: all machines must have the same version"
        )
    with step_limit(document.get("step_seconds"), job.study):
        return table_bytes(experiment.run(job, place), experiment.columns, experiment.label)
