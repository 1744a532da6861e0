"""All tabular learners and their variants on all grids: more than the paper's figures show.

This is not a figure of the paper:
``holdfast reproduce holdfast.experiments.tabular_study:ALL_LEARNERS --scale paper``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table
from holdfast.experiments.tabular_curves import (
    COLUMNS,
    NOTES,
    SIZES,
    STUDY,
    GridAgent,
    equal_q,
    ez_q,
    msa,
    per_q,
    plain_q,
    plan_curves,
    repeated_q,
    run_curves,
    temporl,
)
from holdfast.experiments.tabular_results import agent_lines, draw_returns_by_row, score_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ALL_LEARNERS", "draw_study"]

_K_VALUES = (4, 8, 16)

_VARIANTS = [
    GridAgent("PerQ8 primitive", "perq", {"k_max": 8, "target_value": "primitive"}),
    GridAgent("PerQ8 interrupted", "perq", {"k_max": 8, "interrupt_margin": 0.0}),
    GridAgent("PerQ8 few decisions", "perq", {"k_max": 8, "decision_tolerance": 0.0}),
]


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """All agents on every grid."""
    agents = [plain_q()]
    for k in _K_VALUES:
        agents += _row(k)
        agents += [repeated_q(k), equal_q(k)]
    return plan_curves([*agents, *_VARIANTS], SIZES[scale])


def _row(k_max: int) -> list[GridAgent]:
    """PerQ-learning, and all others that hold actions."""
    padding = (False, True)
    return [
        per_q(k_max),
        *(msa(k_max, is_padded) for is_padded in padding),
        *(temporl(k_max, is_padded) for is_padded in padding),
        ez_q(k_max),
    ]


def draw_study(rows: Table) -> Figure:
    """Greedy returns over episodes, one row per K_max, and one for the variants of PerQ-learning."""
    lines = {f"K = {k}": [*_row(k), plain_q()] for k in _K_VALUES}
    lines["variants"] = [per_q(8), *_VARIANTS]
    return draw_returns_by_row({title: (rows, agent_lines(agents)) for title, agents in lines.items()})


def summary(rows: Table) -> list[str]:
    """Scores of all agents, and how far PerQ-learning is above them."""
    return [*score_lines(rows), "", *score_lines(rows, minus=per_q(8).name)]


ALL_LEARNERS = Experiment(
    label="tabular_study",
    title="all tabular learners and their variants on all grids",
    columns=COLUMNS,
    plan=plan,
    run=run_curves,
    draw=draw_study,
    summary=summary,
    notes=NOTES,
    shared=STUDY,
)
