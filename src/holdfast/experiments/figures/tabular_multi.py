"""Whether more updates make up for holding: PerQ-learning beside Q-learning that learns from each step many times.

The paper compares with K_max updates per step and calls the numbers equal; about 20.8 for K_max = 8 would be.

From zero initial values, on grids whose moves are certain and whose rewards are at the ends, repeating an update
changes how large values are but not their signs, and nothing that a greedy episode shows. So the same is also done
with small random initial values, where it matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.core.decomposition import equal_updates_per_step
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table, select, table_length
from holdfast.experiments.tabular_curves import (
    COLUMNS,
    SIZES,
    Agent,
    Learning,
    per_q,
    plain_q,
    plan_curves,
    run_curves,
)
from holdfast.experiments.tabular_results import Line, draw_returns_by_row, score_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_returns_of_more_updates"]

_K_MAX = 8
_REPEATED = f"Q x{_K_MAX}"
_EQUAL = "Q equal updates"
_INITIAL = {0.0: "initial values 0", 0.01: "initial values N(0, .01²)"}
"""What is written of each standard deviation."""


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Everybody on every grid, with each kind of initial values."""
    for initial_std in _INITIAL:
        yield from plan_curves(_agents(), SIZES[scale], Learning(initial_std=initial_std))


def _agents() -> list[Agent]:
    return [
        per_q(_K_MAX),
        plain_q(),
        plain_q(float(_K_MAX), _REPEATED),
        plain_q(equal_updates_per_step(_K_MAX), _EQUAL),
    ]


def draw_returns_of_more_updates(rows: Table) -> Figure:
    """Greedy returns over episodes, a row for each kind of initial values.

    Paper: Figure fig:tabular_multi
    """
    from holdfast.draw import algorithm_color
    from holdfast.draw.style import PALETTE

    # In colours of their own: where they coincide with the first, their dashes are seen upon it.
    lines = [
        Line(per_q(_K_MAX).name, algorithm_color("perq")),
        Line(plain_q().name, algorithm_color("q")),
        Line(_REPEATED, PALETTE["vermilion"], dash=1),
        Line(_EQUAL, PALETTE["sky"], dash=2),
    ]
    return draw_returns_by_row({title: (own, lines) for title, own in _parts(rows).items()})


def summary(rows: Table) -> list[str]:
    """Scores of everybody, and how many updates are equal."""
    lines = []
    for title, own in _parts(rows).items():
        lines += [title, *score_lines(own)]
    return [
        *lines,
        f"equal updates: {equal_updates_per_step(_K_MAX):.1f} per step, as PerQ{_K_MAX} makes if κ is uniform",
    ]


def _parts(rows: Table) -> dict[str, Table]:
    """The rows of each kind of initial values."""
    parts = {title: select(rows, initial_std=initial_std) for initial_std, title in _INITIAL.items()}
    return {title: own for title, own in parts.items() if table_length(own) > 0}


EXPERIMENT = Experiment(
    label="fig:tabular_multi",
    title="returns on the grids, against Q-learning with more updates",
    columns=COLUMNS,
    plan=plan,
    run=run_curves,
    draw=draw_returns_of_more_updates,
    summary=summary,
)
