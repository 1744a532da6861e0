"""The three grids of the tabular experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_grids"]

_GRIDS = {"cliff": "Cliff", "bridge": "Bridge", "zigzag": "ZigZag"}
_LETTERS = ".S#G"
"""What the numbers of the column ``cell`` stand for: free, start, hole, goal."""


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """A job for each grid, the same at every scale."""
    for grid in _GRIDS:
        yield {"grid": grid}, 0


def run(job: Job, place: Path) -> dict[str, Any]:
    """The cells of a grid."""
    from holdfast.envs import make_env

    lines = str(make_env(job.setting["grid"]).unwrapped.map).splitlines()  # type: ignore[attr-defined]
    cells = np.array([[_LETTERS.index(letter) for letter in line] for line in lines])
    row, column = np.indices(cells.shape)
    return {"row": row.ravel(), "column": column.ravel(), "cell": cells.ravel()}


def draw_grids(rows: Table) -> Figure:
    """The maps, one beside the other: the start blue, the goal green, holes red.

    Paper: Figure fig:tabular
    """
    from holdfast.draw import CellLayout, draw_maps

    maps = _maps(rows)
    layouts = [
        CellLayout(
            (cells.shape[0], cells.shape[1]), int(np.flatnonzero(cells == "S")[0]), cells == "G", cells == "#"
        )
        for cells in maps.values()
    ]
    return draw_maps(layouts, list(maps))


def summary(rows: Table) -> list[str]:
    """The maps as text, one beside the other."""
    maps = _maps(rows)
    lines = ["   ".join(f"{title:<{cells.shape[1]}}" for title, cells in maps.items()).rstrip()]
    texts = [["".join(line) for line in cells] for cells in maps.values()]
    return lines + ["   ".join(parts) for parts in zip(*texts, strict=True)]


def _maps(rows: Table) -> dict[str, NDArray[np.str_]]:
    """Letters of the cells of each grid, (row, column)."""
    found = {}
    for grid, title in _GRIDS.items():
        own = select(rows, grid=grid)
        if len(own["cell"]) == 0:
            continue
        shape = int(own["row"].max()) + 1, int(own["column"].max()) + 1
        letters = np.full(shape, ".")
        letters[own["row"].astype(int), own["column"].astype(int)] = np.array(list(_LETTERS))[
            own["cell"].astype(int)
        ]
        found[title] = letters
    return found


EXPERIMENT = Experiment(
    label="fig:tabular",
    title="the three grids",
    columns=("row", "column", "cell"),
    plan=plan,
    run=run,
    draw=draw_grids,
    summary=summary,
)
