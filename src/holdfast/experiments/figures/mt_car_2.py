"""MountainCar: what the bootstrap across persistences contributes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.experiments.car_training import (
    COLUMNS,
    NOTES,
    STUDY,
    draw_returns_by_panel,
    msa_dqn,
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

__all__ = ["EXPERIMENT", "draw_without_bootstrap"]

_DRIVERS = (per_dqn(8), msa_dqn(8), temporl_dqn(8))
_PANELS = {"MountainCar": _DRIVERS}


def draw_without_bootstrap(rows: Table) -> Figure:
    """Training returns of Persistent DQN with and without the bootstrap, and of TempoRL.

    Paper: Figure fig:mt_car_2
    """
    return draw_returns_by_panel(rows, _PANELS)


EXPERIMENT = Experiment(
    label="fig:mt_car_2",
    title="MountainCar: PerDQN with and without the bootstrap, and TempoRL",
    columns=COLUMNS,
    plan=partial(plan_training, drivers=_DRIVERS, runs=20),
    run=run_training,
    draw=draw_without_bootstrap,
    summary=return_lines,
    notes=NOTES,
    shared=STUDY,
)
