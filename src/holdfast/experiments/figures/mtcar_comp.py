"""MountainCar: Persistent DQN beside agents that see as many rows, or explore as long."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.experiments.car_training import (
    COLUMNS,
    NOTES,
    STUDY,
    dqn,
    draw_returns_by_panel,
    ez_greedy,
    per_dqn,
    plan_training,
    return_lines,
    run_training,
)
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_against_larger_batches"]

_OWN = (per_dqn(8), per_dqn(16))
_PANELS = {
    "larger batches": (*_OWN, dqn(8), dqn(16)),
    "εz-greedy": (*_OWN, ez_greedy(8), ez_greedy(16)),
    "εz-greedy, larger batches": (*_OWN, ez_greedy(8, 8), ez_greedy(16, 16)),
}
_DRIVERS = (*_OWN, dqn(8), dqn(16), ez_greedy(8), ez_greedy(16), ez_greedy(8, 8), ez_greedy(16, 16))


def draw_against_larger_batches(rows: Table) -> Figure:
    """Training returns of Persistent DQN in every panel: beside DQN with larger batches, εz-greedy, and both.

    Paper: Figure fig:mtcar_comp
    """
    return draw_returns_by_panel(rows, _PANELS)


EXPERIMENT = Experiment(
    label="fig:mtcar_comp",
    title="MountainCar: PerDQN beside larger batches and εz-greedy",
    columns=COLUMNS,
    plan=partial(plan_training, drivers=_DRIVERS, runs=10),
    run=run_training,
    draw=draw_against_larger_batches,
    summary=return_lines,
    notes=NOTES,
    shared=STUDY,
)
