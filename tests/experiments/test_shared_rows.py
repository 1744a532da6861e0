"""Figures that draw the same jobs take each other's rows; nobody else does."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.experiments.campaign import Standing, run_campaign
from holdfast.experiments.engines.local import LocalEngine
from holdfast.experiments.figures import LABELS, find_experiment
from holdfast.experiments.manifest import Manifest, read_manifest
from holdfast.experiments.spec import SCALES, Experiment
from holdfast.experiments.store import Store, read_manifest_and_rows
from tests.experiments.campaigns import contents, prepare
from tests.experiments.ladders import HIGHER, LADDER, STEPS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepare(tmp_path / "code").parent


def campaign(
    experiment: Experiment, folder: Path, resume: bool = False, fresh: bool = False, code: Path | None = None
) -> Standing:
    named = replace(experiment, reference=f"ladders:{experiment.label.upper()}")
    return run_campaign(
        named,
        named.jobs("smoke"),
        folder,
        LocalEngine(2),
        scale="smoke",
        resume=resume,
        fresh=fresh,
        code=str(folder.parent / "code" if code is None else code),
    )


def test_rows_of_another_figure_are_taken(folder: Path) -> None:
    assert campaign(STEPS, folder / "steps").done == 2
    standing = campaign(HIGHER, folder / "higher")
    assert (standing.total, standing.done, standing.before, standing.taken) == (3, 3, 0, 2)
    assert not standing.failures
    ours, theirs = contents(folder / "higher"), contents(folder / "steps")
    assert {name: ours[name] for name in theirs} == theirs
    manifest = read_manifest(folder / "higher")
    assert manifest is not None
    told = [(entry["seed"], entry.get("taken_from"), entry.get("session")) for entry in manifest.jobs.values()]
    assert told == [(0, "steps", 0), (1, "steps", 0), (2, None, 1)]
    theirs = read_manifest(folder / "steps")
    assert theirs is not None
    assert manifest.sessions[0] == {"of": "steps", **theirs.sessions[0]}
    assert "of" not in manifest.sessions[1]
    assert all(entry["seconds"] > 0.0 for entry in manifest.jobs.values())
    # Rows are drawn as if all had been run here.
    _, rows = read_manifest_and_rows(folder / "higher", HIGHER)
    assert rows["seed"].tolist() == [0, 0, 1, 1, 2, 2]


def test_all_rows_may_be_taken(folder: Path) -> None:
    campaign(HIGHER, folder / "higher")
    standing = campaign(STEPS, folder / "steps")
    assert (standing.done, standing.taken) == (2, 2)
    manifest = read_manifest(folder / "steps")
    assert manifest is not None
    (session,) = manifest.sessions
    assert (session["of"], "commit" in session, "versions" in session) == ("higher", True, True)
    assert {entry["taken_from"] for entry in manifest.jobs.values()} == {"higher"}
    assert campaign(STEPS, folder / "steps").before == 2


def test_another_campaign_of_the_same_figure_is_run_anew(folder: Path) -> None:
    campaign(STEPS, folder / "one")
    standing = campaign(STEPS, folder / "other")
    assert (standing.done, standing.taken) == (2, 0)
    assert contents(folder / "one") == contents(folder / "other")


def test_rows_that_were_taken_and_are_damaged_are_made_again(folder: Path) -> None:
    campaign(STEPS, folder / "steps")
    campaign(HIGHER, folder / "higher")
    first = STEPS.jobs("smoke")[0]
    path = Store(folder / "higher").path_of(first.id)
    right = path.read_bytes()
    path.write_bytes(right[:-1])
    shutil.rmtree(folder / "steps")
    standing = campaign(HIGHER, folder / "higher", resume=True)
    assert (standing.before, standing.taken, standing.done) == (2, 0, 3)
    assert path.read_bytes() == right
    manifest = read_manifest(folder / "higher")
    assert manifest is not None
    assert "taken_from" not in manifest.jobs[first.id]


def test_all_can_be_run_anew(folder: Path) -> None:
    campaign(STEPS, folder / "steps")
    standing = campaign(HIGHER, folder / "higher", fresh=True)
    assert (standing.done, standing.taken) == (3, 0)


def test_what_happens_to_a_neighbour_meanwhile_stops_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign(STEPS, folder / "steps")
    (folder / "gone").symlink_to(folder / "nowhere")
    looked = Store.sound_bytes

    def look_at_what_is_removed(store: Store, job_id: str, manifest: Manifest) -> bytes | None:
        if store.folder.name == "steps":
            store.path_of(job_id).unlink(missing_ok=True)
        return looked(store, job_id, manifest)

    monkeypatch.setattr(Store, "sound_bytes", look_at_what_is_removed)
    standing = campaign(HIGHER, folder / "higher")
    assert (standing.done, standing.taken) == (3, 0)


def test_neighbours_that_nobody_may_look_at_are_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign(STEPS, folder / "steps")
    (folder / "private").mkdir()

    def refuse(path: Path) -> Manifest | None:
        if path.name == "private":
            raise PermissionError(13, "Permission denied", str(path))
        return read_manifest(path)

    monkeypatch.setattr("holdfast.experiments.shared_rows.read_manifest", refuse)
    assert campaign(HIGHER, folder / "higher").taken == 2
    closed = folder / "closed"
    listed = Path.iterdir

    def list_unless_closed(path: Path) -> Iterator[Path]:
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", list_unless_closed)
    assert campaign(HIGHER, closed / "higher", code=folder / "code").done == 3


def test_time_left_counts_what_was_run_and_not_what_was_taken() -> None:
    standing = Standing(10, before=1, sources=Counter({"steps": 4}), done=7, began=-100.0)
    # Two jobs since the beginning, three to go.
    assert standing.seconds_left == pytest.approx(standing.seconds * 3 / 2, rel=1e-3)


def test_who_shares_nothing_takes_nothing(folder: Path) -> None:
    campaign(STEPS, folder / "steps")
    alone = replace(HIGHER, shared=None)
    assert {job.id for job in alone.jobs("smoke")}.isdisjoint(job.id for job in STEPS.jobs("smoke"))
    revised = replace(HIGHER, revision=2)
    assert {job.id for job in revised.jobs("smoke")}.isdisjoint(job.id for job in STEPS.jobs("smoke"))
    standing = campaign(LADDER, folder / "ladder")
    assert (standing.done, standing.taken) == (8, 0)


def test_damaged_rows_and_damaged_campaigns_are_passed_over(folder: Path) -> None:
    campaign(STEPS, folder / "steps")
    first, second = STEPS.jobs("smoke")
    store = Store(folder / "steps")
    store.path_of(first.id).write_bytes(store.path_of(first.id).read_bytes()[:-1])
    (folder / "broken").mkdir()
    (folder / "broken" / "manifest.json").write_text("{")
    (folder / "a_file").touch()
    standing = campaign(HIGHER, folder / "higher")
    assert (standing.done, standing.taken) == (3, 1)
    manifest = read_manifest(folder / "higher")
    assert manifest is not None
    assert "taken_from" not in manifest.jobs[first.id]
    assert manifest.jobs[second.id]["taken_from"] == "steps"


def test_a_part_that_is_done_and_a_part_that_is_taken(folder: Path) -> None:
    campaign(HIGHER, folder / "higher")
    last = HIGHER.jobs("smoke")[-1]
    Store(folder / "higher").path_of(HIGHER.jobs("smoke")[0].id).unlink()
    Store(folder / "higher").path_of(last.id).unlink()
    campaign(STEPS, folder / "steps")
    standing = campaign(HIGHER, folder / "higher", resume=True)
    assert (standing.before, standing.taken, standing.done) == (1, 1, 3)


def test_figures_of_one_study_compute_the_same() -> None:
    by_study: dict[str, list[Experiment]] = defaultdict(list)
    for label in LABELS:
        experiment = find_experiment(label)
        by_study[experiment.study].append(experiment)
    assert [len(by_study[study]) for study in ("chains", "grids", "MountainCar")] == [2, 3, 3]
    for found in by_study.values():
        assert len({(one.run, one.columns, one.revision) for one in found}) == 1


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("one", "other", "common"),
    [("mtcar", "mtcar_comp", 2), ("mtcar", "mt_car_2", 2), ("Kemeny", "kem_complete", 4)],
)
def test_what_figures_share(one: str, other: str, common: int, scale: str) -> None:
    # Drivers with the same name, and grids with the same horizon; as many seeds as the smaller figure has.
    jobs, others = ({job.id: job for job in find_experiment(name).jobs(scale)} for name in (one, other))
    shared = jobs.keys() & others.keys()
    seeds = {jobs[job_id].seed for job_id in shared}
    assert len(shared) == common * len(seeds)
    assert seeds == {job.seed for job in jobs.values()} & {job.seed for job in others.values()}


def test_the_curves_on_the_grids_are_shared() -> None:
    perf, noboot, multi = (
        {job.id: job.setting for job in find_experiment(f"tabular_{name}").jobs("paper")}
        for name in ("perf", "noboot", "multi")
    )
    for others in (noboot, multi):
        names = {setting["agent"] for job_id, setting in perf.items() if job_id in others}
        assert {"PerQ4", "PerQ8", "PerQ16", "Q"} <= names
