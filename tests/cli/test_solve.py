"""``holdfast solve``: what it prints, what it writes, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray

from holdfast.cli import main
from holdfast.cli.solve import _figure, _solve
from holdfast.envs import make_env
from holdfast.mdp import TabularMDP, k_values

MAP = "S..\n.#.\n..G\n"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def numbers(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["solve", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "steps", "decisions"),
    [
        # Down 3, right 9, up 3: nine to the right need two holds of at most 8.
        ("cliff", 15, 4),
        # Down 2, right 9 over the bridge, up 2: 13 steps, again two holds to the right.
        ("bridge", 13, 4),
        # Down 4, right 4, up 3, right 5, down 4: twenty steps in five straight pieces.
        ("zigzag", 20, 5),
    ],
)
def test_shortest_paths_and_values_of_the_grids(
    name: str, steps: int, decisions: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = numbers([name, "--k-max", "8", "--gamma", "0.99"], capsys)
    assert found["shortest_best_path"] == steps
    assert found["fewest_decisions"] == decisions
    # The one reward, +1, comes with the last step.
    assert found["start_values"][0] == pytest.approx(0.99 ** (steps - 1), abs=1e-9)
    assert found["k_max"] == len(found["start_values"]) == 8
    assert all(np.diff(found["start_values"]) <= 1e-12)


def test_cliff_held_for_four_steps_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    found = numbers(["cliff", "--k-max", "4"], capsys)
    # Down for 3 is free; the fourth step down has to be walked back up: 17 steps.
    assert found["start_values"] == pytest.approx([0.99**14] * 3 + [0.99**16], abs=1e-9)
    # To the right there is a hole two steps away.
    assert found["first_actions"] == ["down/right", "down", "down", "down"]


def test_prints_the_table_and_writes_picture_and_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", "cliff", "--k-max", "3", "-o", "out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "cliff: 60 states, 4 actions, gamma 0.99, k_max 3"
    assert "  V*(start)           0.868746" in lines
    assert "  shortest best path  15 steps" in lines
    table = [line.split() for line in lines if line.strip()[:1] in "123" and "down" in line]
    assert [row[0] for row in table] == ["1", "2", "3"]
    assert lines[-2:] == ["wrote out/values.png", "wrote out/values.npz"]
    assert all(len(line) <= 80 for line in lines)
    assert (tmp_path / "out" / "values.png").read_bytes().startswith(b"\x89PNG")
    with np.load(tmp_path / "out" / "values.npz", allow_pickle=False) as data:
        assert data["q"].shape == (60, 4, 3)
        assert data["k_values"] == pytest.approx(data["q"].max(axis=1))
        assert data["gamma"] == 0.99
        assert data["k_values"][0, 0] == pytest.approx(0.99**14, abs=1e-9)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["values.npz", "values.png"]


def test_default_folder_and_json_without_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert numbers(["cliff", "--k-max", "2"], capsys)["files"] == []
    assert list(tmp_path.iterdir()) == []
    assert main(["solve", "cliff", "--k-max", "1"]) == 0
    assert (tmp_path / "results" / "solve-cliff" / "values.png").exists()


def test_a_map_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text(MAP, encoding="utf-8")
    found = numbers(["mine.txt", "--k-max", "2", "--gamma", "0.5", "-o", "out"], capsys)
    assert found["environment"] == "mine.txt"
    assert found["shortest_best_path"] == 4
    assert found["fewest_decisions"] == 2
    assert found["start_values"] == pytest.approx([0.125, 0.125], abs=1e-9)
    assert found["files"] == ["out/values.png", "out/values.npz"]


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4", "holdfast/SyncGrid-v0"])
def test_gymnasium_ids(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = numbers([name, "--k-max", "3", "-o", "out"], capsys)
    assert len(found["start_values"]) == 3
    mdp = TabularMDP.from_gymnasium(make_env(name), 0.99)
    assert found["start_values"] == pytest.approx(mdp.initial @ k_values(mdp, 3), abs=1e-9)
    assert (tmp_path / "out" / "values.png").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["cliff", "--k-max", str(10**22)], ": --k-max must be less than 2147483648, not 1000"),
        (["cliff", "--k-max", "0"], "--k-max must be a whole number of at least 1, not 0"),
        (["cliff", "--gamma", "1.5"], ": --gamma must be a number in [0, 1], not 1.5"),
        (["cliff", "--gamma", "nan"], ": --gamma must be a number in [0, 1], not nan"),
        (["clif"], "did you mean 'cliff'?"),
        (["no/such/map.txt"], "no/such/map.txt"),
        (["CartPole-v1"], "must expose its transition table"),
        (["ragged.txt"], "ragged.txt"),
        (["cliff", "-o", "ragged.txt"], "ragged.txt"),
    ],
)
def test_bad_input_is_one_sentence_exit_code_2_and_leaves_nothing(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "ragged.txt").write_text("S..\n.G\n", encoding="utf-8")
    assert main(["solve", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("holdfast solve: ")
    assert [path.name for path in tmp_path.iterdir()] == ["ragged.txt"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("..G\n...\n", "start"),
        ("S.G\n..S\n", "start"),
        ("S..\n.G\n", "row"),
        ("S.G\n.?.\n", "?"),
        ("S..\n...\n", "goal"),
        ("", "empty"),
    ],
)
def test_bad_maps(text: str, sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "map.txt").write_text(text, encoding="utf-8")
    assert main(["solve", "map.txt"]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_an_unreachable_goal_is_a_warning(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "map.txt").write_text("S#G\n.#.\n", encoding="utf-8")
    assert main(["solve", "map.txt", "--k-max", "2"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("holdfast solve: warning: ")
    assert captured.err.count("\n") == 1
    assert "V*(start)" in captured.out


def test_a_write_that_fails_half_way_keeps_the_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", "cliff", "--k-max", "1", "-o", "out"]) == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    capsys.readouterr()

    def full_disk(file: Any, **arrays: Any) -> None:
        file.write(b"half of it")
        raise OSError(28, "No space left on device", "out/values.npz")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    assert main(["solve", "cliff", "--k-max", "2", "-o", "out"]) == 2
    assert capsys.readouterr().err == "holdfast solve: out/values.npz: No space left on device\n"
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def figure_of(name: str, k_max: int) -> tuple[Figure, NDArray[np.float64]]:
    env = make_env(name)
    mdp = TabularMDP.from_gymnasium(env, 0.99)
    return _figure(_solve(name, env, mdp, range(1, k_max + 1)), env), k_values(mdp, k_max)


def panels(figure: Figure) -> list[np.ma.MaskedArray[Any, Any]]:
    return [np.ma.asarray(axes.get_images()[0].get_array()) for axes in figure.axes if axes.get_images()]


@pytest.mark.parametrize(
    ("name", "shape", "goal", "holes"),
    [
        ("cliff", (6, 10), (0, 9), [(0, 2), (2, 7)]),
        ("FrozenLake-v1", (4, 4), (3, 3), [(1, 1), (1, 3), (2, 3), (3, 0)]),
        ("sync-grid", (6, 6), (5, 5), [(1, 2), (5, 3)]),
    ],
)
def test_the_picture_shows_the_values_of_each_k_where_they_belong(
    name: str, shape: tuple[int, int], goal: tuple[int, int], holes: list[tuple[int, int]]
) -> None:
    figure, expected = figure_of(name, 3)
    shown = panels(figure)[:3]
    for index, panel in enumerate(shown):
        truth = expected[: shape[0] * shape[1], index].reshape(shape)
        live = ~np.ma.getmaskarray(panel)
        assert panel.shape == shape
        assert not live[goal]
        assert not any(live[hole] for hole in holes)
        assert live.sum() >= shape[0] * shape[1] - 25
        assert np.asarray(panel)[live] == pytest.approx(truth[live])


def test_many_persistences_share_a_picture() -> None:
    figure, expected = figure_of("cliff", 100)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert len(titles) == 32
    assert titles[0] == "$k=1$"
    assert titles[-1] == "$k=100$"
    last = panels(figure)[31]
    assert last[5, 0] == pytest.approx(expected[50, 99])


def test_what_does_not_fit_into_memory_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["solve", "cliff", "--k-max", str(2 * 10**9)]) == 2
    error = capsys.readouterr().err
    assert "memory" in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_small_gammas_are_solved_too(capsys: pytest.CaptureFixture[str]) -> None:
    found = numbers(["cliff", "--gamma", "0.1", "--k-max", "2"], capsys)
    assert found["start_values"] == pytest.approx([1e-14, 1e-14], rel=1e-9)
    nothing_matters = numbers(["cliff", "--gamma", "0", "--k-max", "2"], capsys)
    assert nothing_matters["shortest_best_path"] is None
    assert nothing_matters["first_actions"][0] == "left/down/right/up"


def test_names_of_folders_are_safe(tmp_path: Path) -> None:
    (tmp_path / "a$b c.txt").write_text(MAP, encoding="utf-8")
    assert main(["solve", "a$b c.txt", "--k-max", "1"]) == 0
    assert main(["solve", "holdfast.envs:holdfast/Open-v0", "--k-max", "1"]) == 0
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [
        "solve-a-b-c.txt",
        "solve-holdfast.envs-holdfast-Open-v0",
    ]


def test_arguments_of_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    slippery = numbers(["cliff", "--k-max", "1", "--env-kwargs", "slip=0.2"], capsys)
    mdp = make_env("cliff", slip=0.2).unwrapped.tabular_mdp(0.99)  # type: ignore[attr-defined]
    assert slippery["start_values"][0] == pytest.approx(k_values(mdp, 1)[0, 0])
    assert slippery["shortest_best_path"] is None
    lakes = [["frozen-lake", "--k-max", "16", "--env-kwargs", f"seed={seed}"] for seed in range(4)]
    assert len({numbers(lake, capsys)["fewest_decisions"] for lake in lakes}) > 1
    assert main(["solve", "cliff", "--env-kwargs", "slip=2"]) == 2
    assert "slip must be a number in [0, 1], not 2" in capsys.readouterr().err
    assert main(["solve", "cliff", "--env-kwargs", "slop=1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_cliff_walking_is_drawn_as_the_grid_it_is() -> None:
    figure, expected = figure_of("CliffWalking-v1", 2)
    first = panels(figure)[0]
    assert first.shape == (4, 12)
    assert first[3, 0] == pytest.approx(expected[36, 0])
    assert np.ma.getmaskarray(first)[3, 11]


def test_a_cost_and_a_sparse_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "cliff", "--decision-cost", "0.5", "--persistences", "1,2,4,8", "-o", "out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "cliff: 60 states, 4 actions, gamma 0.99, k in 1,2,4,8, decision cost 0.5"
    # Down for 8 steps, of which the border takes three; right for 8; up for 8, again three too many; right for 1.
    assert "  best path           25 steps, 4 decisions, return 1 without the cost" in lines
    worth = 0.99**24 - 0.5 * (1 + 0.99**8 + 0.99**16 + 0.99**24)
    assert f"  V*(start)           {worth:.6g}" in lines
    table = lines[lines.index(next(line for line in lines if "V*_k(start)" in line)) + 1 :][:4]
    assert [row.split()[0] for row in table] == ["1", "2", "4", "8"]
    assert all(len(line) <= 80 for line in lines)
    with np.load("out/values.npz", allow_pickle=False) as data:
        assert data["persistences"].tolist() == [1, 2, 4, 8]
        assert data["decision_cost"] == 0.5
        assert data["q"].shape == (60, 4, 4)


def test_prices(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = numbers(["cliff", "--prices"], capsys)["prices"]
    assert (first["low"], third["high"]) == (0.0, None)
    # Down for 3 or for 8 steps, right for 8, up for 3 or 5, right once: where γ^14 − c·short = γ^21 − c·long.
    short, long = 1 + 0.99**3 + 0.99**11 + 0.99**14, 1 + 0.99**8 + 0.99**16 + 0.99**21
    assert first["high"] == second["low"] == pytest.approx((0.99**14 - 0.99**21) / (short - long), rel=1e-9)
    # Then −γ − c, in a hole after two steps, is better.
    assert second["high"] == third["low"] == pytest.approx((0.99**21 + 0.99) / (long - 1), rel=1e-9)
    assert [row["path"] for row in (first, second, third)] == [
        {"steps": 15, "decisions": 4, "total": 1.0},
        {"steps": 22, "decisions": 4, "total": 1.0},
        {"steps": 2, "decisions": 1, "total": -1.0},
    ]


def test_prices_by_chance_have_no_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "cliff", "--prices", "--k-max", "2", "--env-kwargs", "slip=0.1", "-o", "out"]) == 0
    rows = capsys.readouterr().out.partition("The best policy by what a decision costs")[2].splitlines()[3:]
    assert rows[0].split()[:6] == ["0", "to", rows[0].split()[2], "-", "-", "-"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--decision-cost", "-1"], "--decision-cost must be a finite number of at least 0, not -1.0"),
        (["--decision-cost", "nan"], "--decision-cost must be a finite number of at least 0, not nan"),
        (["--decision-cost", "inf"], "--decision-cost must be a finite number of at least 0, not inf"),
        (["--persistences", "2,4"], "--persistences must begin with 1 and increase, as [1, 2, 4, 8] does"),
        (["--persistences", "1,4,2"], "--persistences must begin with 1 and increase, as [1, 2, 4, 8] does"),
        (["--persistences", "1,2,2"], "--persistences must begin with 1 and increase, as [1, 2, 4, 8] does"),
        (["--prices", "--gamma", "1"], "--gamma must be below 1: otherwise endless decisions"),
    ],
)
def test_costs_and_sets_that_are_refused(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", "cliff", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"holdfast solve: {sentence}")
