"""Curves over a training, with bands for how sure they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import NDArray

from holdfast.core.errors import InputError
from holdfast.draw.style import label_text, look

__all__ = ["Curve", "Panel", "draw_curve_rows", "draw_curves", "plot_curve"]

Floats = NDArray[np.float64]

_DASHES = ("solid", "dashed", "dotted", "dashdot")
_PANEL = (4.6, 3.1)
_MOST_COLUMNS = 3
_SMALL_PANEL = (2.55, 2.0)
_LEGEND_WIDTH = 1.6
_BAND_ROOM = 0.6
"""How far bands may reach beyond the curves, as a part of what the curves span."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve; every array has shape (n,).

    Attributes:
        label: What it is, for the legend.
        color: Its colour.
        x: Where.
        y: What.
        low: Lower end of the band; None for no band.
        high: Upper end of it.
        is_marked: Whether each of its points is marked, so that what lies between is seen to be a line only.
        dash: Which of the dash patterns, so that curves of one colour can be told apart.
    """

    label: str
    color: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    dash: int = 0
    is_marked: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves that share axes, and what is written above them."""

    title: str
    curves: Sequence[Curve]


def draw_curves(panels: Sequence[Panel], xlabel: str, ylabel: str) -> Figure:
    """Curves, one panel beside the other; bands that are far wider than all curves are cut off.

    Args:
        panels: At least one, with at least one curve each.
        xlabel: What is on the horizontal axes.
        ylabel: What is on the vertical axes.
    """
    if not panels or not all(panel.curves for panel in panels):
        raise InputError("panels must be at least one, with at least one curve each")
    columns = min(len(panels), _MOST_COLUMNS)
    rows = -(-len(panels) // columns)
    with look():
        figure = Figure(figsize=(_PANEL[0] * columns, _PANEL[1] * rows), layout="constrained")
        for number, panel in enumerate(panels, start=1):
            axes = figure.add_subplot(rows, columns, number)
            _draw_panel(axes, panel)
            _frame_curves(axes, panel.curves)
            axes.legend(fontsize=8, loc="best")
            axes.set_xlabel(xlabel)
            if number % columns == 1 or columns == 1:
                axes.set_ylabel(ylabel)
    return figure


def _frame_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    """End the vertical axis where the curves can still be seen: bands of few runs may be many times as wide."""
    seen = np.concatenate([curve.y[np.isfinite(curve.y)] for curve in curves])
    if len(seen) == 0 or np.ptp(seen) == 0.0:
        return
    low, high = axes.get_ylim()
    room = _BAND_ROOM * float(np.ptp(seen))
    axes.set_ylim(max(low, float(seen.min()) - room), min(high, float(seen.max()) + room))


def plot_curve(axes: Axes, curve: Curve) -> None:
    """Draw one curve and its band."""
    # One point alone makes no line.
    marker = "o" if len(curve.x) == 1 or curve.is_marked else None
    axes.plot(
        curve.x,
        curve.y,
        color=curve.color,
        linestyle=_DASHES[curve.dash % len(_DASHES)],
        marker=marker,
        markersize=3.5,
        label=label_text(curve.label),
    )
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.x, curve.low, curve.high, color=curve.color, alpha=0.18, linewidth=0.0)


def draw_curve_rows(
    rows: Mapping[str, Sequence[Panel]],
    xlabel: str,
    ylabel: str,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Rows of small panels with one vertical scale, and beside each row a legend for all of its panels.

    Args:
        rows: The panels of each row, as many in each, by what is written above its legend.
        xlabel: What is on the horizontal axes.
        ylabel: What is on the vertical axes.
        limits: Of the vertical axes; by what is drawn unless given.
    """
    lengths = {len(panels) for panels in rows.values()}
    if len(lengths) != 1 or lengths == {0} or not all(any(panel.curves for panel in row) for row in rows.values()):
        raise InputError("rows must be at least one, each with as many panels and with at least one curve")
    columns = lengths.pop()
    size = _SMALL_PANEL[0] * columns + _LEGEND_WIDTH, _SMALL_PANEL[1] * len(rows) + 0.3
    with look():
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), columns, squeeze=False, sharey=True)
        for title, panels, line in zip(rows, rows.values(), grid, strict=True):
            for axes, panel in zip(line, panels, strict=True):
                _draw_panel(axes, panel)
            by_label: dict[str, Any] = {}
            for axes in line:
                for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                    by_label.setdefault(label, handle)
            line[-1].legend(
                by_label.values(),
                by_label.keys(),
                title=label_text(title),
                title_fontsize=8.5,
                fontsize=8,
                loc="center left",
                bbox_to_anchor=(1.02, 0.5),
                alignment="left",
            )
            line[0].set_ylabel(ylabel)
        for axes in grid[1:].ravel():
            axes.set_title("")
        for axes in grid[-1]:
            axes.set_xlabel(xlabel)
        if limits is not None:
            grid[0, 0].set_ylim(limits)
    return figure


def _draw_panel(axes: Axes, panel: Panel) -> None:
    for curve in panel.curves:
        plot_curve(axes, curve)
    axes.set_title(label_text(panel.title))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.grid(axis="y", color="#e4e4e1", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
