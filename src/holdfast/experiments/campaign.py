"""Running the jobs of an experiment: those that are not done, each once, whatever happens to some of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.core.errors import InputError
from holdfast.experiments.engines.base import Ended, Engine, Event, Started, Task
from holdfast.experiments.manifest import Manifest, ManifestFile, new_manifest, read_manifest
from holdfast.experiments.shared_rows import take_rows
from holdfast.experiments.spec import Experiment, Job, differing_names
from holdfast.experiments.store import KeptRows, Store, row_folder, sentence_if_full
from holdfast.files import Entry, folder_in_use
from holdfast.runs.stopping import StopRequest

__all__ = ["Failure", "Standing", "check_campaign_folder", "run_campaign"]


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
    log: Entry


@dataclass
class Standing:
    """How a campaign stands.

    Attributes:
        total: Number of jobs.
        before: Jobs that were done when it began.
        sources: How many jobs' rows were then taken, by where they came from.
        done: Jobs that are done.
        others: Jobs with rows that are not among those which are to be run.
        planned: Number of all jobs, where only a part of them is to be run.
        running: When each of the running jobs began, by what tells the job from others.
        failures: Jobs that failed.
        began: When it began, by the monotonic clock.
        ended: When it ended; None before that.
        is_stopped: Whether somebody wanted it to stop.
    """

    total: int
    before: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    done: int = 0
    others: int = 0
    planned: int | None = None
    running: dict[str, float] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    is_stopped: bool = False

    @property
    def taken(self) -> int:
        """Jobs whose rows were taken from elsewhere."""
        return self.sources.total()

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


def check_campaign_folder(
    experiment: Experiment,
    jobs: Sequence[Job],
    folder: Path,
    resume: bool,
    scale: str | None = None,
    chosen: Sequence[Job] | None = None,
) -> int:
    """See whether jobs, or those of them that are chosen, may be run into a folder; how many of these are done.

    Raises:
        ValueError: There are rows of other settings, or some of the rows without the request to continue.
    """
    store = Store(folder)
    if folder.is_dir() and folder_in_use(folder):
        # Says by whom.
        with store.locked():
            pass
    return _check_unlocked(experiment, jobs, store, resume, scale, jobs if chosen is None else chosen)


def _check_unlocked(
    experiment: Experiment,
    jobs: Sequence[Job],
    store: Store,
    resume: bool,
    scale: str | None,
    chosen: Sequence[Job],
) -> int:
    folder = store.folder
    if isinstance(row_folder(folder), KeptRows):
        raise InputError(f"{folder} holds kept rows, to which finished campaigns are added: choose another folder")
    manifest = read_manifest(folder)
    if manifest is None:
        if store.stored():
            raise InputError(f"{folder} has rows and no manifest.json: choose another folder, or remove it")
        return 0
    wanted = new_manifest(experiment, scale).what
    if manifest.what != wanted:
        raise InputError(
            f"{folder} holds a campaign of {manifest.what}, not of {wanted}: choose another folder, or remove it"
        )
    done = store.done(jobs, manifest) & {job.id for job in chosen}
    # What was taken from elsewhere is no reason to ask.
    is_begun = any("taken_from" not in manifest.jobs.get(job_id, {}) for job_id in done)
    if is_begun and len(done) < len(chosen) and not resume:
        raise InputError(
            f"{folder} has the rows of {len(done)} of {len(chosen)} jobs: give resume=True to continue it, "
            "or choose another folder",
            "resume",
        )
    return len(done)


def run_campaign(
    experiment: Experiment,
    jobs: Sequence[Job],
    folder: Path,
    engine: Engine,
    *,
    scale: str | None = None,
    chosen: Sequence[Job] | None = None,
    resume: bool = False,
    fresh: bool = False,
    kept: Sequence[Path] = (),
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
        chosen: Those of them that are to be run; None for all.
        resume: Whether to go on where a part of them is done.
        fresh: Whether to run also what another figure's campaign or a folder of kept rows has rows of.
        kept: Folders of kept rows.
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
            chosen = jobs if chosen is None else chosen
            _check_unlocked(experiment, jobs, store, resume, scale, chosen)
            store.begin()
            manifest = read_manifest(folder) or new_manifest(experiment, scale)
            manifest.plan_jobs(jobs, store.stored())
            done = store.done(jobs, manifest)
            ids = {job.id for job in chosen}
            standing = Standing(len(chosen), before=len(done & ids), done=len(done & ids))
            file = ManifestFile(folder, manifest, store.check_lock)
            missing = [job for job in jobs if job.id not in done]
            if missing:
                _note_found(jobs, done, store, manifest)
                file.write()
            if not fresh:
                for job in take_rows(experiment, missing, store, manifest, kept):
                    done.add(job.id)
                    if job.id in ids:
                        standing.done += 1
                        standing.sources[manifest.jobs[job.id]["taken_from"]] += 1
                    file.write(is_urgent=False)
            if len(chosen) < len(jobs):
                standing.others, standing.planned = len(done - ids), len(jobs)
            todo = [job for job in chosen if job.id not in done]
            if todo:
                manifest.begin_session(engine.about())
                names = differing_names(jobs)
                title_of = experiment.job_title or (lambda job: job.told(names))
                titles = {job.id: title_of(job) for job in todo}
                tasks = [
                    Task(
                        job,
                        experiment.reference,
                        store.job_folder(job.id),
                        store.log_of(job.id),
                        manifest.campaign,
                        code,
                    )
                    for job in todo
                ]
                file.write()
                with closing(engine.run(tasks, experiment.alone)) as events, _session(standing, file):
                    told(standing)
                    for event in events:
                        _note_event(event, titles, store, standing, file)
                        told(standing)
                        if stop:
                            standing.is_stopped = True
                            break
            elif missing:
                file.write()
            standing.ended = time.monotonic()
            return standing


@contextmanager
def _session(standing: Standing, file: ManifestFile) -> Iterator[None]:
    """Whatever happens, the manifest says in the end that the session is over."""
    try:
        yield
    finally:
        standing.running.clear()
        standing.ended = time.monotonic()
        file.manifest.end_session()
        # Where the disk is full or the folder is gone, that has been said already.
        with suppress(OSError, InputError):
            file.write()


def _note_found(jobs: Sequence[Job], done: Collection[str], store: Store, manifest: Manifest) -> None:
    """Note what rows are that a killed campaign had no time to note."""
    for job in jobs:
        if job.id in done and manifest.digest_of(job.id) is None:
            data = store.sound_bytes(job.id, manifest)
            if data is not None:
                manifest.note_found(job, data)


def _note_event(
    event: Event, titles: Mapping[str, str], store: Store, standing: Standing, file: ManifestFile
) -> None:
    """Store the rows of a job that is over, and note how it stands."""
    if isinstance(event, Started):
        standing.running[titles[event.job.id]] = time.monotonic()
    elif isinstance(event, Ended):
        store.check_lock()
        standing.running.pop(titles[event.job.id], None)
        if event.data is not None:
            store.write(event.job, event.data)
            file.manifest.note_done(event.job, event.seconds, event.data)
            standing.done += 1
        else:
            problem = event.problem or "it failed for an unknown reason"
            file.manifest.note_failed(event.job, event.seconds, problem)
            standing.failures.append(Failure(event.job, problem, store.log_of(event.job.id)))
        file.write(is_urgent=False)
