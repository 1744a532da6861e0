"""How soon PerQ-learning finds the way on the grids: by K_max, and beside TempoRL and Q-learning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table
from holdfast.experiments.tabular_curves import (
    AS_PRINTED,
    COLUMNS,
    NOTES,
    SIZES,
    STUDY,
    Learning,
    per_q,
    plain_q,
    plan_curves,
    run_curves,
    temporl,
)
from holdfast.experiments.tabular_results import (
    agent_lines,
    aggregate_lines,
    draw_returns_by_row,
    score_lines,
    shaded_lines,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "PRINTED", "draw_returns"]

_BY_K = [per_q(4), per_q(8), per_q(16)]
_OTHERS = [temporl(8), plain_q()]


def plan(scale: str, learning: Learning | None = None) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Everybody on every grid."""
    return plan_curves([*_BY_K, *_OTHERS], SIZES[scale], learning)


def draw_returns(rows: Table) -> Figure:
    """Greedy returns over episodes: above PerQ-learning by K_max, below with K_max = 8 beside the others.

    Paper: Figure fig:tabular_perf
    """
    return draw_returns_by_row(
        {"by K": (rows, shaded_lines(_BY_K)), "K = 8": (rows, agent_lines([_BY_K[1], *_OTHERS]))}
    )


def summary(rows: Table) -> list[str]:
    """Scores of everybody, grid by grid and over all of them."""
    return [*score_lines(rows), "", *aggregate_lines(rows)]


EXPERIMENT = Experiment(
    label="fig:tabular_perf",
    title="returns on the grids: PerQ by K_max, and beside TempoRL and Q-learning",
    columns=COLUMNS,
    plan=plan,
    run=run_curves,
    draw=draw_returns,
    summary=summary,
    notes=NOTES,
    shared=STUDY,
)

PRINTED = replace(
    EXPERIMENT,
    label="fig:tabular_perf_as_printed",
    title=f"{EXPERIMENT.title}, N(0,1) and α = .01 as printed",
    plan=partial(plan, learning=AS_PRINTED),
    notes=NOTES[:1],
)
"""The same with the initial values and the learning rate that the paper prints."""
