"""The three grids of the tabular experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.experiments.grid_cells import CELL_COLUMNS, cell_columns, cell_layout, cell_letters
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, select, table_length

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_grids"]

_GRIDS = {"cliff": "Cliff", "bridge": "Bridge", "zigzag": "ZigZag"}


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """A job for each grid, the same at every scale."""
    for grid in _GRIDS:
        yield {"grid": grid}, 0


def run(job: Job, place: Path) -> dict[str, Any]:
    """The cells of a grid."""
    return dict(cell_columns(job.setting["grid"]))


def draw_grids(rows: Table) -> Figure:
    """The maps, one beside the other: the start blue, the goal green, holes red.

    Paper: Figure fig:tabular
    """
    from holdfast.draw import draw_maps

    parts = _parts(rows)
    return draw_maps([cell_layout(own) for own in parts.values()], list(parts))


def summary(rows: Table) -> list[str]:
    """The maps as text, one beside the other."""
    maps = {title: cell_letters(own) for title, own in _parts(rows).items()}
    lines = ["   ".join(f"{title:<{cells.shape[1]}}" for title, cells in maps.items()).rstrip()]
    texts = [["".join(line) for line in cells] for cells in maps.values()]
    return lines + ["   ".join(parts) for parts in zip(*texts, strict=True)]


def _parts(rows: Table) -> dict[str, Table]:
    """The rows of each grid, by its title."""
    parts = {title: select(rows, grid=grid) for grid, title in _GRIDS.items()}
    return {title: own for title, own in parts.items() if table_length(own) > 0}


EXPERIMENT = Experiment(
    label="fig:tabular",
    title="the three grids",
    columns=CELL_COLUMNS,
    plan=plan,
    run=run,
    draw=draw_grids,
    summary=summary,
)
