"""Heat maps of visits: one panel per setting, one logarithmic colour scale for all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from holdfast.draw.cell_layout import CellLayout, rule_cells
from holdfast.draw.style import (
    CELL_COLORS,
    LARGEST_CELL,
    MISSING,
    PAGE_SIDE,
    PALETTE,
    VALUE_COLORMAP,
    label_text,
    look,
)
from holdfast.draw.value_scale import add_color_bar

__all__ = ["PANELS_ACROSS", "draw_heat_maps", "draw_visit_maps"]

Counts = NDArray[np.int64]

PANELS_ACROSS = 4
"""Default number of panels side by side."""


def draw_heat_maps(
    counts: ArrayLike,
    edges: tuple[NDArray[np.float64], NDArray[np.float64]],
    names: tuple[str, str],
    titles: Sequence[str | None],
    title: str | None = None,
    goal: float | None = None,
    across: int = PANELS_ACROSS,
) -> Figure:
    """Visits to a plane, one panel per setting; cells that were never visited are grey.

    Args:
        counts: (n, x, y) visits to each cell.
        edges: Edges of the cells, (x + 1,) and (y + 1,).
        names: Labels of the two axes.
        titles: Titles of the n panels; None leaves a place empty.
        title: Title above all panels.
        goal: Position of a vertical line on the first axis; None for no line.
        across: Largest number of panels side by side.
    """
    shown = _checked(counts, titles, (len(edges[0]) - 1, len(edges[1]) - 1))

    def paint(axes: Axes, number: int, norm: LogNorm) -> None:
        axes.pcolormesh(*edges, _seen(shown[number]).T, norm=norm, cmap=_colors(), rasterized=True)
        axes.set_facecolor(MISSING)
        if goal is not None:
            axes.axvline(goal, color=PALETTE["vermilion"], linewidth=1.0, linestyle=(0, (4, 2)))

    with look():
        figure = _panels(shown, titles, title, (2.1, 1.9), across, paint)
        figure.supxlabel(label_text(names[0]), fontsize=9)
        figure.supylabel(label_text(names[1]), fontsize=9)
    return figure


def draw_visit_maps(
    counts: ArrayLike,
    layout: CellLayout,
    titles: Sequence[str | None],
    title: str | None = None,
    across: int = PANELS_ACROSS,
) -> Figure:
    """Visits to a grid's cells, one map per setting; cells that were never visited are grey.

    Holes have a red frame, goals a green one.

    Args:
        counts: (n, S) visits to each state; a last state outside the grid is left out.
        layout: The grid.
        titles: Titles of the n maps; None leaves a place empty.
        title: Title above all maps.
        across: Largest number of maps side by side.
    """
    rows, columns = layout.shape
    given = np.asarray(counts)
    if given.ndim == 2 and given.shape[1] in (layout.n_cells, layout.n_cells + 1):
        given = given[:, : layout.n_cells].reshape(-1, rows, columns)
    shown = _checked(given, titles, layout.shape)
    cell = min(LARGEST_CELL / 2, PAGE_SIDE / (across * columns), PAGE_SIDE / rows)

    def paint(axes: Axes, number: int, norm: LogNorm) -> None:
        axes.imshow(_seen(shown[number]), norm=norm, cmap=_colors(), interpolation="nearest")
        axes.set_facecolor(MISSING)
        rule_cells(axes, layout, color="white")
        for kind, mask in (("hole", layout.holes), ("goal", layout.goals)):
            frames = [Rectangle((x - 0.42, y - 0.42), 0.84, 0.84) for y, x in np.argwhere(mask)]
            axes.add_collection(
                PatchCollection(frames, facecolor="none", edgecolor=CELL_COLORS[kind], linewidth=1.0)
            )

    with look():
        size = max(columns * cell, 1.2) + 0.1, rows * cell + 0.4
        return _panels(shown, titles, title, size, across, paint)


def _checked(counts: ArrayLike, titles: Sequence[str | None], shape: tuple[int, int]) -> Counts:
    given = np.asarray(counts)
    if given.ndim != 3 or given.shape != (len(titles), *shape) or len(titles) == 0:
        raise ValueError(
            f"counts must have shape ({len(titles)}, {shape[0]}, {shape[1]}) to match the titles and the cells, "
            f"not {given.shape}"
        )
    return given


def _panels(
    counts: Counts,
    titles: Sequence[str | None],
    title: str | None,
    size: tuple[float, float],
    across: int,
    paint: Callable[[Axes, int, LogNorm], None],
) -> Figure:
    """A figure with one painted panel of ``size`` inches per entry of ``counts``, and a colour bar."""
    wide = min(len(titles), across)
    down = math.ceil(len(titles) / wide)
    norm = LogNorm(1, max(int(counts.max()), 2))
    figure = Figure(
        figsize=(wide * size[0] + 1.1, down * size[1] + (0.75 if title else 0.4)), layout="constrained"
    )
    places = figure.subplots(down, wide, sharex=True, sharey=True, squeeze=False).ravel().tolist()
    for number, axes in enumerate(places):
        heading = titles[number] if number < len(titles) else None
        if heading is None:
            axes.set_axis_off()
            continue
        paint(axes, number, norm)
        axes.set_title(label_text(heading), pad=3, fontsize=8.5)
        # Tick labels go at the left, and below if no panel follows.
        below = number + wide
        axes.tick_params(labelbottom=below >= len(titles) or titles[below] is None, labelleft=number % wide == 0)
    add_color_bar(figure, norm, "visits", places, _colors())
    if title:
        figure.suptitle(label_text(title))
    return figure


def _seen(counts: Counts) -> np.ma.MaskedArray[tuple[int, ...], np.dtype[np.int64]]:
    return np.ma.masked_equal(counts, 0)


def _colors() -> Colormap:
    """The colours of values, without the palest, which could be mistaken for a place that was never visited."""
    shades = mpl.colormaps[VALUE_COLORMAP](np.linspace(0.22, 1.0, 256))
    return LinearSegmentedColormap.from_list("visits", shades).with_extremes(bad=MISSING)
