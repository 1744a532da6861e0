"""Rows that were made before are taken: those of other figures' campaigns, and those that are kept.

Several figures of the paper show the same agents with the same settings and seeds. Their experiments share a
study, so that these are the same jobs, and what has been run for one figure is copied for the next. It is looked
for in the campaigns that lie beside the new one, as those of ``holdfast reproduce`` do. Another campaign of the
same figure is left alone: who begins one wants it run anew. Rows of any figure that are kept in a repository are
taken wherever the campaign is.
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
    """The rows of an experiment's jobs at a scale, in whichever folders of kept rows they are.

    Returns:
        None where there are none.

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
    """Copy rows from kept ones and from other figures' campaigns, and note in the manifest where they came from.

    Args:
        experiment: Whose jobs they are.
        jobs: Those that have no rows.
        store: Where the rows go; locked.
        manifest: Of the same campaign; it lists the jobs.
        kept: Folders of kept rows.

    Yields:
        Each job that has rows now.
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
    """Those that hold rows of the same study; what cannot be read is passed over."""
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
    """What is in a folder; nothing where it cannot be read."""
    try:
        return [folder / name for name in Entry(folder).listed()]
    except (OSError, InputError):
        return []
