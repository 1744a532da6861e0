"""The experiment on continuous actions: what it trains, and the rows, picture and lines of its smallest form."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.experiments.figures.continuous import EXPERIMENT
from tests.experiments.smoke import check_summary, rows_of


def test_rows_picture_and_summary(tmp_path: Path) -> None:
    rows = rows_of(EXPERIMENT, tmp_path / "campaign")
    assert set(rows["agent"]) == {"pertd3", "td3"}
    # TD3 decides at every step.
    td3 = rows["agent"] == "td3"
    assert (rows["decisions"][td3] == rows["length"][td3]).all()
    assert rows["step"].tolist() == [100.0, 200.0, 300.0, 400.0] * 2
    lines = check_summary(EXPERIMENT, rows)
    assert [line.split()[0] for line in lines] == ["Pendulum:", "PerTD3", "TD3"]
    (axes,) = EXPERIMENT.draw(rows).axes
    assert {line.get_label() for line in axes.lines} >= {"PerTD3", "TD3"}


def test_both_agents_are_given_the_same() -> None:
    jobs = EXPERIMENT.jobs("paper")
    assert len(jobs) == 5 * 2 * 5
    fixed = {"k_max", "persistences", "clip_targets", "initial_values", "decision_cost"}
    for one, other in zip(jobs[::2], jobs[1::2], strict=True):
        assert (one.setting["task"], one.seed) == (other.setting["task"], other.seed)
        shared = {name: value for name, value in one.setting["arguments"].items() if name not in fixed}
        assert shared == other.setting["arguments"]
    finest = jobs[8].setting
    # Ten steps of γ are one of Pendulum's own, and there are as many updates per physical step.
    assert finest["arguments"]["gamma"] ** 10 == pytest.approx(0.99)
    assert (finest["n"], finest["arguments"]["train_freq"], finest["steps"]) == (10, 10, 200_000)
