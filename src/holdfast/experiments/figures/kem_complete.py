"""Kemeny's constant and the entropy of random options on the grids, over K_max, for three horizons."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.experiments.chain_curves import (
    COLUMNS,
    NOTES,
    STUDY,
    minimum_lines,
    plan_chains,
    run_chain,
    stored_curves,
)
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_kemeny_and_entropy"]


def draw_kemeny_and_entropy(rows: Table) -> Figure:
    """Kemeny's constant above, entropy below, a column for each grid and a line for each horizon.

    Paper: Figure fig:kem_complete
    """
    from holdfast.draw import draw_exploration_curves

    return draw_exploration_curves(stored_curves(rows))


EXPERIMENT = Experiment(
    label="fig:kem_complete",
    title="Kemeny's constant and entropy of random options over K_max, H=10, 20, 30",
    columns=COLUMNS,
    plan=partial(plan_chains, horizons=(10, 20, 30)),
    run=run_chain,
    draw=draw_kemeny_and_entropy,
    summary=minimum_lines,
    notes=NOTES,
    shared=STUDY,
)
