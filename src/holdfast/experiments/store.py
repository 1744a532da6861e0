"""Folders of rows: a campaign's, with one file per finished job, and one of kept rows, with one file for all jobs.

In a campaign's, ``rows/ID.csv`` is written as a whole when its job has ended well and never again, so a job is
done when its file is there. Kept rows are to be committed to a repository: ``rows.csv`` has the rows of all jobs,
with the job's id in front. Both have a manifest, and only the process that has locked the folder writes.
"""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.core.errors import InputError, InputTypeError
from holdfast.experiments.manifest import MANIFEST, Manifest, digest, read_manifest
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, setting_column
from holdfast.files import (
    Entry,
    LockableFolder,
    make_folders,
    parse_numbers,
    read_row_bytes,
    replace_file,
    rows_bytes,
    tidy_files,
)

__all__ = [
    "KEPT",
    "KeptRows",
    "RowFolder",
    "Store",
    "flat_table",
    "place_entry",
    "read_manifest_and_rows",
    "row_folder",
    "sentence_if_full",
    "table_bytes",
]

KEPT = "rows.csv"
"""The file of kept rows."""

_ID = re.compile(r"[0-9a-f]{12}")
_FILE = re.compile(rf"({_ID.pattern})\.csv")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class RowFolder(LockableFolder, ABC):
    """A folder with the rows of jobs, and a manifest that says whose they are.

    Args:
        folder: The folder; it need not exist yet.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        super().__init__(Entry(self.folder))

    @abstractmethod
    def stored(self) -> list[str]:
        """Ids of the jobs with rows.

        Raises:
            ValueError: The rows are behind a link, or damaged.
        """

    @abstractmethod
    def path_of(self, job_id: str) -> Path:
        """The file of a job's rows."""

    @abstractmethod
    def checked_bytes(self, job_id: str, manifest: Manifest) -> bytes:
        """The rows of a job as its campaign stored them.

        Raises:
            ValueError: There are none, or they are damaged.
        """

    def sound_bytes(self, job_id: str, manifest: Manifest) -> bytes | None:
        """The rows of a job as they are stored; None where there are none, or they are damaged."""
        try:
            data = self.checked_bytes(job_id, manifest)
            parse_numbers(data, manifest.columns, self.path_of(job_id))
        except (OSError, InputError):
            return None
        return data

    def read(self, job_id: str, manifest: Manifest) -> Table:
        """The rows of a job.

        Raises:
            ValueError: There are none, or they are damaged.
        """
        return parse_numbers(self.checked_bytes(job_id, manifest), manifest.columns, self.path_of(job_id))


class Store(RowFolder):
    """What a campaign has on the disk.

    Args:
        folder: Its folder; it need not exist yet.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder)
        self.rows = self.folder / "rows"
        self.logs = self.folder / "logs"
        self.runs = self.folder / "runs"

    @property
    def is_campaign(self) -> bool:
        """Whether there is a campaign in it."""
        return (self.entry / MANIFEST).is_there

    def create(self) -> None:
        """Make the folder, if it is not there; it must hold a campaign or nothing.

        Raises:
            ValueError: There is something else in it.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"the campaign's folder must be a folder, but {self.folder} is a file")
        make_folders(self.folder)
        if not self.is_campaign and any(not name.startswith(".") for name in self.entry.listed()):
            raise InputError(
                f"the campaign's folder must be empty or hold a campaign, and {self.folder} holds something else"
            )

    def begin(self) -> None:
        """Make the folders within, and clear away what a killed process left; call it while holding the lock.

        Raises:
            ValueError: One of them is a link, or something else.
        """
        for folder in (self.rows, self.logs, self.runs):
            within = self.entry / folder.name
            if folder != self.runs or within.is_there:
                within.make_folder()
        for folder in (self.rows, self.logs):
            tidy_files(self.entry / folder.name)
        tidy_files(self.entry)

    def path_of(self, job_id: str) -> Path:
        """The file of a job's rows."""
        return self.rows / f"{job_id}.csv"

    def _entry_of(self, job_id: str) -> Entry:
        return self.entry / self.rows.name / f"{job_id}.csv"

    def log_of(self, job_id: str) -> Entry:
        """The file of what a job said."""
        return self.entry / self.logs.name / f"{job_id}.log"

    def job_folder(self, job_id: str) -> Entry:
        """The folder of a job's own, which need not be there."""
        return self.entry / self.runs.name / job_id

    def stored(self) -> list[str]:
        """Ids of the jobs with rows.

        Raises:
            ValueError: The rows are behind a link.
        """
        names = (self.entry / self.rows.name).listed()
        return [found[1] for found in map(_FILE.fullmatch, names) if found is not None]

    def done(self, jobs: Sequence[Job], manifest: Manifest) -> set[str]:
        """Ids of the jobs that need not be run: those with rows that can be read, and are what was stored.

        Raises:
            ValueError: There are rows of other jobs than these.
        """
        ids = {job.id for job in jobs}
        strange = [job_id for job_id in self.stored() if job_id not in ids]
        if strange:
            raise InputError(
                f"{self.folder} holds rows of other settings, such as the job {strange[0]}: "
                "choose another folder, or remove it"
            )
        return {job_id for job_id in self.stored() if self.sound_bytes(job_id, manifest) is not None}

    def write(self, job: Job, data: bytes) -> None:
        """Store the rows of a job: on the disk when this returns, and as a whole or not at all."""
        self.check_lock()
        entry = self._entry_of(job.id)
        with replace_file(entry) as file:
            file.write(data)
        entry.parent.flush()

    def checked_bytes(self, job_id: str, manifest: Manifest) -> bytes:
        """The rows of a job as they are in its file."""
        entry = self._entry_of(job_id)
        data = read_row_bytes(entry)
        problem = None
        if not data.startswith((",".join(manifest.columns) + "\n").encode()):
            problem = f"it must have the columns {', '.join(manifest.columns)}"
        elif not data.endswith(b"\n"):
            problem = "its last line is torn"
        elif manifest.digest_of(job_id) not in (None, digest(data)):
            problem = "it is not what was stored"
        if problem is not None:
            raise InputError(f"{entry} is damaged, {problem}: resuming the campaign runs its job again")
        return data


class KeptRows(RowFolder):
    """Rows of finished jobs that are kept in a repository, as one file.

    Args:
        folder: Its folder; it need not exist yet.
    """

    @cached_property
    def _lines(self) -> tuple[bytes, dict[str, list[bytes]]]:
        """The header and the lines of each job, as its campaign stored them."""
        entry = self.entry / KEPT
        header, *lines = read_row_bytes(entry).splitlines(keepends=True) or [b""]
        first, _, columns = header.partition(b",")
        found: dict[str, list[bytes]] = {}
        for line in lines:
            job_id, _, row = line.partition(b",")
            found.setdefault(job_id.decode("ascii", errors="replace"), []).append(row)
        if first != b"job" or not all(_ID.fullmatch(job_id) for job_id in found):
            raise InputError(f"{entry} is damaged: each line must begin with the id of a job")
        return columns, found

    def is_begun(self) -> bool:
        """Whether the file of rows is one that ``keep_rows`` wrote."""
        try:
            return bool(self._lines[0])
        except InputError:
            return False

    def stored(self) -> list[str]:
        """Ids of the jobs with rows.

        Raises:
            ValueError: The file of rows is damaged.
        """
        return list(self._lines[1]) if (self.entry / KEPT).is_there else []

    def path_of(self, job_id: str) -> Path:
        """The file of all rows."""
        return self.folder / KEPT

    def checked_bytes(self, job_id: str, manifest: Manifest) -> bytes:
        """The rows of a job as its campaign stored them."""
        header, lines = self._lines
        data = header + b"".join(lines.get(job_id, ()))
        if manifest.digest_of(job_id) != digest(data):
            raise InputError(f"{self.entry / KEPT} is damaged: the rows of the job {job_id} are not what was kept")
        return data


def row_folder(folder: str | os.PathLike[str]) -> RowFolder:
    """A folder of kept rows if it is one, else a campaign's, which need not exist."""
    kept = KeptRows(folder)
    return kept if (kept.entry / KEPT).is_there else Store(folder)


def place_entry(place: Path) -> Entry:
    """The folder of a job's own, to which no link may lead from its campaign's: ``CAMPAIGN/runs/ID``."""
    whole = place.absolute()
    return Entry(whole.parent.parent, (whole.parent.name, whole.name))


def table_bytes(rows: Mapping[str, Any], columns: Sequence[str], label: str) -> bytes:
    """The rows that a job returned as they are stored.

    Raises:
        ValueError: They do not have these columns, of one length.
        TypeError: There is something in them that is no number.
    """
    if not isinstance(rows, Mapping) or set(rows) != set(columns):
        told = f"not {', '.join(map(str, rows))}" if isinstance(rows, Mapping) else f"not {type(rows).__name__}"
        raise InputError(f"run of {label} must return the columns {', '.join(columns)}, {told}")
    arrays = {name: np.asarray(rows[name]) for name in columns}
    for name, values in arrays.items():
        if values.dtype.kind not in "biuf":
            raise InputTypeError(f"run of {label} must return numbers as {name!r}, not {values.dtype}")
    if {values.shape for values in arrays.values()} != {(len(next(iter(arrays.values()))),)}:
        raise InputError(f"run of {label} must return columns of one length")
    return rows_bytes({name: values.tolist() for name, values in arrays.items()})


def read_manifest_and_rows(
    folder: str | os.PathLike[str], experiment: Experiment | None = None
) -> tuple[Manifest, Table]:
    """The manifest of a campaign, and the rows of all its jobs as one table with the settings' columns.

    Args:
        folder: The campaign's, or one of kept rows. Of these, jobs that the experiment no longer plans are left
            out.
        experiment: Whose rows they must be; None for any.

    Raises:
        ValueError: There is no campaign, there are no rows yet, or rows of more than one experiment.
    """
    store = row_folder(folder)
    manifest = read_manifest(store.folder)
    if manifest is None:
        raise InputError(f"{folder} must be the folder of a campaign, and has no {MANIFEST}")
    if experiment is not None and (manifest.label, manifest.revision) != (experiment.label, experiment.revision):
        wanted = f"{experiment.label}, revision {experiment.revision}"
        raise InputError(f"{folder} holds rows of {manifest.what}, not of {wanted}")
    stored = set(store.stored())
    strange = sorted(stored - set(manifest.jobs))
    if strange:
        raise InputError(
            f"{folder} mixes settings: its manifest does not list the job {strange[0]}, and there are rows of it"
        )
    if experiment is not None and isinstance(store, KeptRows) and manifest.scale is not None:
        stored &= {job.id for job in experiment.jobs(manifest.scale)}
    done = [job_id for job_id in manifest.jobs if job_id in stored]
    if not done:
        raise InputError(f"{folder} has no rows yet")
    parts = [store.read(job_id, manifest) for job_id in done]
    return manifest, flat_table([manifest.jobs[job_id] for job_id in done], parts, manifest.columns)


def flat_table(entries: Sequence[Mapping[str, Any]], parts: Sequence[Table], columns: Sequence[str]) -> Table:
    """The rows of several jobs as one table with the settings' columns.

    Args:
        entries: Setting and seed of each job, as a manifest lists them.
        parts: The rows of each.
        columns: Of the rows.
    """
    lengths = [len(part[columns[0]]) for part in parts]
    names = dict.fromkeys(name for entry in entries for name in entry["setting"])
    table = {name: setting_column([entry["setting"].get(name) for entry in entries], lengths) for name in names}
    if "seed" not in columns:
        table["seed"] = np.repeat(np.array([entry["seed"] for entry in entries], dtype=np.int64), lengths)
    return table | {name: np.concatenate([part[name] for part in parts]) for name in columns}


@contextmanager
def sentence_if_full(store: Store) -> Iterator[None]:
    """Say in one sentence that a disk is full; what was stored before stays."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise InputError(
            f"{store.folder} cannot be written, {(error.strerror or 'the disk is full').lower()}: "
            f"the rows of {len(store.stored())} jobs are stored; make room, and continue with resume=True",
            "resume",
        ) from error
