"""How long a run of PerQ-learning takes, by K_max.

All K_max of a grid are timed in one process, in turns, so that other load on the machine affects all of them
equally. The times include neither compilation nor greedy episodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.array_types import Floats
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, matrix, select
from holdfast.experiments.tabular_curves import GRIDS, SIZES, Learning, learn, per_q

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_times"]


_RUNS = {"smoke": 3, "laptop": 5, "paper": 20}
_K_VALUES = {"smoke": (1, 2, 4), "laptop": (1, 2, 4, 8, 16, 32), "paper": (1, 2, 4, 8, 16, 32)}
_MARKS = {
    "cliff": ("vermilion", "o"),
    "bridge": ("sky", "s"),
    "zigzag": ("grey", "^"),
    "frozen-lake": ("purple", "D"),
}
"""Colour and marker of each grid."""


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job per grid."""
    for grid, episodes in SIZES[scale].episodes.items():
        sizes = {"episodes": episodes, "runs": _RUNS[scale], "k_values": list(_K_VALUES[scale])}
        yield {"grid": grid} | sizes | vars(Learning()), 0


def run(job: Job, place: Path) -> dict[str, Any]:
    """Seconds and steps of each run and K_max; a tenth of a run comes first and is not counted."""
    shared = {name: value for name, value in job.setting.items() if name != "k_values"}
    rows = []
    for k_max in job.setting["k_values"]:
        learn(_setting(shared, k_max) | {"episodes": -(-shared["episodes"] // 10)}, [job.seed], evaluate=False)
    for seed in range(job.seed, job.seed + shared["runs"]):
        for k_max in job.setting["k_values"]:
            result = learn(_setting(shared, k_max), [seed], evaluate=False)
            rows.append((seed, k_max, result.wall_seconds[0], result.steps.sum()))
    return dict(zip(EXPERIMENT.columns, np.array(rows, dtype=np.float64).T, strict=True))


def _setting(shared: Mapping[str, Any], k_max: int) -> dict[str, Any]:
    agent = per_q(k_max)
    return dict(shared) | {"algorithm": agent.algorithm} | dict(agent.arguments)


def draw_times(rows: Table) -> Figure:
    """Over K_max: the seconds of a run on the left, the microseconds of a step on the right.

    Paper: Figure fig:tabular_times
    """
    from matplotlib.figure import Figure

    from holdfast.draw import look

    with look():
        figure = Figure(figsize=(9.2, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_means(left, rows, per_step=False)
        _draw_means(right, rows, per_step=True)
        left.set_title("a run")
        left.set_ylabel("seconds")
        right.set_title("a step")
        right.set_ylabel("microseconds")
        left.legend(fontsize=8)
    return figure


def _draw_means(axes: Axes, rows: Table, per_step: bool) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

    from holdfast.draw.style import PALETTE
    from holdfast.stats.estimates import mean_interval

    means: list[Floats] = []
    for grid, title in GRIDS.items():
        found = _times(rows, grid)
        if found is None:
            continue
        k_values, seconds, steps = found
        mean, low, high = mean_interval(1e6 * seconds / steps if per_step else seconds)
        color, marker = _MARKS[grid]
        axes.plot(k_values, mean, color=PALETTE[color], marker=marker, markersize=4, label=title)
        if len(seconds) > 1:
            # A logarithmic axis cannot show values below zero: such a band leaves the picture at the bottom.
            low = np.maximum(low, np.finfo(float).tiny)
            axes.fill_between(k_values, low, high, color=PALETTE[color], alpha=0.18, linewidth=0.0)
        means.append(mean)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    if means:
        axes.set_ylim(np.min(means) / 2.0, np.max(means) * 2.0)
    axes.set_xticks(np.unique(rows["k_max"]), [f"{k:.0f}" for k in np.unique(rows["k_max"])])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("$K_{max}$")
    axes.grid(axis="y", color="#e4e4e1", linewidth=0.6)
    axes.set_axisbelow(True)


def _times(rows: Table, grid: str) -> tuple[Floats, Floats, Floats] | None:
    """K_max (n,), and seconds and steps of the runs, each (run, n); None if there are none."""
    own = select(rows, grid=grid)
    if len(own["seed"]) == 0:
        return None
    k_values, seconds = matrix(own, "seconds", "k_max")
    return k_values, seconds, matrix(own, "steps", "k_max")[1]


def summary(rows: Table) -> list[str]:
    """Milliseconds per run and microseconds per step."""
    from holdfast.stats.estimates import mean_interval

    found = {title.split()[0]: _times(rows, grid) for grid, title in GRIDS.items()}
    times = {title: own for title, own in found.items() if own is not None}
    lines = [
        "milliseconds per training run (microseconds per step), mean ± 95 % interval",
        "K_max " + "".join(f"{title:>18}" for title in times),
    ]
    for k in np.unique(rows["k_max"]):
        cells = ""
        for k_values, seconds, steps in times.values():
            own = seconds[:, k_values == k].ravel()
            if len(own) == 0:
                cells += " " * 18
                continue
            mean, _, high = mean_interval(1e3 * own)
            half = "" if np.isnan(high) else f"±{_short(float(high - mean))}"
            per_step = (1e6 * own / steps[:, k_values == k].ravel()).mean()
            cells += f"{f'{_short(float(mean))}{half} ({per_step:.1f})':>18}"
        lines.append(f"{k:5.0f} {cells}")
    return lines


def _short(number: float) -> str:
    return f"{number:.1f}" if number < 100.0 else f"{number:.0f}"


EXPERIMENT = Experiment(
    label="fig:tabular_times",
    title="computing time of PerQ-learning by K_max",
    columns=("seed", "k_max", "seconds", "steps"),
    plan=plan,
    run=run,
    draw=draw_times,
    summary=summary,
    notes=(
        "Wall time of compiled code on one core, all K_max of a grid in turns. It includes whatever else the "
        "machine does: run it alone.",
    ),
    alone=True,
)
