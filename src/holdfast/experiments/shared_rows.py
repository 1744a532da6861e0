"""Reusing existing rows: those of other figures' campaigns, and kept rows.

Several figures of the paper show the same agents with the same settings and seeds. Their experiments share a
study, so these are the same jobs, and rows that were computed for one figure are copied for the next. They are
looked up in the campaigns beside the new one, where ``holdfast reproduce`` puts them. Another campaign of the same
figure is ignored: starting a new one means to run it anew. Kept rows of any figure are used wherever the campaign
is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from holdfast.core.errors import InputError
from holdfast.experiments.manifest import Manifest, read_manifest
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.store import KeptRows, RowFolder, Store, flat_table, row_folder
from holdfast.experiments.tables import Table
from holdfast.files import Entry

__all__ = ["kept_folders", "kept_table", "take_rows"]

_RESULTS = "results"


def kept_folders() -> list[Path]:
    """Folders of kept rows: those in ``results`` here, and in the clone that holdfast runs from."""
    tops = [Path(_RESULTS)]
    source = Path(__file__).resolve().parents[2]
    if source.name == "src" and (source.parent / "pyproject.toml").is_file():
        tops.append(source.parent / _RESULTS)
    found = {path.resolve(): path for top in reversed(tops) for path in _listed(top)}
    return [path for path in found.values() if isinstance(row_folder(path), KeptRows)]


def kept_table(experiment: Experiment, scale: str, folders: Sequence[Path]) -> Table | None:
    """The rows of an experiment's jobs at a scale, from whichever folders of kept rows have them.

    Returns:
        None if there are none.

    Raises:
        ValueError: Rows are damaged.
    """
    planned = {job.id for job in experiment.jobs(scale)}
    found: dict[str, tuple[Any, Table]] = {}
    for _, rows, manifest in _of_study(experiment, folders):
        for job_id in set(rows.stored()) & planned - set(found):
            found[job_id] = manifest.jobs[job_id], rows.read(job_id, manifest)
    ordered = [found[job.id] for job in experiment.jobs(scale) if job.id in found]
    if not ordered:
        return None
    entries, parts = zip(*ordered, strict=True)
    return flat_table(entries, parts, experiment.columns)


def take_rows(
    experiment: Experiment, jobs: Iterable[Job], store: Store, manifest: Manifest, kept: Sequence[Path] = ()
) -> Iterator[Job]:
    """Copy rows from kept ones and from other figures' campaigns, and record their origin in the manifest.

    Args:
        experiment: The jobs' experiment.
        jobs: The jobs that have no rows.
        store: The store for the rows; it must be locked.
        manifest: The manifest of the same campaign; it lists the jobs.
        kept: Folders of kept rows.

    Yields:
        Each job that now has rows.
    """
    beside = [] if experiment.shared is None else _listed(store.folder.absolute().parent)
    others = [
        (f"{path.absolute().parent.name}/{path.name}", rows, theirs)
        for path, rows, theirs in _of_study(experiment, kept)
    ]
    others += [
        (path.name, rows, theirs)
        for path, rows, theirs in _of_study(experiment, beside)
        if theirs.label != experiment.label and isinstance(rows, Store)
    ]
    for job in jobs:
        for name, other, theirs in others:
            data = other.sound_bytes(job.id, theirs) if job.id in theirs.jobs else None
            if data is not None:
                manifest.note_taken(job, data, theirs, name)
                store.write(job, data)
                yield job
                break


def _of_study(experiment: Experiment, folders: Iterable[Path]) -> Iterator[tuple[Path, RowFolder, Manifest]]:
    """The folders that hold rows of the same study; unreadable ones are skipped."""
    wanted = (experiment.study, experiment.revision, experiment.columns)
    for path in folders:
        try:
            manifest = read_manifest(path)
            rows = row_folder(path)
        except (OSError, InputError):
            continue
        if manifest is not None and (manifest.study, manifest.revision, manifest.columns) == wanted:
            yield path, rows, manifest


def _listed(folder: Path) -> list[Path]:
    """The contents of a folder; empty if it cannot be read."""
    try:
        return [folder / name for name in Entry(folder).listed()]
    except (OSError, InputError):
        return []
