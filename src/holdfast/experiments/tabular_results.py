"""The results of the tabular learning curves: panels of greedy returns, and tables of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holdfast.core.array_types import Floats
from holdfast.experiments.tables import Table, matrix, select
from holdfast.experiments.tabular_curves import GRIDS, GridAgent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from holdfast.draw import Curve, Panel

__all__ = [
    "Line",
    "agent_lines",
    "aggregate_lines",
    "curve_panels",
    "draw_returns_by_row",
    "has_rows",
    "score_lines",
    "scores",
    "shaded_lines",
]


_NAME_WIDTH = 21
_CELL_WIDTH = 14


@dataclass(frozen=True)
class Line:
    """How an agent is drawn.

    Attributes:
        agent: Agent's name.
        color: Colour of its curve.
        dash: Number of the dash pattern.
    """

    agent: str
    color: str
    dash: int = 0


def agent_lines(agents: Sequence[GridAgent]) -> list[Line]:
    """Each agent in the colour of its algorithm; the second of a colour is dashed."""
    from holdfast.draw import algorithm_color

    lines: list[Line] = []
    for agent in agents:
        color = algorithm_color(agent.algorithm)
        lines.append(Line(agent.name, color, sum(line.color == color for line in lines)))
    return lines


def shaded_lines(agents: Sequence[GridAgent]) -> list[Line]:
    """Agents of one algorithm in shades of blue, later ones darker."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    shades = np.linspace(0.45, 0.95, len(agents))
    return [
        Line(agent.name, to_hex(colormaps["Blues"](shade))) for agent, shade in zip(agents, shades, strict=True)
    ]


def draw_returns_by_row(rows: Mapping[str, tuple[Table, Sequence[Line]]]) -> Figure:
    """Greedy returns over episodes: one row of panels per title, with its table and its lines.

    Titles without rows are left out. Returns lie between −1 and 1, and so do the axes, although the intervals of
    few runs reach further.
    """
    from holdfast.draw import draw_curve_rows

    panels = {title: curve_panels(own, lines) for title, (own, lines) in rows.items()}
    shown = {title: row for title, row in panels.items() if any(panel.curves for panel in row)}
    return draw_curve_rows(shown, "episode", "greedy return", limits=(-1.08, 1.08))


def has_rows(rows: Table, agents: Sequence[GridAgent], beside: GridAgent) -> bool:
    """Whether any of the agents has rows, not counting the one that is in every row of panels."""
    return any((rows["agent"] == agent.name).any() for agent in agents if agent.name != beside.name)


def curve_panels(rows: Table, lines: Sequence[Line]) -> list[Panel]:
    """A panel of greedy returns for each grid that has rows: mean and 95 % interval over runs."""
    from holdfast.draw import Panel

    panels = []
    for grid, title in GRIDS.items():
        if len(select(rows, grid=grid)["seed"]) > 0:
            curves = [_curve(rows, grid, line) for line in lines]
            panels.append(Panel(title, [curve for curve in curves if curve is not None]))
    return panels


def _curve(rows: Table, grid: str, line: Line) -> Curve | None:
    from holdfast.draw import Curve
    from holdfast.stats.estimates import mean_interval

    own = select(rows, grid=grid, agent=line.agent)
    if len(own["seed"]) == 0:
        return None
    x, returns = matrix(own, "greedy", "episode")
    mean, low, high = mean_interval(returns)
    if len(returns) == 1:
        return Curve(line.agent, line.color, x, mean, dash=line.dash)
    return Curve(line.agent, line.color, x, mean, low, high, line.dash)


def scores(rows: Table, agent: str, grid: str) -> Floats | None:
    """Mean greedy return over all episodes of each run, (run,), which is higher if an agent learns sooner.

    None if there are no rows.
    """
    own = select(rows, grid=grid, agent=agent)
    return matrix(own, "greedy", "episode")[1].mean(axis=1) if len(own["seed"]) > 0 else None


def score_lines(rows: Table, minus: str | None = None) -> list[str]:
    """A table of the scores' means and 95 % intervals, with one line per agent and one column per grid.

    Args:
        rows: Rows of all jobs.
        minus: Show how far the scores of this agent are above those of the others, seed by seed.
    """
    grids = _grids(rows)
    agents = [name for name in _agents(rows) if name != minus]
    head = "agent" if minus is None else f"{minus} minus"
    lines = [f"{head:<{_NAME_WIDTH}}" + "".join(f"{GRIDS[grid].split()[0]:>{_CELL_WIDTH}}" for grid in grids)]
    for agent in agents:
        cells = []
        for grid in grids:
            found = scores(rows, agent, grid)
            if minus is not None and found is not None:
                own = scores(rows, minus, grid)
                found = own - found if own is not None and own.shape == found.shape else None
            cells.append(f"{'' if found is None else _told(found, minus is not None):>{_CELL_WIDTH}}")
        lines.append(f"{agent:<{_NAME_WIDTH}}{''.join(cells)}".rstrip())
    return lines


def aggregate_lines(rows: Table, other: str = "Q") -> list[str]:
    """A table over all grids, with one line per agent.

    It has the interquartile mean of the scores, and the probability that a run of the agent beats one of ``other``
    on the same grid, each with a 95 % stratified bootstrap interval. Agents with missing runs are left out.
    """
    from holdfast.stats.aggregates import interquartile_mean
    from holdfast.stats.bootstrap import bootstrap_estimate
    from holdfast.stats.comparisons import improvement_estimate

    compared = _over_grids(rows, other)
    head = f"{'over all grids':<{_NAME_WIDTH}}{'interquartile mean':>26}"
    lines = [head if compared is None else f"{head}{f'chance to beat {other}':>30}"]
    for agent in _agents(rows):
        own = _over_grids(rows, agent)
        if own is None:
            continue
        mean = bootstrap_estimate(interquartile_mean, own)
        cells = f"{f'{mean.value:.3f} ({mean.low:.3f} to {mean.high:.3f})':>26}"
        if compared is not None and agent != other:
            chance = improvement_estimate(own, compared)
            cells += f"{f'{chance.value:.2f} ({chance.low:.2f} to {chance.high:.2f})':>30}"
        lines.append(f"{agent:<{_NAME_WIDTH}}{cells}")
    return lines


def _over_grids(rows: Table, agent: str) -> Floats | None:
    """Scores of an agent, (run, grid); None if some are missing."""
    found = [scores(rows, agent, grid) for grid in _grids(rows)]
    known = [own for own in found if own is not None]
    if len(known) < len(found) or len({len(own) for own in known}) != 1:
        return None
    return np.stack(known, axis=1)


def _grids(rows: Table) -> list[str]:
    return [grid for grid in GRIDS if (rows["grid"] == grid).any()]


def _agents(rows: Table) -> list[str]:
    return [str(name) for name in dict.fromkeys(rows["agent"].tolist())]


def _told(values: Floats, is_signed: bool) -> str:
    """Mean, and half the width of its interval."""
    from holdfast.stats.estimates import mean_interval

    mean, _, high = mean_interval(values)
    half = "" if np.isnan(high) else f" ±{high - mean:.3f}"
    return f"{mean:+.3f}{half}" if is_signed else f"{mean:.3f}{half}"
