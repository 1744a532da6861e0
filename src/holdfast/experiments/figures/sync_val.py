"""What holding costs in the grid of the synchronous experiment: V*_k of every cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.options import duration_at
from holdfast.experiments.grid_cells import CELL_COLUMNS, cell_columns, cell_layout, on_grid
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_synchronous_values"]


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job, the same at every scale."""
    yield {"grid": "sync-grid", "k_max": 6, "gamma": 0.99}, 0


def run(job: Job, place: Path) -> dict[str, Any]:
    """V*_k of every cell, exactly."""
    from holdfast.envs import make_env
    from holdfast.mdp import k_values

    setting = job.setting
    cells = cell_columns(setting["grid"])
    mdp = make_env(setting["grid"]).unwrapped.tabular_mdp(setting["gamma"])  # type: ignore[attr-defined]
    values = k_values(mdp, setting["k_max"])[: len(cells["cell"])]
    repeated = {name: np.repeat(numbers, setting["k_max"]) for name, numbers in cells.items()}
    k = np.tile(duration_at(np.arange(setting["k_max"])), len(values))
    return repeated | {"k": k, "value": values.ravel()}


def draw_synchronous_values(rows: Table) -> Figure:
    """One map per persistence: the value of holding the best first action for k steps, then acting optimally.

    Paper: Figure fig:sync_val
    """
    from holdfast.draw import draw_value_maps

    parts = _by_k(rows)
    values = np.array([on_grid(own, "value") for own in parts.values()])
    return draw_value_maps(values, cell_layout(next(iter(parts.values()))), label="$V^*_k(s)$")


def summary(rows: Table) -> list[str]:
    """V*_k at the start, and its mean over the cells that do not end the episode."""
    parts = _by_k(rows)
    layout = cell_layout(next(iter(parts.values())))
    live = ~(layout.goals | layout.holes)
    maps = [on_grid(own, "value") for own in parts.values()]
    starts = "".join(f"{values.ravel()[layout.start]:9.2f}" for values in maps)
    means = "".join(f"{values[live].mean():9.2f}" for values in maps)
    return [
        f"{'V*_k, k =':<20}" + "".join(f"{k:9}" for k in parts),
        f"{'at the start':<20}{starts}",
        f"{'mean of free cells':<20}{means}",
    ]


def _by_k(rows: Table) -> dict[int, Table]:
    """The rows of each persistence."""
    return {int(k): select(rows, k=k) for k in np.unique(rows["k"])}


EXPERIMENT = Experiment(
    label="fig:sync_val",
    title="the exact values V*_k in the grid of synchronous learning, k = 1..6",
    columns=(*CELL_COLUMNS, "k", "value"),
    plan=plan,
    run=run,
    draw=draw_synchronous_values,
    summary=summary,
    notes=("The 6x6 map is holdfast's own: the paper's cannot be recovered (see: holdfast docs errata).",),
)
