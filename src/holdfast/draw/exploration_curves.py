"""How far random options get for each largest persistence: Kemeny's constant and entropy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator, ScalarFormatter
from numpy.typing import NDArray

from holdfast.core.array_types import Floats
from holdfast.core.errors import InputError
from holdfast.draw.style import PALETTE, label_text, look

__all__ = ["HorizonCurve", "draw_exploration_curves"]


_COLORS = tuple(PALETTE[name] for name in ("blue", "orange", "green", "purple", "sky", "vermilion", "grey"))
_PANEL = (2.7, 2.2)
_LEAST_ROOM = 0.05
_LEAST_SPAN = (0.98, 1.02)


class HorizonCurve(Protocol):
    """One horizon's curves, as in ``holdfast.mdp.ExplorationCurve``; every array has shape (n,)."""

    @property
    def H(self) -> int:  # noqa: N802 (the paper's letter)
        """Number of environment steps in one step of the chain."""
        ...

    @property
    def k_max(self) -> NDArray[np.int64]:
        """Largest persistences, in increasing order."""
        ...

    @property
    def normalised_kemeny(self) -> Floats:
        """Kemeny's constant divided by that for K_max = 1."""
        ...

    @property
    def normalised_error(self) -> Floats:
        """Its standard error."""
        ...

    @property
    def row_entropy(self) -> Floats:
        """Entropy, in nats."""
        ...

    @property
    def row_entropy_error(self) -> Floats:
        """Its standard error."""
        ...


def draw_exploration_curves(
    panels: Mapping[str, Sequence[HorizonCurve]], title: str | None = None, *, entropy: bool = True
) -> Figure:
    """Kemeny's constant over K_max above, entropy below; one column per environment, one line per horizon.

    Dots mark the smallest constant and the largest entropy of every line. Above 1, the constants' axis is cut at
    twice the depth of the deepest minimum, so that a minimum stays visible beside much worse values. The axis
    spans at least 0.98 to 1.02, so that rounding does not look like a cliff. For estimates, bands extend two
    standard errors to either side.

    Args:
        panels: The curves of each environment, by the title above them.
        title: Title above the whole figure.
        entropy: Whether to draw the lower row; without it and with H = 30, this is the paper's first figure.
    """
    if not panels or not all(panels.values()):
        raise InputError("panels must be at least one, with at least one curve each")
    horizons = sorted({curve.H for curves in panels.values() for curve in curves})
    colors = {H: _COLORS[number % len(_COLORS)] for number, H in enumerate(horizons)}
    rows = 2 if entropy else 1
    with look():
        size = (_PANEL[0] * len(panels) + 0.4, _PANEL[1] * rows + 0.5)
        figure = Figure(figsize=size, layout="constrained")
        grid: Any = figure.subplots(rows, len(panels), squeeze=False, sharex="col")
        for column, (name, curves) in enumerate(panels.items()):
            grid[0, column].set_title(label_text(name))
            grid[0, column].axhline(1.0, color=PALETTE["grey"], linewidth=0.6, linestyle="dotted")
            for curve in curves:
                color = colors[curve.H]
                constants = curve.normalised_kemeny
                _line(grid[0, column], curve, constants, curve.normalised_error, int(np.argmin(constants)), color)
                if entropy:
                    values = curve.row_entropy
                    _line(grid[1, column], curve, values, curve.row_entropy_error, int(np.argmax(values)), color)
            _cut(grid[0, column], float(min(np.min(curve.normalised_kemeny) for curve in curves)))
            _powers_of_two(grid[-1, column], int(max(np.max(curve.k_max) for curve in curves)))
        grid[0, 0].set_ylabel("Kemeny's constant\n($K_{max}$ = 1: 1)")
        if entropy:
            grid[1, 0].set_ylabel("entropy (nats)")
        handles = [Line2D([], [], color=colors[H], label=f"H = {H}") for H in horizons]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
        if title:
            figure.suptitle(label_text(title))
    return figure


def _line(axes: Axes, curve: HorizonCurve, values: Floats, errors: Floats, best: int, color: str) -> None:
    axes.plot(curve.k_max, values, color=color, gid="curve")
    axes.plot(curve.k_max[best], values[best], "o", color=color, markersize=5.0, gid="best")
    if errors.any():
        axes.fill_between(
            curve.k_max, values - 2.0 * errors, values + 2.0 * errors, color=color, alpha=0.18, linewidth=0.0
        )
    axes.grid(axis="y", color="#e4e4e1", linewidth=0.6)
    axes.set_axisbelow(True)


def _cut(axes: Axes, least: float) -> None:
    """Limit the vertical axis so that a minimum of ``least`` stays visible and noise still looks like noise."""
    bottom, top = axes.get_ylim()
    top = min(top, 1.0 + max(2.0 * (1.0 - least), _LEAST_ROOM))
    axes.set_ylim(min(bottom, _LEAST_SPAN[0]), max(top, _LEAST_SPAN[1]))


def _powers_of_two(axes: Axes, largest: int) -> None:
    """Label the horizontal axis with powers of two, up to ``largest``."""
    axes.set_xscale("log", base=2)
    axes.set_xticks([2**power for power in range(largest.bit_length())])
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("$K_{max}$")
