"""``holdfast sweep``: every setting of a grid, on the same engine."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from holdfast.cli import main
from holdfast.experiments.sweep import grid_jobs, train_options
from holdfast.files import read_rows
from holdfast.runs import find_runs, train
from holdfast.runs.options import make_config


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


COMMAND = "sweep --algo perq --env cliff --grid k_max=2,4 --grid alpha=.5 --episodes 30 --eval-every 0 --jobs 2"


def test_a_grid(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND.split(), "--seeds", "1"]) == 0
    capsys.readouterr()
    # More seeds are more jobs; those that are done stay.
    assert main([*COMMAND.split(), "--seeds", "2"]) == 2
    assert "has the rows of 2 of 4 jobs: give --resume" in capsys.readouterr().err
    assert main([*COMMAND.split(), "--seeds", "2", "--resume", "--csv", "all.csv"]) == 0
    out = capsys.readouterr().out
    folder = Path("results/sweep/cliff-perq-k_max-alpha")
    assert out.startswith("sweep: 4 of 4 jobs done, 2 of them now, in ")
    assert (folder / "sweep.png").read_bytes().startswith(b"\x89PNG")
    with Path("all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 30
    # A job is the run that the options come to.
    options = {"environment": "cliff", "algo": "perq", "k_max": 4, "episodes": 30, "eval_every": 0}
    alone = train({**options, "set": {"alpha": 0.5}, "seed": 1}, "alone")
    expected = read_rows(alone.path / "metrics.csv")["return"]
    own = [float(row["return"]) for row in rows if row["k_max"] == "4" and row["seed"] == "1"]
    assert own == expected
    assert [status.status for status in find_runs(folder)] == ["finished"] * 4
    # The table: the mean over two seeds of their last 20 returns, and Student's interval for two values.
    last = {}
    for k_max in ("2", "4"):
        for seed in ("0", "1"):
            own = [float(row["return"]) for row in rows if (row["k_max"], row["seed"]) == (k_max, seed)]
            last[k_max, seed] = np.mean(own[-20:])
    one, two = last["4", "0"], last["4", "1"]
    line = next(line for line in out.splitlines() if line.startswith("k_max=4"))
    half = 12.706 * abs(one - two) / 2
    assert line.split() == ["k_max=4", "2", f"{(one + two) / 2:.5g}", "±", f"{half:.3g}"]


def test_settings_with_long_names_can_be_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    grid = "--grid initial_std=.01,.1 --grid target_value=options,primitive --grid decision_tolerance=.1,.2"
    assert main(f"sweep --algo perq --env cliff {grid} --seeds 1 --episodes 2 --set k_max=2".split()) == 0
    out = capsys.readouterr().out
    named = [line for line in out.splitlines() if line.startswith("initial_std=")]
    assert len(set(named)) == 8
    assert "initial_std=0.1, target_value=primitive, decision_tolerance=0.2" in named
    assert max(len(line) for line in out.splitlines() if "results/" not in line) <= 80


def test_a_training_without_an_episode_is_said_to_be_too_short(capsys: pytest.CaptureFixture[str]) -> None:
    command = "sweep --env MountainCar-v0 --grid k_max=1 --steps 20 --seeds 1 --set learning_starts=10 -o s"
    assert main(command.split()) == 1
    out = capsys.readouterr().out
    assert "no episode ended within the trained steps: train longer" in out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--grid kmax=1,2", "--grid names 'kmax', which perq does not have; did you mean k_max?"),
        ("--grid k_max=1,1", "--grid must give each value of 'k_max' once"),
        ("--grid k_max", "--grid must be NAME=V1,V2,... or env.NAME=V1,V2,..., not 'k_max'"),
        ("--grid k_max=1 --grid k_max=2", "--grid must name 'k_max' once"),
        ("--grid k_max=1 --set k_max=2", "--grid and --set must not both name 'k_max'"),
        ("--grid k_max=2,x", "--grid: k_max must be a whole number, not 'x'"),
        ("--grid alpha=.1 --csv results", "--csv must name a file that ends in .csv, not 'results'"),
        ("--grid alpha=.1,x", "alpha must be a number"),
        ("--grid k_max=2,0", "k_max must be a whole number of at least 1, not 0"),
        ("--grid alpha=.1,7", "alpha must be a number in (0, 1], not 7"),
        (
            "--grid k_max=2,0 --algo perdqn --env CartPole-v1 --steps 9",
            "k_max must be a whole number of at least 1",
        ),
        ("--grid algo=perq,perx", "--grid: algo must be one of"),
        ("--grid alpha=.1 --seeds 0", "--seeds must be a whole number of at least 1"),
        ("--grid alpha=.1 --env nowhere", "environment 'nowhere' is unknown"),
        ("--grid alpha=.1 --jobs 0", "--jobs must be a whole number of at least 1"),
    ],
)
def test_clear_sentences(options: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--algo", "perq", "--env", "cliff", *options.split()]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert err.count("\n") == 1
    assert list(Path().iterdir()) == []


HELD = """
from holdfast import HoldAction
from holdfast.envs import make_env


def make(k=1):
    env = make_env("CartPole-v1")
    return env if k == 1 else HoldAction(env, k)
"""


def test_arguments_of_the_environment_and_what_follows_from_a_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("held.py").write_text(HELD)
    asked = "sweep --env held:make --grid env.k=1,4 --k-max 1 --steps 400 --seeds 1 --eval-every 200 -o out"
    assert main([*asked.split(), "--csv", "all.csv"]) == 0
    table = capsys.readouterr().out
    assert [line.split()[0] for line in table.splitlines() if line.startswith("env.k=")] == ["env.k=1", "env.k=4"]
    one, four = sorted((status.config for status in find_runs("out")), key=lambda config: config.env_kwargs["k"])
    assert (one.steps, one.eval_every, one.arguments["gamma"]) == (400, 200, 0.99)
    # The same time in the environment, and the discount of four steps.
    assert (four.steps, four.eval_every, four.arguments["gamma"]) == (100, 50, pytest.approx(0.99**4))
    assert (four.k_max, four.env_kwargs) == (1, {"k": 4})
    with Path("all.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["of_env_k"] == "4"]
    # Steps of the environment: in each of these the pole stood, and each decision took four.
    assert all(float(row["length"]) >= float(row["return"]) for row in rows)
    assert float(rows[-1]["step"]) > 100


NAMED_AS_OPTIONS = """
from holdfast.envs import make_env


def make(kwargs=1, label=1, k_max=1):
    return make_env("cliff")
"""


def test_arguments_of_the_environment_may_be_named_as_options_of_a_sweep(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("named.py").write_text(NAMED_AS_OPTIONS)
    grid = "--grid env.kwargs=1,2 --grid env.label=3,4 --grid env.k_max=5 --k-max 2"
    assert main(f"sweep --algo perq --env named:make {grid} --episodes 3 --seeds 1 -o out".split()) == 0
    assert "env.kwargs=2, env.label=4" in capsys.readouterr().out
    configs = [status.config for status in find_runs("out")]
    assert {config.k_max for config in configs} == {2}
    assert {(config.env_kwargs["kwargs"], config.env_kwargs["label"]) for config in configs} == {
        (kwargs, label) for kwargs in (1, 2) for label in (3, 4)
    }


def test_a_discount_that_was_given_stays(tmp_path: Path) -> None:
    Path("held.py").write_text(HELD)
    asked = "sweep --env held:make --grid env.k=2 --k-max 1 --steps 100 --seeds 1 --set gamma=.5 -o out"
    assert main(asked.split()) == 0
    (found,) = find_runs("out")
    assert (found.config.arguments["gamma"], found.config.steps) == (0.5, 50)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("--grid env.j=1,2", "environment 'held:make' has no argument 'j'"),
        ("--grid env.k=1 --env-kwargs k=2", "--grid and --env-kwargs must not both name 'k'"),
        ("--grid k=1,2", "--grid names 'k', which perdqn does not have"),
        ("--grid env.=1", "--grid must be NAME=V1,V2,... or env.NAME=V1,V2,..."),
        ("", "give the values to compare with --grid, --k-max or --persistences"),
        ("--k-max 1,2 --grid k_max=4", "give --k-max or --grid k_max, not both"),
        ("--algo q --k-max 2,4", "--k-max must not be given for q, which holds every action for one step"),
        ("--algo q --grid k_max=2,4", "--grid: k_max must not be given for q, which holds every action"),
        (
            "--k-max 2,4 --grid algo=perdqn,q",
            "--k-max must not be given for q, which holds every action for one step",
        ),
    ],
)
def test_bad_grids_of_an_environment(given: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("held.py").write_text(HELD)
    assert main(["sweep", "--env", "held:make", "--steps", "100", *given.split()]) == 2
    assert sentence in capsys.readouterr().err


NETWORK = "sweep --env CartPole-v1 --steps 40 --eval-every 20 --seeds 1 --set learning_starts=100"


def test_a_set_of_persistences(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*NETWORK.split(), "--persistences", "1,2,4", "-o", "one"]) == 0
    assert main([*NETWORK.split(), "--grid", "persistences=[1,2],[1,4]", "-o", "two"]) == 0
    assert "[1, 4]" in capsys.readouterr().out
    assert main([*NETWORK.split(), "--persistences", "1,2", "--grid", "layer_norm=true,false", "-o", "three"]) == 0


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("--persistences 1,2 --k-max 2", "give --persistences or values of k_max, not both"),
        ("--persistences 1,2 --grid persistences=[1,2],[1,4]", "give --persistences or values of persistences"),
        ("--persistences 2,4", "persistences must begin with 1 and increase"),
        ("--persistences 1,2 --set k_max=4", "k_max and --persistences say the same thing"),
        ("--persistences 1,2 --algo ez-dqn", "grid names 'persistences', which ez-dqn does not have"),
    ],
)
def test_bad_sets_of_persistences(given: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*NETWORK.split(), *given.split()]) == 2
    shown = capsys.readouterr().err
    assert sentence in shown
    assert shown.count("\n") == 1


def test_every_option_of_a_training_counts_or_is_refused() -> None:
    options = {"environment": "CartPole-v1", "algo": "dqn", "steps": 100}
    given = {"n-envs": 4, "eval_episodes": 2, "threads": 2, "label": "cart"}
    _, (job,) = grid_jobs({**options, **given}, {"gamma": [0.9]}, 1)
    config = make_config(train_options(job.setting))
    assert (config.n_envs, config.eval_episodes, config.threads, config.label) == (4, 2, 2, "cart")
    assert config.arguments["gamma"] == 0.9
    for name, value in (("seed", 3), ("checkpoint-every", 5.0), ("keep_checkpoints", 3)):
        plain = name.replace("-", "_")
        with pytest.raises(ValueError, match=f"options must not have '{plain}', which a sweep sets"):
            grid_jobs({**options, name: value}, {"gamma": [0.9]}, 1)
