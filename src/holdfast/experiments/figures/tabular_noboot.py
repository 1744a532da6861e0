"""What the bootstrap across persistences brings on the grids: PerQ-learning beside MSA-Q-learning."""

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
    Agent,
    msa,
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
    has_rows,
    score_lines,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_returns_without_bootstrap"]

_K_VALUES = (4, 8, 16)


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Everybody on every grid; K_max = 8 alone at the smallest scale."""
    agents = {agent.name: agent for k in (_K_VALUES if scale != "smoke" else (8,)) for agent in _row(k)}
    return plan_curves(list(agents.values()), SIZES[scale])


def _row(k_max: int) -> list[Agent]:
    return [plain_q(), temporl(k_max), per_q(k_max), msa(k_max), msa(k_max, is_padded=True)]


def draw_returns_without_bootstrap(rows: Table) -> Figure:
    """Greedy returns over episodes, a row for each K_max; MSA-Q-learning as the paper has it, and padded.

    Paper: Figure fig:tabular_noboot
    """
    shown = [k for k in _K_VALUES if has_rows(rows, _row(k), beside=plain_q())]
    return draw_returns_by_row({f"K = {k}": (rows, agent_lines(_row(k))) for k in shown or _K_VALUES})


def summary(rows: Table) -> list[str]:
    """Scores of everybody, grid by grid and over all of them."""
    return [
        *score_lines(rows),
        "",
        *aggregate_lines(rows),
        "",
        "padded: a hold that ends the episode also updates the durations beyond its end",
    ]


EXPERIMENT = Experiment(
    label="fig:tabular_noboot",
    title="returns on the grids without the bootstrap, by K_max",
    columns=COLUMNS,
    plan=plan,
    run=run_curves,
    draw=draw_returns_without_bootstrap,
    summary=summary,
    notes=NOTES,
    shared=STUDY,
)
