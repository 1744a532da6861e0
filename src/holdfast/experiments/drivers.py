"""Who learns in the studies of deep agents: by name, algorithm and arguments; and their curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.tables import Table, matrix, select
from holdfast.stats.estimates import mean_interval

if TYPE_CHECKING:
    from holdfast.draw import Curve

__all__ = [
    "LAST_EPISODES",
    "Driver",
    "dqn",
    "driver_curves",
    "ez_greedy",
    "means_of_last",
    "msa_dqn",
    "per_dqn",
    "runs_counted",
    "temporl_dqn",
]

_BATCH = 32
"""That of the paper."""

LAST_EPISODES = 20
"""Training episodes that a training return is the mean of."""


@dataclass(frozen=True)
class Driver:
    """Who learns.

    Attributes:
        name: What it is called in rows, legends and tables.
        algorithm: Its name in ``holdfast.policies.algorithms``.
        arguments: Of the agent, beside those of the study.
    """

    name: str
    algorithm: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def per_dqn(k_max: int, how: str = "", **arguments: Any) -> Driver:
    """Persistent DQN.

    Args:
        k_max: Its largest persistence.
        how: What its name says of its other arguments.
        arguments: Others.
    """
    name = f"PerDQN({k_max})"
    return Driver(f"{name}, {how}" if how else name, "perdqn", {"k_max": k_max, **arguments})


def msa_dqn(k_max: int, **arguments: Any) -> Driver:
    """Persistent DQN without the bootstrap."""
    return Driver(f"MSA-DQN({k_max})", "msa-dqn", {"k_max": k_max, **arguments})


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


def driver_curves(rows: Table, drivers: Sequence[Driver], column: str) -> list[Curve]:
    """A column over steps for each driver of whom there are rows: mean and 95 % interval over seeds.

    Who has the colour of another is dashed.

    Args:
        rows: Those of one panel.
        drivers: In the order in which they are drawn.
        column: What is drawn.
    """
    from holdfast.draw import Curve, algorithm_color

    curves: list[Curve] = []
    for driver in drivers:
        own = select(rows, driver=driver.name)
        if len(own["seed"]) == 0:
            continue
        steps, values = matrix(own, column, "step")
        mean, low, high = mean_interval(values)
        color = algorithm_color(driver.algorithm)
        dash = sum(curve.color == color for curve in curves)
        curve = Curve(f"{driver.name}, {runs_counted(len(values))}", color, steps, mean, dash=dash)
        curves.append(replace(curve, low=low, high=high) if len(values) > 1 else curve)
    return curves


def runs_counted(number: int) -> str:
    """``1 run``, ``3 runs``."""
    return "1 run" if number == 1 else f"{number} runs"


def means_of_last(
    values: NDArray[np.float64],
    ended: NDArray[np.float64],
    at: NDArray[np.float64],
    before: float = np.nan,
) -> list[float]:
    """At each step, the mean over the last 20 training episodes that had ended by then.

    Args:
        values: One of each episode.
        ended: The step that ended it.
        at: Steps.
        before: Stands for it while no episode has ended.
    """
    numbers = np.searchsorted(ended, at, side="right")
    return [float(values[max(n - LAST_EPISODES, 0) : n].mean()) if n > 0 else before for n in numbers]
