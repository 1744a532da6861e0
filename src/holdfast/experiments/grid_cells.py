"""The cells of a grid as rows of numbers, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from holdfast.draw import CellLayout

__all__ = ["CELL_COLUMNS", "cell_columns", "cell_layout", "cell_letters", "on_grid"]

CELL_COLUMNS = ("row", "column", "cell")
"""Columns of the rows: the cell's position, and its kind."""

_LETTERS = ".S#G"
"""The meaning of the numbers in the column ``cell``: free, start, hole, goal."""


def cell_columns(grid: str) -> dict[str, NDArray[np.int64]]:
    """The cells of a grid, given by its name in ``make_env``, row by row; each column is (cells,)."""
    from holdfast.envs import make_env

    lines = str(make_env(grid).unwrapped.map).splitlines()  # type: ignore[attr-defined]
    cells = np.array([[_LETTERS.index(letter) for letter in line] for line in lines])
    row, column = np.indices(cells.shape)
    return {"row": row.ravel(), "column": column.ravel(), "cell": cells.ravel()}


def cell_letters(rows: Table) -> NDArray[np.str_]:
    """The letters of a map, (row, column), from the rows of one grid."""
    return np.asarray(np.array(list(_LETTERS))[on_grid(rows, "cell").astype(int)])


def cell_layout(rows: Table) -> CellLayout:
    """The map in the form for pictures, from the rows of one grid."""
    from holdfast.draw import CellLayout

    letters = cell_letters(rows)
    shape: Any = letters.shape
    return CellLayout(shape, int(np.flatnonzero(letters == "S")[0]), letters == "G", letters == "#")


def on_grid(rows: Table, name: str) -> NDArray[np.float64]:
    """A column of one grid's rows as an array over the grid's rows and columns."""
    row, column = rows["row"].astype(int), rows["column"].astype(int)
    values = np.full((row.max() + 1, column.max() + 1), np.nan)
    values[row, column] = rows[name]
    return values
