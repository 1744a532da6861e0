"""Return against decisions per episode, with the points on the Pareto front marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from holdfast.draw.style import PALETTE, label_text, look

__all__ = ["TradeOffMarks", "draw_trade_off"]


@dataclass(frozen=True, eq=False)
class TradeOffMarks:
    """Points of one kind; every array has shape (n,) or, with both ends of intervals, (2, n).

    Attributes:
        label: Label in the legend.
        color: Colour of the points.
        marker: Shape of the points.
        costs: (n,) costs of a decision, in order; written beside the points.
        decisions: (n,) mean per episode.
        returns: (n,) means.
        decision_ends: (2, n) ends of the decisions' intervals; NaN where there is none.
        return_ends: (2, n) ends of the returns' intervals; NaN where there is none.
    """

    label: str
    color: str
    marker: str
    costs: Sequence[float]
    decisions: ArrayLike
    returns: ArrayLike
    decision_ends: ArrayLike
    return_ends: ArrayLike


def draw_trade_off(
    kinds: Sequence[TradeOffMarks], front: tuple[ArrayLike, ArrayLike], title: str | None = None
) -> Figure:
    """Points with their intervals, and a line through the front.

    Args:
        kinds: The points to mark.
        front: Decisions and returns of the points on the front, (m,) each, ordered by decisions.
        title: Title above the picture.
    """
    with look():
        figure = Figure(figsize=(5.6, 3.8), layout="constrained")
        axes = figure.add_subplot()
        x, y = (np.asarray(part, dtype=np.float64) for part in front)
        axes.plot(
            x, y, color=PALETTE["grey"], linewidth=1.0, drawstyle="steps-post", label="best return up to here"
        )
        for number, kind in enumerate(kinds):
            is_above = number % 2 == 0
            at, value = np.asarray(kind.decisions, dtype=np.float64), np.asarray(kind.returns, dtype=np.float64)
            axes.errorbar(
                at,
                value,
                xerr=_spans(at, kind.decision_ends),
                yerr=_spans(value, kind.return_ends),
                color=kind.color,
                marker=kind.marker,
                # Points below stay visible through those on top.
                markersize=5 + 3 * number,
                markerfacecolor=kind.color if number == 0 else "none",
                linestyle="none",
                elinewidth=0.8,
                capsize=2,
                label=label_text(kind.label),
            )
            # Points that coincide share a text.
            places: dict[tuple[float, float], list[float]] = {}
            for cost, place in zip(kind.costs, zip(at.tolist(), value.tolist(), strict=True), strict=True):
                places.setdefault(place, []).append(cost)
            for place, costs in places.items():
                text = f"c={costs[0]:g}" + (f" to {costs[-1]:g}" if len(costs) > 1 else "")
                axes.annotate(
                    text,
                    place,
                    xytext=(3, 5 if is_above else -5),
                    textcoords="offset points",
                    fontsize=7,
                    color=kind.color,
                    rotation=30 if is_above else -30,
                    rotation_mode="anchor",
                    va="bottom" if is_above else "top",
                )
        axes.set_xlabel("decisions per episode")
        axes.set_ylabel("return, without the cost")
        axes.margins(x=0.15, y=0.3)
        axes.grid(color="#e4e4e1", linewidth=0.6)
        axes.legend(fontsize=8)
        if title is not None:
            axes.set_title(label_text(title))
    return figure


def _spans(middle: ArrayLike, ends: ArrayLike) -> NDArray[np.float64]:
    """How far intervals extend below and above, (2, n); 0 where there is none."""
    low, high = np.asarray(ends, dtype=np.float64)
    value = np.asarray(middle, dtype=np.float64)
    return np.asarray(np.nan_to_num(np.abs(np.array([value - low, high - value]))))
