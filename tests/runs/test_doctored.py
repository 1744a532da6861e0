"""A run folder that was tampered with is refused with one sentence, and runs nothing."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from holdfast.policies import load_policy
from holdfast.runs import RunFolder, train
from tests.files.seals import seal_anew
from tests.runs.doctored import FILES, copy_of, mutate, payload, use
from tests.runs.small_runs import BOTH, trained

LONGER = {"table": {"episodes": 14}, "network": {"steps": 90}}


@pytest.fixture(scope="module", params=BOTH)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def original(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / kind
    trained(BOTH[kind], path)
    return path


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    return copy_of(original, tmp_path / "run")


@pytest.fixture
def options(kind: str) -> dict[str, Any]:
    return {**BOTH[kind], **LONGER[kind]}


def refusals(run: Path, options: dict[str, Any], name: str) -> list[str]:
    """What is said of a run whose file ``name`` is damaged: it must be something, and nothing may change."""
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != ".lock"}
    # A training does not read the policy, it writes one.
    found = use(run, None if name.startswith("policy") else options)
    assert found
    for sentence in found:
        assert len(sentence) < 500
        assert "\n" not in sentence
        assert "Traceback" not in sentence
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != ".lock"}
    assert after == before
    return found


def test_a_run_that_nobody_touched_is_read(run: Path, options: dict[str, Any]) -> None:
    assert use(run, options) == []
    assert RunFolder(run).status().status == "finished"


@pytest.mark.parametrize("name", FILES)
def test_pickles_are_not_run(name: str, run: Path, options: dict[str, Any], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (run / name).write_bytes(payload(mark))
    refusals(run, options, name)
    assert not mark.exists()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("part", [0.0, 0.3, 0.95])
def test_truncated_files_are_refused(name: str, part: float, run: Path, options: dict[str, Any]) -> None:
    path = run / name
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])
    refusals(run, options, name)


@pytest.mark.parametrize("name", FILES)
def test_missing_files_are_refused(name: str, run: Path, options: dict[str, Any]) -> None:
    (run / name).unlink()
    if name == "config.json":
        assert not RunFolder(run).is_run
        with pytest.raises(ValueError, match="contains something else"):
            train(options, run)
    else:
        refusals(run, options, name)


@pytest.mark.parametrize("name", FILES)
def test_links_are_not_followed(name: str, run: Path, options: dict[str, Any], tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.move(run / name, elsewhere)
    (run / name).symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    assert use(run, options)
    assert elsewhere.read_bytes() == before


@pytest.mark.parametrize("name", ["checkpoint", "policy"])
def test_linked_folders_are_not_followed(name: str, run: Path, options: dict[str, Any], tmp_path: Path) -> None:
    shutil.move(run / name, tmp_path / "elsewhere")
    (run / name).symlink_to(tmp_path / "elsewhere")
    assert use(run, options)
    assert (tmp_path / "elsewhere").is_dir()


@pytest.mark.parametrize("name", [*FILES, ".lock"])
def test_pipes_are_not_waited_for(name: str, run: Path, options: dict[str, Any]) -> None:
    (run / name).unlink()
    os.mkfifo(run / name)
    assert use(run, options)


def test_a_pipe_as_a_file_of_times_is_replaced(run: Path, options: dict[str, Any]) -> None:
    (run / "timing.csv").unlink()
    os.mkfifo(run / "timing.csv")
    assert use(run, options) == []
    assert (run / "timing.csv").is_file()


CONFIGS = {
    "no end": {"steps": None, "episodes": None},
    "orders to the terminal": {"label": "\x1b[31mred"},
    "no text": {"environment": 3},
    "no algorithm's name": {"algo": "my sarsa"},
    "a list": {"set": []},
    "half a thread": {"threads": 0.5},
}


@pytest.mark.parametrize("change", CONFIGS.values(), ids=CONFIGS)
def test_damaged_configurations_are_refused(change: dict[str, Any], run: Path, options: dict[str, Any]) -> None:
    path = run / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert any("config.json is damaged" in sentence for sentence in refusals(run, options, "config.json"))


def test_an_algorithm_that_nobody_here_has_is_not_that_of_the_checkpoint(
    run: Path, options: dict[str, Any]
) -> None:
    """A package may have added such a name, but this run's checkpoint is another agent's."""
    path = run / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "algo": "sarsa"}))
    assert refusals(run, options, "config.json")
    problem = RunFolder(run).status().problem
    assert problem is not None
    assert problem.endswith(f"must be a checkpoint of sarsa, not of {options['algo']!r}")


def test_a_configuration_that_names_a_pipe_does_not_wait_for_it(run: Path, tmp_path: Path) -> None:
    from holdfast.cli import main

    os.mkfifo(tmp_path / "pipe.txt")
    path = run / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "environment": str(tmp_path / "pipe.txt")}))
    assert main(["train", "--resume", str(run)]) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"k_max": "x"},
        {"k_max": 10**9},
        {"net_arch": [100_000, 100_000]},
        {"net_arch": [1] * 10_000},
        {"net_arch": 7},
        {"head_arch": [10**9]},
        {"activation_fn": ["ReLU"]},
        {"features_extractor_kwargs": {"features_dim": 10**9}},
        {"decision_tolerance": "x"},
        {"another": 1},
    ],
    ids=str,
)
def test_policies_with_other_arguments_are_refused(change: dict[str, Any], run: Path, kind: str) -> None:
    if kind == "table":
        pytest.skip("a table has no layers")
    path = run / "policy/policy.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "arguments": {**document["arguments"], **change}}))
    seal_anew(path)
    with pytest.raises(ValueError, match="the saved policy"):
        load_policy(run)


@pytest.mark.parametrize(
    "change",
    [
        {"valued": "options"},
        {"valued": "everything"},
        {"valued": ["skips"]},
        {"k_max": 2},
        {"k_max": 10**9},
        {"head_arch": [10**9]},
        {"head_arch": []},
        {"net_arch": [100_000, 100_000]},
    ],
    ids=str,
)
def test_policies_of_skips_with_other_arguments_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    trained({**BOTH["network"], "algo": "temporl-dqn"}, tmp_path)
    assert load_policy(tmp_path).decide(np.zeros(4, np.float32)).values.shape == (2, 3)
    path = tmp_path / "policy/policy.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "arguments": {**document["arguments"], **change}}))
    seal_anew(path)
    with pytest.raises(ValueError, match=r"the saved (policy|state) "):
        load_policy(tmp_path)


def test_a_policy_that_does_not_say_what_it_values_values_options(run: Path, kind: str) -> None:
    if kind == "table":
        pytest.skip("a table has no network")
    path = run / "policy/policy.json"
    document = json.loads(path.read_text())
    before = load_policy(run).decide(np.zeros(4, np.float32)).values
    assert document["arguments"].pop("valued") == "options"
    path.write_text(json.dumps(document))
    seal_anew(path)
    np.testing.assert_array_equal(load_policy(run).decide(np.zeros(4, np.float32)).values, before)


def test_rows_in_a_huge_file_are_not_all_read(run: Path) -> None:
    with (run / "metrics.csv").open("ab") as file:
        file.truncate(2**33)
    # What stands behind the last whole row is torn.
    assert RunFolder(run).status().status == "finished"


@pytest.mark.parametrize("name", ["config.json", "checkpoint/state.json", "policy/policy.json"])
def test_a_newer_format_is_refused(name: str, run: Path, options: dict[str, Any]) -> None:
    document = json.loads((run / name).read_text())
    (run / name).write_text(json.dumps({**document, "format": 3}))
    if name != "config.json":
        seal_anew(run / name)
    assert any(
        "has format 3, and this version of holdfast reads 1" in said for said in refusals(run, options, name)
    )


_OF_ANY_KIND = ("observation_space/", "action_space/", "agent/observations/", "agent/environment/")
"""What an environment gives may be of any type."""

ARRAYS = [name for name in FILES if name.endswith(".safetensors")]


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_another_shape_or_type_are_refused(
    name: str, run: Path, options: dict[str, Any], kind: str
) -> None:
    arrays = load_file(run / name)
    for key, array in arrays.items():
        for other in (np.zeros((*array.shape, 2), array.dtype), np.zeros(array.shape, np.float16)):
            save_file({**arrays, key: other}, run / name)
            seal_anew(run / name)
            if not key.startswith(_OF_ANY_KIND):
                refusals(run, options, name)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_another_name_are_refused(name: str, run: Path, options: dict[str, Any]) -> None:
    arrays = load_file(run / name)
    if not arrays:
        pytest.skip("a table's checkpoint has no replay")
    first, *others = arrays
    save_file({"../../etc/passwd": arrays[first], **{key: arrays[key] for key in others}}, run / name)
    seal_anew(run / name)
    refusals(run, options, name)


@pytest.mark.parametrize("name", ARRAYS)
def test_huge_declared_sizes_are_refused(name: str, run: Path, options: dict[str, Any]) -> None:
    data = (run / name).read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    for entry in header.values():
        entry["shape"], entry["data_offsets"][1] = [2**40], entry["data_offsets"][0] + 2**42
    text = json.dumps(header).encode()
    (run / name).write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    seal_anew(run / name)
    if header:
        refusals(run, options, name)
    (run / name).write_bytes((2**62).to_bytes(8, "little") + data[8:])
    seal_anew(run / name)
    refusals(run, options, name)


def test_arrays_that_are_as_huge_as_they_say_are_refused(run: Path, options: dict[str, Any]) -> None:
    # A file with a hole in it takes no room on the disk, whatever its length.
    path = run / "checkpoint/tensors.safetensors"
    arrays = load_file(path)
    header, place = {}, 0
    for name, array in arrays.items():
        size = 2**40 if place == 0 else array.nbytes
        shape = [size // array.itemsize] if place == 0 else list(array.shape)
        code = {"f": "F", "i": "I", "u": "U", "b": "BOOL"}[array.dtype.kind]
        code = code if code == "BOOL" else f"{code}{8 * array.itemsize}"
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + place)
    found = use(run, options)
    assert found


@pytest.mark.parametrize("algo", ["dqn", "msa-dqn", "temporl-dqn", "ez-dqn", "q", "msa-q", "temporl-q"])
def test_a_checkpoint_of_another_algorithm_is_refused(
    algo: str, run: Path, options: dict[str, Any], tmp_path: Path, kind: str
) -> None:
    is_deep = algo.endswith("dqn")
    if is_deep != (kind == "network"):
        pytest.skip("its settings are of the other kind")
    other = {**BOTH[kind], "algo": algo}
    if algo in ("q", "dqn"):
        del other["k_max"]
    trained(other, tmp_path / "other")
    config = (run / "config.json").read_bytes()
    copy_of(tmp_path / "other", run)
    (run / "config.json").write_bytes(config)
    with pytest.raises(ValueError, match="must be a checkpoint of"):
        train(options, run)
    # Its name alone does not make it one.
    path = run / "checkpoint/state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "algo": options["algo"]}))
    seal_anew(path)
    with pytest.raises(ValueError, match=r"saved state|checkpoint must"):
        train(options, run)


def test_files_do_not_choose_the_code_that_is_run(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from holdfast.cli import main

    mark = tmp_path / "mark"
    (tmp_path / "evil_module.py").write_text(f"from pathlib import Path\nPath({str(mark)!r}).touch()\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = run / "config.json"
    for name in ("evil_module:make", "evil_module:Evil-v0"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "environment": name}))
        for arguments in (["--resume", str(run)], ["--config", str(path), "--out", str(tmp_path / "new")]):
            assert main(["train", *arguments]) == 2
            assert f"ENV must be given to run {name}" in capsys.readouterr().err
        assert main(["runs", str(run)]) == 0
        load_policy(run)
    assert not mark.exists()


def test_random_changes_are_read_or_refused(
    run: Path, original: Path, options: dict[str, Any], tmp_path: Path
) -> None:
    draw = random.Random(7)
    mark = tmp_path / "mark"
    for _ in range(40):
        copy_of(original, run)
        done = mutate(run, draw, mark)
        try:
            use(run, options)
        except Exception as error:
            raise AssertionError(f"{done}: {type(error).__name__}: {error}") from error
    assert not mark.exists()
