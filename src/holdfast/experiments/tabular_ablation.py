"""What makes PerQ-learning work on the grids: its exploration, its update, its bootstrap, or the padding?

One part at a time is taken away, under three choices that the paper leaves open. This is not a figure of the
paper: ``holdfast reproduce holdfast.experiments.tabular_ablation:PARTS --scale paper``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table, select, table_length
from holdfast.experiments.tabular_curves import (
    COLUMNS,
    NOTES,
    SIZES,
    STUDY,
    Learning,
    ez_q,
    msa,
    one_step_per_q,
    per_q,
    plain_q,
    plan_curves,
    run_curves,
    temporl,
)
from holdfast.experiments.tabular_results import agent_lines, draw_returns_by_row, score_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AGENTS", "CHOICES", "PARTS", "draw_parts", "rows_of_choice"]

AGENTS = (
    per_q(8),
    one_step_per_q(8),
    ez_q(8),
    msa(8, is_padded=True),
    msa(8),
    temporl(8),
    plain_q(),
)
"""All of PerQ-learning; without held exploration; held exploration alone; without the bootstrap, padded and as
printed; TempoRL; and neither exploration nor update."""

CHOICES: Mapping[str, Learning] = {
    "zero initial values, 100 steps": Learning(),
    "initial values N(0, .01²)": Learning(initial_std=0.01),
    "1,000 steps per episode": Learning(step_limit=1000),
}
"""The settings of learning, by their titles."""


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """All agents on every grid, with every choice."""
    for learning in CHOICES.values():
        yield from plan_curves(AGENTS, SIZES[scale], learning)


def rows_of_choice(rows: Table, choice: str) -> Table:
    """The rows of one of ``CHOICES``."""
    learning = CHOICES[choice]
    return select(rows, initial_std=learning.initial_std, step_limit=learning.step_limit)


def draw_parts(rows: Table) -> Figure:
    """Greedy returns over episodes, one row per choice."""
    return draw_returns_by_row({choice: (rows_of_choice(rows, choice), agent_lines(AGENTS)) for choice in CHOICES})


def summary(rows: Table) -> list[str]:
    """Scores of all agents with each choice, and how far all of PerQ-learning is above its parts."""
    lines = []
    for choice in CHOICES:
        own = rows_of_choice(rows, choice)
        if table_length(own) > 0:
            lines += [choice, *score_lines(own), "", *score_lines(own, minus=per_q(8).name), ""]
    return lines[:-1]


PARTS = Experiment(
    label="tabular_ablation",
    title="what makes PerQ-learning work on the grids",
    columns=COLUMNS,
    plan=plan,
    run=run_curves,
    draw=draw_parts,
    summary=summary,
    notes=(
        NOTES[0],
        "explore k=1: random actions last one step; εz: they are held, and the update is Q-learning's; padded: a "
        "hold that ends the episode also updates the durations beyond its end.",
    ),
    shared=STUDY,
)
