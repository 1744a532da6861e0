"""How long random options take to get anywhere on the grids, over K_max, with the main text's horizon."""

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

__all__ = ["EXPERIMENT", "draw_kemeny"]


def draw_kemeny(rows: Table) -> Figure:
    """Kemeny's constant over K_max, a panel for each grid.

    Paper: Figure fig:Kemeny
    """
    from holdfast.draw import draw_exploration_curves

    return draw_exploration_curves(stored_curves(rows), entropy=False)


EXPERIMENT = Experiment(
    label="fig:Kemeny",
    title="Kemeny's constant of random options over K_max, H=30",
    columns=COLUMNS,
    plan=partial(plan_chains, horizons=(30,)),
    run=run_chain,
    draw=draw_kemeny,
    summary=minimum_lines,
    notes=NOTES,
    shared=STUDY,
)
