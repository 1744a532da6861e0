"""A damaged checkpoint is told from a good one, and the one before it takes its place, to the same end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import main
from holdfast.core.errors import InputError
from holdfast.policies import load_policy
from holdfast.runs import RunFolder, train
from holdfast.runs.progress import Silent, TrainingProgress
from holdfast.runs.stopping import StopRequest
from tests.files.seals import seal_anew
from tests.runs.doctored import copy_of
from tests.runs.kills import contents
from tests.runs.small_runs import BOTH

FILES = ("state.json", "tensors.safetensors", "replay.safetensors")


class StoppedAt(Silent):
    """Stops a training at a step, and notes what is said."""

    seconds = 0.0

    def __init__(self, steps: float) -> None:
        self._steps = steps
        self.stop = StopRequest()
        self.said: list[str] = []

    def show(self, progress: TrainingProgress) -> None:
        if progress.steps >= self._steps:
            self.stop.signal = 15

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


def go_on(options: dict[str, Any], run: Path, until: float = float("inf")) -> list[str]:
    """Train up to a step; what was said."""
    reporter = StoppedAt(until)
    train(options, run, reporter, reporter.stop)
    return reporter.said


@pytest.fixture(scope="module", params=BOTH)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def options(kind: str) -> dict[str, Any]:
    return {**BOTH[kind], **({"steps": 80} if kind == "network" else {"episodes": 40, "eval_every": 1})}


@pytest.fixture(scope="module")
def originals(options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two checkpoints that is half done, and the same one whole."""
    folder = tmp_path_factory.mktemp("originals")
    for until in (20, 40):
        go_on(options, folder / "half", until)
    go_on(options, folder / "whole")
    return folder


@pytest.fixture
def run(originals: Path, tmp_path: Path) -> Path:
    return copy_of(originals / "half", tmp_path / "run")


def steps_in(checkpoint: Path) -> int:
    return int(json.loads((checkpoint / "state.json").read_text())["run"]["steps"])


def damage(path: Path) -> None:
    """Turn a bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_the_last_two_are_kept(run: Path) -> None:
    assert steps_in(run / "checkpoint.1") < steps_in(run / "checkpoint")
    assert sorted(path.name for path in run.iterdir() if path.is_dir()) == ["checkpoint", "checkpoint.1", "policy"]


@pytest.mark.parametrize("keep", [1, 3])
def test_as_many_are_kept_as_the_user_wants(keep: int, options: dict[str, Any], tmp_path: Path) -> None:
    for until in (10, 20, 30, 40, 50):
        go_on({**options, "keep_checkpoints": keep}, tmp_path / "run", until)
    found = sorted(path.name for path in (tmp_path / "run").glob("checkpoint*"))
    assert found == ["checkpoint", "checkpoint.1", "checkpoint.2"][:keep]
    # It may be another number from one session to the next.
    go_on({**options, "keep_checkpoints": 2}, tmp_path / "run", 60)
    assert len(list((tmp_path / "run").glob("checkpoint*"))) == 2


@pytest.mark.parametrize("keep", [0, -1, 1.5, True, "2", 1001])
def test_numbers_that_will_not_do_are_refused(keep: Any, options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="keep_checkpoints must be"):
        train({**options, "keep_checkpoints": keep}, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["a bit", "cut", "empty", "missing", "a folder"])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_one_is_passed_over_and_the_run_ends_the_same(
    name: str, how: str, run: Path, originals: Path, options: dict[str, Any]
) -> None:
    path, before = run / "checkpoint" / name, steps_in(run / "checkpoint.1")
    match how:
        case "a bit":
            damage(path)
        case "cut":
            path.write_bytes(path.read_bytes()[:-1])
        case "empty":
            path.write_bytes(b"")
        case _:
            path.unlink()
            if how == "a folder":
                path.mkdir()
    assert RunFolder(run).status().status == "resumable"
    said = go_on(options, run)
    assert name in said[0]
    assert said[0].endswith("; using the checkpoint before it, checkpoint.1")
    assert f"from step {before:,}," in said[1]
    assert contents(run) == contents(originals / "whole")
    # The damaged one is gone, and the other is still there beside the last.
    assert sorted(path.name for path in run.glob("checkpoint*")) == ["checkpoint", "checkpoint.1"]
    assert steps_in(run / "checkpoint.1") == before


def test_a_damaged_one_before_the_last_does_not_matter(
    run: Path, originals: Path, options: dict[str, Any]
) -> None:
    for name in FILES:
        damage(run / "checkpoint.1" / name)
    assert "using the checkpoint before it" not in " ".join(go_on(options, run))
    assert contents(run) == contents(originals / "whole")


@pytest.mark.parametrize("names", [FILES[:1], FILES[1:2]], ids=["document", "arrays"])
def test_if_all_are_damaged_one_sentence_says_so_and_nothing_changes(
    names: tuple[str, ...], run: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in names:
        damage(run / "checkpoint" / name)
        damage(run / "checkpoint.1" / name)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != ".lock"}
    assert main(["train", "--resume", str(run)]) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert "is damaged" in printed.err
    assert "; all 2 checkpoints are damaged: remove" in printed.err
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != ".lock"}
    assert after == before


def test_the_command_line_says_it_in_a_line(
    run: Path, originals: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(run / "checkpoint/tensors.safetensors")
    assert main(["train", "--resume", str(run)]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "using the checkpoint before it" in line]
    assert len(lines) == 1
    assert "tensors.safetensors is damaged: its checksum does not match" in lines[0]
    assert contents(run) == contents(originals / "whole")


def test_a_checkpoint_of_a_newer_version_is_not_passed_over(run: Path, options: dict[str, Any]) -> None:
    path = run / "checkpoint/state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 3}))
    seal_anew(path)
    with pytest.raises(InputError, match=r"has format 3, and this version of holdfast reads 1 to 2$"):
        train(options, run)
    assert steps_in(run / "checkpoint") > steps_in(run / "checkpoint.1")


def test_what_may_not_be_read_is_not_taken_for_damaged(
    run: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import holdfast.runs.directory as directory

    original = directory.read_state

    def forbidden(folder: Any, *arguments: Any, **keywords: Any) -> Any:
        if folder.path.name == "checkpoint":
            raise PermissionError(13, "Permission denied", str(folder))
        return original(folder, *arguments, **keywords)

    monkeypatch.setattr(directory, "read_state", forbidden)
    with pytest.raises(PermissionError):
        train(options, run)


def test_a_sector_that_cannot_be_read_is_damage(
    run: Path, originals: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import holdfast.runs.directory as directory

    original = directory.read_state

    def broken(folder: Any, *arguments: Any, **keywords: Any) -> Any:
        if folder.path.name == "checkpoint" and not (run / "broken").exists():
            (run / "broken").touch()
            raise OSError(5, "Input/output error", str(folder))
        return original(folder, *arguments, **keywords)

    monkeypatch.setattr(directory, "read_state", broken)
    assert "Input/output error" in go_on(options, run)[0]
    assert contents(run) == contents(originals / "whole")


def test_a_run_from_before_there_were_checksums_goes_on(
    run: Path, originals: Path, options: dict[str, Any]
) -> None:
    shutil.rmtree(run / "checkpoint.1")
    for path in (run / "checkpoint/state.json", run / "policy/policy.json"):
        document = json.loads(path.read_text())
        del document["sha256"]
        path.write_text(json.dumps({**document, "format": 1}))
    config = json.loads((run / "config.json").read_text())
    del config["keep_checkpoints"]
    (run / "config.json").write_text(json.dumps(config))
    load_policy(run)
    assert RunFolder(run).status().status == "resumable"
    go_on(options, run)
    assert contents(run) == contents(originals / "whole")


@pytest.mark.parametrize("name", ["policy.json", "policy.safetensors"])
def test_a_damaged_policy_is_refused(name: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(run / "policy" / name)
    with pytest.raises(InputError, match=f"{name} is damaged: "):
        load_policy(run)
    assert main(["evaluate", str(run)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_quick_status_reads_the_documents_alone_and_passes_over_a_damaged_one(run: Path) -> None:
    before = steps_in(run / "checkpoint.1")
    for folder in ("checkpoint", "checkpoint.1"):
        (run / folder / "tensors.safetensors").unlink()
    assert RunFolder(run).status().status == "damaged"
    assert RunFolder(run).status(is_thorough=False).steps == steps_in(run / "checkpoint")
    damage(run / "checkpoint" / "state.json")
    quick = RunFolder(run).status(is_thorough=False)
    assert (quick.status, quick.steps) == ("resumable", before)
