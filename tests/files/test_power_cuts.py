"""Every state that a power cut may leave opens as what was there before or as what was written."""

from __future__ import annotations

import functools
import itertools
import json
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast.files
from holdfast.experiments.spec import Job
from holdfast.experiments.store import Store
from holdfast.files import Entry, find_folder, read_state, replace_file, replace_json, write_state
from holdfast.policies.policy_files import read_policy, write_policy
from holdfast.runs import RunFolder, train
from tests.files.power_cuts import Recording, put, recorded, states
from tests.runs.kills import contents
from tests.runs.small_runs import NETWORK, TABLE

MOST = 200


def state_of(number: int) -> dict[str, Any]:
    return {"run": {"steps": number}, "agent": {"a": np.full(700, number), "replay": {"b": np.arange(number)}}}


def steps(run: Path) -> int | None:
    found = RunFolder(run).read_checkpoint("perq")
    return None if found is None else int(found["run"]["steps"])


def visited(recording: Recording, folder: Path, look: Callable[[Path], Any], most: int = MOST) -> Counter[Any]:
    """What is seen in every state, and whether there had been all events."""
    found: Counter[Any] = Counter()
    last = len(recording.events)
    for number, (moment, tree) in enumerate(states(recording, most, random.Random(1))):
        path = folder / str(number)
        put(tree, path)
        found[look(path), moment == last] += 1
        shutil.rmtree(path)
    return found


# Of the states themselves ----------------------------------------------------------------------------------------


def test_what_was_not_flushed_may_be_lost_torn_or_zeros(tmp_path: Path) -> None:
    folder = tmp_path / "top"
    folder.mkdir()
    with recorded(folder) as recording, Entry(folder, ("a",)).create() as file:
        file.write(b"abcd")
        file.flush()
    found = {
        json.dumps({k: v.decode() for k, v in tree.items()}) for _, tree in states(recording, 99, random.Random())
    }
    assert found == {"{}", '{"a": ""}', '{"a": "ab"}', '{"a": "\\u0000\\u0000\\u0000\\u0000"}', '{"a": "abcd"}'}


def test_a_rename_without_its_data_is_found(tmp_path: Path) -> None:
    """A replacement that flushes nothing leaves states that are neither the old file nor the new one."""
    folder = tmp_path / "top"
    folder.mkdir()
    (folder / "a").write_bytes(b"old")
    with recorded(folder) as recording:
        with Entry(folder, ("b",)).create() as file:
            file.write(b"new")
        Entry(folder, ("b",)).rename("a")
    assert any(tree.get("a") == b"" for _, tree in states(recording, 99, random.Random()))


def test_a_replaced_file_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "top"
    folder.mkdir()
    (folder / "a").write_bytes(b"old")
    with recorded(folder) as recording:
        with replace_file(folder / "a") as file:
            file.write(b"the new one")
        Entry(folder).flush()
    found = visited(recording, tmp_path, lambda path: (path / "a").read_bytes())
    assert set(found) == {(b"old", False), (b"the new one", False), (b"the new one", True)}


def test_a_document_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "top"
    folder.mkdir()
    replace_json(folder / "a.json", {"n": 1})
    with recorded(folder) as recording:
        replace_json(folder / "a.json", {"n": 2})
    found = visited(recording, tmp_path, lambda path: json.loads((path / "a.json").read_text())["n"])
    assert set(found) == {(1, False), (2, False), (2, True)}


# Checkpoints, policies, rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [1, 2, 3])
@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_a_checkpoint_is_the_old_one_or_the_new_one(before: int, keep: int, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.create()
    for number in range(1, before + 1):
        run.write_checkpoint("perq", state_of(number), keep)
    with recorded(run.path) as recording:
        run.write_checkpoint("perq", state_of(before + 1), keep)

    def look(path: Path) -> Any:
        found = steps(path)
        # Tidying up, as the next training does, changes nothing of it.
        RunFolder(path).tidy(keep)
        assert steps(path) == found
        return found

    found = visited(recording, tmp_path, look)
    old = before or None
    assert set(found) == {(old, False), (before + 1, False), (before + 1, True)}
    assert sum(found.values()) > 30


def test_a_policy_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    write_policy(folder, {"kind": "table", "tables": np.zeros(3)})
    with recorded(folder) as recording:
        write_policy(folder, {"kind": "table", "tables": np.ones(3)})
    found = visited(recording, tmp_path, lambda path: float(read_policy(path)["tables"][0]))
    assert set(found) == {(0.0, False), (1.0, False), (1.0, True)}


def test_the_rows_of_a_job_are_there_or_not(tmp_path: Path) -> None:
    store = Store(tmp_path / "campaign")
    store.create()
    store.begin()
    job = Job("study", {"a": 1}, 0, 1)
    data = b"rung,height\n1,2\n"
    with recorded(tmp_path / "campaign") as recording:
        store.write(job, data)

    def look(path: Path) -> Any:
        found = list((path / "rows").glob("[!.]*.csv"))
        return found[0].read_bytes() if found else None

    found = visited(recording, tmp_path, look)
    assert set(found) == {(None, False), (data, False), (data, True)}


# Whole trainings -------------------------------------------------------------------------------------------------


def recorded_training(options: dict[str, Any], run: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    monkeypatch.setattr("holdfast.runs.session.SHARE_OF_CHECKPOINTS", 1e9)
    run.mkdir()
    with recorded(run) as recording:
        train({**options, "checkpoint_every": 1e-9}, run)
    return recording


@pytest.mark.parametrize(
    ("options", "n_states"),
    [
        pytest.param({**TABLE, "episodes": 6, "eval_every": 3}, 25, id="table"),
        pytest.param({**TABLE, "episodes": 6, "eval_every": 3}, 1000, id="table, more", marks=pytest.mark.slow),
        pytest.param({**NETWORK, "steps": 40}, 60, id="network", marks=pytest.mark.slow),
    ],
)
def test_a_training_goes_on_from_every_state_to_the_same_end(
    options: dict[str, Any], n_states: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recorded_training(options, tmp_path / "run", monkeypatch)
    expected = contents(tmp_path / "run")
    found = list(states(recording, 50, random.Random(1)))
    assert len(found) > 1000
    for _, tree in random.Random(2).sample(found, n_states):
        put(tree, tmp_path / "state")
        train({**options, "checkpoint_every": 1e-9}, tmp_path / "state")
        assert contents(tmp_path / "state") == expected
        shutil.rmtree(tmp_path / "state")


def test_rows_are_on_the_disk_before_the_checkpoint_that_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**TABLE, "episodes": 6, "eval_every": 3}
    recording = recorded_training(options, tmp_path / "run", monkeypatch)
    n_checkpoints = 0
    for _, tree in states(recording, 60, random.Random(1)):
        complete = [
            tree[name]
            for name in ("checkpoint", ".checkpoint.old", "checkpoint.1")
            if len(tree.get(name, ())) == 3
        ]
        if not complete:
            continue
        n_checkpoints += 1
        needed = json.loads(complete[0]["state.json"])["run"]["bytes"]
        for name, length in needed.items():
            assert len(tree[f"{name}.csv"]) >= length
            assert b"\0" not in tree[f"{name}.csv"][:length]
        assert "config.json" in tree
    assert n_checkpoints > 300


# Calls that fail -------------------------------------------------------------------------------------------------

NAMES = ("open", "mkdir", "rename", "unlink", "rmdir", "fsync", "ftruncate", "listdir", "stat", "fstat", "lseek")
FAULTS = {
    "no space": lambda: OSError(28, "No space left on device"),
    "broken": lambda: OSError(5, "Input/output error"),
    "interrupted": lambda: InterruptedError(4, "Interrupted system call"),
    "too many files": lambda: OSError(24, "Too many open files"),
    "no memory": MemoryError,
}


FILES = str(Path(holdfast.files.__file__).parent)


def is_ours(frame: Any) -> bool:
    """Whether a call comes from ``holdfast.files``."""
    return str(frame.f_code.co_filename).startswith(FILES)


def fail_at(number: int, fault: Callable[[], BaseException], patched: pytest.MonkeyPatch) -> list[int]:
    """Let the call with this number fail, of those that make up a change on the disk; how many there were."""
    from holdfast.files.named_errors import NamedFile

    calls = [0]

    def failing(original: Any) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if is_ours(sys._getframe(1)):
                calls[0] += 1
                if calls[0] == number:
                    raise fault()
            return original(*arguments, **keywords)

        return call

    for name in NAMES:
        patched.setattr(os, name, failing(getattr(os, name)))
    patched.setattr(NamedFile, "write", failing(NamedFile.write))
    return calls


WRITERS: dict[str, tuple[Callable[[Path, int], None], Callable[[Path], Any]]] = {
    "checkpoint": (
        lambda folder, number: RunFolder(folder).write_checkpoint("perq", state_of(number), 2),
        steps,
    ),
    "policy": (
        lambda folder, number: write_policy(folder, {"tables": np.full(3, number)}),
        lambda folder: int(read_policy(folder)["tables"][0]),
    ),
    "rows": (
        lambda folder, number: Store(folder).write(Job("study", {"a": 1}, 0, 1), b"a\n%d\n" % number),
        lambda folder: int(next((folder / "rows").glob("[!.]*.csv")).read_bytes()[2:]),
    ),
    "document": (
        lambda folder, number: replace_json(folder / "a.json", {"n": number}),
        lambda folder: json.loads((folder / "a.json").read_text())["n"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("writer", WRITERS)
def test_whichever_call_fails_the_old_or_the_new_is_there(
    writer: str, fault: Callable[[], BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, read = WRITERS[writer]
    if writer == "rows":
        store = Store(tmp_path)
        store.create()
        store.begin()
    write(tmp_path, 1)
    seen = 1
    for number in itertools.count(1):
        error = None
        with monkeypatch.context() as patched:
            calls = fail_at(number, fault, patched)
            try:
                write(tmp_path, seen + 1)
            except (OSError, MemoryError) as raised:
                error = raised
        found = read(tmp_path)
        # Where nothing was raised, the call was one that may fail, such as the removal of what nobody needs.
        assert found in ((seen, seen + 1) if error is not None else (seen + 1,))
        seen = found
        write(tmp_path, seen + 1)
        seen += 1
        assert read(tmp_path) == seen
        if calls[0] < number:
            break
    assert number > 8


def write_without_memory(write: Callable[[], None], number: int) -> tuple[BaseException | None, int]:
    """Write, and let one call of a function of holdfast's fail for want of memory; the error, and all calls."""
    source = str(Path(holdfast.__file__).parent)
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        if event == "call" and str(frame.f_code.co_filename).startswith(source):
            calls += 1
            if calls == number:
                raise MemoryError

    sys.setprofile(count)
    try:
        write()
    except (OSError, MemoryError) as raised:
        return raised, calls
    finally:
        sys.setprofile(None)
    return None, calls


@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("writer", WRITERS)
def test_wherever_memory_runs_out_the_old_or_the_new_is_there(writer: str, stride: int, tmp_path: Path) -> None:
    """At every call of a function, not only where the system is asked for something: also within tidying up."""
    write, read = WRITERS[writer]
    if writer == "rows":
        store = Store(tmp_path)
        store.create()
        store.begin()
    write(tmp_path, 1)
    seen = 1
    for number in itertools.count(1, stride):
        error, calls = write_without_memory(functools.partial(write, tmp_path, seen + 1), number)
        found = read(tmp_path)
        assert found in ((seen, seen + 1) if error is not None else (seen + 1,)), number
        seen = found
        write(tmp_path, seen + 1)
        seen += 1
        assert read(tmp_path) == seen
        if calls < number:
            break
    assert number > 20


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_training_says_it_in_a_sentence_and_goes_on(
    fault: Callable[[], BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from holdfast.cli import main

    monkeypatch.setattr("holdfast.runs.session.SHARE_OF_CHECKPOINTS", 1e9)
    command = ["train", "cliff", "--algo", "perq", "--k-max", "3", "--seed", "3", "--quiet"]
    command += ["--checkpoint-every", "1e-9", "--eval-every", "3", "--eval-episodes", "1"]
    command = [*command, "--episodes", "6", "--out"]
    assert main([*command, str(tmp_path / "whole")]) == 0
    expected = contents(tmp_path / "whole")
    n_said = 0
    for number in itertools.chain(range(1, 60, 11), range(60, 300, 47)):
        run = tmp_path / str(number)
        capsys.readouterr()
        with monkeypatch.context() as patched:
            fail_at(number, fault, patched)
            code = main([*command, str(run)])
        said = capsys.readouterr().err
        assert code in (0, 2), (number, said)
        assert said.count("\n") == (1 if code else 0), (number, said)
        assert "Traceback" not in said
        n_said += code == 2
        assert main([*command, str(run)]) == 0
        assert contents(run) == expected
        shutil.rmtree(run)
    assert n_said > 3


def test_folders_that_were_half_written_are_not_found(tmp_path: Path) -> None:
    with recorded(tmp_path) as recording:
        (tmp_path / "a").mkdir()
        write_state(tmp_path / "a", state_of(1), {"t": (), "r": ("agent", "replay")})
    assert recording.events[0].kind == "mkdir"
    assert find_folder(tmp_path / "a") is not None
    assert read_state(tmp_path / "a", {"t": (), "r": ("agent", "replay")})["run"] == {"steps": 1}
