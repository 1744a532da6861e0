"""Grids with finer time: the rows of the smallest scale, what is drawn and printed of them, and the exact ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.experiments.figures.refinement import EXPERIMENT
from holdfast.experiments.spec import Job
from holdfast.experiments.tables import select
from tests.experiments.smoke import check_summary, rows_of


def test_rows_picture_and_summary(tmp_path: Path) -> None:
    rows = rows_of(EXPERIMENT, tmp_path / "campaign")
    assert set(rows["agent"]) == {"Q", "PerQ{1..64}", "exact"}
    for n in (1, 2):
        own = select(rows, n=n, agent="Q")
        # Three runs, six blocks; a greedy episode ends after 100 cells of way at the latest.
        assert len(own["seed"]) == 18
        assert own["cells"].max() <= 100.0
        # Q-learning decides at every step.
        assert own["decisions"] == pytest.approx(n * own["cells"])
    lines = check_summary(EXPERIMENT, rows)
    assert lines[0].split() == ["greedy", "return", "n=1", "n=2"]
    assert lines[-2].startswith("Cliff, Q: n=1 to 2 changes the return by ")
    figure = EXPERIMENT.draw(rows)
    above, below = figure.axes
    assert (above.get_title(), below.get_xlabel()) == ("Cliff", "n, steps per cell")
    drawn = {line.get_label(): line.get_xydata() for line in above.lines}
    assert np.array_equal(drawn["exact"], [[1.0, 1.0], [2.0, 1.0]])
    first = select(rows, n=1, agent="Q")["greedy"].mean()
    assert drawn["Q"][0].tolist() == pytest.approx([1.0, first])


def test_the_exact_solution_is_as_far_whatever_n_is(tmp_path: Path) -> None:
    for n in (1, 4):
        setting = {"grid": "cliff", "n": n, "agent": "exact", "persistences": [1, 2, 4, 8, 16, 32, 64]}
        rows = EXPERIMENT.run(Job(EXPERIMENT.study, setting, 0), tmp_path)
        # Down 3 cells, right 9, and up into the goal: 14 cells and a step.
        assert rows["cells"] == [14 + 1 / n]
        # Down 2 + 1, right 8 + 1, and up, which may be held too long: five decisions.
        assert rows["decisions"] == [5]
