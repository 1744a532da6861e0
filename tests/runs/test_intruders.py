"""What somebody has put into a run's folder: nothing elsewhere changes, nothing is waited for, one sentence."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InputError
from holdfast.policies import load_policy
from holdfast.runs import RunFolder, train
from holdfast.runs.curves import holds_over_training, learning_curves
from holdfast.runs.directory import find_runs
from holdfast.runs.progress import Silent, TrainingProgress
from tests.files.intruders import KINDS, everything_in, put, without_waiting
from tests.runs.doctored import copy_of, use
from tests.runs.small_runs import BOTH, TABLE, trained

NAMES = (
    *("config.json", "metrics.csv", "evaluations.csv", "holds.csv", "timing.csv", ".lock", ".a.csv.12ab.part"),
    *(
        "checkpoint",
        "checkpoint.1",
        ".checkpoint.old",
        ".checkpoint.new-12ab",
        "policy",
        ".policy.old",
        ".policy.new-12ab",
    ),
    *("checkpoint/state.json", "checkpoint/tensors.safetensors", "checkpoint/replay.safetensors"),
    *("policy/policy.json", "policy/policy.safetensors"),
)
LONGER = {**TABLE, "episodes": 20}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "run"
    trained(TABLE, path)
    return path


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    return copy_of(original, tmp_path / "runs" / "run")


@pytest.fixture
def elsewhere(original: Path, tmp_path: Path) -> Path:
    """The same run once more, which nobody may touch, and files of somebody."""
    folder = copy_of(original, tmp_path / "elsewhere")
    for name in (".mine.12ab.part", ".a.csv.12ab.part"):
        (folder / name).write_text("mine")
    for name in ("checkpoint.1", ".checkpoint.old", ".checkpoint.new-12ab", ".policy.old", ".policy.new-12ab"):
        (folder / name).mkdir()
        (folder / name / "mine").write_text("mine")
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_elsewhere_changes_and_nothing_is_waited_for(
    name: str, kind: str, run: Path, elsewhere: Path
) -> None:
    path = run / name
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    put(kind, path, elsewhere / name)
    before = everything_in(elsewhere)
    with without_waiting():
        find_runs(run.parent)
        for sentence in use(run, LONGER):
            assert "Traceback" not in sentence
            assert len(sentence) < 500
    assert everything_in(elsewhere) == before


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith((".checkpoint", ".policy"))])
def test_a_file_that_is_another_one_too_is_not_changed(name: str, run: Path, elsewhere: Path) -> None:
    if (elsewhere / name).is_dir():
        pytest.skip("folders have one name")
    (run / name).unlink(missing_ok=True)
    (run / name).hardlink_to(elsewhere / name)
    before = everything_in(elsewhere)
    use(run, LONGER)
    assert everything_in(elsewhere) == before


def test_rows_that_are_another_file_too_are_not_continued(run: Path, elsewhere: Path) -> None:
    (run / "metrics.csv").unlink()
    (run / "metrics.csv").hardlink_to(elsewhere / "metrics.csv")
    with pytest.raises(InputError, match=r"metrics\.csv is hard-linked to another file"):
        train(LONGER, run)
    # As it says.
    shutil.copy(run / "metrics.csv", run / "copy")
    (run / "copy").rename(run / "metrics.csv")
    assert train(LONGER, run).status == "finished"


def test_a_run_may_be_reached_through_links_that_the_user_names(run: Path, tmp_path: Path) -> None:
    (tmp_path / "short").symlink_to(run)
    assert train(LONGER, tmp_path / "short").status == "finished"
    assert (tmp_path / "short").is_symlink()
    load_policy(tmp_path / "short")
    (tmp_path / "policy").symlink_to(run / "policy")
    load_policy(tmp_path / "policy")


class Meddling(Silent):
    """Does something to the folder while the run is on its way."""

    seconds = 0.0

    def __init__(self, meddle: Any) -> None:
        self._meddle = meddle
        self.is_done = False

    def show(self, progress: TrainingProgress) -> None:
        if progress.steps >= 40 and not self.is_done:
            self.is_done = True
            self._meddle()


@pytest.mark.parametrize("options", BOTH.values(), ids=BOTH)
@pytest.mark.parametrize("way", ["removed", "moved", "replaced", "linked"])
def test_a_folder_that_goes_while_it_is_trained_in(way: str, options: dict[str, Any], tmp_path: Path) -> None:
    run, another = tmp_path / "run", tmp_path / "another"
    trained(options, another)
    untouched = everything_in(another)

    def meddle() -> None:
        run.rename(tmp_path / "moved")
        if way == "removed":
            shutil.rmtree(tmp_path / "moved")
        elif way == "replaced":
            shutil.copytree(another, run)
        elif way == "linked":
            run.symlink_to(another)

    meddling = Meddling(meddle)
    with pytest.raises(InputError, match=f"{run} was removed, renamed or replaced while it was being written"):
        train(options, run, meddling)
    assert meddling.is_done
    assert everything_in(another) == untouched
    if way == "replaced":
        assert everything_in(run) == untouched
    else:
        assert os.path.lexists(run) == (way == "linked")


def test_a_run_whose_rows_are_unreadable_is_damaged_and_the_others_are_shown(run: Path) -> None:
    other = copy_of(run, run.parent / "other")
    (run / "metrics.csv").unlink()
    os.mkfifo(run / "metrics.csv")
    with without_waiting():
        found = {status.path.name: status.status for status in find_runs(run.parent)}
        with pytest.raises(InputError, match="must be a plain file, not a pipe"):
            learning_curves([run])
    assert found == {"run": "damaged", "other": "finished"}
    assert RunFolder(other).status().problem is None
    holds_over_training(other)
