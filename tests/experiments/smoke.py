"""The rows of a figure at the smallest scale, through the store and back, without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast.experiments.manifest import ManifestFile, new_manifest
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.store import Store, read_manifest_and_rows, table_bytes
from holdfast.experiments.tables import Table


def rows_of(
    experiment: Experiment,
    folder: Path,
    jobs: Sequence[Job] | None = None,
    known: dict[str, bytes] | None = None,
) -> Table:
    """The table that is drawn, after running all jobs of the smallest scale, or the given ones.

    Rows of jobs that are in ``known`` are taken from there, and put there.
    """
    known = {} if known is None else known
    chosen = experiment.jobs("smoke") if jobs is None else jobs
    store = Store(folder)
    store.create()
    store.begin()
    manifest = new_manifest(experiment, "smoke")
    manifest.plan_jobs(chosen)
    ManifestFile(folder, manifest).write()
    for job in chosen:
        if job.id not in known:
            rows = experiment.run(job, store.runs / job.id)
            known[job.id] = table_bytes(rows, experiment.columns, experiment.label)
        store.write(job, known[job.id])
    return read_manifest_and_rows(folder, experiment)[1]


def check_summary(experiment: Experiment, rows: Table) -> list[str]:
    """The lines that are printed, which must fit a screen."""
    lines = list(experiment.summary(rows))
    assert lines
    assert max(map(len, lines)) <= 80
    return lines
