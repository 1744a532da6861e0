"""The folder of a campaign: exact numbers, whole files, no mixtures."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.experiments.campaign import check_campaign_folder
from holdfast.experiments.manifest import Manifest, ManifestFile, new_manifest, read_manifest
from holdfast.experiments.spec import Experiment
from holdfast.experiments.store import Store, read_manifest_and_rows, table_bytes
from holdfast.files import FolderInUseError, replace_json
from tests.experiments.ladders import LADDER


def store_of(experiment: Experiment, folder: Path, n_done: int, scale: str = "smoke") -> Store:
    """A campaign of which the first jobs are done."""
    store, jobs = Store(folder), experiment.jobs(scale)
    store.create()
    store.begin()
    manifest = new_manifest(experiment, scale)
    manifest.plan_jobs(jobs)
    manifest.begin_session({})
    for job in jobs[:n_done]:
        data = table_bytes(experiment.run(job, folder), experiment.columns, experiment.label)
        store.write(job, data)
        manifest.note_done(job, 1.0, data)
    ManifestFile(folder, manifest).write()
    return store


def manifest_of(folder: Path) -> Manifest:
    found = read_manifest(folder)
    assert found is not None
    return found


QUICK = replace(LADDER, plan=lambda scale: [({"rungs": rungs}, seed) for rungs in (2, 3) for seed in range(2)])


@given(st.lists(st.tuples(st.floats(), st.floats(width=32)), max_size=4))
def test_numbers_come_back_as_they_were(numbers: list[tuple[float, float]]) -> None:
    given_rows = np.array(numbers, dtype=np.float64).reshape(-1, 2)
    columns = {"rung": given_rows[:, 0], "height": given_rows[:, 1]}
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        store.begin()
        job = QUICK.jobs("smoke")[0]
        store.write(job, table_bytes(columns, QUICK.columns, "ladder"))
        read = store.read(job.id, new_manifest(QUICK, None))
    for name, values in columns.items():
        known = ~np.isnan(values)
        np.testing.assert_array_equal(np.isnan(read[name]), ~known)
        assert read[name][known].tobytes() == values[known].tobytes()


def test_all_rows_are_one_table(tmp_path: Path) -> None:
    store_of(QUICK, tmp_path / "c", 3)
    manifest, rows = read_manifest_and_rows(tmp_path / "c", QUICK)
    assert list(rows) == ["rungs", "seed", "rung", "height"]
    assert rows["rungs"].tolist() == [2, 2, 2, 2, 3, 3, 3]
    assert rows["seed"].tolist() == [0, 0, 1, 1, 0, 0, 0]
    assert rows["rung"].tolist() == [0, 1, 0, 1, 0, 1, 2]
    expected = np.random.default_rng(1).normal(size=2).cumsum()
    assert rows["height"][2:4].tobytes() == expected.tobytes()
    assert manifest.what == "ladder at scale smoke, revision 1"


def test_a_column_of_seeds_stands_for_the_jobs_seed(tmp_path: Path) -> None:
    many = replace(
        QUICK, columns=("seed", "height"), run=lambda job, place: {"seed": [7, 8], "height": [1.0, 2.0]}
    )
    store_of(many, tmp_path / "c", 1)
    _, rows = read_manifest_and_rows(tmp_path / "c")
    assert rows["seed"].tolist() == [7, 8]


@pytest.mark.parametrize(
    "text",
    ["", "rung,height", "rung,height\n1,2\n3", "rung,tall\n1,2\n", "rung,height\n1\n", "rung,height\n1,x\n"],
)
def test_a_damaged_file_is_no_done_job(text: str, tmp_path: Path) -> None:
    store = store_of(QUICK, tmp_path / "c", 3)
    jobs = QUICK.jobs("smoke")
    store.path_of(jobs[1].id).write_text(text)
    manifest = manifest_of(tmp_path / "c")
    assert store.done(jobs, manifest) == {jobs[0].id, jobs[2].id}
    with pytest.raises(
        ValueError, match=rf"{jobs[1].id}.csv is damaged, .*: resuming the campaign runs its job again"
    ):
        read_manifest_and_rows(tmp_path / "c")
    # Where a killed campaign could not note what the rows are, they must still be ones.
    manifest.jobs[jobs[1].id].pop("sha256")
    assert store.done(jobs, manifest) == {jobs[0].id, jobs[2].id}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n0,", "\n0.5,"),
        lambda text: text[: text.index("\n") + 1],
        lambda text: text * 2,
    ],
)
def test_rows_that_were_changed_are_no_rows(change: Callable[[str], str], tmp_path: Path) -> None:
    store, jobs = store_of(QUICK, tmp_path / "c", 3), QUICK.jobs("smoke")
    path = store.path_of(jobs[1].id)
    assert change(path.read_text()) != path.read_text()
    path.write_text(change(path.read_text()))
    assert store.done(jobs, manifest_of(tmp_path / "c")) == {jobs[0].id, jobs[2].id}
    with pytest.raises(ValueError, match=f"{jobs[1].id}.csv is damaged"):
        read_manifest_and_rows(tmp_path / "c")


def test_a_job_may_have_no_rows(tmp_path: Path) -> None:
    empty = replace(QUICK, run=lambda job, place: {"rung": [], "height": []})
    store = store_of(empty, tmp_path / "c", 1)
    jobs = empty.jobs("smoke")
    assert store.done(jobs, manifest_of(tmp_path / "c")) == {jobs[0].id}
    assert read_manifest_and_rows(tmp_path / "c")[1]["height"].shape == (0,)


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    store = store_of(QUICK, tmp_path / "c", 1)
    leftover = store.rows / ".x.csv.1234.part"
    leftover.write_text("rung,hei")
    assert len(store.stored()) == 1
    store.begin()
    assert not leftover.exists()


def test_rows_of_other_settings_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    store_of(QUICK, folder, 2)
    newer = replace(QUICK, revision=2)
    with pytest.raises(ValueError, match="a campaign of ladder at scale smoke, revision 1, not of ladder"):
        check_campaign_folder(newer, newer.jobs("smoke"), folder, True, "smoke")
    fewer = QUICK.jobs("smoke")[1:]
    with pytest.raises(ValueError, match=f"rows of other settings, such as the job {QUICK.jobs('smoke')[0].id}"):
        check_campaign_folder(QUICK, fewer, folder, True, "smoke")
    with pytest.raises(ValueError, match="holds rows of ladder at scale smoke, revision 1, not of ladder"):
        read_manifest_and_rows(folder, newer)
    strange = Store(folder).path_of(newer.jobs("smoke")[0].id)
    strange.write_text("rung,height\n1,2\n")
    with pytest.raises(ValueError, match="mixes settings: its manifest does not list the job"):
        read_manifest_and_rows(folder)


def test_going_on_must_be_asked_for(tmp_path: Path) -> None:
    jobs, folder = QUICK.jobs("smoke"), tmp_path / "c"
    assert check_campaign_folder(QUICK, jobs, folder, False, "smoke") == 0
    store_of(QUICK, folder, 3)
    with pytest.raises(ValueError, match="has the rows of 3 of 4 jobs: give resume=True to continue it"):
        check_campaign_folder(QUICK, jobs, folder, False, "smoke")
    assert check_campaign_folder(QUICK, jobs, folder, True, "smoke") == 3
    # More seeds than before are more jobs of the same sweep.
    assert check_campaign_folder(QUICK, [*jobs, *QUICK.jobs_of([({"rungs": 2}, 9)])], folder, True, "smoke") == 3


def test_a_folder_in_use_is_said_to_be_so_first(tmp_path: Path) -> None:
    store = store_of(QUICK, tmp_path / "c", 3)
    with store.locked(), pytest.raises(FolderInUseError, match="in use by process"):
        check_campaign_folder(QUICK, QUICK.jobs("smoke"), tmp_path / "c", False, "smoke")


def test_jobs_that_nobody_wants_any_more_are_forgotten_unless_they_have_rows(tmp_path: Path) -> None:
    store = store_of(QUICK, tmp_path / "c", 1)
    manifest, jobs = manifest_of(tmp_path / "c"), QUICK.jobs("smoke")
    others = QUICK.jobs_of([({"rungs": 9}, 0)])
    manifest.plan_jobs(others, store.stored())
    assert list(manifest.jobs) == [jobs[0].id, others[0].id]


def test_only_the_last_that_happened_to_a_job_is_noted() -> None:
    manifest, (job, *_) = new_manifest(QUICK, None), QUICK.jobs("smoke")
    manifest.plan_jobs([job])
    manifest.begin_session({})
    manifest.note_failed(job, 1.0, "it fell")
    assert manifest.jobs[job.id].keys() == {"setting", "seed", "seconds", "session", "failed"}
    theirs = new_manifest(QUICK, None)
    theirs.plan_jobs([job])
    theirs.begin_session({"name": "elsewhere"})
    theirs.note_done(job, 2.0, b"rows")
    manifest.note_taken(job, b"rows", theirs, "their-folder")
    taken = manifest.jobs[job.id]
    assert taken.keys() == {"setting", "seed", "seconds", "session", "sha256", "taken_from"}
    assert manifest.sessions[taken["session"]] == {"of": "their-folder", **theirs.sessions[0]}
    manifest.note_done(job, 3.0, b"rows")
    assert manifest.jobs[job.id].keys() == {"setting", "seed", "seconds", "session", "sha256"}
    # Somebody who takes what was taken is told who made it.
    manifest.note_taken(job, b"rows", theirs, "their-folder")
    third = new_manifest(QUICK, None)
    third.plan_jobs([job])
    third.note_taken(job, b"rows", manifest, "our-folder")
    assert third.jobs[job.id]["taken_from"] == "their-folder"
    assert third.sessions == [{"of": "their-folder", **theirs.sessions[0]}]


def test_rows_of_several_versions_are_noticed() -> None:
    manifest, jobs = new_manifest(QUICK, None), QUICK.jobs("smoke")
    manifest.plan_jobs(jobs)
    for job in jobs[:2]:
        manifest.begin_session({})
        manifest.note_done(job, 1.0, b"rows")
    assert manifest.is_of_one_version
    manifest.begin_session({})
    manifest.sessions[-1]["commit"] = "another"
    assert manifest.is_of_one_version  # nothing was run by it yet
    manifest.note_done(jobs[2], 1.0, b"rows")
    assert not manifest.is_of_one_version


def test_other_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(ValueError, match="must be empty or hold a campaign"):
        Store(tmp_path).create()
    with pytest.raises(ValueError, match="is a file"):
        Store(tmp_path / "letter").create()
    with pytest.raises(ValueError, match="has no manifest"):
        read_manifest_and_rows(tmp_path)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "0123456789ab.csv").write_text("rung,height\n")
    with pytest.raises(ValueError, match="has rows and no manifest"):
        check_campaign_folder(QUICK, QUICK.jobs("smoke"), tmp_path, resume=True)


def test_one_writes_at_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path / "c")
    store.create()
    with store.locked(), pytest.raises(FolderInUseError, match="in use by process"), store.locked():
        pass
    with store.locked():
        pass


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({"rung": [1]}, "must return the columns rung, height, not rung"),
        ([1, 2], "must return the columns rung, height, not list"),
        ({"rung": [1], "height": ["tall"]}, "must return numbers as 'height'"),
        ({"rung": [1, 2], "height": [1]}, "columns of one length"),
        ({"rung": [[1]], "height": [[1]]}, "columns of one length"),
    ],
)
def test_what_are_no_rows_is_refused(rows: object, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        table_bytes(rows, ("rung", "height"), "ladder")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"format": 9},
        {"label": 3},
        {"revision": 0},
        {"jobs": []},
        {"jobs": {"x": {}}},
        {"columns": [1]},
        {"scale": 1},
        {"study": "another"},
        {"revision": 2},
        {"jobs": {QUICK.jobs("smoke")[0].id: {"setting": {"rungs": 99}, "seed": 0}}},
        {"jobs": {QUICK.jobs("smoke")[0].id: {"setting": {"rungs": 2}, "seed": 77}}},
        {"jobs": {QUICK.jobs("smoke")[0].id: {"setting": {"rungs": 2}, "seed": 0, "session": "x"}}},
        {"jobs": {QUICK.jobs("smoke")[0].id: []}},
    ],
)
def test_a_damaged_manifest_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    store_of(QUICK, tmp_path / "c", 1)
    manifest = read_manifest(tmp_path / "c")
    assert manifest is not None
    replace_json(tmp_path / "c" / "manifest.json", manifest.document() | change)
    with pytest.raises(ValueError, match=r"manifest\.json is damaged"):
        read_manifest_and_rows(tmp_path / "c")
