"""The value of every option in a state, over persistence: one line per action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from holdfast.draw.style import INK, MISSING, label_text, look, told_apart

__all__ = ["draw_option_values"]

_MOST_COLUMNS = 4
_PANEL = (2.9, 2.6)
_ROOM_FOR_LEGEND = 1.3


def draw_option_values(
    values: Sequence[ArrayLike],
    chosen: Sequence[tuple[int, int]],
    action_names: Sequence[str],
    titles: Sequence[str],
    label: str = "$Q(s, a, k)$",
    persistences: Sequence[int] | None = None,
) -> Figure:
    """Q(s,a,k) over k, one panel per state and one line per action; the choice is ringed.

    If there are many actions, only the best are named and all others are grey.

    Args:
        values: For each state, (A, K).
        chosen: For each state, the action's number, from 0, and the number of steps it is held.
        action_names: (A,).
        titles: Title above each state's panel.
        label: Label of the values.
        persistences: The K persistences (default: 1..K).
    """
    tables = [np.asarray(table, dtype=np.float64) for table in values]
    if not tables or any(table.ndim != 2 or len(table) != len(action_names) for table in tables):
        raise ValueError(f"values must be at least one table of shape ({len(action_names)}, K)")
    columns = min(len(tables), _MOST_COLUMNS)
    rows = -(-len(tables) // columns)
    colors = told_apart(np.max([table.max(axis=1) for table in tables], axis=0))
    with look():
        figure = Figure(
            figsize=(_PANEL[0] * columns + _ROOM_FOR_LEGEND, _PANEL[1] * rows + 0.2), layout="constrained"
        )
        panels = [figure.add_subplot(rows, columns, number + 1) for number in range(len(tables))]
        for number, (axes, table, option, title) in enumerate(zip(panels, tables, chosen, titles, strict=True)):
            held = range(1, table.shape[1] + 1) if persistences is None else persistences
            _draw_panel(axes, table, option, title, action_names, colors, list(held))
            if number % columns == 0:
                axes.set_ylabel(label)
            if number + columns >= len(tables):
                axes.set_xlabel("held for $k$ steps")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", fontsize=8)
    return figure


def _draw_panel(
    axes: Axes,
    table: NDArray[np.float64],
    option: tuple[int, int],
    title: str,
    action_names: Sequence[str],
    colors: Mapping[int, str],
    persistences: list[int],
) -> None:
    others = [number for number in range(len(table)) if number not in colors]
    for position, number in enumerate(others):
        axes.plot(persistences, table[number], color=MISSING, label="_" if position else "others", zorder=1)
    for number, color in colors.items():
        axes.plot(
            persistences,
            table[number],
            color=color,
            marker="o",
            markersize=3,
            linewidth=1.3,
            label=label_text(action_names[number]),
        )
    action, hold = option
    axes.plot(
        [hold],
        [table[action, persistences.index(hold)]],
        marker="o",
        markersize=10,
        markerfacecolor="none",
        markeredgecolor=INK,
        markeredgewidth=1.4,
        linestyle="none",
        label="chosen",
    )
    axes.set_title(label_text(title))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.grid(axis="y", color="#e4e4e1", linewidth=0.6)
    axes.set_axisbelow(True)
