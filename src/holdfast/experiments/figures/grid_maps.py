"""The maps of the grid worlds: the three of the tabular experiments, and the synchronous one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.experiments.grid_cells import CELL_COLUMNS, cell_columns, cell_layout, cell_letters
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, titled_parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SYNCHRONOUS", "TABULAR", "draw_grids", "draw_synchronous_grid"]

_GRIDS = {"cliff": "Cliff", "bridge": "Bridge", "zigzag": "ZigZag"}


def plan_maps(scale: str, grids: Sequence[str]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job per grid, the same at every scale."""
    for grid in grids:
        yield {"grid": grid}, 0


def run_map(job: Job, place: Path) -> dict[str, Any]:
    """The cells of a grid."""
    return dict(cell_columns(job.setting["grid"]))


def draw_grids(rows: Table) -> Figure:
    """The maps side by side: the start blue, the goal green, holes red.

    Paper: Figure fig:tabular
    """
    from holdfast.draw import draw_maps

    parts = titled_parts(rows, "grid", _GRIDS)
    return draw_maps([cell_layout(own) for own in parts.values()], list(parts))


def grid_lines(rows: Table) -> list[str]:
    """The maps as text, side by side."""
    maps = {title: cell_letters(own) for title, own in titled_parts(rows, "grid", _GRIDS).items()}
    lines = ["   ".join(f"{title:<{cells.shape[1]}}" for title, cells in maps.items()).rstrip()]
    texts = [["".join(line) for line in cells] for cells in maps.values()]
    return lines + ["   ".join(parts) for parts in zip(*texts, strict=True)]


def draw_synchronous_grid(rows: Table) -> Figure:
    """The map: the start blue, the goal green, holes red.

    Paper: Figure fig:sync_env
    """
    from holdfast.draw import draw_map

    return draw_map(cell_layout(rows), "+100 goal, −10 hole, −100 off the grid, −1 a step")


def synchronous_lines(rows: Table) -> list[str]:
    """The map as text, and the rewards."""
    return [
        *("".join(line) for line in cell_letters(rows)),
        "+100 at the goal G, -10 in a hole #, -100 off the grid (all end the episode);",
        "-1 for any other step",
    ]


_OWN_MAP = "The 6x6 map is holdfast's own: the paper's cannot be recovered (see: holdfast docs errata)."

TABULAR, SYNCHRONOUS = (
    Experiment(label, title, CELL_COLUMNS, partial(plan_maps, grids=grids), run_map, draw, lines, notes)
    for label, title, grids, draw, lines, notes in (
        ("fig:tabular", "the three grids", tuple(_GRIDS), draw_grids, grid_lines, ()),
        (
            "fig:sync_env",
            "the grid of synchronous learning",
            ("sync-grid",),
            draw_synchronous_grid,
            synchronous_lines,
            (_OWN_MAP,),
        ),
    )
)
