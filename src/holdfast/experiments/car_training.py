"""Training on MountainCar with the paper's settings, which several figures share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.experiments.drivers import LAST_EPISODES, Driver, driver_curves, means_of_last
from holdfast.experiments.spec import Job
from holdfast.experiments.tables import Table, matrix, select
from holdfast.stats.estimates import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "COLUMNS",
    "NOTES",
    "STUDY",
    "draw_returns_by_panel",
    "plan_training",
    "return_lines",
    "run_training",
]

STUDY = "MountainCar"
"""What the jobs of all these figures belong to."""

COLUMNS = ("step", "return", "decisions")
"""Return and decisions of an episode, mean over the last 20 training episodes that had ended by then."""

NOTES = (
    "Returns are those of training episodes; before the first of them has ended, -200 stands for it.",
    "Not in the paper's text: which K are shown, and that positions and velocities are scaled to [-1, 1] here "
    "(see: holdfast docs errata).",
    "Episodes that the time limit ends are bootstrapped from; OpenAI Baselines, on which the paper was built, "
    "takes such an end for terminal.",
)
"""What is to be said of all these figures."""

_SCHEDULE = 600_000
"""Steps that the paper's schedules are laid out for; shorter trainings follow the first part of them."""
_SHOWN = 500_000
"""Steps that are drawn, as in the paper."""
_SIZES = {"smoke": (400, 1, 4), "laptop": (150_000, 2, 75), "paper": (600_000, None, 120)}
"""Steps, seeds (None for the figure's own number) and points of a curve."""
_SMOKE = {"learning_starts": 200, "buffer_size": 1000}
_WORST = -200.0
"""The return of an episode that does not reach the flag, and so of those that have not been played yet."""


def plan_training(
    scale: str, drivers: Sequence[Driver], runs: int, scaled: bool = True
) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job for each driver and seed, seed by seed.

    Args:
        scale: How much.
        drivers: Who.
        runs: Seeds at the paper's scale.
        scaled: Whether observations are scaled to [−1, 1]; the paper does not say.
    """
    steps, seeds, points = _SIZES[scale]
    for seed in range(runs if seeds is None else seeds):
        for driver in drivers:
            yield (
                {
                    "driver": driver.name,
                    "algorithm": driver.algorithm,
                    "arguments": {**driver.arguments, **(_SMOKE if scale == "smoke" else {})},
                    "steps": steps,
                    "points": points,
                    "normalize_observations": "space" if scaled else None,
                },
                seed,
            )


def run_training(job: Job, place: Path) -> Mapping[str, Any]:
    """Train, or go on; what the last episodes returned at evenly spaced steps."""
    from holdfast.deep import PerDQN
    from holdfast.experiments.training import episode_columns, train_job
    from holdfast.policies.algorithms import find_algorithm

    setting = job.setting
    known = find_algorithm(setting["algorithm"]).arguments()
    arguments = {
        # Without what the algorithm stands for.
        **{name: value for name, value in PerDQN.paper_mountain_car().items() if name in known},
        "schedule_steps": _SCHEDULE,
        "normalize_observations": setting["normalize_observations"],
        **setting["arguments"],
    }
    options = {
        "environment": "MountainCar-v0",
        "algo": setting["algorithm"],
        "set": arguments,
        "steps": setting["steps"],
        "eval_every": 0,
        "seed": job.seed,
    }
    episodes = episode_columns(train_job(options, place), ("step", "return", "decisions"))
    at = np.linspace(0, setting["steps"], setting["points"] + 1)[1:]
    return {
        "step": at,
        "return": means_of_last(episodes["return"], episodes["step"], at, _WORST),
        "decisions": means_of_last(episodes["decisions"], episodes["step"], at),
    }


def draw_returns_by_panel(rows: Table, panels: Mapping[str, Sequence[Driver]]) -> Figure:
    """Training returns over steps, mean and 95 % interval over seeds.

    Panels of which there are no rows are left out.
    """
    from holdfast.draw import Panel, draw_curves

    is_shown = rows["step"] <= _SHOWN
    shown = {name: column[is_shown] for name, column in rows.items()}
    curves = {title: driver_curves(shown, drivers, "return") for title, drivers in panels.items()}
    drawn = [Panel(title, found) for title, found in curves.items() if found]
    return draw_curves(drawn, "steps", f"return, last {LAST_EPISODES} episodes")


def return_lines(rows: Table) -> list[str]:
    """A line for each driver: means over seeds at thirds of the training, and how many ever reached the flag."""
    last = float(rows["step"].max())
    steps = np.unique(rows["step"])
    at = [steps[np.searchsorted(steps, part * last - 1e-6)] for part in (1 / 3, 2 / 3, 1.0)]
    lines = [f"{'agent':<14}{'runs':>5}{'reached flag':>14}" + "".join(f"{f'at {step:,.0f}':>15}" for step in at)]
    for name in dict.fromkeys(rows["driver"].tolist()):
        found = _returns(rows, str(name))
        if found is None:
            continue
        x, returns = found
        cells = []
        for step in at:
            mean, _, high = mean_interval(returns[:, x == step][:, 0])
            cells.append(f"{mean:.1f}" + ("" if np.isnan(high) else f" ±{high - mean:.0f}"))
        reached = int((returns > _WORST).any(axis=1).sum())
        lines.append(f"{name:<14}{len(returns):>5}{reached:>14}" + "".join(f"{cell:>15}" for cell in cells))
    return lines


def _returns(rows: Table, driver: str) -> tuple[Any, Any] | None:
    own = select(rows, driver=driver)
    return matrix(own, "return", "step") if len(own["seed"]) > 0 else None
