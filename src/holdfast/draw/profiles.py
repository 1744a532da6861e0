"""Algorithms compared over runs and tasks: performance profiles, and numbers with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, PercentFormatter

from holdfast.core.errors import InputError
from holdfast.draw.curves import Curve, plot_curve
from holdfast.draw.style import INK, label_text, look

__all__ = ["IntervalMark", "IntervalPanel", "draw_aggregates", "draw_profiles"]

_PANEL_WIDTH = 2.5
_ROW_HEIGHT = 0.3
_MOST_COLUMNS = 4
_GRID = "#e4e4e1"


@dataclass(frozen=True)
class IntervalMark:
    """A number with an interval, drawn as a row.

    Attributes:
        label: Row's label, such as an algorithm's title.
        color: Colour.
        value: The number.
        low: Lower end of its interval; NaN for no interval.
        high: Upper end of its interval.
    """

    label: str
    color: str
    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class IntervalPanel:
    """Marks that share an axis.

    Attributes:
        title: Title above the panel: the quantity shown.
        marks: The rows, from top to bottom.
        reference: Position of a dashed line, such as ½ for an even chance; None for no line.
    """

    title: str
    marks: Sequence[IntervalMark]
    reference: float | None = None


def draw_profiles(curves: Sequence[Curve], xlabel: str = "score τ", title: str | None = None) -> Figure:
    """The share of runs that scored above τ, one curve per algorithm; higher is better.

    Args:
        curves: At least one curve; ``x`` are the thresholds, ``y`` the shares in [0, 1].
        xlabel: Label of the scores.
        title: Title above the picture.
    """
    if not curves:
        raise InputError("curves must be at least one")
    with look():
        figure = Figure(figsize=(4.6, 3.1), layout="constrained")
        axes = figure.add_subplot()
        for curve in curves:
            plot_curve(axes, curve)
        axes.set_xlabel(label_text(xlabel))
        axes.set_ylabel("share of runs with score > τ")
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.grid(axis="y", color=_GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.margins(x=0.01)
        axes.legend(fontsize=8, loc="best")
        if title:
            axes.set_title(label_text(title))
    return figure


def draw_aggregates(panels: Sequence[IntervalPanel]) -> Figure:
    """Numbers with intervals: one panel per quantity, with one row per algorithm.

    Args:
        panels: At least one panel, with at least one mark each. Rows of neighbouring panels are aligned, so all
            panels must have the same labels.
    """
    if not panels or not all(panel.marks for panel in panels):
        raise InputError("panels must be at least one, with at least one mark each")
    labels = [mark.label for mark in panels[0].marks]
    if any([mark.label for mark in panel.marks] != labels for panel in panels):
        raise InputError("panels must have marks of the same labels, in the same order")
    if not all(math.isfinite(mark.value) for panel in panels for mark in panel.marks):
        raise InputError("panels must have marks whose values are finite numbers")
    columns = min(len(panels), _MOST_COLUMNS)
    rows = -(-len(panels) // columns)
    size = (_PANEL_WIDTH * columns + 1.0, (_ROW_HEIGHT * len(labels) + 0.7) * rows)
    with look():
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(wspace=0.06))
        for number, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, number + 1)
            _draw_rows(axes, panel)
            if number % columns == 0:
                axes.set_yticks(range(len(labels)), [label_text(label) for label in labels])
            else:
                axes.set_yticks([])
    return figure


def _draw_rows(axes: Axes, panel: IntervalPanel) -> None:
    if panel.reference is not None:
        axes.axvline(panel.reference, color=INK, linewidth=0.8, linestyle="dashed", zorder=1)
    for row, mark in enumerate(panel.marks):
        if math.isfinite(mark.low) and math.isfinite(mark.high):
            axes.barh(row, mark.high - mark.low, left=mark.low, height=0.55, color=mark.color, alpha=0.35)
        axes.plot([mark.value] * 2, [row - 0.275, row + 0.275], color=mark.color, linewidth=2.2)
    axes.set_ylim(len(panel.marks) - 0.4, -0.6)
    axes.set_title(label_text(panel.title))
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(axis="x", color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    # Otherwise the axis would end exactly where a bar begins.
    axes.use_sticky_edges = False
    axes.margins(x=0.08)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
