"""The experiments on continuous actions: what they train; rows, picture and lines of their smallest form."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.experiments.figures.continuous import EXPERIMENT, SOFT
from holdfast.experiments.spec import Experiment
from tests.experiments.smoke import check_summary, rows_of

both = pytest.mark.parametrize(
    ("experiment", "agents", "titles"),
    [(EXPERIMENT, ["pertd3", "td3"], ["PerTD3", "TD3"]), (SOFT, ["persac", "sac"], ["PerSAC", "SAC"])],
)


@both
def test_rows_picture_and_summary(
    tmp_path: Path, experiment: Experiment, agents: list[str], titles: list[str]
) -> None:
    rows = rows_of(experiment, tmp_path / "campaign")
    assert set(rows["agent"]) == set(agents)
    # The parent decides at every step.
    parent = rows["agent"] == agents[1]
    assert (rows["decisions"][parent] == rows["length"][parent]).all()
    assert rows["step"].tolist() == [100.0, 200.0, 300.0, 400.0] * 2
    lines = check_summary(experiment, rows)
    assert [line.split()[0] for line in lines] == ["Pendulum:", *titles]
    (axes,) = experiment.draw(rows).axes
    assert {line.get_label() for line in axes.lines} >= set(titles)


@both
def test_both_agents_are_given_the_same(experiment: Experiment, agents: list[str], titles: list[str]) -> None:
    jobs = experiment.jobs("paper")
    # Five seeds of the classic tasks, two of the last.
    assert len(jobs) == {"pertd3": 2 * (5 * 5 + 2), "persac": 2 * (3 * 5 + 2)}[agents[0]]
    assert {job.setting["arguments"]["batch_size"] for job in jobs} == {100 if agents[0] == "pertd3" else 256}
    fixed = {"k_max", "persistences", "clip_targets", "initial_values", "decision_cost"}
    for one, other in zip(jobs[::2], jobs[1::2], strict=True):
        assert (one.setting["agent"], other.setting["agent"]) == tuple(agents)
        assert (one.setting["task"], one.seed) == (other.setting["task"], other.seed)
        shared = {name: value for name, value in one.setting["arguments"].items() if name not in fixed}
        mine = {name: value for name, value in other.setting["arguments"].items() if name not in fixed}
        assert shared == mine


@pytest.mark.parametrize(("experiment", "noise"), [(EXPERIMENT, 0.1), (SOFT, None)])
def test_physical_time(experiment: Experiment, noise: float | None) -> None:
    settings = {job.setting["task"]: job.setting for job in experiment.jobs("paper")}
    finest, hopper = settings["Pendulum, 10 steps for one"], settings["Hopper, frame skip 1"]
    # Ten steps of γ are one of Pendulum's own, and there are as many updates per physical step.
    assert finest["arguments"]["gamma"] ** 10 == pytest.approx(0.99)
    assert (finest["env_kwargs"], finest["arguments"]["train_freq"], finest["steps"]) == ({"n": 10}, 10, 200_000)
    assert hopper["arguments"]["gamma"] ** 4 == pytest.approx(0.99)
    assert hopper["arguments"]["action_noise"] == noise


def test_without_mujoco_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)
    missing: Any = None
    monkeypatch.setitem(sys.modules, "mujoco", missing)
    (job,) = [job for job in EXPERIMENT.jobs("paper") if job.setting["environment"] == "Hopper-v5"][:1]
    with pytest.raises(ValueError, match=r"^Hopper-v5 needs MuJoCo: pip install 'holdfast-rl\[mujoco\]'$"):
        EXPERIMENT.run(job, tmp_path)
