"""The drivers in the studies of deep agents (name, algorithm and arguments), and their curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.guests import Guest, check_guests
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
    "joining",
    "means_of_last",
    "msa_dqn",
    "per_dqn",
    "runs_counted",
    "temporl_dqn",
]

_BATCH = 32
"""The paper's batch size."""

LAST_EPISODES = 20
"""Number of training episodes over which a training return is averaged."""


@dataclass(frozen=True)
class Driver:
    """An agent that learns in a study.

    Attributes:
        name: Name in rows, legends and tables.
        algorithm: Algorithm's name in ``holdfast.policies.algorithms``.
        arguments: Agent's arguments, in addition to those of the study.
    """

    name: str
    algorithm: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def per_dqn(k_max: int, how: str = "", **arguments: Any) -> Driver:
    """Persistent DQN.

    Args:
        k_max: Largest persistence.
        how: What its name says about its other arguments.
        arguments: Other arguments.
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
    """DQN, with batches ``batches`` times as large."""
    if batches == 1:
        return Driver("DQN", "dqn")
    return Driver(f"DQN(x{batches})", "dqn", {"batch_size": _BATCH * batches})


def ez_greedy(k_max: int, batches: int = 1) -> Driver:
    """εz-greedy DQN, with batches ``batches`` times as large."""
    if batches == 1:
        return Driver(f"εz({k_max})", "ez-dqn", {"k_max": k_max})
    return Driver(f"εz({k_max}x{batches})", "ez-dqn", {"k_max": k_max, "batch_size": _BATCH * batches})


def joining(guests: Sequence[Guest], beside: Iterable[Driver]) -> tuple[Driver, ...]:
    """Agents that join a figure, beside its own.

    Raises:
        ValueError: One cannot.
    """
    check_guests(guests, is_deep=True, beside={driver.name for driver in beside})
    return tuple(Driver(guest.name, guest.algorithm, guest.arguments) for guest in guests)


def driver_curves(rows: Table, drivers: Sequence[Driver], column: str) -> list[Curve]:
    """A column over steps for each driver that has rows: mean and 95 % interval over seeds.

    Drivers that share a colour differ by their dashes.

    Args:
        rows: Rows of one panel.
        drivers: The drivers, in the order of drawing.
        column: The column to draw.
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
    """A number of runs in words: ``1 run``, ``3 runs``."""
    return "1 run" if number == 1 else f"{number} runs"


def means_of_last(
    values: NDArray[np.float64],
    ended: NDArray[np.float64],
    at: NDArray[np.float64],
    before: float = np.nan,
) -> list[float]:
    """At each step, the mean over the last 20 training episodes that had ended by then.

    Args:
        values: One value per episode.
        ended: The step at which each episode ended.
        at: The steps.
        before: The value to use until an episode has ended.
    """
    numbers = np.searchsorted(ended, at, side="right")
    return [float(values[max(n - LAST_EPISODES, 0) : n].mean()) if n > 0 else before for n in numbers]
