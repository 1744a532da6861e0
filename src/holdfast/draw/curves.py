"""Curves over a training run, with uncertainty bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from holdfast.core.array_types import Floats
from holdfast.core.errors import InputError
from holdfast.draw.style import label_text, look

__all__ = ["Curve", "Panel", "draw_curve_rows", "draw_curves", "plot_curve"]


_DASHES = ("solid", "dashed", "dotted", "dashdot")
_PANEL = (4.6, 3.1)
_MOST_COLUMNS = 3
_MOST_INSIDE = 4
"""Curves whose legend has room among them; that of more lies below their panel."""
_SMALL_PANEL = (2.55, 2.0)
_LEGEND_WIDTH = 1.6
_LEGEND_LINE = 0.19
_LEGEND_LETTER = 0.07
_LEGEND_KEY = 0.55
_WIDEST = 1.3
"""How much wider two columns of a legend may make a panel."""
_BAND_ROOM = 0.6
"""How far bands may reach beyond the curves, as a share of the curves' range."""
_FEW = 0.02
"""The largest share of all values, at either end, that may be cut off if it would more than double the range."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve; every array has shape (n,).

    Attributes:
        label: Label in the legend.
        color: Colour.
        x: Horizontal positions.
        y: Values.
        low: Lower end of the band; None for no band.
        high: Upper end of the band.
        is_marked: Whether each point is marked, to show that the line between points is only a guide.
        dash: Number of the dash pattern, to tell apart curves of the same colour.
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
    """Curves that share axes, and the title above them."""

    title: str
    curves: Sequence[Curve]


def draw_curves(panels: Sequence[Panel], xlabel: str, ylabel: str) -> Figure:
    """Curves in panels side by side; bands much wider than the curves' range, and few far values, are cut off.

    Args:
        panels: At least one panel, with at least one curve each.
        xlabel: Label of the horizontal axes.
        ylabel: Label of the vertical axes.
    """
    if not panels or not all(panel.curves for panel in panels):
        raise InputError("panels must be at least one, with at least one curve each")
    # Four panels make two rows of two.
    columns = 2 if len(panels) == 4 else min(len(panels), _MOST_COLUMNS)
    rows = -(-len(panels) // columns)
    with look():
        most = max(len(panel.curves) for panel in panels)
        is_below = most > _MOST_INSIDE
        legend_columns, legend_width = _legend_shape(panels)
        width = max(_PANEL[0], legend_width) if is_below else _PANEL[0]
        height = _PANEL[1] + (-(-most // legend_columns) * _LEGEND_LINE if is_below else 0.0)
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        for number, panel in enumerate(panels, start=1):
            axes = figure.add_subplot(rows, columns, number)
            _draw_panel(axes, panel)
            _frame_curves(axes, panel.curves)
            axes.set_xlabel(xlabel)
            if len(panel.curves) > _MOST_INSIDE:
                axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=legend_columns)
            else:
                axes.legend(fontsize=8, loc="best")
            if number % columns == 1 or columns == 1:
                axes.set_ylabel(ylabel)
    return figure


def _legend_shape(panels: Sequence[Panel]) -> tuple[int, float]:
    """Columns and width in inches of a legend below a panel: two columns unless labels are long."""
    letters = max(len(curve.label) for panel in panels for curve in panel.curves)
    one = _LEGEND_KEY + letters * _LEGEND_LETTER
    return (2, 2 * one) if 2 * one <= _WIDEST * _PANEL[0] else (1, one)


def _frame_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    """Limit the vertical axis so that the curves stay visible: with few runs, bands may be many times as wide."""
    seen = np.concatenate([curve.y[np.isfinite(curve.y)] for curve in curves])
    if len(seen) == 0 or np.ptp(seen) == 0.0:
        return
    bottom, top = _most_of(seen)
    low, high = axes.get_ylim()
    room = _BAND_ROOM * (top - bottom)
    axes.set_ylim(max(low, bottom - room), min(high, top + room))


def _most_of(values: Floats) -> tuple[float, float]:
    """The range to show: all values, but for the few at one end that alone would more than double it."""
    lowest, highest = float(values.min()), float(values.max())
    low, high = (float(end) for end in np.quantile(values, (_FEW, 1.0 - _FEW)))
    inner = high - low
    if inner == 0.0:
        return lowest, highest
    return low if low - lowest > inner else lowest, high if highest - high > inner else highest


def plot_curve(axes: Axes, curve: Curve) -> None:
    """Draw one curve and its band."""
    # A single point does not make a line.
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
    """Rows of small panels with one vertical scale; each row has a legend for all of its panels.

    Args:
        rows: The panels of each row, the same number in each, by the title of the row's legend.
        xlabel: Label of the horizontal axes.
        ylabel: Label of the vertical axes.
        limits: Limits of the vertical axes (default: fitted to the curves).
    """
    lengths = {len(panels) for panels in rows.values()}
    if len(lengths) != 1 or lengths == {0} or not all(any(panel.curves for panel in row) for row in rows.values()):
        raise InputError("rows must be at least one, each with the same number of panels and at least one curve")
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
