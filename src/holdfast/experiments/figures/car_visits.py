"""Where random options lead in MountainCar: of up to K steps, and of exactly K steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DYNAMIC", "FIXED", "draw_dynamic_visits", "draw_fixed_visits"]

COLUMNS = ("k_max", "position", "velocity", "visits", "reached", "reached_low", "reached_high")
"""Position and velocity are the centre of a cell; the share of episodes that reached the flag, with its 95 %
interval, is repeated in each row of its K_max."""

NOTES = (
    "Cells reach as far as any K of this figure went, so their numbers can be compared only within one figure.",
    "Which K are shown appears only in the paper's pictures, and is inferred (see: holdfast docs errata).",
)
"""Notes for both figures."""

_LONGEST = [1, 2, 4, 8, 16, 32, 64]
_EPISODES = {"smoke": 100, "laptop": 2_000, "paper": 10_000}
_FLAG = 0.5


def plan_visits(scale: str, mode: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job: all K_max share the same cells, which reach as far as any of them went."""
    yield {"mode": mode, "longest": _LONGEST, "episodes": _EPISODES[scale]}, 0


def run_visits(job: Job, place: Path) -> dict[str, Any]:
    """Visits to every cell, K_max by K_max."""
    from holdfast.advice import study_visitation

    setting = job.setting
    study = study_visitation(
        "MountainCar-v0",
        setting["longest"],
        modes=[setting["mode"]],
        episodes=setting["episodes"],
        seed=job.seed,
        axes="position,velocity",
    )
    middles = [(edges[1:] + edges[:-1]) / 2.0 for edges in study.cells.edges]
    k_max, position, velocity = np.meshgrid(setting["longest"], *middles, indexing="ij")
    rates = np.array([result.success for result in study.results], dtype=np.float64)
    reached = np.repeat(rates, position[0].size, axis=0)
    columns = (k_max.ravel(), position.ravel(), velocity.ravel(), study.cells.counts.ravel(), *reached.T)
    return dict(zip(COLUMNS, columns, strict=True))


def _draw_visits(rows: Table, title: str) -> Figure:
    """One heat map per K_max."""
    from holdfast.draw.heat_maps import draw_heat_maps

    longest = np.unique(rows["k_max"])
    positions, velocities = np.unique(rows["position"]), np.unique(rows["velocity"])
    counts, titles = [], []
    for k in longest:
        own = select(rows, k_max=k)
        order = np.lexsort((own["velocity"], own["position"]))
        counts.append(own["visits"][order].reshape(len(positions), len(velocities)).astype(np.int64))
        titles.append(f"K = {k:g} · {100.0 * own['reached'][0]:.3g} % reach the flag")
    edges = _edges(positions), _edges(velocities)
    return draw_heat_maps(np.array(counts), edges, ("position", "velocity"), titles, title, _FLAG)


def _edges(middles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of cells of equal width, from their centres."""
    half = (middles[1] - middles[0]) / 2.0
    return np.append(middles - half, middles[-1] + half)


def visit_lines(rows: Table) -> list[str]:
    """One line per K_max."""
    episodes = int(rows["episodes"][0])
    lines = [
        f"{'K':>3}  {'reach the flag':>14}  {'95 % interval':>16}  cells visited   ({episodes:,} episodes each)"
    ]
    for k in np.unique(rows["k_max"]):
        own = select(rows, k_max=k)
        rate, low, high = (100.0 * own[name][0] for name in COLUMNS[-3:])
        visited = int((own["visits"] > 0).sum())
        lines.append(f"{k:>3g}  {rate:>12.2f} %  {f'{low:.2f}–{high:.2f} %':>16}  {visited:>13}")
    return lines


def draw_dynamic_visits(rows: Table) -> Figure:
    """Visits to position and velocity by random options of any length up to K, one map per K.

    Paper: Figure fig:adv_exploration
    """
    return _draw_visits(rows, "MountainCar, random options of up to K steps")


def draw_fixed_visits(rows: Table) -> Figure:
    """Visits to position and velocity by random options of exactly K steps, one map per K.

    Paper: Figure fig:adv_exploration_fix
    """
    return _draw_visits(rows, "MountainCar, random options of exactly K steps")


DYNAMIC, FIXED = (
    Experiment(
        label=label,
        title=f"MountainCar: where random options of {length} K steps lead",
        columns=COLUMNS,
        plan=partial(plan_visits, mode=mode),
        run=run_visits,
        draw=draw,
        summary=visit_lines,
        notes=NOTES,
    )
    for label, mode, length, draw in (
        ("fig:adv_exploration", "dynamic", "up to", draw_dynamic_visits),
        ("fig:adv_exploration_fix", "fixed", "exactly", draw_fixed_visits),
    )
)
