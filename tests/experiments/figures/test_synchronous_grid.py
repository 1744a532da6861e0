"""The grid of the synchronous experiment, and its values V*_k."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.draw import save_figure
from holdfast.envs.maps import SYNC_GRID
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.tables import Table, select
from tests.experiments.smoke import check_summary, rows_of

MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
CELLS = SYNC_GRID.splitlines()
GAMMA = 0.99


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return rows_of(find_experiment("sync_val"), tmp_path_factory.mktemp("values") / "campaign")


def step(row: int, column: int, move: tuple[int, int]) -> tuple[tuple[int, int] | None, float]:
    """Where a move leads, None for an end, and its reward."""
    row, column = row + move[0], column + move[1]
    if not (0 <= row < 6 and 0 <= column < 6):
        return None, -100.0
    ends = {"G": 100.0, "#": -10.0}
    return (None, ends[CELLS[row][column]]) if CELLS[row][column] in ends else ((row, column), -1.0)


def optimal_values() -> dict[tuple[int, int], float]:
    """V* by going through all cells until nothing changes."""
    found = {(r, c): -100.0 for r in range(6) for c in range(6) if CELLS[r][c] in "S."}
    for _ in range(100):
        for cell in found:
            outcomes = [step(*cell, move) for move in MOVES]
            found[cell] = max(
                reward + (GAMMA * found[following] if following else 0.0) for following, reward in outcomes
            )
    return found


def held(cell: tuple[int, int], move: tuple[int, int], k: int, after: dict[tuple[int, int], float]) -> float:
    """The return of making a move k times, then what is to be had from there."""
    following, reward = step(*cell, move)
    if following is None:
        return reward
    return reward + GAMMA * (after[following] if k == 1 else held(following, move, k - 1, after))


def test_values_are_those_of_walking_it_through(values: Table) -> None:
    best = optimal_values()
    assert len(values["value"]) == 36 * 6
    for row, column, cell, k, value in zip(
        *(values[name] for name in ("row", "column", "cell", "k", "value")), strict=True
    ):
        at = int(row), int(column)
        assert ".S#G"[int(cell)] == CELLS[at[0]][at[1]]
        expected = max(held(at, move, int(k), best) for move in MOVES) if at in best else 0.0
        assert value == pytest.approx(expected, abs=1e-6)


def test_holding_longer_is_never_worth_more(values: Table) -> None:
    by_k = np.array([select(values, k=k)["value"] for k in range(1, 7)])
    assert (np.diff(by_k, axis=0) <= 1e-9).all()
    assert by_k.max() <= 100.0


def test_the_maps_of_values(values: Table, tmp_path: Path) -> None:
    experiment = find_experiment("sync_val")
    figure = experiment.draw(values)
    *maps, bar = figure.axes
    assert [axes.get_title() for axes in maps] == [f"$k = {k}$" for k in range(1, 7)]
    assert bar.get_ylabel() == "$V^*_k(s)$"
    drawn = maps[3].get_images()[0].get_array()
    assert drawn is not None
    at = select(values, k=4, row=0, column=1)["value"]
    assert drawn[0, 1] == pytest.approx(float(at[0]))
    save_figure(figure, tmp_path / "values.png")
    _, start, mean = check_summary(experiment, values)
    assert start.split()[-6:] == ["82.70"] * 5 + ["-100.00"]
    assert len(mean.split()) == 10


def test_the_map(tmp_path: Path) -> None:
    experiment = find_experiment("sync_env")
    rows = rows_of(experiment, tmp_path / "campaign")
    assert len(rows["cell"]) == 36
    figure = experiment.draw(rows)
    (axes,) = figure.axes
    assert "−100 off the grid" in axes.get_title()
    assert [text.get_text() for text in axes.texts] == ["G", "S"]
    save_figure(figure, tmp_path / "map.png")
    assert check_summary(experiment, rows)[:6] == CELLS
