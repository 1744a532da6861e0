"""How values become colours and numbers in cells, the same in every picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from holdfast.draw.style import MISSING, VALUE_COLORMAP

__all__ = ["READABLE_CELL", "add_color_bar", "print_values", "short_number", "value_colormap", "value_norm"]

READABLE_CELL = 0.24
"""Smallest side of a cell, in inches, in which numbers are printed."""


def value_norm(values: NDArray[np.float64]) -> Normalize:
    """The limits of the finite ``values``, with some room if there is only one value."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low == high:
        room = 0.5 * max(1.0, abs(low))
        low, high = low - room, high + room
    return Normalize(low, high)


def value_colormap() -> Colormap:
    """Colours of values; cells without a value are grey."""
    return mpl.colormaps[VALUE_COLORMAP].with_extremes(bad=MISSING)


def print_values(
    axes: Axes, values: np.ma.MaskedArray[Any, Any], norm: Normalize, cell: float, top: int = 0
) -> None:
    """Write values into their cells, dark on light and light on dark.

    Args:
        axes: Axes in which cell (row, column) is centred on (column, top + row).
        values: (rows, columns); nothing is written where they are masked.
        norm: The limits of all values, which set the number of decimals.
        cell: A cell's side in inches.
        top: Position of the first row.
    """
    decimals = _decimals(norm)
    colormap = value_colormap()
    for row, column in np.argwhere(~np.ma.getmaskarray(values)):
        value = float(values[row, column])
        red, green, blue, _ = colormap(norm(value))
        light = 0.299 * red + 0.587 * green + 0.114 * blue
        written = axes.text(
            column,
            top + row,
            short_number(value, decimals),
            ha="center",
            va="center_baseline",
            fontsize=min(7.0, 0.27 * cell * 72),
            color="black" if light > 0.55 else "white",
        )
        written.set_in_layout(False)  # otherwise a hundred numbers would be measured for nothing


def short_number(value: float, decimals: int) -> str:
    """A number in few characters: no 0 before the point, no negative zero, a true minus sign."""
    text = f"{abs(value):.{decimals}f}"
    if float(text) == 0.0:
        return "0"
    if decimals > 0:
        text = text.removeprefix("0")
    return "−" + text if value < 0 else text


def add_color_bar(
    figure: Figure, norm: Normalize, label: str, axes: Sequence[Axes], colormap: Colormap | None = None
) -> None:
    """Add one colour bar beside ``axes``, 0.14 inches wide for any size of figure.

    Args:
        figure: The figure that contains the axes.
        norm: The limits.
        label: Label of the colour bar.
        axes: The panels.
        colormap: The colours (default: those of values).
    """
    height = figure.get_figheight()
    bar = figure.colorbar(
        ScalarMappable(norm, mpl.colormaps[VALUE_COLORMAP] if colormap is None else colormap),
        ax=list(axes),
        label=label,
        fraction=0.05,
        pad=0.1 / figure.get_figwidth(),
        aspect=max(8.0, 0.9 * height / 0.14),
    )
    bar.outline.set_linewidth(0.5)
    bar.ax.tick_params(length=2)


def _decimals(norm: Normalize) -> int:
    """Enough decimals to show a hundredth of the range, but no more than four digits in all."""
    low, high = float(norm.vmin or 0.0), float(norm.vmax or 0.0)
    wanted = math.ceil(1.7 - math.log10(high - low))
    digits_before = len(str(int(max(abs(low), abs(high)))))
    return min(max(wanted, 0), max(4 - digits_before, 0), 3)
