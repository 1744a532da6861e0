"""Running the jobs of an experiment: those that are not done, each once, whatever happens to some of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.experiments.engines.base import Ended, Engine, Started, Task
from holdfast.experiments.manifest import ManifestFile, new_manifest, read_manifest
from holdfast.experiments.sharing import take_shared_rows
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.store import Store, sentence_if_full
from holdfast.runs.stopping import StopRequest

__all__ = ["Failure", "Standing", "check_folder", "run_campaign"]


@dataclass(frozen=True)
class Failure:
    """A job that failed.

    Attributes:
        job: The job.
        problem: What it failed with, in a sentence.
        log: What it said.
    """

    job: Job
    problem: str
    log: Path


@dataclass
class Standing:
    """How a campaign stands.

    Attributes:
        total: Number of jobs.
        before: Jobs that were done when it began.
        taken: Jobs whose rows were then taken from other campaigns.
        done: Jobs that are done.
        running: When each of the running jobs began, by the job's title.
        failures: Jobs that failed.
        began: When it began, by the monotonic clock.
        ended: When it ended; None before that.
        is_stopped: Whether somebody wanted it to stop.
    """

    total: int
    before: int = 0
    taken: int = 0
    done: int = 0
    running: dict[str, float] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    is_stopped: bool = False

    @property
    def seconds(self) -> float:
        """Time since it began, or that it took."""
        return (time.monotonic() if self.ended is None else self.ended) - self.began

    @property
    def seconds_left(self) -> float | None:
        """At the present pace; None before there is one."""
        over = self.done - self.before - self.taken + len(self.failures)
        left = self.total - self.done - len(self.failures)
        if left == 0:
            return 0.0
        return self.seconds / over * left if over else None


def check_folder(
    experiment: Experiment, jobs: Sequence[Job], folder: Path, resume: bool, scale: str | None = None
) -> int:
    """See whether the jobs may be run into a folder; how many of them are done.

    Raises:
        ValueError: There are rows of other settings, or a part of the rows and nobody has said that it is to be
            gone on with.
    """
    store = Store(folder)
    manifest = read_manifest(folder)
    if manifest is None:
        if store.stored():
            raise ValueError(f"{folder} has rows and no manifest.json: give another -o, or remove it")
        return 0
    wanted = new_manifest(experiment, scale).what
    if manifest.what != wanted:
        raise ValueError(
            f"{folder} holds a campaign of {manifest.what}, not of {wanted}: give another -o, or remove it"
        )
    done = len(store.done(jobs, experiment.columns))
    if 0 < done < len(jobs) and not resume:
        raise ValueError(
            f"{folder} has the rows of {done} of {len(jobs)} jobs: give --resume to go on with it, "
            "or -o to begin elsewhere"
        )
    return done


def run_campaign(
    experiment: Experiment,
    jobs: Sequence[Job],
    folder: Path,
    engine: Engine,
    *,
    scale: str | None = None,
    resume: bool = False,
    code: str | None = None,
    stop: StopRequest | None = None,
    told: Callable[[Standing], None] = lambda standing: None,
) -> Standing:
    """Run the jobs whose rows are not in ``folder`` yet.

    Args:
        experiment: Whose jobs they are.
        jobs: All of them, also those that are done.
        folder: The campaign's.
        engine: Where they are run; open.
        scale: Of the jobs, for the manifest.
        resume: Whether to go on where a part of them is done.
        code: Folder with the user's own modules.
        stop: Whether to stop.
        told: Is told how it stands, several times a second.

    Raises:
        ValueError: The folder will not do, is in use, or its disk is full; nothing is half-written.
    """
    store = Store(folder)
    stop = StopRequest() if stop is None else stop
    with sentence_if_full(store):
        store.create()
        with store.locked():
            check_folder(experiment, jobs, folder, resume, scale)
            store.begin()
            done = store.done(jobs, experiment.columns)
            standing = Standing(len(jobs), before=len(done), done=len(done))
            manifest = read_manifest(folder) or new_manifest(experiment, scale)
            manifest.add_jobs(jobs)
            todo = [job for job in jobs if job.id not in done]
            file = ManifestFile(folder, manifest)
            if todo:
                file.write()
            for job in take_shared_rows(experiment, todo, store, manifest):
                done.add(job.id)
                standing.done += 1
                standing.taken += 1
            todo = [job for job in todo if job.id not in done]
            if not todo:
                if standing.taken:
                    file.write()
                standing.ended = time.monotonic()
                return standing
            manifest.begin_session(engine.about())
            file.write()
            tasks = [
                Task(
                    job,
                    experiment.reference,
                    store.runs / job.id,
                    store.log_of(job.id),
                    manifest.campaign,
                    code,
                )
                for job in todo
            ]
            try:
                with closing(engine.run(tasks, experiment.alone)) as events:
                    told(standing)
                    for event in events:
                        if isinstance(event, Started):
                            standing.running[event.job.title] = time.monotonic()
                        elif isinstance(event, Ended):
                            _ended(event, store, standing)
                            manifest.note(event.job, event.seconds, event.problem)
                            file.write(is_urgent=False)
                        told(standing)
                        if stop:
                            standing.is_stopped = True
                            break
            finally:
                standing.running.clear()
                standing.ended = time.monotonic()
                manifest.end_session()
                # Where the disk is full, that has been said already.
                with suppress(OSError):
                    file.write()
            return standing


def _ended(event: Ended, store: Store, standing: Standing) -> None:
    standing.running.pop(event.job.title, None)
    if event.data is not None:
        store.write(event.job, event.data)
        standing.done += 1
    else:
        problem = event.problem or "nobody knows why"
        standing.failures.append(Failure(event.job, problem, store.log_of(event.job.id)))
