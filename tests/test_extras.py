"""What each extra is for works where it is installed: one smoke test each."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast.cli import main
from holdfast.envs import make_env
from holdfast.runs import read_runs
from tests.architecture import ROOT
from tests.runs.small_runs import TABLE, trained
from tools.check_site_links import broken_links


def plays(env_id: str) -> None:
    with make_env(env_id) as env:
        observation, _ = env.reset(seed=0)
        assert env.observation_space.contains(observation)
        env.step(env.action_space.sample())


def atari(place: Path) -> None:
    plays("atari:Freeway")
    options = ["--set", "learning_starts=5", "buffer_size=100", "--eval-episodes", "1"]
    settings = ["--env-kwargs", "max_frames=200", "size=36"]
    run = str(place / "run")
    assert main(["train", "atari:Breakout", "--steps", "12", "--k-max", "2", "-o", run, *options, *settings]) == 0
    assert main(["evaluate", run, "--episodes", "1", "-o", str(place / "seen")]) == 0


def minatar(place: Path) -> None:
    plays("minatar:Breakout")
    run = str(place / "run")
    options = ["--set", "learning_starts=20", "--eval-episodes", "1", "--k-max", "2"]
    assert main(["train", "minatar:Asterix", "--steps", "60", "-o", run, *options]) == 0
    assert main(["evaluate", run, "--episodes", "1", "-o", str(place / "seen")]) == 0
    if importlib.util.find_spec("onnxruntime") is not None:
        assert main(["export", run, str(place / "policy.onnx")]) == 0


def mujoco(place: Path) -> None:
    plays("Hopper-v5")
    small = [
        "--set",
        "learning_starts=20",
        "batch_size=8",
        "policy_kwargs={'net_arch': [8]}",
        "--eval-episodes",
        "1",
    ]
    run, finer = str(place / "run"), ["--env-kwargs", "frame_skip=1"]
    assert main(["train", "Hopper-v5", "--algo", "persac", "--steps", "60", "-o", run, *small, *finer]) == 0
    assert main(["train", "--resume", run, "--steps", "90"]) == 0
    assert main(["evaluate", run, "--episodes", "1", "-o", str(place / "seen")]) == 0


def box2d(place: Path) -> None:
    # In a process of its own: imported behind many other libraries, Box2D's module has crashed the interpreter.
    playing = "from tests.test_extras import plays; plays('LunarLander-v3')"
    subprocess.run([sys.executable, "-c", playing], cwd=ROOT, check=True, timeout=120)


def onnx(place: Path) -> None:
    trained(TABLE, place / "run")
    assert main(["export", str(place / "run"), str(place / "policy.onnx")]) == 0
    assert (place / "policy.onnx").stat().st_size > 0


def ray(place: Path) -> None:
    for engine in ("local", "ray"):
        options = [
            "--engine",
            engine,
            "--jobs",
            "1",
            "--csv",
            str(place / f"{engine}.csv"),
            "-o",
            str(place / engine),
        ]
        assert main(["reproduce", "sync_env", *options]) == 0
    assert (place / "ray.csv").read_bytes() == (place / "local.csv").read_bytes()


def data(place: Path) -> None:
    trained(TABLE, place / "runs/one")
    assert len(read_runs(place / "runs")) == TABLE["episodes"]


def tune(place: Path) -> None:
    command = ["tune", "cliff", "--algo", "q", "--episodes", "10", "--trials", "2", "--jobs", "1"]
    assert main([*command, "-o", str(place / "study")]) == 0
    config = str(place / "study/best.json")
    assert main(["train", "--config", config, "--quiet", "-o", str(place / "run")]) == 0


def docs(place: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stdout + built.stderr
    assert broken_links(place / "site") == []
    page = (place / "site" / "api" / "index.html").read_text(encoding="utf-8")
    assert [name for name in holdfast.__all__ if f'id="holdfast.{name}"' not in page] == []


def report(place: Path) -> None:
    trained(TABLE, place / "run")
    assert main(["report", str(place / "run"), "-o", str(place / "report.html")]) == 0
    assert "plotly" in (place / "report.html").read_text(encoding="utf-8")


def video(place: Path) -> None:
    trained(TABLE, place / "run")
    film = place / "film.mp4"
    assert main(["evaluate", str(place / "run"), "--episodes", "1", "-o", str(place), "--render", str(film)]) == 0
    assert b"ftyp" in film.read_bytes()[:12]


def fuzz(place: Path) -> None:
    command = [sys.executable, "-m", "tests.coverage_fuzzing", "--inputs", "20", "--seed", "1"]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True, timeout=500)


SMOKE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "atari": ("ale_py", atari),
    "minatar": ("minatar", minatar),
    "mujoco": ("mujoco", mujoco),
    "box2d": ("Box2D", box2d),
    "onnx": ("onnxruntime", onnx),
    "ray": ("ray", ray),
    "data": ("pandas", data),
    "tune": ("optuna", tune),
    "docs": ("mkdocstrings", docs),
    "report": ("plotly", report),
    "video": ("imageio_ffmpeg", video),
    "fuzz": ("atheris", fuzz),
}
"""A module of each extra, and what must work with it."""


@pytest.mark.parametrize("extra", SMOKE)
def test_an_extra_does_what_it_is_for(extra: str, tmp_path: Path) -> None:
    module, smoke = SMOKE[extra]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"pip install 'holdfast-rl[{extra}]'")
    smoke(tmp_path)


def test_every_extra_has_a_smoke_test() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(project["optional-dependencies"]) - {"test", "dev"} == set(SMOKE)
