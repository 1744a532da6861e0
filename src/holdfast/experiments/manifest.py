"""The manifest of a campaign: its experiment, its jobs, and the sessions in which they ran, as one document."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import secrets
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_integer, take_list, take_mapping
from holdfast.experiments.spec import Experiment, Job
from holdfast.files import Entry, read_json, replace_json
from holdfast.runs.config import versions

__all__ = ["FORMAT", "MANIFEST", "Manifest", "ManifestFile", "digest", "new_manifest", "read_manifest"]

FORMAT = 1
MANIFEST = "manifest.json"

_SHARE = 0.05
"""Largest share of the time that writing the manifest may take."""


@dataclass
class Manifest:
    """The manifest of a campaign.

    Attributes:
        label: Experiment's label.
        study: The study that its jobs belong to.
        title: What the experiment shows.
        revision: Experiment's revision.
        scale: Scale of the jobs; None if they were chosen in another way.
        columns: Columns of the rows.
        campaign: A random name by which a worker recognises the folder that it was told about.
        jobs: Jobs by id: setting and seed; once run, also seconds, session, and either the failure or the SHA-256
            of the rows; ``taken_from`` if the rows come from another campaign.
        sessions: When, where and with which versions jobs were run; sessions of other campaigns whose rows were
            taken have ``of``, the other campaign's folder.
    """

    label: str
    study: str
    title: str
    revision: int
    scale: str | None
    columns: tuple[str, ...]
    campaign: str = field(default_factory=lambda: secrets.token_hex(8))
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    sessions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def what(self) -> str:
        """Experiment, scale and revision in words."""
        scaled = "" if self.scale is None else f" at scale {self.scale}"
        return f"{self.label}{scaled}, revision {self.revision}"

    def plan_jobs(self, jobs: Sequence[Job], stored: Collection[str] = ()) -> None:
        """List jobs that are not listed yet; drop those that are no longer wanted, unless they have rows."""
        wanted = {job.id for job in jobs}
        self.jobs = {job_id: entry for job_id, entry in self.jobs.items() if job_id in wanted or job_id in stored}
        for job in jobs:
            self.jobs.setdefault(job.id, {"setting": dict(job.setting), "seed": job.seed})

    def digest_of(self, job_id: str) -> str | None:
        """SHA-256 of a job's rows; None if it was not recorded."""
        found: str | None = self.jobs.get(job_id, {}).get("sha256")
        return found

    def begin_session(self, engine: Mapping[str, Any]) -> None:
        """Record who runs jobs from now on."""
        self.sessions.append(
            {
                "began": _now(),
                "ended": None,
                "versions": {**versions(), **_more_versions()},
                "commit": _commit(),
                "machine": _machine(),
                "engine": dict(engine),
            }
        )

    def end_session(self) -> None:
        """Record that no more jobs are run."""
        self.sessions[-1]["ended"] = _now()

    def note_done(self, job: Job, seconds: float, data: bytes) -> None:
        """Record that a job was run, and the digest of its rows."""
        self._note(job, {"seconds": round(seconds, 3), "session": len(self.sessions) - 1, "sha256": digest(data)})

    def note_failed(self, job: Job, seconds: float, problem: str) -> None:
        """Record that a job was run, and how it failed."""
        self._note(job, {"seconds": round(seconds, 3), "session": len(self.sessions) - 1, "failed": problem})

    def note_found(self, job: Job, data: bytes) -> None:
        """Record the digest of a job's rows if whoever ran it could no longer do so."""
        self._note(job, {"sha256": digest(data)})

    def note_taken(self, job: Job, data: bytes, theirs: Manifest, folder: str) -> None:
        """Record that a job's rows come from another campaign, and in which of its sessions they were made."""
        noted: dict[str, Any] = {"sha256": digest(data), "taken_from": folder, **_seconds(theirs.jobs[job.id])}
        session = theirs.session_of(job.id)
        if session is not None:
            made = {"of": folder, **session}
            noted |= {"taken_from": made["of"], "session": self._session_number(made)}
        self._note(job, noted)

    def note_kept(self, job: Job, data: bytes, theirs: Manifest) -> None:
        """Record that a job's rows are kept, and in which session they were made, without the machine's name."""
        noted: dict[str, Any] = {"sha256": digest(data), **_seconds(theirs.jobs[job.id])}
        session = theirs.session_of(job.id)
        if session is not None:
            noted["session"] = self._session_number(_without_names(session))
        self._note(job, noted)

    def session_of(self, job_id: str) -> dict[str, Any] | None:
        """The session in which a job's rows were made; None if it was not recorded."""
        session = self.jobs.get(job_id, {}).get("session")
        return self.sessions[session] if isinstance(session, int) and 0 <= session < len(self.sessions) else None

    def _session_number(self, made: dict[str, Any]) -> int:
        """The position of a session in the list, adding it if needed; a listed session may have ended since."""
        for number, known in enumerate(self.sessions):
            if {**known, "ended": None} == {**made, "ended": None}:
                self.sessions[number] = made if known.get("ended") is None else known
                return number
        self.sessions.append(made)
        return len(self.sessions) - 1

    def _note(self, job: Job, noted: Mapping[str, Any]) -> None:
        """Record all that is known about a job, replacing what was recorded before."""
        self.jobs[job.id] = {"setting": dict(job.setting), "seed": job.seed, **noted}

    @property
    def is_of_one_version(self) -> bool:
        """Whether all rows were made by one commit of holdfast with the same versions of everything."""
        used = {int(entry["session"]) for entry in self.jobs.values() if "sha256" in entry and "session" in entry}
        made = [self.sessions[session] for session in used if session < len(self.sessions)]
        return all(one.get(name) == made[0].get(name) for one in made for name in ("commit", "versions"))

    def document(self) -> dict[str, Any]:
        """The manifest as it is written."""
        return {
            "format": FORMAT,
            "label": self.label,
            "study": self.study,
            "title": self.title,
            "revision": self.revision,
            "scale": self.scale,
            "columns": list(self.columns),
            "campaign": self.campaign,
            "sessions": self.sessions,
            "jobs": self.jobs,
        }


class ManifestFile:
    """The file of a manifest: written often, but not so often that it takes much time.

    Args:
        folder: Campaign's folder.
        manifest: The manifest to write.
        check: Called before writing; raises if the file must not be written.
    """

    def __init__(self, folder: Path, manifest: Manifest, check: Callable[[], None] = lambda: None) -> None:
        self._file = Entry(folder) / MANIFEST
        self.manifest = manifest
        self._check = check
        self._not_before = 0.0

    def write(self, is_urgent: bool = True) -> None:
        """Write the manifest; if it is not urgent, it may wait for the next time."""
        began = time.monotonic()
        if not is_urgent and began < self._not_before:
            return
        self._check()
        replace_json(self._file, self.manifest.document())
        now = time.monotonic()
        self._not_before = now + (now - began) / _SHARE


def new_manifest(experiment: Experiment, scale: str | None) -> Manifest:
    """The manifest of a campaign that has no jobs yet."""
    return Manifest(
        experiment.label, experiment.study, experiment.title, experiment.revision, scale, experiment.columns
    )


def digest(data: bytes) -> str:
    """SHA-256 of stored rows."""
    return hashlib.sha256(data).hexdigest()


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in a folder; None if there is none.

    Raises:
        ValueError: It is damaged, or has a newer format.
    """
    path = Entry(folder) / MANIFEST
    if not path.is_there:
        return None
    document = read_json(path)
    try:
        found = take_integer(document, "format")
        if found != FORMAT:
            raise InputError(f"it has format {found}, but this version of holdfast reads {FORMAT}")
        texts = {name: take(document, name) for name in ("label", "study", "title", "campaign")}
        scale = take(document, "scale")
        if not all(isinstance(text, str) and text.isprintable() for text in texts.values()):
            raise InputError("label, study, title and campaign must be printable strings")
        if scale is not None and not isinstance(scale, str):
            raise InputError("scale must be a string")
        revision = take_integer(document, "revision", 1)
        listed = take_mapping(document, "jobs")
        jobs = {job_id: dict(take_mapping(listed, job_id)) for job_id in listed}
        for job_id, entry in jobs.items():
            job = Job(texts["study"], take_mapping(entry, "setting"), take_integer(entry, "seed"), revision)
            if "session" in entry:
                take_integer(entry, "session")
            if job.id != job_id:
                raise InputError(f"the job {job_id} was run with another setting or seed")
        return Manifest(
            **texts,
            scale=scale,
            revision=revision,
            columns=tuple(take_list(document, "columns", str)),
            jobs=jobs,
            sessions=take_list(document, "sessions", dict),
        )
    except InputError as error:
        raise InputError(f"{path} is damaged: {error}") from None


def _seconds(entry: Mapping[str, Any]) -> dict[str, float]:
    seconds = entry.get("seconds")
    return {"seconds": seconds} if isinstance(seconds, int | float) and not isinstance(seconds, bool) else {}


def _without_names(session: Mapping[str, Any]) -> dict[str, Any]:
    """A session without the names of its machine and cluster, which are private."""
    private = {"machine": "host", "engine": "address"}
    return {
        name: {inner: known for inner, known in value.items() if inner != private.get(name)}
        if isinstance(value, Mapping)
        else value
        for name, value in session.items()
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _more_versions() -> dict[str, str]:
    found = {}
    for package in ("scipy", "matplotlib", "ray", "optuna"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _machine() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.machine(),
        "processors": os.cpu_count(),
    }


def _commit() -> str | None:
    """The commit that holdfast runs from, with a + if files differ from it; None if there is no clone."""
    here = Path(__file__).resolve().parent
    try:
        commit = _git(here, "rev-parse", "HEAD")
        return commit + ("+" if _git(here, "status", "--porcelain", "--", str(here.parent)) else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *command: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *command], capture_output=True, text=True, check=True, timeout=20
    ).stdout.strip()
