"""What a campaign is: its experiment, its jobs, and the sessions in which they were run, as one document."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import secrets
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.core.saved import take, take_integer, take_list, take_mapping
from holdfast.experiments.spec import Experiment, Job
from holdfast.files import read_json, replace_json
from holdfast.runs.config import versions

__all__ = ["FORMAT", "MANIFEST", "Manifest", "read_manifest"]

FORMAT = 1
MANIFEST = "manifest.json"

_SHARE = 0.05
"""Part of the time that writing it may take."""


@dataclass
class Manifest:
    """The manifest of a campaign.

    Attributes:
        label: Of the experiment.
        title: What it shows.
        revision: Of the experiment.
        scale: Of the jobs; None where they were chosen in another way.
        columns: Of the rows.
        campaign: A name drawn at random, by which a worker knows the folder it was told of.
        jobs: By id: setting, seed, and once they were run seconds, session, and what failed; or where rows were
            taken from, and the seconds that they took there.
        sessions: When, where and with what jobs were run.
    """

    label: str
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

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """List jobs that are not listed yet."""
        for job in jobs:
            self.jobs.setdefault(job.id, {"setting": dict(job.setting), "seed": job.seed})

    def begin_session(self, engine: Mapping[str, Any]) -> None:
        """Note who runs jobs from now on."""
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
        """Note that no more are run."""
        self.sessions[-1]["ended"] = _now()

    def note(self, job: Job, seconds: float, problem: str | None = None) -> None:
        """Note that a job was run, and what it failed with."""
        entry = self.jobs[job.id]
        entry |= {"seconds": round(seconds, 3), "session": len(self.sessions) - 1}
        for name in ("failed", "taken_from"):
            entry.pop(name, None)
        if problem is not None:
            entry["failed"] = problem

    def note_taken(self, job: Job, seconds: float | None, campaign: str) -> None:
        """Note that the rows of a job were taken from another campaign, and how long it took there."""
        entry = self.jobs[job.id]
        for name in ("failed", "session"):
            entry.pop(name, None)
        entry |= {"taken_from": campaign} if seconds is None else {"taken_from": campaign, "seconds": seconds}

    def document(self) -> dict[str, Any]:
        """As it is written."""
        return {
            "format": FORMAT,
            "label": self.label,
            "title": self.title,
            "revision": self.revision,
            "scale": self.scale,
            "columns": list(self.columns),
            "campaign": self.campaign,
            "sessions": self.sessions,
            "jobs": self.jobs,
        }


class ManifestFile:
    """Where a manifest is written: again and again, but not so often that it takes long.

    Args:
        folder: The campaign's.
        manifest: What is written.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._path = folder / MANIFEST
        self._manifest = manifest
        self._not_before = 0.0

    def write(self, is_urgent: bool = True) -> None:
        """Write it; what is not urgent may wait for the next time."""
        began = time.monotonic()
        if not is_urgent and began < self._not_before:
            return
        replace_json(self._path, self._manifest.document())
        now = time.monotonic()
        self._not_before = now + (now - began) / _SHARE


def new_manifest(experiment: Experiment, scale: str | None) -> Manifest:
    """The manifest of a campaign that has no jobs yet."""
    return Manifest(experiment.label, experiment.title, experiment.revision, scale, experiment.columns)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in a folder; None where there is none.

    Raises:
        ValueError: It is damaged, or of a newer format.
    """
    path = folder / MANIFEST
    if not path.exists() and not path.is_symlink():
        return None
    document = read_json(path)
    try:
        found = take_integer(document, "format")
        if found != FORMAT:
            raise ValueError(f"it has format {found}, and this version of holdfast reads {FORMAT}")
        texts = {name: take(document, name) for name in ("label", "title", "campaign")}
        scale = take(document, "scale")
        if not all(isinstance(text, str) and text.isprintable() for text in texts.values()):
            raise ValueError("label, title and campaign must be texts")
        if scale is not None and not isinstance(scale, str):
            raise ValueError("scale must be a text")
        jobs = dict(take_mapping(document, "jobs"))
        for entry in jobs.values():
            take_mapping(entry, "setting")
            take_integer(entry, "seed")
        return Manifest(
            **texts,
            scale=scale,
            revision=take_integer(document, "revision", 1),
            columns=tuple(take_list(document, "columns", str)),
            jobs=jobs,
            sessions=take_list(document, "sessions", dict),
        )
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _more_versions() -> dict[str, str]:
    found = {}
    for package in ("scipy", "matplotlib", "ray"):
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
    """The commit that holdfast runs from, with a + where files differ from it; None where there is no clone."""
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
