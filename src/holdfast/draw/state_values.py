"""Values of environments that are not grids, as a table of states and persistences."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from holdfast.draw.style import LARGEST_CELL, PAGE_SIDE, look
from holdfast.draw.value_scale import READABLE_CELL, add_color_bar, print_values, value_colormap, value_norm

__all__ = ["draw_state_values"]

_LOWEST_ROW = 0.18
"""Smallest height of a row, in inches, that fits its label."""


def draw_state_values(
    values: ArrayLike, title: str | None = None, label: str = r"$V_k(s)$", state_label: str = "state"
) -> Figure:
    """The k-step values of an environment that is not a grid: one column per state, one row per persistence.

    Args:
        values: (S, K). Values that are not finite are drawn as missing.
        title: Title above the table.
        label: Label of the colour bar.
        state_label: Label of the states.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"values must have shape (S, K), not {table.shape}")
    n_states, k_max = table.shape
    norm = value_norm(table)
    cell = min(LARGEST_CELL, PAGE_SIDE / n_states)
    row = min(max(min(cell, 0.32), _LOWEST_ROW), PAGE_SIDE / k_max)
    with look():
        size = max(n_states * cell, 3.0) + 1.3, max(k_max * row, 1.0) + 0.8
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        shown = np.ma.masked_invalid(table.T)
        axes.imshow(
            shown,
            norm=norm,
            cmap=value_colormap(),
            aspect="auto",
            interpolation="nearest",
            extent=(-0.5, n_states - 0.5, k_max + 0.5, 0.5),
        )
        if min(cell, row) >= READABLE_CELL:
            print_values(axes, shown, norm, cell, top=1)
        axes.set_xlabel(state_label)
        axes.set_ylabel("persistence $k$")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_yticks(_persistence_ticks(k_max))
        axes.tick_params(length=2)
        axes.spines[:].set_visible(True)
        add_color_bar(figure, norm, label, [axes])
        if title:
            axes.set_title(title)
    return figure


def _persistence_ticks(k_max: int) -> list[int]:
    """All of 1..k_max if they fit, else 1, k_max and some in between."""
    count = k_max if k_max <= 16 else 9
    return [int(k) for k in np.linspace(1, k_max, count).round()]
