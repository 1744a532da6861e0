"""MountainCar: Persistent DQN compared with TempoRL and DQN, without its bootstrap, and with larger batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.experiments.car_results import draw_returns_by_panel, return_lines
from holdfast.experiments.car_training import COLUMNS, NOTES, STUDY, plan_choice, plan_training, run_training
from holdfast.experiments.drivers import Driver, dqn, ez_greedy, joining, msa_dqn, per_dqn, temporl_dqn
from holdfast.experiments.guests import Guest
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "LARGER_BATCHES",
    "METHODS",
    "SCALED",
    "WITHOUT_BOOTSTRAP",
    "draw_against_larger_batches",
    "draw_mountain_car",
    "draw_without_bootstrap",
]

_OWN = (per_dqn(8), per_dqn(16))
_METHODS = {"MountainCar": (*_OWN, temporl_dqn(8), dqn())}
_WITHOUT_BOOTSTRAP = {"MountainCar": (per_dqn(8), msa_dqn(8), temporl_dqn(8))}
_LARGER_BATCHES = {
    "larger batches": (*_OWN, dqn(8), dqn(16)),
    "εz-greedy": (*_OWN, ez_greedy(8), ez_greedy(16)),
    "εz-greedy, larger batches": (*_OWN, ez_greedy(8, 8), ez_greedy(16, 16)),
}
"""The drivers in each panel, figure by figure."""

_CHOOSING = (per_dqn(8), dqn(), temporl_dqn(8))
"""The drivers that choose the reading of the paper."""


def draw_mountain_car(rows: Table, joined: Sequence[Driver] = ()) -> Figure:
    """Training returns of Persistent DQN, TempoRL and DQN, and of those who join them.

    Paper: Figure fig:mtcar
    """
    return draw_returns_by_panel(rows, {name: (*drivers, *joined) for name, drivers in _METHODS.items()})


def join_mountain_car(guests: Sequence[Guest]) -> Experiment:
    """The figure with agents that join it, with the paper's settings as far as they have them."""
    joined = joining(guests, _drivers(_METHODS))
    plan = partial(plan_figure, panels=_METHODS, runs=20, joined=joined)
    return replace(METHODS, plan=plan, draw=partial(draw_mountain_car, joined=joined))


def draw_without_bootstrap(rows: Table) -> Figure:
    """Training returns of Persistent DQN with and without the bootstrap, and of TempoRL.

    Paper: Figure fig:mt_car_2
    """
    return draw_returns_by_panel(rows, _WITHOUT_BOOTSTRAP)


def draw_against_larger_batches(rows: Table) -> Figure:
    """Training returns of Persistent DQN in every panel, with DQN with larger batches, εz-greedy, and both.

    Paper: Figure fig:mtcar_comp
    """
    return draw_returns_by_panel(rows, _LARGER_BATCHES)


def _drivers(panels: Mapping[str, Sequence[Driver]]) -> tuple[Driver, ...]:
    """Each driver once, in the order of its first appearance."""
    return tuple({driver.name: driver for panel in panels.values() for driver in panel}.values())


def plan_figure(
    scale: str, panels: Mapping[str, Sequence[Driver]], runs: int, joined: Sequence[Driver] = ()
) -> Iterator[tuple[Mapping[str, Any], int]]:
    """The published jobs of a figure; for the first figure, the jobs that choose the reading come before them."""
    if panels is _METHODS:
        yield from plan_choice(scale, _CHOOSING)
    yield from plan_training(scale, (*_drivers(panels), *joined), runs)


METHODS, WITHOUT_BOOTSTRAP, LARGER_BATCHES = (
    Experiment(
        label=label,
        title=f"MountainCar: {title}",
        columns=COLUMNS,
        plan=partial(plan_figure, panels=panels, runs=runs),
        run=run_training,
        draw=draw,
        summary=return_lines,
        notes=NOTES,
        shared=STUDY,
        join=join_mountain_car if panels is _METHODS else None,
    )
    for label, title, panels, runs, draw in (
        ("fig:mtcar", "PerDQN with K_max 8 and 16, TempoRL and DQN", _METHODS, 20, draw_mountain_car),
        (
            "fig:mt_car_2",
            "PerDQN with and without the bootstrap, and TempoRL",
            _WITHOUT_BOOTSTRAP,
            20,
            draw_without_bootstrap,
        ),
        (
            "fig:mtcar_comp",
            "PerDQN beside larger batches and εz-greedy",
            _LARGER_BATCHES,
            10,
            draw_against_larger_batches,
        ),
    )
)

SCALED = replace(
    METHODS,
    label="fig:mtcar_scaled",
    title=f"{METHODS.title}, observations in [-1, 1]",
    plan=partial(plan_training, drivers=_drivers(_METHODS), runs=20, scaled="space"),
    join=None,
)
"""The first figure with positions and velocities scaled to [−1, 1] in the reading of Baselines too."""
