"""The drawing of the order of updates: it is the order in which the learner makes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.core import PartialHistory
from holdfast.core.decomposition import ScheduledUpdate
from holdfast.draw import save_figure
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.figures.all_pers_update import update_formula
from holdfast.experiments.tables import Table
from holdfast.tabular import PerQLearning
from tests.experiments.smoke import check_summary, rows_of

EXPERIMENT = find_experiment("all_pers_update")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return rows_of(EXPERIMENT, tmp_path_factory.mktemp("order") / "campaign")


def test_the_order_of_the_paper(rows: Table) -> None:
    found = list(zip(*(rows[name].astype(int).tolist() for name in ("order", "i", "j", "d")), strict=True))
    # Last end first, from there shortest first, then longer and longer holds.
    assert found == [
        (1, 1, 2, 0), (2, 1, 2, 1), (3, 1, 2, 2),
        (4, 0, 2, 0), (5, 0, 2, 1),
        (6, 0, 1, 0), (7, 0, 1, 1), (8, 0, 1, 2),
    ]  # fmt: skip


def test_it_is_the_order_in_which_the_learner_makes_them(rows: Table) -> None:
    learner = PerQLearning(3, alpha=0.5, gamma=0.9, initial_std=1.0)
    learner.reset(3, 2)
    rewards, alpha, gamma = np.array([3.0, -2.0]), 0.5, 0.9
    q = learner.q.copy()
    for i, j, d in np.column_stack([rows[name].astype(int) for name in "ijd"]):
        seen = sum(gamma**n * reward for n, reward in enumerate(rewards[i:j]))
        after = q[j].max() if d == 0 else q[j, 1, d - 1]
        at = i, 1, j - i + d - 1
        q[at] += alpha * (seen + gamma ** (j - i) * after - q[at])
    learner.update(PartialHistory(np.arange(3), 1, rewards))
    np.testing.assert_allclose(learner.q, q, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("update", "formula"),
    [
        (ScheduledUpdate(0, 1, 0), r"Q(s_t,a,1) \leftarrow r_{t+1}+\gamma\,\max\,Q(s_{t+1},\cdot,\cdot)"),
        (ScheduledUpdate(0, 2, 1), r"Q(s_t,a,3) \leftarrow r_{t+1}+\gamma\,r_{t+2}+\gamma^{2}Q(s_{t+2},a,1)"),
        (ScheduledUpdate(1, 2, 2), r"Q(s_{t+1},a,3) \leftarrow r_{t+2}+\gamma\,Q(s_{t+2},a,2)"),
    ],
)
def test_formulas(update: ScheduledUpdate, formula: str) -> None:
    assert update_formula(update) == formula


def test_the_drawing(rows: Table, tmp_path: Path) -> None:
    mixed = {name: column[::-1] for name, column in rows.items()}
    figure = EXPERIMENT.draw(mixed)
    left, right = figure.axes
    assert "κ = 2" in left.get_title(loc="left")
    assert left.get_ylim() == (8.6, 0.4)
    seen = [collection for collection in left.collections if collection.get_label() == "steps that were seen"]
    spans = [segment[:, 0].tolist() for segment in seen[0].get_segments()]  # type: ignore[attr-defined]
    assert spans == [[1.0, 2.0]] * 3 + [[0.0, 2.0]] * 2 + [[0.0, 1.0]] * 3
    assert len(right.texts) == 8
    assert right.texts[3].get_text() == f"${update_formula(ScheduledUpdate(0, 2, 0))}$"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "steps that were seen",
        "steps on, from the value of holding on",
        "best option from here on",
    ]
    save_figure(figure, tmp_path / "order.png")
    assert [line.split()[0] for line in check_summary(EXPERIMENT, mixed)] == [str(n) for n in range(1, 9)]
