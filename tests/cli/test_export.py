"""``holdfast export``: the file, what is printed about it, and what it says of bad input."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from holdfast.cli import main
from holdfast.policies import load_policy
from tests.cli.test_main import HEAVY, imported_by
from tests.runs.small_runs import trained_of_each_kind


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_of_each_kind(tmp_path_factory.mktemp("runs"))


def shown_by(arguments: list[str], capture: pytest.CaptureFixture[str]) -> str:
    capture.readouterr()
    assert main(["export", *arguments]) == 0
    captured = capture.readouterr()
    assert captured.err == ""
    return captured.out


def test_what_is_printed(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = shown_by([str(runs / "network"), "cart.onnx"], capfd).splitlines()
    size = (tmp_path / "cart.onnx").stat().st_size
    assert lines[0].startswith(f"wrote cart.onnx, {size / 1e3:.3g} kB: CartPole-v1, perdqn, policy of step ")
    assert [line.split(maxsplit=3) for line in lines[2:6]] == [
        ["input", "observation", "float32", "(n, 4)"],
        ["output", "action", "int64", "(n,)"],
        ["output", "hold", "int64", "(n,)"],
        ["output", "values", "float32", "(n, 2, 3)"],
    ]
    assert lines[7:9] == [
        "  decision tolerance 0.0 (in the graph)",
        "  interrupt margin none (in the metadata)",
    ]
    assert lines[10].startswith("  10,000 of 10,000 decisions equal, largest difference in value ")
    assert float(lines[10].split()[-1]) < 1e-5
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("kind", ["table", "network", "temporl"])
def test_the_printed_lines_run(
    kind: str, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = shown_by([str(runs / kind / "policy"), "a policy.onnx", "--check", "20"], capsys).splitlines()
    code = textwrap.dedent("\n".join(lines[12:]))
    found: dict[str, Any] = {}
    exec(code, found)
    assert code.count("\n") in (3, 4)
    expected = load_policy(runs / kind).decide(found["observation"]["observation"][0])
    assert (found["action"][0], found["hold"][0]) == (expected.action, expected.hold)
    np.testing.assert_allclose(found["values"][0], expected.values, rtol=1e-5, atol=1e-6)


def test_the_numbers_alone(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cart.ONNX"
    arguments = ["--json", "--check", "300", "--decision-tolerance", "0.5", "--interrupt-margin", "1"]
    found = json.loads(shown_by([str(runs / "network"), str(file), *arguments], capsys))
    assert found["file"] == str(file)
    assert found["bytes"] == file.stat().st_size
    assert found["inputs"] == [{"name": "observation", "type": "float32", "shape": ["n", 4]}]
    assert [part["name"] for part in found["outputs"]] == ["action", "hold", "values"]
    assert found["outputs"][2]["shape"] == ["n", 2, 3]
    assert {part.key: part.value for part in onnx.load(file).metadata_props} == found["metadata"]
    assert found["metadata"]["decision_tolerance"] == "0.5"
    assert found["metadata"]["interrupt_margin"] == "1.0"
    assert found["metadata"]["environment"] == "CartPole-v1"
    check = found["check"]
    assert check["observations"] == check["equal"] + check["near_ties"] == 300


def test_a_tolerance_is_in_the_graph(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = {"observation": np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)}
    for tolerance in ("0", "1e9"):
        shown_by([str(runs / "network"), str(tmp_path / "x.onnx"), "--decision-tolerance", tolerance], capsys)
        _, holds, _ = onnxruntime.InferenceSession(tmp_path / "x.onnx").run(None, seen)
        own = load_policy(runs / "network").acting_with(float(tolerance), None).decide(seen["observation"])
        assert holds.tolist() == own.hold.tolist()
    assert set(holds.tolist()) == {3}


def test_pictures_and_dictionaries_are_shown_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.policies.test_export import SPACES, policy_for, saved

    monkeypatch.chdir(tmp_path)
    policy = policy_for(SPACES["dict"])
    saved(policy, tmp_path / "run", label="\x1b[31mred", step="many")
    out = shown_by(["run", "x.onnx", "--check", "5"], capsys)
    assert "\x1b" not in out
    lines = out.splitlines()
    assert lines[0].endswith("[31mred, perdqn")
    assert [line.split()[1] for line in lines[2:7]] == ["a", "observation.action", "b", "bits", "picture"]
    found: dict[str, Any] = {}
    exec(textwrap.dedent("\n".join(lines[lines.index("  import numpy as np, onnxruntime") :])), found)
    assert found["values"].shape == (1, 3, 4)


def test_states_that_count_from_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.policies.test_export import random_table, table

    monkeypatch.chdir(tmp_path)
    table(tmp_path / "run", random_table(), firsts=(1, 5), k_max=4)
    out = shown_by(["run", "x.onnx", "--check", "30"], capsys)
    found: dict[str, Any] = {}
    exec(textwrap.dedent("\n".join(out.splitlines()[-4:])), found)
    assert found["action"][0] >= 5


def test_near_ties_are_said() -> None:
    from holdfast.cli.export import _as_text
    from holdfast.policies.export import Export
    from holdfast.policies.export_check import ExportCheck

    out = _as_text(Export(Path("x.onnx"), 2_500_000, (), (), {}, ExportCheck(10_000, 2, 1e-7)))
    assert "2.5 MB" in out
    assert "  9,998 of 10,000 decisions equal, 2 differ by rounding between equal values, largest" in out


def test_a_table_is_exported_without_torch_and_without_a_word(runs: Path, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom holdfast.cli import main\n"
        f"assert main(['export', {str(runs / 'table')!r}, {str(tmp_path / 'x.onnx')!r}]) == 0\n"
        "assert 'onnxruntime' in sys.modules\nassert 'torch' not in sys.modules"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stderr, run.returncode) == ("", 0)
    assert run.stdout.startswith("wrote ")


def test_the_help_is_quick_and_narrow(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    modules = imported_by("from holdfast.cli import main\nassert main(['export', '--help']) == 0")
    assert modules & {*HEAVY, "onnx", "onnxruntime"} == set()
    monkeypatch.setenv("COLUMNS", "80")
    main(["export", "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["nowhere", "x.onnx"],
            "RUN_OR_POLICY must be the folder of a run or of a policy, and there is no folder 'nowhere'",
        ),
        ([".", "x.onnx"], ". has no policy yet: a run stores one at its first evaluation or at its end"),
        (["table", "x.pt"], "FILE must end in .onnx, not 'x.pt'"),
        (["table", "x"], "FILE must end in .onnx, not 'x'"),
        (["table", "folder.onnx"], "FILE must be a file, and 'folder.onnx' is a folder"),
        (["table", "x.onnx", "--check", "0"], "--check must be a whole number of at least 1, not 0"),
        (["table", "x.onnx", "--check", "-3"], "--check must be a whole number of at least 1, not -3"),
        (["table", "x.onnx", "--decision-tolerance", "-1"], "--decision-tolerance must be a finite number"),
        (["network", "x.onnx", "--decision-tolerance", "nan"], "--decision-tolerance must be a finite number"),
        (["network", "x.onnx", "--interrupt-margin", "inf"], "--interrupt-margin must be a finite number"),
        (
            ["network", "x.onnx", "--decision-tolerance", "2", "--interrupt-margin", "1"],
            "--interrupt-margin must be at least --decision-tolerance, which is ",
        ),
        (["temporl", "x.onnx", "--decision-tolerance", "2"], "must not be given for TempoRL's policy"),
        (["table"], "the following arguments are required: FILE"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str],
    sentence: str,
    runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.onnx").mkdir()
    if (runs / arguments[0]).exists() and arguments[0] != ".":
        arguments = [str(runs / arguments[0]), *arguments[1:]]
    assert main(["export", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("holdfast export: ")
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["folder.onnx"]


def test_without_the_packages(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["export", str(runs / "table"), str(tmp_path / "x.onnx")]) == 2
    assert capsys.readouterr().err == (
        "holdfast export: export needs the packages onnx and onnxruntime: pip install 'holdfast-rl[onnx]'\n"
    )


def test_an_interrupted_export_leaves_nothing(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.policies.export_check._decisions", interrupted)
    assert main(["export", str(runs / "table"), str(tmp_path / "x.onnx")]) == 130
    assert capsys.readouterr().err == "holdfast export: interrupted\n"
    assert list(tmp_path.iterdir()) == []
