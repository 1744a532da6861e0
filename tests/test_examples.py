"""The scripts in ``examples/``, at a tiny budget."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.architecture import ROOT


def run(arguments, **variables):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_the_mountain_car_script_runs(tmp_path):
    source = (ROOT / "examples/mountain_car.py").read_text(encoding="utf-8")
    short = source
    for long, brief in (("60_000", "1_200"), ("log_interval=20", "log_interval=1"), ("episodes=20", "episodes=1")):
        assert short.count(long) == 1
        short = short.replace(long, brief)
    script = tmp_path / "mountain_car.py"
    script.write_text(short, encoding="utf-8")
    done = run([script])
    assert done.returncode == 0, done.stderr
    assert "decisions_mean" in done.stdout
    assert "loss_k16" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("return -")


@pytest.mark.skipif(importlib.util.find_spec("rl_zoo3") is None, reason="rl_zoo3 is not installed")
def test_rl_zoo3_trains_it_and_loads_it(tmp_path):
    common = ["--algo", "perdqn", "--env", "CartPole-v1", "-f", tmp_path, "--conf-file"]
    done = run(
        [
            "examples/rl_zoo3_train.py",
            *common,
            "examples/rl_zoo3_perdqn.yml",
            *("-n", 1500, "--eval-freq", 700, "--eval-episodes", 1, "--save-freq", 1000, "-P", "--seed", 1),
            *("-params", "k_max:4", "learning_starts:200"),
        ]
    )
    assert done.returncode == 0, done.stderr
    run_folder = tmp_path / "perdqn/CartPole-v1_1"
    assert {"best_model.zip", "CartPole-v1.zip", "evaluations.npz"} <= {path.name for path in run_folder.iterdir()}

    from holdfast import PerDQN

    model = PerDQN.load(run_folder / "CartPole-v1.zip")
    assert model.k_max == 4
    assert model.num_timesteps == 1500


@pytest.mark.skipif(importlib.util.find_spec("rl_zoo3") is None, reason="rl_zoo3 is not installed")
def test_rl_zoo3_optimises_it_and_plays_it(tmp_path):
    common = ["--algo", "perdqn", "--env", "CartPole-v1", "-f", tmp_path]
    settings = ["--conf-file", "examples/rl_zoo3_perdqn.yml"]
    trials = ["-optimize", "--n-trials", 2, "--n-startup-trials", 1, "--n-evaluations", 1, "--eval-episodes", 1]
    done = run(["examples/rl_zoo3_train.py", *common, *settings, "-n", 600, *trials, "--sampler", "random"])
    assert done.returncode == 0, done.stderr
    assert "k_max" in done.stdout
    short = ["-n", 700, "--eval-freq", -1]
    assert run(["examples/rl_zoo3_train.py", *common, *settings, *short]).returncode == 0
    # The newest run: optimising leaves a folder with a number of its own.
    played = ["--no-render", "-n", 100]
    done = run(["examples/rl_zoo3_train.py", "enjoy", *common, *played])
    assert done.returncode == 0, done.stderr
    assert "Mean reward" in done.stdout
