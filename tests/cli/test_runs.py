"""``holdfast runs`` and ``holdfast plot``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.cli.plot import _QUANTITIES
from holdfast.runs import RunFolder
from holdfast.runs.curves import QUANTITIES
from tests.cli.test_main import imported_by
from tests.runs.small_runs import NETWORK, TABLE, trained


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("runs")
    trained(TABLE, top / "one")
    trained(TABLE, top / "two", seed=4)
    trained(NETWORK, top / "deep" / "three")
    (top / "deep" / "config.json").write_text("{}")  # somebody else's
    trained(TABLE, top / "zero")
    (top / "zero/config.json").write_text("{")
    return top


def test_runs_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunFolder(folder / "two").locked():
        assert main(["runs", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["run", "algorithm", "k_max", "environment", "steps", "return", "status"]
    assert [line.split()[0] for line in lines[1:5]] == ["deep/three", "one", "two", "zero"]
    assert [line.split()[-1] for line in lines[1:5]] == ["finished", "finished", "use", "damaged"]
    assert lines[1].split()[1:5] == ["perdqn", "3", "CartPole-v1", "80"]
    assert lines[5].startswith(f"{folder / 'zero'}: ")
    assert max(map(len, lines[:5])) <= 80


DAMAGES = {
    "step": ("inf", "it must have finite numbers as step"),
    "episode": ("1e300", "it must have whole numbers as episode, not 1e+300"),
    "return": ("nan", "it must have finite numbers as return"),
}


@pytest.mark.parametrize("column", DAMAGES)
def test_a_damaged_run_is_a_line_of_the_list(
    column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(TABLE, tmp_path / "a")
    trained(TABLE, tmp_path / "b", seed=4)
    metrics = tmp_path / "a/metrics.csv"
    names, *lines = (line.split(",") for line in metrics.read_text().splitlines())
    lines[-1][names.index(column)] = DAMAGES[column][0]
    metrics.write_text("\n".join(map(",".join, [names, *lines])) + "\n")
    assert main(["runs", str(tmp_path)]) == 0
    _, damaged, other, problem = capsys.readouterr().out.splitlines()
    assert (damaged.split()[0], damaged.split()[-1]) == ("a", "damaged")
    assert (other.split()[0], other.split()[-1]) == ("b", "finished")
    assert problem == f"{tmp_path / 'a'}: {metrics} is damaged: {DAMAGES[column][1]}"
    assert main(["runs", str(tmp_path), "--json"]) == 0
    for line in capsys.readouterr().out.splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_a_damage_in_the_middle_leaves_one_curve_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(TABLE, tmp_path / "a", episodes=40)
    trained(TABLE, tmp_path / "b", seed=4)
    metrics = tmp_path / "a/metrics.csv"
    lines = metrics.read_text().splitlines()
    lines[1] = lines[1].replace("1,", "inf,", 1)
    metrics.write_text("\n".join(lines) + "\n")
    assert main(["plot", str(tmp_path), "--over", "episodes", "-o", str(tmp_path / "a.png")]) == 0
    said = capsys.readouterr()
    assert said.out == f"wrote {tmp_path / 'a.png'}\n"
    assert (
        said.err
        == f"holdfast plot: {tmp_path / 'a'} is left out: {metrics} is damaged: it must have finite numbers\n"
    )


def test_agents_that_hold_nothing_have_no_k_max(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(TABLE, tmp_path / "cliff-perq-k3-s0")
    trained(TABLE, tmp_path / "cliff-q-s0", algo="q", k_max=None)
    assert main(["runs", str(tmp_path)]) == 0
    header, held, free = capsys.readouterr().out.splitlines()
    assert header.split()[2:4] == ["k_max", "environment"]
    end = header.index("k_max") + len("k_max")
    assert (held[:end].split()[-1], free[:end].split()[-1]) == ("3", "q")
    assert held[end:].split()[0] == free[end:].split()[0] == "cliff"


def test_what_a_long_name_says_already_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual = tmp_path / "holdfast-Cliff-v0-perq-k3-s0"
    trained(TABLE, usual, environment="holdfast/Cliff-v0")
    assert main(["runs", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["run", "algorithm", "k_max", "steps", "return", "status"]
    assert max(map(len, lines)) <= 80
    usual.rename(tmp_path / "my-holdfast-Cliff-v0-perq-k3-s0")
    assert main(["runs", str(tmp_path)]) == 0
    assert "holdfast/Cliff-v0" in capsys.readouterr().out


def test_runs_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(folder), "--json"]) == 0
    found = {Path(run["path"]).name: run for run in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["one"]["status"] == "finished"
    assert (found["one"]["k_max"], found["one"]["episodes"], found["two"]["seed"]) == (3, 12, 4)
    assert found["zero"]["problem"] is not None


def test_no_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"no runs in {tmp_path}\n"
    assert main(["runs", str(tmp_path / "nowhere")]) == 2
    assert "DIR must contain runs" in capsys.readouterr().err


def test_listing_needs_no_torch(folder: Path) -> None:
    modules = imported_by(f"from holdfast.cli import main\nassert main(['runs', {str(folder)!r}]) == 0")
    assert "torch" not in modules


@pytest.mark.parametrize("shown", QUANTITIES)
def test_plot_draws_every_quantity(
    shown: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "curves.png"
    assert main(["plot", str(folder), "--show", shown, "-o", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"wrote {out}\n"
    assert "zero is left out" in printed.err
    assert out.read_bytes().startswith(b"\x89PNG")


def test_the_quantities_of_the_command_line_are_those_there_are() -> None:
    assert (*QUANTITIES, "holds") == _QUANTITIES


def test_plot_draws_the_holds_of_one_run(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "holds.png"
    assert main(["plot", str(folder / "one"), "--show", "holds", "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "RUN must be a run's folder, or a folder that contains runs, and 'nowhere' does not exist"),
        (["."], "contains no runs"),
        (["one", "-o", "curves.gif"], "-o must end in .png, .pdf or .svg"),
        (["one", "--window", "0"], "--window must be a whole number of at least 1"),
        (["zero"], "config.json is damaged"),
        (["one", "two", "--show", "holds"], "RUN must be the folder of one run for --show holds"),
        (["one", "--show", "holds", "--window", "3"], "--over and --window must not be given with --show holds"),
        ([".", "--show", "holds"], "RUN must be the folder of one run for --show holds"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str],
    sentence: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path if arguments == ["."] else folder)
    assert main(["plot", *arguments]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
