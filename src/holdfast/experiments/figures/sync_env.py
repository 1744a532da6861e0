"""The grid of the synchronous experiment; the paper does not print its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.experiments.grid_cells import CELL_COLUMNS, cell_columns, cell_layout, cell_letters
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_synchronous_grid"]


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job, the same at every scale."""
    yield {"grid": "sync-grid"}, 0


def run(job: Job, place: Path) -> dict[str, Any]:
    """The cells of the grid."""
    return dict(cell_columns(job.setting["grid"]))


def draw_synchronous_grid(rows: Table) -> Figure:
    """The map: the start blue, the goal green, holes red.

    Paper: Figure fig:sync_env
    """
    from holdfast.draw import draw_map

    return draw_map(cell_layout(rows), "+100 goal, −10 hole, −100 off the grid, −1 a step")


def summary(rows: Table) -> list[str]:
    """The map as text, and the rewards."""
    return [
        *("".join(line) for line in cell_letters(rows)),
        "+100 at the goal G, -10 in a hole #, -100 off the grid, all of them the end;",
        "-1 for any other step",
    ]


EXPERIMENT = Experiment(
    label="fig:sync_env",
    title="the grid of synchronous learning",
    columns=CELL_COLUMNS,
    plan=plan,
    run=run,
    draw=draw_synchronous_grid,
    summary=summary,
    notes=("The 6x6 map is holdfast's own: that of the paper cannot be recovered (see: holdfast docs errata).",),
)
