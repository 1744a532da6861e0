"""Figures that draw the same jobs: rows that one campaign has are taken for another.

Several figures of the paper show the same agents with the same settings and seeds. Their experiments share a
study, so that these are the same jobs, and what has been run for one figure is copied for the next. It is looked
for in the campaigns that lie beside the new one, as those of ``holdfast reproduce`` do. Another campaign of the
same figure is left alone: who begins one wants it run anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.core.errors import InputError
from holdfast.experiments.manifest import Manifest, read_manifest
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.store import Store
from holdfast.files import Entry

__all__ = ["take_shared_rows"]


def take_shared_rows(
    experiment: Experiment, jobs: Iterable[Job], store: Store, manifest: Manifest
) -> Iterator[Job]:
    """Copy rows from other figures' campaigns, job by job, and note in the manifest where they came from.

    Args:
        experiment: Whose jobs they are.
        jobs: Those that have no rows.
        store: Where the rows go; locked.
        manifest: Of the same campaign; it lists the jobs.

    Yields:
        Each job that has rows now.
    """
    if experiment.shared is None:
        return
    others = _neighbours(experiment, store.folder)
    for job in jobs:
        for other, theirs in others:
            data = other.sound_bytes(job.id, theirs) if job.id in theirs.jobs else None
            if data is not None:
                manifest.note_taken(job, data, theirs, other.folder.name)
                store.write(job, data)
                yield job
                break


def _neighbours(experiment: Experiment, folder: Path) -> list[tuple[Store, Manifest]]:
    """Campaigns of other figures of the same study beside a folder; what cannot be read is passed over."""
    found = []
    try:
        beside = Entry(folder.absolute().parent)
        paths = [beside.path / name for name in beside.listed()]
    except OSError:
        return []
    for path in paths:
        try:
            manifest = read_manifest(path)
        except (OSError, InputError):
            continue
        if manifest is None or manifest.label == experiment.label:
            continue
        if (manifest.study, manifest.revision, manifest.columns) == (
            experiment.study,
            experiment.revision,
            experiment.columns,
        ):
            found.append((Store(path), manifest))
    return found
