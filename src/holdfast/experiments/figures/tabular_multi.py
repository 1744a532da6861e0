"""Whether more updates make up for holding: PerQ-learning beside Q-learning that learns from each step many times.

The paper compares with K_max updates per step and calls the numbers equal; about 20.8 for K_max = 8 would be. So
both are shown.

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
    NOTES,
    SIZES,
    STUDY,
    Agent,
    Learning,
    equal_q,
    per_q,
    plain_q,
    plan_curves,
    repeated_q,
    run_curves,
)
from holdfast.experiments.tabular_results import Line, aggregate_lines, draw_returns_by_row, has_rows, score_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_returns_of_more_updates"]

_K_VALUES = (4, 8, 16)
_INITIAL = {0.0: "initial values 0", 0.01: "initial values N(0, .01²)"}
"""What is written of each standard deviation."""


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Everybody on every grid, with each kind of initial values; K_max = 8 alone at the smallest scale."""
    agents = {agent.name: agent for k in (_K_VALUES if scale != "smoke" else (8,)) for agent in _row(k)}
    for initial_std in _INITIAL:
        yield from plan_curves(list(agents.values()), SIZES[scale], Learning(initial_std=initial_std))


def _row(k_max: int) -> list[Agent]:
    return [per_q(k_max), plain_q(), repeated_q(k_max), equal_q(k_max)]


def draw_returns_of_more_updates(rows: Table) -> Figure:
    """Greedy returns over episodes, a row for each K_max and kind of initial values.

    Paper: Figure fig:tabular_multi
    """
    from holdfast.draw import algorithm_color
    from holdfast.draw.style import PALETTE

    # In colours of their own: where they coincide with the first, their dashes are seen upon it.
    looks = [
        (algorithm_color("perq"), 0),
        (algorithm_color("q"), 0),
        (PALETTE["vermilion"], 1),
        (PALETTE["sky"], 2),
    ]
    drawn = {}
    for title, own in _parts(rows).items():
        shown = [k for k in _K_VALUES if has_rows(own, _row(k), beside=plain_q())]
        for k in shown or _K_VALUES:
            lines = [Line(agent.name, *look) for agent, look in zip(_row(k), looks, strict=True)]
            drawn[f"K = {k}, {title}"] = (own, lines)
    return draw_returns_by_row(drawn)


def summary(rows: Table) -> list[str]:
    """Scores of everybody, and how many updates are equal."""
    lines = []
    for title, own in _parts(rows).items():
        lines += [title, *score_lines(own), "", *aggregate_lines(own), ""]
    equal = ", ".join(f"{equal_updates_per_step(k):.1f} (K={k})" for k in _K_VALUES)
    return [*lines, f"updates per step of PerQ, uniform κ: {equal}"]


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
    notes=(
        *NOTES,
        "Not in the paper: as many updates as PerQ-learning really makes; and small random initial values, since "
        "from zero ones repeating an update changes no greedy episode.",
    ),
    shared=STUDY,
)
