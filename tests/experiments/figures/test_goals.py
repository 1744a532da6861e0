"""The study of goals: who is compared on what, and the rows, picture and lines of its smallest form."""

from __future__ import annotations

from pathlib import Path

from holdfast.experiments.figures.goals import EXPERIMENT
from holdfast.experiments.tables import select
from tests.experiments.smoke import check_summary, rows_of

NAMES = ["PerDQN + HER", "DQN + HER", "PerDQN"]


def test_rows_picture_and_summary(tmp_path: Path) -> None:
    rows = rows_of(EXPERIMENT, tmp_path / "campaign")
    assert set(rows["driver"]) == set(NAMES)
    assert rows["step"].tolist() == [100.0, 200.0, 300.0, 400.0] * 3
    single = select(rows, driver="DQN + HER")
    assert (single["decisions"] == single["length"]).all()
    assert (rows["return"] >= -20.0).all()
    lines = check_summary(EXPERIMENT, rows)
    assert [line[:16].strip() for line in lines] == ["", *NAMES]
    returns, decisions = EXPERIMENT.draw(rows).axes
    assert returns.get_title() == "greedy return"
    assert [line.get_label() for line in decisions.lines] == [f"{name}, 1 run" for name in NAMES]


def test_all_are_given_the_same_but_holds_and_goals() -> None:
    jobs = EXPERIMENT.jobs("laptop")
    assert len(jobs) == 3 * 5
    differing = {"k_max", "persistences", "decision_cost", "replay_buffer_class", "replay_buffer_kwargs"}
    for both, single, without in zip(jobs[::3], jobs[1::3], jobs[2::3], strict=True):
        assert both.seed == single.seed == without.seed
        shared = [
            {name: value for name, value in job.setting["arguments"].items() if name not in differing}
            for job in (both, single, without)
        ]
        assert shared[0] == shared[1] == shared[2]
        assert both.setting["arguments"]["replay_buffer_class"] == "HerReplayBuffer"
        assert without.setting["arguments"]["replay_buffer_class"] is None
