"""The committed rows that claims are decided by, as tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.figures import find_experiment
from holdfast.experiments.figures.grid_returns import PRINTED
from holdfast.experiments.shared_rows import kept_table
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table, select
from holdfast.experiments.tabular_ablation import CHOICES, PARTS
from holdfast.experiments.tabular_curves import AS_PRINTED, Learning
from holdfast.experiments.tabular_results import scores
from holdfast.experiments.tabular_study import ALL_LEARNERS

Floats = NDArray[np.float64]

ZERO, RANDOM, LONG = CHOICES
"""Choices of holdfast's own on the grids: the usual one, small random initial values, a longer step limit."""

PRINTED_SETTINGS = "as printed: N(0, 1), α = .01"

_LEARNING: dict[str, Learning] = {**CHOICES, PRINTED_SETTINGS: AS_PRINTED}

FIGURES = (
    "kem_complete",
    "adv_exploration",
    "adv_exploration_fix",
    "sync",
    "sync_val",
    "tabular_multi",
    "tabular_times",
    "mtcar",
    "suite",
)
"""Figures that have folders of kept rows, or will have."""

FOLDERS = (*FIGURES, "tabular_study", "tabular_ablation", "tabular_perf_as_printed")
"""All folders in results/ that the claims are decided by."""


@dataclass(frozen=True)
class Kept:
    """Rows by what they are of; None where there are none yet.

    Attributes:
        results: The folder of all kept rows.
    """

    results: Path

    def table(self, experiment: Experiment, scale: str = "paper") -> Table | None:
        """The rows of an experiment, in whichever folders."""
        folders = sorted(path.parent for path in self.results.glob("*/rows.csv"))
        return kept_table(experiment, scale, folders)

    def figure(self, label: str, scale: str = "paper") -> Table | None:
        """The rows of a figure."""
        return self.table(find_experiment(label), scale)

    @cached_property
    def _grids(self) -> tuple[Table, ...]:
        found = [self.table(one) for one in (ALL_LEARNERS, PARTS, find_experiment("tabular_multi"), PRINTED)]
        return tuple(table for table in found if table is not None)

    def grid_scores(self, agent: str, grid: str, choice: str = ZERO) -> Floats | None:
        """Mean greedy return over all episodes of each run, (run,)."""
        learning = _LEARNING[choice]
        where = {name: getattr(learning, name) for name in ("initial_std", "step_limit", "alpha")}
        for table in self._grids:
            found = scores(select(table, **where), agent, grid)
            if found is not None:
                return found
        return None

    def grid_curve(self, agent: str, grid: str, choice: str = ZERO) -> tuple[Floats, Floats] | None:
        """Episodes (n,), and the greedy returns of each run around them, (run, n)."""
        from holdfast.experiments.tables import matrix

        learning = _LEARNING[choice]
        for table in self._grids:
            own = select(
                table,
                initial_std=learning.initial_std,
                step_limit=learning.step_limit,
                alpha=learning.alpha,
                agent=agent,
                grid=grid,
            )
            if len(own["seed"]) > 0:
                return matrix(own, "greedy", "episode")
        return None
