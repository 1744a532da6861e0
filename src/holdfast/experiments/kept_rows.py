"""Keeping the rows of finished jobs in a repository: one file of rows and one manifest, for many campaigns.

Kept rows are final: rows of a job that are already kept are never replaced, so that a number in a document does
not change because a campaign was run again. Names of machines are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.core.errors import InputError
from holdfast.experiments.manifest import MANIFEST, Manifest, ManifestFile, digest, new_manifest, read_manifest
from holdfast.experiments.spec import SCALES, Experiment, Job
from holdfast.experiments.store import KEPT, KeptRows, RowFolder, row_folder
from holdfast.files import make_folders, remove_lock, replace_file

__all__ = ["Keeping", "keep_rows"]


@dataclass
class Keeping:
    """The result of keeping rows.

    Attributes:
        total: Number of jobs that now have kept rows.
        planned: Number of jobs at the scale of the kept rows.
        added: Number of jobs whose rows were not kept before.
        differing: Number of jobs whose kept rows differ from the rows to add.
    """

    total: int = 0
    planned: int = 0
    added: int = 0
    differing: int = 0


def keep_rows(experiment: Experiment, campaigns: Sequence[Path], target: Path) -> Keeping:
    """Add the rows of finished jobs to a folder of kept rows.

    Args:
        experiment: The jobs' experiment.
        campaigns: Folders of its campaigns, or of kept rows. The campaigns may be running.
        target: The folder of kept rows; it need not exist.

    Raises:
        ValueError: A folder is something else, or has rows of other settings; nothing is changed.
    """
    sources = [(path, _campaign(experiment, path)) for path in campaigns]
    manifests = [found for _, found in sources]
    _common_scale(experiment, manifests)
    if target.exists() and not target.is_dir():
        raise InputError(f"the folder of kept rows must be a folder, but {target} is a file")
    kept = KeptRows(target)
    is_there = (kept.entry / KEPT).is_there and (kept.entry / MANIFEST).is_there
    names = {name for name in kept.entry.listed() if not name.startswith(".")} if target.is_dir() else set()
    # Rows are written before their manifest, and are alone if the first writing was cut short.
    if not is_there and names and not (names == {KEPT} and kept.is_begun()):
        raise InputError(
            f"the folder of kept rows must be empty or hold kept rows, but {target} holds something else"
        )
    make_folders(target)
    with kept.locked():
        before = _campaign(experiment, target) if is_there else None
        scale = _common_scale(experiment, manifests if before is None else [before, *manifests])
        planned = [] if scale is None else experiment.jobs(scale)
        manifest, keeping, rows = new_manifest(experiment, scale), Keeping(planned=len(planned)), {}
        if before is not None:
            manifest.campaign, manifest.sessions, manifest.jobs = before.campaign, before.sessions, before.jobs
            # No kept rows may be damaged: they would be lost.
            rows = {job_id: kept.checked_bytes(job_id, before) for job_id in before.jobs}
        for path, theirs in sources:
            _add(row_folder(path), theirs, manifest, rows, keeping)
        _write(kept, manifest, rows, planned)
        keeping.total = len(rows)
        remove_lock(target)
    return keeping


def _campaign(experiment: Experiment, path: Path) -> Manifest:
    """The manifest of a folder that has rows of the experiment."""
    manifest = read_manifest(path) if path.is_dir() else None
    if manifest is None:
        raise InputError(f"{path} must be the folder of a campaign, but has no {MANIFEST}")
    if (manifest.label, manifest.revision, manifest.columns) != (
        experiment.label,
        experiment.revision,
        experiment.columns,
    ):
        wanted = f"{experiment.label}, revision {experiment.revision}"
        raise InputError(f"{path} holds rows of {manifest.what}, but the rows to keep are of {wanted}")
    return manifest


def _common_scale(experiment: Experiment, found: Sequence[Manifest]) -> str | None:
    """The largest scale that includes the jobs of all: rows of different settings are never kept together.

    None if they have none, as a study has.
    Jobs that the experiment no longer plans belong to the scale at which they were run.
    """
    scales = [scale for scale in SCALES if any(one.scale == scale for one in found)]
    if not scales:
        return None
    for scale in reversed(scales):
        planned = {job.id for job in experiment.jobs(scale)}
        if all(one.scale == scale or planned.issuperset(one.jobs) for one in found):
            return scale
    told = " and ".join(scales)
    raise InputError(
        f"rows of {experiment.label} at the scales {told} have different settings: keep them in different folders"
    )


def _add(
    source: RowFolder, theirs: Manifest, manifest: Manifest, rows: dict[str, bytes], keeping: Keeping
) -> None:
    """Add what is not kept yet."""
    for job_id in source.stored():
        # What a running campaign has not recorded yet is left for next time.
        noted = theirs.digest_of(job_id)
        data = None if noted is None else source.sound_bytes(job_id, theirs)
        if data is None or data.count(b"\n") < 2:
            continue
        if job_id in rows:
            keeping.differing += digest(rows[job_id]) != noted
            continue
        entry = theirs.jobs[job_id]
        manifest.note_kept(Job(theirs.study, entry["setting"], entry["seed"], theirs.revision), data, theirs)
        rows[job_id] = data
        keeping.added += 1


def _write(kept: KeptRows, manifest: Manifest, rows: dict[str, bytes], planned: Sequence[Job]) -> None:
    """Write rows and manifest in the order of the plan; the same rows give the same bytes."""
    order = {job.id: place for place, job in enumerate(planned)}
    ids = sorted(rows, key=lambda job_id: (order.get(job_id, len(order)), job_id))
    with replace_file(kept.entry / KEPT) as file:
        file.write(("job," + ",".join(manifest.columns) + "\n").encode())
        for job_id in ids:
            _, *lines = rows[job_id].splitlines(keepends=True)
            file.writelines(job_id.encode() + b"," + line for line in lines)
    manifest.jobs = {job_id: manifest.jobs[job_id] for job_id in ids}
    ManifestFile(kept.folder, manifest, kept.check_lock).write()
