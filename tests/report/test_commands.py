"""The commands that a page shows: typed in, they run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.manifest import Manifest, new_manifest, read_manifest
from holdfast.experiments.sweep import grid_jobs
from holdfast.experiments.tuning.trials import TUNE
from holdfast.report.commands import job_command
from holdfast.report.page import make_report
from holdfast.report.page_tables import run_rows
from holdfast.runs.directory import RunFolder
from tests.architecture import ROOT

OWN = """
import gymnasium

def make(size=3):
    import holdfast
    return gymnasium.make("holdfast/Cliff-v0")
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def commands(folder):
    report = make_report([folder], pictures=False)
    return [row["again"] for row in run_rows(report.findings.records, report.tasks)]


def run(command, *more):
    program, *words = shlex.split(command)
    assert program == "holdfast"
    return main([*words, *more])


def test_a_run_in_an_environment_of_ones_own_names_the_code(tmp_path, monkeypatch):
    (tmp_path / "own_again.py").write_text(OWN, encoding="utf-8")
    short = ["own_again:make", "--env-kwargs", "size=4", "--algo", "perq", "--episodes", "5"]
    assert main(["train", *short, "--name", "own", "--quiet"]) == 0
    (command,) = commands("runs")
    assert command == "holdfast train own_again:make --config runs/own/config.json"
    assert run(command, "--name", "again", "--quiet") == 0
    assert RunFolder("runs/again").read_config() == RunFolder("runs/own").read_config()


def test_the_jobs_of_a_figure_are_run_again_with_the_figure():
    assert set(commands(ROOT / "results" / "kem_complete")) == {
        "holdfast reproduce kem_complete --scale paper --fresh"
    }


def test_a_job_that_solves_is_solved_again(capsys):
    assert main(["tradeoff", "cliff", "--costs", "0.1", "--k-max", "2", "--episodes", "2", "--jobs", "1"]) == 0
    (command,) = commands("results/tradeoff/cliff")
    expected = "holdfast tradeoff cliff --costs 0.1 --persistences 1,2 --gamma 0.99 --episodes 2"
    assert command == expected
    assert run(command, "--jobs", "1", "-o", "again") == 0
    once, again = (read_manifest(Path(folder)) for folder in ("results/tradeoff/cliff", "again"))
    assert list(again.jobs) == list(once.jobs)


def test_a_job_whose_run_is_not_there_is_trained_with_its_setting():
    grid = {"epsilon": ["exponential(0.9, 0.0)"], "alpha": [0.5]}
    sweep, jobs = grid_jobs({"environment": "cliff", "algo": "perq", "episodes": 5}, grid, 1)
    manifest = new_manifest(sweep, None)
    manifest.plan_jobs(jobs)
    assert run(job_command(manifest, jobs[0].id), "--name", "again", "--quiet") == 0
    config = RunFolder("runs/again").read_config()
    assert (config.episodes, config.seed) == (5, 0)
    assert config.arguments["epsilon"] == "exponential(0.9, 0.0)"
    assert config.arguments["alpha"] == 0.5


@pytest.mark.parametrize("setting", [{}, {"environment": 3, "set": 4}])
def test_a_manifest_that_does_not_tell_has_no_command(setting):
    for label in ("tune", "sweep", "tradeoff", "my_own"):
        manifest = Manifest(label, label, "", 1, None, TUNE.columns, jobs={"x": {"setting": setting, "seed": 0}})
        assert job_command(manifest, "x") is None
    experiment = find_experiment("sync")
    manifest = new_manifest(experiment, "tiny")
    manifest.jobs["x"] = {"setting": setting, "seed": 0}
    assert job_command(manifest, "x") is None
