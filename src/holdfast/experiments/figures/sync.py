"""How fast synchronous learning approaches the exact values: Q-learning, and PerQ-learning in two readings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.array_types import Floats
from holdfast.core.options import duration_at
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, matrix, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_errors"]


_RULES = ("q", "combined", "all")
_DRAWN = "combined"
_TITLES = {"q": "Q-learning", "combined": "PerQ-learning", "all": "PerQ-learning, all sub-transitions"}
_SIZES = {"smoke": (3, 40, 1), "laptop": (20, 400, 10), "paper": (100, 400, 10)}
"""Runs, iterations, and the number of iterations between stored errors."""
_SHOWN = 200
"""Number of iterations to draw."""


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job per rule: its runs are computed together, from seed 0 on."""
    runs, iterations, every = _SIZES[scale]
    sizes = {"runs": runs, "iterations": iterations, "every": every}
    for rule in _RULES:
        yield {"rule": rule, "k_max": 6, "alpha": 0.1, "gamma": 0.99, **sizes}, 0


def run(job: Job, place: Path) -> dict[str, Any]:
    """The largest error of each run and persistence, before the first iteration and after some."""
    from holdfast.envs import make_env
    from holdfast.tabular import learn_synchronously

    setting = job.setting
    seeds = range(job.seed, job.seed + setting["runs"])
    mdp = make_env("sync-grid").unwrapped.tabular_mdp(setting["gamma"])  # type: ignore[attr-defined]
    result = learn_synchronously(
        mdp,
        rule=setting["rule"],
        k_max=setting["k_max"],
        alpha=setting["alpha"],
        iterations=setting["iterations"],
        seeds=seeds,
    )
    stored = np.arange(0, setting["iterations"] + 1, setting["every"])
    errors = result.errors_by_k[:, stored]
    seed, iteration, index = np.meshgrid(seeds, stored, np.arange(errors.shape[2]), indexing="ij")
    columns = {"seed": seed, "iteration": iteration, "k": duration_at(index), "error": errors}
    return {name: values.ravel() for name, values in columns.items()}


def draw_errors(rows: Table) -> Figure:
    """Largest errors over iterations: of all values on the left, for each persistence on the right.

    Paper: Figure fig:sync
    """
    from matplotlib.figure import Figure

    from holdfast.draw import look

    with look():
        figure = Figure(figsize=(9.6, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        _draw_rules(left, rows)
        _draw_persistences(right, rows)
        for axes in (left, right):
            axes.set_yscale("log")
            axes.set_xlabel("iteration")
            axes.grid(axis="y", color="#e4e4e1", linewidth=0.6)
            if axes.lines:
                axes.legend(fontsize=8)
        left.set_ylabel(r"largest error, $\|Q - Q^*\|_\infty$")
    return figure


def _draw_rules(axes: Axes, rows: Table) -> None:
    from holdfast.draw import algorithm_color

    for rule in _RULES:
        found = _errors(rows, rule)
        if found is not None:
            color = algorithm_color("q" if rule == "q" else "perq")
            style = "dotted" if rule == "all" else "solid"
            _draw_curve(axes, found[0], found[1].max(axis=0), color, _TITLES[rule], style)
    axes.set_title(f"all values ({len(np.unique(rows['seed']))} runs)")


def _draw_persistences(axes: Axes, rows: Table) -> None:
    from matplotlib import colormaps

    found = _errors(rows, _DRAWN)
    if found is not None:
        x, errors = found
        shades = np.linspace(0.35, 0.95, len(errors))
        for index, shade in enumerate(shades):
            _draw_curve(axes, x, errors[index], colormaps["Blues"](shade), f"k = {duration_at(index)}")
    axes.set_title(f"{_TITLES[_DRAWN]}, each persistence")


def _draw_curve(axes: Axes, x: Floats, errors: Floats, color: Any, label: str, style: str = "solid") -> None:
    """Mean of (run, iteration), and its interval."""
    from holdfast.stats.estimates import mean_interval

    shown = x <= _SHOWN
    mean, low, high = mean_interval(errors[:, shown])
    axes.plot(x[shown], mean, color=color, linestyle=style, label=label)
    # A logarithmic axis cannot show values below zero.
    low = np.maximum(low, np.finfo(float).tiny)
    axes.fill_between(x[shown], low, high, color=color, alpha=0.18, linewidth=0.0)


def _errors(rows: Table, rule: str) -> tuple[Floats, Floats] | None:
    """Iterations, and the errors of a rule as (k, run, iteration); None if there are none."""
    own = select(rows, rule=rule)
    parts = [matrix(select(own, k=k), "error", "iteration") for k in np.unique(own["k"])]
    return (parts[0][0], np.array([errors for _, errors in parts])) if parts else None


def summary(rows: Table) -> list[str]:
    """Mean errors at some iterations."""
    last = int(rows["iteration"].max())
    at = [n for n in (0, 50, 100, 200, 400) if n <= last] if last >= 50 else [0, last // 2, last]
    lines = ["largest error, mean over runs, after iteration", " " * 34 + "".join(f"{n:>9}" for n in at)]
    for rule in _RULES:
        found = _errors(rows, rule)
        if found is None:
            continue
        by_name = {_TITLES[rule]: found[1].max(axis=0)}
        if rule == _DRAWN:
            by_name |= {f"  k = {duration_at(index)}": errors for index, errors in enumerate(found[1])}
        for name, errors in by_name.items():
            cells = "".join(f"{errors[:, found[0] == n].mean():>9.3g}" for n in at)
            lines.append(f"{name:<34}{cells}")
    lines.append(f"on the right: {_TITLES[_DRAWN]}, where every (s,a,k) gets one update per iteration")
    return lines


EXPERIMENT = Experiment(
    label="fig:sync",
    title="synchronous learning on a 6x6 grid: largest errors, K=6",
    columns=("seed", "iteration", "k", "error"),
    plan=plan,
    run=run,
    draw=draw_errors,
    summary=summary,
    notes=("The 6x6 map is holdfast's own: the paper's cannot be recovered (see: holdfast docs errata).",),
)
