"""Maps of grids: their layout, and the bare map as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from numpy.typing import NDArray

from holdfast.core.checks import check_integer
from holdfast.draw.style import CELL_COLORS, INK, LARGEST_CELL, PAGE_SIDE, look

__all__ = ["CellLayout", "draw_map", "draw_maps", "letter_cells", "paint_ends", "rule_cells"]

_MOST_RULED = 40
"""Largest number of rows or columns for which cells get lines and letters."""


@dataclass(frozen=True, eq=False)
class CellLayout:
    """The layout of a grid: everything that a picture needs to know about a map.

    Args:
        shape: Number of rows and of columns.
        start: Number of the start cell, counted row by row from 0 at the top left; None if there is none to show.
        goals: Mask of the goals, of the grid's shape or flat.
        holes: Mask of the holes, of the grid's shape or flat.
    """

    shape: tuple[int, int]
    start: int | None
    goals: NDArray[np.bool_]
    holes: NDArray[np.bool_]

    def __post_init__(self) -> None:
        rows, columns = self.shape
        shape = check_integer("rows", rows), check_integer("columns", columns)
        object.__setattr__(self, "shape", shape)
        if self.start is not None:
            start = check_integer("start", self.start, at_least=0)
            if start >= self.n_cells:
                raise ValueError(f"start must be a cell in 0..{self.n_cells - 1}, not {start}")
            object.__setattr__(self, "start", start)
        for name in ("goals", "holes"):
            mask = np.array(getattr(self, name))
            if mask.dtype != np.bool_ or mask.shape not in (shape, (self.n_cells,)):
                raise ValueError(
                    f"{name} must be a mask of bools of shape {shape}, not {mask.dtype} of {mask.shape}"
                )
            mask = mask.reshape(shape)
            mask.flags.writeable = False
            object.__setattr__(self, name, mask)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.shape[0] * self.shape[1]

    @property
    def start_cell(self) -> tuple[int, int] | None:
        """Row and column of the start."""
        return None if self.start is None else divmod(self.start, self.shape[1])


def draw_map(layout: CellLayout, title: str | None = None) -> Figure:
    """A bare map: holes red, goals green, the start blue.

    Args:
        layout: The map.
        title: Title above the map.
    """
    return draw_maps([layout], [title or ""])


def draw_maps(layouts: Sequence[CellLayout], titles: Sequence[str]) -> Figure:
    """Bare maps side by side, with cells of the same size.

    Args:
        layouts: The maps, at least one.
        titles: Title above each map.
    """
    if not layouts or len(titles) != len(layouts):
        raise ValueError(f"titles must be one per layout, at least one, not {len(titles)}")
    rows = max(layout.shape[0] for layout in layouts)
    columns = [layout.shape[1] for layout in layouts]
    cell = min(LARGEST_CELL, PAGE_SIDE / sum(columns), PAGE_SIDE / rows)
    with look():
        width = sum(max(number * cell, 1.6) + 0.2 for number in columns)
        figure = Figure(figsize=(width, rows * cell + 0.5), layout="compressed")
        panels = figure.subplots(1, len(layouts), squeeze=False, width_ratios=columns)[0]
        for axes, layout, title in zip(panels, layouts, titles, strict=True):
            _paint_map(axes, layout, cell)
            axes.set_title(title)
    return figure


def _paint_map(axes: Axes, layout: CellLayout, cell: float) -> None:
    ground = np.full((*layout.shape, 4), to_rgba(CELL_COLORS["free"]))
    if layout.start_cell is not None:
        ground[layout.start_cell] = to_rgba(CELL_COLORS["start"])
    axes.imshow(ground, interpolation="nearest")
    paint_ends(axes, layout)
    rule_cells(axes, layout, color="#cdcfcc")
    letter_cells(axes, layout, cell)
    if layout.start_cell is not None:
        _letter(axes, layout, layout.start_cell, "S", INK, cell)


def paint_ends(axes: Axes, layout: CellLayout) -> None:
    """Paint holes and goals over whatever is below."""
    paint = np.zeros((*layout.shape, 4))
    paint[layout.holes] = to_rgba(CELL_COLORS["hole"])
    paint[layout.goals] = to_rgba(CELL_COLORS["goal"])
    axes.imshow(paint, interpolation="nearest")


def rule_cells(axes: Axes, layout: CellLayout, color: str) -> None:
    """Draw the frame and, unless there are too many cells, the lines between cells; remove the ticks."""
    rows, columns = layout.shape
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    if max(rows, columns) <= _MOST_RULED:
        axes.hlines(np.arange(1, rows) - 0.5, -0.5, columns - 0.5, colors=color, linewidths=0.6)
        axes.vlines(np.arange(1, columns) - 0.5, -0.5, rows - 0.5, colors=color, linewidths=0.6)


def letter_cells(axes: Axes, layout: CellLayout, cell: float) -> None:
    """Write G on the goals; ``cell`` is a cell's side in inches."""
    for row, column in np.argwhere(layout.goals):
        _letter(axes, layout, (int(row), int(column)), "G", "white", cell)


def _letter(axes: Axes, layout: CellLayout, at: tuple[int, int], text: str, color: str, cell: float) -> None:
    if max(layout.shape) > _MOST_RULED:
        return
    style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontweight": "bold"}
    row, column = at
    axes.text(column, row, text, color=color, fontsize=min(10.0, 0.5 * cell * 72), **style).set_in_layout(False)
