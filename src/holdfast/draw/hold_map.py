"""A policy's actions and how long it holds them, over two of its observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from holdfast.core.array_types import Floats, Integers
from holdfast.draw.style import INK, MISSING, VALUE_COLORMAP, label_text, look, told_apart

__all__ = ["HoldMap", "draw_hold_map"]

_ACTION_COLORMAP = "PuOr"
"""Colours from one bound of a continuous action to the other."""


@dataclass(frozen=True, eq=False)
class HoldMap:
    """A policy's choices over a plane of observations, and an episode's path through it.

    Attributes:
        x: (n,) positions along the horizontal axis.
        y: (m,) positions along the vertical axis.
        actions: (m, n) the action there, counted from 0; for a continuous action, one of its components.
        holds: (m, n) the number of steps it is held for.
        k_max: Largest possible persistence.
        names: Labels of the two axes.
        action_names: Names of all actions; for a continuous action, the name of the component shown.
        path: (steps, 2) positions of an episode; may be empty.
        decided: (steps,) whether a decision was made at each position.
        note: Further information, written below; may be empty.
        action_range: Lower and upper bound of a continuous action; None for discrete actions.
    """

    x: Floats
    y: Floats
    actions: Integers | Floats
    holds: Integers
    k_max: int
    names: tuple[str, str]
    action_names: Sequence[str]
    path: Floats
    decided: NDArray[np.bool_]
    note: str = ""
    action_range: tuple[float, float] | None = None


def draw_hold_map(shown: HoldMap, title: str | None = None) -> Figure:
    """Actions on the left, the steps they are held on the right; an episode lies over both, a dot per decision.

    Args:
        shown: The choices.
        title: Title above the picture.
    """
    if shown.actions.shape != (len(shown.y), len(shown.x)) or shown.holds.shape != shown.actions.shape:
        raise ValueError(f"actions and holds must have shape ({len(shown.y)}, {len(shown.x)})")
    with look():
        figure = Figure(figsize=(9.0, 3.7), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True, sharey=True)
        if shown.action_range is None:
            _draw_actions(left, shown)
        else:
            _draw_continuous_actions(figure, left, shown, shown.action_range)
        _draw_holds(figure, right, shown)
        for axes in (left, right):
            _draw_path(axes, shown)
            axes.set_xlabel(label_text(shown.names[0]))
            axes.set_xlim(shown.x[0], shown.x[-1])
            axes.set_ylim(shown.y[0], shown.y[-1])
        left.set_ylabel(label_text(shown.names[1]))
        if title:
            figure.suptitle(label_text(title))
        if shown.note:
            figure.supxlabel(label_text(shown.note), fontsize=8)
    return figure


def _draw_actions(axes: Axes, shown: HoldMap) -> None:
    n_actions = len(shown.action_names)
    colors = told_apart(np.bincount(shown.actions.ravel(), minlength=n_actions).tolist())
    axes.pcolormesh(
        shown.x,
        shown.y,
        shown.actions,
        cmap=ListedColormap([colors.get(number, MISSING) for number in range(n_actions)]),
        norm=BoundaryNorm(np.arange(n_actions + 1) - 0.5, n_actions),
        shading="nearest",
        alpha=0.75,
        rasterized=True,
    )
    axes.set_title("action")
    used = set(np.unique(shown.actions).tolist())
    listed = [
        Patch(color=color, alpha=0.75, label=label_text(shown.action_names[number]))
        for number, color in colors.items()
        if number in used
    ]
    if used - set(colors):
        listed.append(Patch(color=MISSING, label="others"))
    axes.legend(handles=listed, loc="upper left", fontsize=7.5, frameon=True, framealpha=0.85)


def _draw_continuous_actions(figure: Figure, axes: Axes, shown: HoldMap, bounds: tuple[float, float]) -> None:
    mesh = axes.pcolormesh(
        shown.x,
        shown.y,
        shown.actions,
        cmap=_ACTION_COLORMAP,
        vmin=bounds[0],
        vmax=bounds[1],
        shading="nearest",
        rasterized=True,
    )
    axes.set_title("action")
    bar = figure.colorbar(mesh, ax=axes, pad=0.02, label=label_text(shown.action_names[0]))
    bar.outline.set_linewidth(0.5)


def _draw_holds(figure: Figure, axes: Axes, shown: HoldMap) -> None:
    # The longest hold is dark, but light enough for the path to stay visible.
    colors = ListedColormap(mpl.colormaps[VALUE_COLORMAP](np.linspace(0.05, 0.9, shown.k_max)))
    norm = BoundaryNorm(np.arange(shown.k_max + 1) + 0.5, shown.k_max)
    axes.pcolormesh(shown.x, shown.y, shown.holds, cmap=colors, norm=norm, shading="nearest", rasterized=True)
    axes.set_title("steps held")
    bar = figure.colorbar(ScalarMappable(norm, colors), ax=axes, pad=0.02)
    bar.ax.yaxis.set_major_locator(MaxNLocator(9, integer=True, min_n_ticks=1))
    bar.ax.minorticks_off()
    bar.outline.set_linewidth(0.5)


def _draw_path(axes: Axes, shown: HoldMap) -> None:
    if len(shown.path) == 0:
        return
    halo = [withStroke(linewidth=2.6, foreground="white")]
    axes.plot(shown.path[:, 0], shown.path[:, 1], color=INK, linewidth=1.0, path_effects=halo)
    dots = shown.path[shown.decided]
    axes.plot(
        dots[:, 0],
        dots[:, 1],
        linestyle="none",
        marker="o",
        markersize=4.5,
        markerfacecolor="white",
        markeredgecolor=INK,
        markeredgewidth=0.9,
    )
