from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.cli import main
from holdfast.cli.tune import _verdict
from holdfast.experiments import LocalEngine, Range, run_tuning
from holdfast.experiments.campaign import Standing
from holdfast.experiments.engines.base import Ended, Event, Started, Task, perform
from holdfast.experiments.tuning.study import (
    Trial,
    _refuse_the_hopeless,
    make_study,
    read_trials,
    run_study,
)
from holdfast.experiments.tuning.study import _draw as draw
from holdfast.experiments.tuning.trials import trial_options

OPTIONS: dict[str, Any] = {"environment": "cliff", "algo": "q", "episodes": 20, "eval_episodes": 1}
COMMAND = ["tune", "cliff", "--algo", "q", "--episodes", "20", "--eval-episodes", "1", "--jobs", "1"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ended(number: int, parameters: dict[str, Any], value: float) -> Trial:
    return Trial(number, parameters, ((value,),), False, None, True)


def test_the_first_trial_has_the_defaults_and_the_others_follow_from_the_seed_and_what_has_ended() -> None:
    study = make_study(OPTIONS, {"alpha": None, "epsilon": None})
    first, second = draw(study, [], 2)
    assert first == {"alpha": 0.1, "epsilon": "exponential(0.99, 0.0)"}
    assert draw(study, [], 2) == [first, second]
    assert 0.01 <= second["alpha"] <= 1.0
    done = [ended(0, first, 0.0), ended(1, second, 1.0)]
    (third,) = draw(study, done, 1)
    assert draw(study, done, 1) == [third]
    assert third not in (first, second)
    assert draw(make_study(OPTIONS, {"alpha": None, "epsilon": None}, seed=1), [], 2)[1] != second


def test_what_is_drawn_follows_what_was_good() -> None:
    study = make_study(OPTIONS, {"alpha": None})
    done = [ended(0, {"alpha": 0.1}, -1.0)]
    while len(done) < 40:
        (drawn,) = draw(study, done, 1)
        # The nearer to .5 the better.
        done.append(ended(len(done), drawn, -abs(drawn["alpha"] - 0.5)))
    missed = [abs(trial.parameters["alpha"] - 0.5) for trial in done]
    # The first ten are drawn at random.
    assert sum(missed[11:]) / len(missed[11:]) < 0.7 * sum(missed[1:11]) / 10


def test_a_killed_study_goes_on_and_ends_alike(capsys: pytest.CaptureFixture[str]) -> None:
    whole = run_tuning(OPTIONS, "whole", trials=3)
    process = subprocess.Popen([sys.executable, "-m", "holdfast", *COMMAND, "--trials", "3", "-o", "killed"])
    until = time.monotonic() + 300.0
    while not any(Path("killed/rows").glob("*.csv")):
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    if len(list(Path("killed/rows").glob("*.csv"))) < 3:
        assert main([*COMMAND, "--trials", "3", "-o", "killed"]) == 2
        assert "trials: give --resume to continue it, or choose another folder" in capsys.readouterr().err
    assert main([*COMMAND, "--trials", "3", "-o", "killed", "--resume"]) == 0
    told = capsys.readouterr()
    assert "next: holdfast train --config killed/best.json" in told.out
    assert "beats the defaults" in told.out
    assert told.err == ""
    assert read_trials(Path("killed")) == whole
    assert json.loads(Path("killed/best.json").read_text()) == json.loads(Path("whole/best.json").read_text())
    assert main(["train", "--config", "killed/best.json", "--seed", "1", "-o", "run", "--quiet"]) == 0
    # Killed before it was written, a study that is over writes it.
    Path("killed/best.json").unlink()
    assert main([*COMMAND, "--trials", "3", "-o", "killed", "--resume"]) == 0
    assert Path("killed/best.json").is_file()
    # Another study does not go into the same folder.
    assert main([*COMMAND, "--trials", "3", "-o", "killed", "--resume", "--range", "alpha"]) == 2
    assert "holds another study" in capsys.readouterr().err


def test_rows_that_are_damaged_are_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    whole = run_tuning(OPTIONS, "study", trials=2)
    rows = sorted(Path("study/rows").glob("*.csv"))[0]
    before = rows.read_bytes()
    rows.write_bytes(before[:20])
    assert main([*COMMAND, "--trials", "2", "-o", "study"]) == 2
    assert "has 1 of 2 trials: give --resume to continue it" in capsys.readouterr().err
    assert run_tuning(OPTIONS, "study", trials=2, resume=True) == whole
    assert rows.read_bytes() == before


def test_every_option_of_a_training_counts_or_is_refused() -> None:
    options = {"environment": "CartPole-v1", "algo": "dqn", "steps": 100, "eval_every": 50}
    study = make_study({**options, "n-envs": 4, "threads": 2}, {"gamma": None})
    assert study.setting["n_envs"] == 4
    (job,) = study.jobs_of(0, study.defaults, [])
    assert {name: trial_options(job.setting)[name] for name in ("n_envs", "threads")} == {
        "n_envs": 4,
        "threads": 2,
    }
    # A study from before has no such names, and is the same one.
    assert not {"n_envs", "threads"} & set(make_study(options, {"gamma": None}).setting)
    for name, value in (("seed", 3), ("checkpoint-every", 5.0), ("keep_checkpoints", 3)):
        with pytest.raises(
            ValueError, match=f"options must not have '{name.replace('-', '_')}', which a study sets"
        ):
            make_study({**options, name: value}, {"gamma": None})
    with pytest.raises(ValueError, match="range and set must not both name 'k_max'"):
        make_study({**options, "algo": "ez-dqn", "k-max": 4}, {"k_max": None})


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--trials", "0"], "--trials must be a whole number of at least 1, not 0"),
        (["--range", "lr"], "--range must say what lr is drawn from"),
        (["--range", "lr=1..2"], "--range names 'lr', which q does not have; did you mean alpha?"),
        (["--range", "alpha=2..1"], "a range must go from a number to a greater one, not from 2 to 1"),
        (["--range", "alpha=2..1"], "--range alpha=2..1: a range must go"),
        (
            ["--range", "alpha=0.1..5"],
            "--range must hold values that alpha can have: alpha must be a number in (0, 1], not 5",
        ),
        (
            ["--algo", "perq", "--range", "k_max", "persistences=[1],[2]"],
            "--range and --set must name one of k_max and",
        ),
        (["--range", "alpha", "--set", "alpha=0.5"], "--range and --set must not both name 'alpha'"),
        (["--range", "alpha=low,high"], "alpha must be a number, not 'low'"),
        (["--eval-every", "0"], "--eval-every must be at least 1"),
        (["--eval-every", "21"], "--eval-every must be at most 20, the length of a training"),
        (["--range", "alpha", "alpha=0.1..0.5"], "--range must name 'alpha' once"),
        (["--algo", "nowhere:Mine"], "algo 'nowhere:Mine' cannot be used: importing nowhere raised"),
    ],
)
def test_bad_input_is_one_sentence(more: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, *more]) == 2
    said = capsys.readouterr().err
    assert said.startswith("holdfast tune: ")
    assert sentence in said
    assert said.count("\n") == 1
    assert not Path("results").exists()


def test_on_a_cluster_it_must_be_said_how_many_trials_are_drawn_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [*COMMAND[:-2], "--engine", "ray", "--address", "127.0.0.1:1"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert said.startswith("holdfast tune: --jobs must be given on a cluster: that many trials are drawn together")
    assert not Path("results").exists()


class Here:
    """An engine that runs jobs in this process, one after the other."""

    at_once = 1

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def about(self) -> dict[str, Any]:
        return {"name": "here"}

    def run(self, tasks: Sequence[Task], alone: bool = False) -> Generator[Event, None, None]:
        for task in tasks:
            yield Started(task.job)
            yield Ended(task.job, 0.0, perform(task.document(), task.whole_place))


def test_trials_that_are_behind_are_stopped_once_five_have_ended() -> None:
    """Without a discounted future, no goal is ever worth a step: such trials are behind those that have one."""
    options = {"environment": "open", "algo": "perq", "k-max": 4, "episodes": 40, "eval_every": 5}
    ranges = {"gamma": Range(choices=[0.99, 0.0])}
    found = run_tuning(options, "pruned", trials=12, ranges=ranges, engine=Here())
    pruned = [trial for trial in found if trial.is_pruned]
    assert pruned
    assert all(trial.number >= 5 and trial.parameters["gamma"] == 0.0 for trial in pruned)
    # Behind from where the defaults first reach the goal, but not in the first quarter of eight evaluations.
    reached = max(2, found[0].curves[0].index(1.0))
    for trial in found:
        assert trial.problem is None
        assert len(trial.curves[0]) == (reached + 1 if trial.is_pruned else 8)
        assert (trial.score is None) == trial.is_pruned
    assert json.loads(Path("pruned/best.json").read_text())["set"]["gamma"] == 0.99
    frame = holdfast.read_campaign("pruned")
    assert set(frame[frame["pruned"] == 1]["trial"]) == {trial.number for trial in pruned}
    whole = run_tuning(options, "whole", trials=12, ranges=ranges, engine=Here(), prunes=False)
    assert [len(trial.curves[0]) for trial in whole] == [8] * 12


def test_progress_counts_all_trials_and_tells_trainings_apart_on_a_narrow_terminal() -> None:
    from holdfast.cli.campaigns import table_lines

    study = make_study({**OPTIONS, "episodes": 60}, {"alpha": None, "epsilon": None}, seeds=2)
    seen: list[tuple[int, int, int, list[str]]] = []

    def note(standing: Standing) -> None:
        lines = table_lines({"tune": standing}, 79, 20)
        assert all(len(line) <= 79 for line in lines)
        seen.append((standing.total, standing.done, round(standing.seconds, 1), lines[2:]))

    with LocalEngine(2) as engine:
        run_study(study, Path("study"), 2, engine, at_once=1, told=note)
        first = list(seen)
        # Two more: those before are done already.
        run_study(study, Path("study"), 3, engine, at_once=1, resume=True, told=note)
    assert {total for total, *_ in first} == {4}
    for counts in zip(*[(done, seconds) for _, done, seconds, _ in first], strict=True):
        assert list(counts) == sorted(counts)
    assert first[-1][1] == 4
    assert {(total, done) for total, done, *_ in seen[len(first) :]} <= {(6, 4), (6, 5), (6, 6)}
    running = {line[11:].strip()[:15] for *_, lines in seen for line in lines}
    assert running == {f"trial {trial}, seed {seed}" for trial in range(3) for seed in range(2)}


FAILING = """
import gymnasium

class Falls(gymnasium.Wrapper):
    def step(self, action):
        raise RuntimeError("it fell")

def make():
    return Falls(gymnasium.make("FrozenLake-v1"))
"""


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        ({0: -20.0, 3: -10.0}, "Trial 3 beats the defaults: -10 against -20. It was chosen on seed 0"),
        (
            {0: -10.0, 1: -10.0, 2: -20.0},
            "No trial beats the defaults: best.json holds the defaults. More --trials",
        ),
        ({0: -10.0}, "Only the defaults were trained to the end: there is no comparison."),
        (
            {1: -10.0},
            "The defaults were not trained to the end, so there is nothing to compare trial 1 with. It was chosen",
        ),
    ],
)
def test_it_says_whether_any_trial_beats_the_defaults(scores: dict[int, float], sentence: str) -> None:
    trials = sorted(
        (ended(number, {}, score) for number, score in scores.items()), key=lambda t: -(t.score or 0.0)
    )
    assert _verdict(trials, "seed 0").startswith(sentence)


def test_a_study_of_failures_has_no_best_trial(capsys: pytest.CaptureFixture[str]) -> None:
    Path("falling.py").write_text(FAILING, encoding="utf-8")
    command = ["tune", "falling:make", *COMMAND[2:], "--trials", "1", "-o", "study"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        "holdfast tune: no trial was trained to the end, so there is no best one; the last one failed:"
    )
    assert "it fell" in said
    assert not Path("study/best.json").exists()


def test_a_study_of_which_everything_failed_is_not_to_be_resumed() -> None:
    failed = [Trial(number, {}, (), False, "it fell", True) for number in range(5)]
    _refuse_the_hopeless(failed[:4])
    with pytest.raises(ValueError, match=r"are not tried again: .* choose another folder, or remove it; the last"):
        _refuse_the_hopeless(failed)


def test_without_optuna_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main([*COMMAND, "--trials", "1"]) == 2
    assert capsys.readouterr().err == (
        "holdfast tune: tuning needs Optuna, which is not installed: pip install 'holdfast-rl[tune]'\n"
    )


def test_a_folder_of_another_campaign_is_refused(tmp_path: Path) -> None:
    from holdfast.experiments import LocalEngine, run_figure

    run_figure("sync_env", "figure")
    study = make_study(OPTIONS, {"alpha": None})
    with pytest.raises(ValueError, match="not a study"), LocalEngine(1) as engine:
        run_study(study, Path("figure"), 1, engine)
