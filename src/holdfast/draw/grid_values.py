"""Values on a grid, one map per persistence."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from holdfast.core.options import duration_at
from holdfast.draw.cell_layout import CellLayout, letter_cells, paint_ends, rule_cells
from holdfast.draw.style import INK, LARGEST_CELL, PAGE_SIDE, look
from holdfast.draw.value_scale import READABLE_CELL, add_color_bar, print_values, value_colormap, value_norm

__all__ = ["draw_value_maps"]

_CELLS_ACROSS = 48
"""Largest number of cells in a row of panels; further panels go into the next row."""
_SMALLEST_CELL = 0.02
"""Side of a cell, in inches, below which neighbouring cells are blended: one pixel may cover several."""
_SMALLEST_FRAME = 0.07
"""Smallest side, in inches, of the frame around the start."""


def draw_value_maps(
    values: ArrayLike, layout: CellLayout, title: str | None = None, label: str = r"$V_k(s)$"
) -> Figure:
    """The k-step values V_k(s) of a grid, one map per persistence k, with one colour bar for all.

    Holes are red, goals green, and the start is framed. Cells that are large enough show their numbers.

    Args:
        values: (K, rows, columns), or (S, K) by state; a last state outside the grid is left out. Values that are
            not finite are drawn as missing.
        layout: The grid.
        title: Title above the maps.
        label: Label of the colour bar.
    """
    maps = _value_maps(values, layout)
    rows, columns = layout.shape
    across, down, cell = _arrangement(len(maps), rows, columns)
    walkable = ~(layout.goals | layout.holes)
    norm = value_norm(maps[:, walkable])
    with look():
        width = max(across * (columns * cell + 0.12), 1.6) + 0.8
        height = down * (rows * cell + 0.28) + (0.35 if title else 0.1)
        figure = Figure(figsize=(width, max(height, 1.4)), layout="compressed")
        panels = figure.subplots(down, across, squeeze=False).ravel().tolist()
        for index, axes in enumerate(panels):
            if index >= len(maps):
                axes.set_axis_off()
                continue
            shown = np.ma.masked_where(~(walkable & np.isfinite(maps[index])), maps[index])
            axes.imshow(shown, norm=norm, cmap=value_colormap(), interpolation="nearest")
            paint_ends(axes, layout)
            rule_cells(axes, layout, color="white")
            if cell >= READABLE_CELL:
                print_values(axes, shown, norm, cell)
            _frame_start(axes, layout, cell)
            letter_cells(axes, layout, cell)
            if cell < _SMALLEST_CELL:
                _blend_cells(axes)
            axes.set_title(f"$k = {duration_at(index)}$", pad=3)
        add_color_bar(figure, norm, label, panels)
        if title:
            figure.suptitle(title)
    return figure


def _value_maps(values: ArrayLike, layout: CellLayout) -> NDArray[np.float64]:
    """Values as (K, rows, columns)."""
    given = np.asarray(values, dtype=np.float64)
    rows, columns = layout.shape
    if given.ndim == 2 and given.shape[0] in (layout.n_cells, layout.n_cells + 1) and given.shape[1] > 0:
        return given[: layout.n_cells].T.reshape(-1, rows, columns)
    if given.ndim == 3 and given.shape[1:] == layout.shape and given.shape[0] > 0:
        return given
    raise ValueError(
        f"values must have shape (K, {rows}, {columns}) or ({layout.n_cells}, K) to match the layout, "
        f"not {given.shape}"
    )


def _arrangement(k_max: int, rows: int, columns: int) -> tuple[int, int, float]:
    """Number of panels across and down, and a cell's side in inches.

    Use as few rows of panels as the width allows, as even as possible; put more panels across if the page would
    get too long.
    """

    def cell(across: int) -> float:
        down = math.ceil(k_max / across)
        return min(LARGEST_CELL, PAGE_SIDE / (across * columns), PAGE_SIDE / (down * rows))

    fewest_down = math.ceil(k_max / max(1, _CELLS_ACROSS // columns))
    fewest_across = math.ceil(k_max / fewest_down)
    across = max(range(fewest_across, k_max + 1), key=cell)
    return across, math.ceil(k_max / across), cell(across)


def _blend_cells(axes: Axes) -> None:
    """Let a pixel be the mean of its cells' colours: with one cell per pixel, regular maps would show stripes."""
    for image in axes.images:
        image.set_interpolation("antialiased")
        image.set_interpolation_stage("rgba")


def _frame_start(axes: Axes, layout: CellLayout, cell: float) -> None:
    """Draw a frame in the start's cell, or around it if cells of ``cell`` inches are too small to see."""
    if layout.start_cell is not None:
        row, column = layout.start_cell
        side = max(0.84, _SMALLEST_FRAME / cell)
        corner = (column - side / 2, row - side / 2)
        frame = Rectangle(corner, side, side, fill=False, linewidth=1.1, edgecolor=INK)
        # A light rim, so that the frame is visible on dark cells too.
        frame.set_path_effects([withStroke(linewidth=2.6, foreground="white")])
        axes.add_patch(frame)
