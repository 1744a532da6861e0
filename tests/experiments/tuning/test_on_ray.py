from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from holdfast.experiments import LocalEngine, RayEngine, run_tuning


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_two_workers_on_ray_make_the_trials_that_two_processes_make(tmp_path: Path) -> None:
    options = {"environment": "cliff", "algo": "q", "episodes": 20, "eval_episodes": 1}
    engines = {"ray": RayEngine(2), "local": LocalEngine(2)}
    found = {
        name: run_tuning(options, tmp_path / name, trials=3, engine=engine, at_once=2)
        for name, engine in engines.items()
    }
    assert found["ray"] == found["local"]
    assert [trial.number for trial in found["ray"]] == [0, 1, 2]
    assert all(trial.score is not None for trial in found["ray"])
