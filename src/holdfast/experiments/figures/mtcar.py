"""MountainCar: Persistent DQN beside TempoRL and DQN."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from holdfast.experiments.car_training import (
    COLUMNS,
    NOTES,
    STUDY,
    dqn,
    draw_returns_by_panel,
    per_dqn,
    plan_training,
    return_lines,
    run_training,
    temporl_dqn,
)
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "UNSCALED", "draw_mountain_car"]

_DRIVERS = (per_dqn(8), per_dqn(16), temporl_dqn(8), dqn())
_PANELS = {"MountainCar": _DRIVERS}


def draw_mountain_car(rows: Table) -> Figure:
    """Training returns of Persistent DQN, TempoRL and DQN.

    Paper: Figure fig:mtcar
    """
    return draw_returns_by_panel(rows, _PANELS)


EXPERIMENT = Experiment(
    label="fig:mtcar",
    title="MountainCar: PerDQN with K_max 8 and 16, TempoRL and DQN",
    columns=COLUMNS,
    plan=partial(plan_training, drivers=_DRIVERS, runs=20),
    run=run_training,
    draw=draw_mountain_car,
    summary=return_lines,
    notes=NOTES,
    shared=STUDY,
)

UNSCALED = replace(
    EXPERIMENT,
    label="fig:mtcar_unscaled",
    title=f"{EXPERIMENT.title}, observations as they are",
    plan=partial(plan_training, drivers=_DRIVERS, runs=20, scaled=False),
)
"""The same with positions and velocities as they are."""
