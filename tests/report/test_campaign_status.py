"""How the jobs of a campaign ended, as a page says it."""

from __future__ import annotations

import pytest

from holdfast.cli import main
from holdfast.experiments import LocalEngine, run_tuning
from holdfast.report.page import make_report

FALLING = """
import gymnasium

class Falling(gymnasium.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps > 10:
            raise RuntimeError("it fell")
        return super().step(action)

def make():
    import holdfast
    return Falling(gymnasium.make("holdfast/Cliff-v0"))
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_job_that_failed_is_not_merely_unfinished(tmp_path):
    (tmp_path / "own_falling.py").write_text(FALLING, encoding="utf-8")
    sweep = ["sweep", "--env", "own_falling:make", "--algo", "perq", "--grid", "k_max=1,2", "--seeds", "1"]
    assert main([*sweep, "--episodes", "20", "--jobs", "1", "-o", "sweep"]) == 1
    report = make_report(["sweep"], pictures=False)
    assert [record.status for record in report.findings.records] == ["failed", "failed"]
    (problem,) = report.findings.problems
    assert problem.sentence.startswith("failed: 2 of its 2 jobs, the last with: ")
    assert "it fell" in problem.sentence
    assert any(caution.startswith("Failed: sweep/runs/") for caution in report.cautions)
    assert not any(caution.startswith("Unfinished") for caution in report.cautions)


def test_a_trial_that_was_stopped_early_is_not_unfinished(monkeypatch):
    # As if the trials before had been far better.
    monkeypatch.setattr("holdfast.experiments.tuning.study._bars", lambda study, done: [None, 1e9] + [None] * 18)
    options = {"environment": "cliff", "algo": "q", "episodes": 20, "eval_episodes": 1, "eval_every": 1}
    (trial,) = run_tuning(options, "study", trials=1, engine=LocalEngine(1))
    assert trial.is_pruned
    report = make_report(["study"], pictures=False)
    assert [record.status for record in report.findings.records] == ["stopped early"]
    assert not any("nfinished" in caution for caution in report.cautions)
