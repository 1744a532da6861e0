"""What somebody has put into a campaign's folder: nothing elsewhere changes, and nothing is waited for."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.core.errors import InputError
from holdfast.experiments.campaign import Standing, check_campaign_folder, run_campaign
from holdfast.experiments.engines.base import perform
from holdfast.experiments.engines.local import LocalEngine
from holdfast.experiments.store import Store, read_manifest_and_rows
from holdfast.experiments.training import train_job
from tests.experiments.campaigns import contents, prepare
from tests.experiments.ladders import STEPS
from tests.files.intruders import KINDS, everything_in, put, without_waiting
from tests.runs.small_runs import TABLE

EXPERIMENT = replace(STEPS, reference="ladders:STEPS")
JOBS = EXPERIMENT.jobs("smoke")
FIRST = JOBS[0].id


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    prepare(tmp_path / "code")
    return tmp_path / "campaign"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of somebody's, with everything in it that a campaign would have."""
    where = tmp_path / "elsewhere"
    (where / "checkpoint").mkdir(parents=True)
    for name in ("mine", ".mine.12ab34cd.part", f"{FIRST}.log", f"{FIRST}.csv", "metrics.csv", ".lock"):
        (where / name).write_text("a letter of mine")
    return where


def campaign(folder: Path) -> Standing:
    code = str(folder.parent / "code")
    return run_campaign(EXPERIMENT, JOBS, folder, LocalEngine(2), scale="smoke", resume=True, code=code)


def half_done(folder: Path) -> None:
    """A campaign whose first job has to be run again."""
    assert campaign(folder).done == 2
    (folder / "rows" / f"{FIRST}.csv").unlink()


@pytest.mark.parametrize("kind", [*KINDS[:-1], "hard link"])
@pytest.mark.parametrize("name", [f"logs/{FIRST}.log", f"rows/{FIRST}.csv"])
def test_what_a_job_says_and_its_rows_go_into_files_of_their_own(
    name: str, kind: str, folder: Path, elsewhere: Path
) -> None:
    half_done(folder)
    put(kind, folder / name, elsewhere / Path(name).name)
    before = everything_in(elsewhere)
    with without_waiting():
        assert campaign(folder).done == 2
    assert everything_in(elsewhere) == before
    assert len(contents(folder)) == 2
    read_manifest_and_rows(folder)


def test_a_folder_in_place_of_a_log_costs_one_job(folder: Path) -> None:
    half_done(folder)
    (folder / "logs" / f"{FIRST}.log").mkdir()
    standing = campaign(folder)
    assert [failure.job.id for failure in standing.failures] == [FIRST]
    assert "Is a directory" in standing.failures[0].problem


@pytest.mark.parametrize("kind", KINDS[:-1])
@pytest.mark.parametrize("name", ["rows", "logs", "runs"])
def test_a_folder_of_a_campaign_must_be_one(name: str, kind: str, folder: Path, elsewhere: Path) -> None:
    half_done(folder)
    if (folder / name).exists():
        shutil.rmtree(folder / name)
    put(kind, folder / name, elsewhere)
    before = everything_in(elsewhere)
    with without_waiting(), pytest.raises(InputError, match=f"{folder / name} must be a folder, but is a link"):
        campaign(folder)
    assert everything_in(elsewhere) == before


def test_rows_behind_a_link_are_neither_counted_nor_drawn(folder: Path, elsewhere: Path) -> None:
    half_done(folder)
    (folder / "rows").rename(elsewhere / "rows")
    (folder / "rows").symlink_to(elsewhere / "rows")
    for attempt in (
        lambda: check_campaign_folder(EXPERIMENT, JOBS, folder, True, "smoke"),
        lambda: read_manifest_and_rows(folder),
    ):
        with pytest.raises(InputError, match="rows must be a folder, but is a link"):
            attempt()


def test_a_lock_that_is_another_file_too_keeps_its_contents(folder: Path, elsewhere: Path) -> None:
    half_done(folder)
    (folder / ".lock").unlink()
    (folder / ".lock").hardlink_to(elsewhere / ".lock")
    with pytest.raises(InputError, match="is hard-linked to another file"):
        campaign(folder)
    assert (elsewhere / ".lock").read_text() == "a letter of mine"


@pytest.mark.parametrize("kind", KINDS[:-1])
@pytest.mark.parametrize("name", ["runs", f"runs/{FIRST}"])
def test_no_run_is_trained_behind_a_link(name: str, kind: str, folder: Path, elsewhere: Path) -> None:
    (folder / name).parent.mkdir(parents=True)
    put(kind, folder / name, elsewhere)
    before = everything_in(elsewhere)
    place = folder / "runs" / FIRST
    request = {
        "study": JOBS[0].study,
        "setting": dict(JOBS[0].setting),
        "seed": JOBS[0].seed,
        "revision": 1,
        "reference": "ladders:STEPS",
        "code": str(folder.parent / "code"),
    }
    with without_waiting():
        with pytest.raises(InputError, match="must be a folder, "):
            train_job(TABLE, place)
        with pytest.raises(InputError, match="must be a folder, but is a link"):
            perform(request, place)
    assert everything_in(elsewhere) == before


def test_a_campaign_may_be_reached_through_a_link_that_the_user_names(folder: Path, tmp_path: Path) -> None:
    half_done(folder)
    (tmp_path / "short").symlink_to(folder)
    assert campaign(tmp_path / "short").done == 2


def test_leftovers_are_cleared_away_and_nothing_else(folder: Path, elsewhere: Path) -> None:
    half_done(folder)
    rows = folder / "rows"
    (rows / f".{FIRST}.csv.12ab34cd.part").write_text("rung,hei")
    (rows / ".download.part").write_text("mine")
    (rows / ".a.12ab.part").symlink_to(elsewhere / "mine")
    (rows / ".b.12ab.part").mkdir()
    os.mkfifo(rows / ".c.12ab.part")
    Store(folder).begin()
    assert not (rows / f".{FIRST}.csv.12ab34cd.part").exists()
    assert (rows / ".download.part").read_text() == "mine"
    assert len(list(rows.glob(".*.12ab.part"))) == 3


def test_a_folder_that_goes_while_the_campaign_runs(folder: Path) -> None:
    def told(standing: Standing) -> None:
        if standing.running and folder.exists():
            folder.rename(folder.with_name("moved"))

    code = str(folder.parent / "code")
    with pytest.raises(InputError, match="was removed, renamed or replaced while it was being written"):
        run_campaign(EXPERIMENT, JOBS, folder, LocalEngine(2), scale="smoke", code=code, told=told)
    assert not folder.exists()
