"""The results of training on MountainCar: panels of returns, tables, and the reading that was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.experiments.car_training import (
    CHOICE_SEEDS,
    FIRST_PUBLISHED,
    PUBLISHED,
    WORST,
    family,
)
from holdfast.experiments.drivers import Driver, driver_curves
from holdfast.experiments.tables import Table, matrix, select, table_length
from holdfast.stats.estimates import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["choice_areas", "chosen_readings", "draw_returns_by_panel", "published_rows", "return_lines"]

_SHOWN = 500_000
"""Number of steps to draw, as in the paper."""
_ROWS = {"training": "return", "greedy": "greedy"}
"""Columns, by the title of a row of panels."""


def published_rows(rows: Table) -> Table:
    """The rows of published seeds with the published reading."""
    readings = np.array([PUBLISHED[family(str(name))] for name in rows["algorithm"]], dtype=np.str_)
    mask = (rows["seed"] >= FIRST_PUBLISHED) & (rows["reading"] == readings)
    return {name: column[mask] for name, column in rows.items()}


def choice_areas(rows: Table) -> dict[str, dict[str, float]]:
    """The mean of all greedy evaluations on the seeds that choose, by family and reading.

    Families with missing jobs are left out.
    """
    own = {name: column[np.isin(rows["seed"], list(CHOICE_SEEDS))] for name, column in rows.items()}
    found: dict[str, dict[str, float]] = {}
    for name in PUBLISHED:
        mask = np.array([family(str(algorithm)) == name for algorithm in own["algorithm"]], dtype=bool)
        theirs = {column: values[mask] for column, values in own.items()}
        readings = np.unique(theirs["reading"])
        counts = {len(select(theirs, reading=reading)["step"]) for reading in readings}
        if len(readings) > 1 and len(counts) == 1:
            found[name] = {str(one): float(select(theirs, reading=one)["greedy"].mean()) for one in readings}
    return found


def chosen_readings(rows: Table) -> dict[str, str]:
    """The reading with the larger area, by family."""
    return {name: max(areas, key=lambda one: areas[one]) for name, areas in choice_areas(rows).items()}


def draw_returns_by_panel(rows: Table, panels: Mapping[str, Sequence[Driver]]) -> Figure:
    """Returns over steps, mean and 95 % interval over seeds: training episodes above, greedy ones below.

    Panels without rows are left out.
    """
    from holdfast.draw import Panel, draw_curve_rows

    shown = _shown(published_rows(rows))
    drawn = {}
    for title, column in _ROWS.items():
        curves = {name: driver_curves(shown, drivers, column) for name, drivers in panels.items()}
        drawn[title] = [Panel(name, found) for name, found in curves.items() if found]
    return draw_curve_rows({title: row for title, row in drawn.items() if row}, "steps", "return")


def _shown(rows: Table) -> Table:
    """The rows of the steps to draw."""
    return {name: column[rows["step"] <= _SHOWN] for name, column in rows.items()}


def return_lines(rows: Table) -> list[str]:
    """Which reading was chosen, and one line per agent.

    A line has the number of runs, how many ever reached the flag, and the greedy means after each third of
    training.
    """
    lines = [
        f"seeds that choose, {name}: " + ", ".join(f"{reading} {area:.1f}" for reading, area in areas.items())
        for name, areas in choice_areas(rows).items()
    ]
    own = published_rows(rows)
    if table_length(own) == 0:
        return [*lines, "no published seeds yet"]
    width = max(14, *(len(name) + 2 for name in own["driver"].tolist()))
    steps = np.unique(own["step"])
    at = [steps[np.searchsorted(steps, part * steps[-1] - 1e-6)] for part in (1 / 3, 2 / 3, 1.0)]
    lines.append(f"{'greedy':<{width}}{'runs':>5}{'flag':>6}" + "".join(f"{f'at {step:,.0f}':>14}" for step in at))
    for name in dict.fromkeys(own["driver"].tolist()):
        found, trained = (_returns(own, str(name), column) for column in ("greedy", "return"))
        assert found is not None
        assert trained is not None
        x, returns = found
        cells = []
        for step in at:
            mean, _, high = mean_interval(returns[:, x == step][:, 0])
            cells.append(f"{mean:.1f}" + ("" if np.isnan(high) else f" ±{high - mean:.0f}"))
        reached = int(((returns > WORST) | (trained[1] > WORST)).any(axis=1).sum())
        lines.append(f"{name:<{width}}{len(returns):>5}{reached:>6}" + "".join(f"{cell:>14}" for cell in cells))
    return lines


def _returns(rows: Table, driver: str, column: str) -> tuple[Any, Any] | None:
    own = select(rows, driver=driver)
    return matrix(own, column, "step") if len(own["seed"]) > 0 else None
