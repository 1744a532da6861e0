"""What makes PerDQN work on MountainCar: its exploration, its update, or one of its parts?

The paper's settings with one part at a time taken away; five seeds and 150,000 steps at scale ``laptop``. This is
not a figure of the paper: ``holdfast reproduce holdfast.experiments.car_ablation:PARTS --scale laptop``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.experiments.car_results import draw_returns_by_panel, return_lines
from holdfast.experiments.car_training import (
    COLUMNS,
    FIRST_PUBLISHED,
    NOTES,
    PUBLISHED,
    STUDY,
    family,
    run_training,
    setting_of,
)
from holdfast.experiments.drivers import dqn, ez_greedy, msa_dqn, per_dqn
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DRIVERS", "PARTS", "draw_parts"]


_EXPLORATION = (
    per_dqn(8),
    per_dqn(8, "explore k=1", exploration="primitive"),
    ez_greedy(8),
    dqn(),
)
_UPDATE = (
    per_dqn(8),
    msa_dqn(8),
    per_dqn(8, "uniform replay", prioritized=False),
    per_dqn(8, "shared draws", shared_draws=True),
    per_dqn(8, "one body", head_arch=[], policy_kwargs={"net_arch": [128, 128, 64]}),
)

DRIVERS = tuple({driver.name: driver for driver in (*_EXPLORATION, *_UPDATE)}.values())
"""All of PerDQN; its update without held exploration; held exploration alone; neither; without the bootstrap;
without prioritised replay; with draws that all persistences share; and without separate hidden layers for each
persistence."""

_STEPS = {"smoke": None, "laptop": 150_000, "paper": None}
"""Number of steps; None means as in the figures."""
_SEEDS = {"smoke": 1, "laptop": 5, "paper": 20}


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job for each driver and seed, seed by seed."""
    for seed in range(FIRST_PUBLISHED, FIRST_PUBLISHED + _SEEDS[scale]):
        for driver in DRIVERS:
            yield setting_of(driver, scale, PUBLISHED[family(driver.algorithm)], steps=_STEPS[scale]), seed


def draw_parts(rows: Table) -> Figure:
    """Returns over steps: exploration and update on the left, parts of the update on the right."""
    return draw_returns_by_panel(rows, {"exploration and update": _EXPLORATION, "parts of the update": _UPDATE})


PARTS = Experiment(
    label="mtcar_ablation",
    title="what makes PerDQN work on MountainCar",
    columns=COLUMNS,
    plan=plan,
    run=run_training,
    draw=draw_parts,
    summary=return_lines,
    notes=NOTES,
    shared=STUDY,
)
