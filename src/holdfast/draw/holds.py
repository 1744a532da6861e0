"""How long actions were held, and what deciding less often costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike

from holdfast.core.errors import InputError
from holdfast.draw.style import INK, PALETTE, VALUE_COLORMAP, label_text, look

__all__ = ["draw_hold_histogram", "draw_holds_over_training", "draw_tolerance_sweep"]


def draw_hold_histogram(holds: ArrayLike, title: str | None = None) -> Figure:
    """How often actions were held for each number of steps.

    Args:
        holds: (h,) how many options were held for 0, 1, 2, ... steps.
        title: Title above the picture.
    """
    counts = np.asarray(holds, dtype=np.float64)
    if counts.ndim != 1 or counts.sum() <= 0:
        raise InputError("holds must be counts of at least one option")
    steps = np.arange(1, len(counts))
    share = counts[1:] / counts.sum()
    with look():
        figure = Figure(figsize=(4.6, 2.9), layout="constrained")
        axes = figure.add_subplot()
        axes.bar(steps, share, color=PALETTE["blue"], width=0.8)
        mean = float(steps @ share)
        axes.axvline(mean, color=INK, linewidth=1.0, linestyle="dashed")
        axes.annotate(
            f"mean {mean:.3g}",
            (mean, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4, -4),
            textcoords="offset points",
            va="top",
            fontsize=8,
        )
        axes.set_xlabel("steps held")
        axes.set_ylabel("share of decisions")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(12, integer=True, min_n_ticks=1))
        if title:
            axes.set_title(label_text(title))
    return figure


def draw_holds_over_training(steps: ArrayLike, shares: ArrayLike, title: str | None = None) -> Figure:
    """How long greedy actions were held during training: one column per evaluation, with the mean as a line.

    Args:
        steps: (n,) training steps, in order.
        shares: (n, K) the share of decisions that were held for 1..K steps; each row sums to 1.
        title: Title above the picture.
    """
    x, table = np.asarray(steps, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape or x.shape != table.shape[:1]:
        raise ValueError(f"shares must have shape (n, K) with n = {x.size} evaluations, not {table.shape}")
    persistences = np.arange(1, table.shape[1] + 1)
    # Each column reaches half-way to its neighbours.
    between = (x[1:] + x[:-1]) / 2.0
    width = x[0] if len(x) == 1 else 2.0 * (between[0] - x[0])
    edges = np.concatenate(
        [[x[0] - width / 2.0], between, [x[-1] + (x[-1] - between[-1] if len(x) > 1 else width / 2.0)]]
    )
    with look():
        figure = Figure(figsize=(4.9, 3.1), layout="constrained")
        axes = figure.add_subplot()
        image = axes.pcolormesh(
            edges,
            np.arange(table.shape[1] + 1) + 0.5,
            table.T,
            cmap=VALUE_COLORMAP,
            vmin=0.0,
            vmax=max(float(table.max()), 1e-9),
            rasterized=True,
        )
        marker = "o" if len(x) == 1 else None  # a single point does not make a line
        halo = [withStroke(linewidth=3.0, foreground="white")]
        mean = axes.plot(
            x, table @ persistences, color=PALETTE["vermilion"], marker=marker, path_effects=halo, label="mean"
        )
        axes.legend(handles=mean, fontsize=8, loc="upper right", frameon=True, framealpha=0.85)
        bar = figure.colorbar(image, ax=axes, pad=0.02, format=PercentFormatter(1.0, decimals=0))
        bar.set_label("share of decisions")
        bar.outline.set_linewidth(0.5)
        axes.set_xlabel("steps")
        axes.set_ylabel("steps held, in evaluations")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.yaxis.set_major_locator(MaxNLocator(9, integer=True, min_n_ticks=1))
        if title:
            axes.set_title(label_text(title))
    return figure


def draw_tolerance_sweep(
    tolerances: Sequence[float],
    decisions: ArrayLike,
    returns: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    title: str | None = None,
) -> Figure:
    """Return against decisions per episode, one point per tolerance: what deciding less often costs.

    Args:
        tolerances: (n,) in order; the first and last are written beside their points.
        decisions: (n,) mean per episode.
        returns: (n,) means.
        low: (n,) lower ends of the returns' intervals.
        high: (n,) upper ends of the returns' intervals.
        title: Title above the picture.
    """
    x, y = np.asarray(decisions, dtype=np.float64), np.asarray(returns, dtype=np.float64)
    spans = np.abs(np.array([y - np.asarray(low), np.asarray(high) - y], dtype=np.float64))
    with look():
        figure = Figure(figsize=(4.8, 3.3), layout="constrained")
        axes = figure.add_subplot()
        axes.errorbar(
            x,
            y,
            yerr=np.nan_to_num(spans),
            color=PALETTE["blue"],
            marker="o",
            markersize=4,
            linewidth=1.0,
            elinewidth=0.8,
            capsize=2,
        )
        for number in {0, len(tolerances) - 1}:
            axes.annotate(
                f"tolerance {tolerances[number]:.3g}",
                (x[number], y[number]),
                xytext=(5, 6),
                textcoords="offset points",
                fontsize=8,
            )
        axes.set_xlabel("decisions per episode")
        axes.set_ylabel("return")
        axes.margins(x=0.15, y=0.15)
        axes.grid(color="#e4e4e1", linewidth=0.6)
        axes.set_axisbelow(True)
        if title:
            axes.set_title(label_text(title))
    return figure
