"""Training on MountainCar with the paper's settings, which several figures share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.experiments.spec import Job
from holdfast.experiments.tables import Table, matrix, select
from holdfast.stats.estimates import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "COLUMNS",
    "NOTES",
    "STUDY",
    "Driver",
    "dqn",
    "draw_returns_by_panel",
    "ez_greedy",
    "msa_dqn",
    "per_dqn",
    "plan_training",
    "return_lines",
    "run_training",
    "temporl_dqn",
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

_BATCH = 32
_SCHEDULE = 600_000
"""Steps that the paper's schedules are laid out for; shorter trainings follow the first part of them."""
_LAST = 20
_SHOWN = 500_000
"""Steps that are drawn, as in the paper."""
_SIZES = {"smoke": (400, 1, 4), "laptop": (150_000, 2, 75), "paper": (600_000, None, 120)}
"""Steps, seeds (None for the figure's own number) and points of a curve."""
_SMOKE = {"learning_starts": 200, "buffer_size": 1000}
_WORST = -200.0
"""The return of an episode that does not reach the flag, and so of those that have not been played yet."""


@dataclass(frozen=True)
class Driver:
    """Who learns.

    Attributes:
        name: What it is called in rows, legends and tables.
        algorithm: Its name in ``holdfast.policies.algorithms``.
        arguments: Of the agent, beside the paper's.
    """

    name: str
    algorithm: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def per_dqn(k_max: int) -> Driver:
    """Persistent DQN."""
    return Driver(f"PerDQN({k_max})", "perdqn", {"k_max": k_max})


def msa_dqn(k_max: int) -> Driver:
    """Persistent DQN without the bootstrap."""
    return Driver(f"MSA-DQN({k_max})", "msa-dqn", {"k_max": k_max})


def temporl_dqn(k_max: int) -> Driver:
    """TempoRL."""
    return Driver(f"TempoRL({k_max})", "temporl-dqn", {"k_max": k_max})


def dqn(batches: int = 1) -> Driver:
    """DQN, with batches that are so many times as large."""
    if batches == 1:
        return Driver("DQN", "dqn")
    return Driver(f"DQN(x{batches})", "dqn", {"batch_size": _BATCH * batches})


def ez_greedy(k_max: int, batches: int = 1) -> Driver:
    """εz-greedy DQN, with batches that are so many times as large."""
    if batches == 1:
        return Driver(f"εz({k_max})", "ez-dqn", {"k_max": k_max})
    return Driver(f"εz({k_max}x{batches})", "ez-dqn", {"k_max": k_max, "batch_size": _BATCH * batches})


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
    ended = np.searchsorted(episodes["step"], at, side="right")
    return {
        "step": at,
        "return": [_mean_of_last(episodes["return"], n, _WORST) for n in ended],
        "decisions": [_mean_of_last(episodes["decisions"], n, np.nan) for n in ended],
    }


def _mean_of_last(values: Any, n: int, before: float) -> float:
    """Mean of the last 20 of the first ``n`` values."""
    return float(values[max(n - _LAST, 0) : n].mean()) if n > 0 else before


def draw_returns_by_panel(rows: Table, panels: Mapping[str, Sequence[Driver]]) -> Figure:
    """Training returns over steps, mean and 95 % interval over seeds.

    Panels of which there are no rows are left out. Who has the colour of another of the same panel is dashed.
    """
    from holdfast.draw import Curve, Panel, algorithm_color, draw_curves

    drawn = []
    for title, drivers in panels.items():
        curves: list[Curve] = []
        for driver in drivers:
            found = _returns(rows, driver.name)
            if found is None:
                continue
            is_shown = found[0] <= _SHOWN
            steps, returns = found[0][is_shown], found[1][:, is_shown]
            mean, low, high = mean_interval(returns)
            color = algorithm_color(driver.algorithm)
            dash = sum(curve.color == color for curve in curves)
            curve = Curve(f"{driver.name}, {_counted(returns)}", color, steps, mean, dash=dash)
            curves.append(replace(curve, low=low, high=high) if len(returns) > 1 else curve)
        if curves:
            drawn.append(Panel(title, curves))
    return draw_curves(drawn, "steps", f"return, last {_LAST} episodes")


def _counted(returns: Any) -> str:
    return "1 run" if len(returns) == 1 else f"{len(returns)} runs"


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
