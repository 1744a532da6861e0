"""Where random options of exactly K steps lead in MountainCar."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.experiments.car_visits import COLUMNS, NOTES, draw_visits, plan_visits, run_visits, visit_lines
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_fixed_visits"]


def draw_fixed_visits(rows: Table) -> Figure:
    """Visits of position and velocity by random options of one length, K, a map for each K.

    Paper: Figure fig:adv_exploration_fix
    """
    return draw_visits(rows, "MountainCar, random options of exactly K steps")


EXPERIMENT = Experiment(
    label="fig:adv_exploration_fix",
    title="MountainCar: where random options of exactly K steps lead",
    columns=COLUMNS,
    plan=partial(plan_visits, mode="fixed"),
    run=run_visits,
    draw=draw_fixed_visits,
    summary=visit_lines,
    notes=NOTES,
)
