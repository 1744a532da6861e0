from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import holdfast
from holdfast.runs import Evaluated, find_runs, read_runs, train
from tests.architecture import ROOT
from tests.runs.small_runs import NETWORK, TABLE, trained


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("frames")
    trained(TABLE, top / "one")
    trained(TABLE, top / "two", seed=4, set={"alpha": 0.5})
    return top


def test_a_row_is_an_episode_with_what_tells_the_runs_apart(runs: Path) -> None:
    found = holdfast.read_runs(runs)
    assert list(found.columns[:6]) == ["run", "environment", "algorithm", "k_max", "seed", "alpha"]
    assert len(found) == 2 * TABLE["episodes"]
    assert found.groupby("seed")["alpha"].first().to_dict() == {3: 0.1, 4: 0.5}
    # The same numbers as pandas reads from the files.
    own = pd.read_csv(runs / "two/metrics.csv")
    theirs = found[found["seed"] == 4].reset_index(drop=True)
    for name in own:
        shown = {"environment": "env_index"}.get(name, name)
        assert theirs[shown].tolist() == own[name].astype(float).tolist()


def test_what_identifies_a_run_is_not_replaced_by_a_column_of_its_file(tmp_path: Path) -> None:
    schedules = {"one": "exponential(0.9, 0.0)", "two": "exponential(0.5, 0.0)"}
    for name, schedule in schedules.items():
        trained(TABLE, tmp_path / name, set={"epsilon": schedule})
    for rows in ("episodes", "evaluations", "runs"):
        found = read_runs(tmp_path, rows=rows)
        assert set(found["environment"]) == {TABLE["environment"]}
        assert {Path(run).name: value for run, value in zip(found["run"], found["set.epsilon"], strict=True)} == (
            schedules
        )
    # The rate of each episode, from the file.
    rates = read_runs(tmp_path / "one")["epsilon"]
    assert rates.tolist() == pd.read_csv(tmp_path / "one/metrics.csv")["epsilon"].tolist()


def test_a_row_may_be_an_evaluation_a_hold_or_a_run(runs: Path) -> None:
    evaluations = read_runs([runs / "one"], rows="evaluations")
    assert evaluations["episode"].tolist() == [5.0, 10.0]
    assert set(read_runs(runs, rows="holds")["held"]) <= {1.0, 2.0, 3.0}
    listed = read_runs(runs, rows="runs")
    assert listed["status"].tolist() == ["finished", "finished"]
    assert listed["steps"].tolist() == [status.steps for status in find_runs(runs)]


def test_bad_input_is_one_sentence(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="rows must be one of 'episodes', 'evaluations', 'holds', 'runs'"):
        read_runs(runs, rows="steps")
    with pytest.raises(ValueError, match="there are none in"):
        read_runs(tmp_path)
    with pytest.raises(ValueError, match="folder must name at least one folder, and the list is empty"):
        read_runs([])
    for wrong in (3, [3], b"runs"):
        with pytest.raises(TypeError, match=r"^folder must be a folder or a list of folders, not "):
            read_runs(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^folder must be a folder, not 3$"):
        holdfast.read_campaign(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no folder"):
        read_runs(tmp_path / "nowhere")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match=r"^a frame needs pandas, .*: pip install 'holdfast-rl\[data\]'$"):
        read_runs(runs)


# Evaluations are told while a run is trained ---------------------------------------------------------------------


@pytest.mark.parametrize("options", [TABLE, NETWORK], ids=["table", "network"])
def test_evaluations_are_told_and_can_stop_the_training(options: dict[str, Any], tmp_path: Path) -> None:
    told: list[Evaluated] = []
    outcome = train(options, tmp_path / "whole", on_evaluation=told.append)
    assert outcome.status == "finished"
    rows = read_runs(tmp_path / "whole", rows="evaluations")
    assert [one.mean_return for one in told] == rows["return_mean"].tolist()
    assert [one.steps for one in told] == rows["step"].tolist()
    assert [one.number for one in told] == [1, 2]

    def stop_at_once(evaluated: Evaluated) -> bool:
        return False

    stopped = train(options, tmp_path / "stopped", on_evaluation=stop_at_once)
    assert stopped.status == "stopped"
    assert len(read_runs(tmp_path / "stopped", rows="evaluations")) == 1
    # It goes on from there, and ends alike.
    assert train(options, tmp_path / "stopped").status == "finished"
    again = read_runs(tmp_path / "stopped", rows="evaluations")
    assert again["return_mean"].tolist() == rows["return_mean"].tolist()


def test_what_the_listener_raises_goes_on_as_it_is(tmp_path: Path) -> None:
    class Pruned(Exception):  # noqa: N818 - as Optuna's TrialPruned is
        pass

    def prune(evaluated: Evaluated) -> None:
        raise Pruned

    with pytest.raises(Pruned):
        train(TABLE, tmp_path / "run", on_evaluation=prune)


def test_settings_that_are_whole_numbers_are_whole_in_the_frame_of_a_campaign() -> None:
    frame = holdfast.read_campaign(ROOT / "results/tune_mountain_car")
    assert sorted(set(frame["trial"])) == list(range(30))
    assert [frame[name].dtype.kind for name in ("trial", "steps", "seed", "return")] == ["i", "i", "i", "f"]


def test_what_a_study_draws_has_a_column_for_each_argument() -> None:
    frame = holdfast.read_campaign(ROOT / "results/tune_mountain_car")
    assert "parameters" not in frame
    defaults = frame[frame["trial"] == 0].iloc[0]
    assert {name: defaults[name] for name in ("learning_rate", "batch_size", "persistences")} == {
        "learning_rate": 0.0003,
        "batch_size": 64,
        "persistences": "[1, 2, 4, 8, 16, 32]",
    }
    last = frame.groupby(["trial", "train_freq"], as_index=False)["return"].last()
    assert last.groupby("train_freq")["return"].max().idxmax() == 1
