"""The committed rows that claims are decided by, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.figures import find_experiment
from holdfast.experiments.manifest import read_manifest
from holdfast.experiments.shared_rows import kept_table
from holdfast.experiments.spec import Experiment
from holdfast.experiments.store import row_folder
from holdfast.experiments.tables import Table, matrix
from holdfast.experiments.tabular_ablation import CHOICES
from holdfast.experiments.tabular_curves import AS_PRINTED, SIZES, STUDY, Learning

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
        if (experiment.label, scale) not in self._tables:
            self._tables[experiment.label, scale] = kept_table(experiment, scale, self._folders)
        return self._tables[experiment.label, scale]

    def figure(self, label: str, scale: str = "paper") -> Table | None:
        """The rows of a figure."""
        return self.table(find_experiment(label), scale)

    def grid_curve(self, agent: str, grid: str, choice: str = ZERO) -> tuple[Floats, Floats] | None:
        """Episodes (n,), and the greedy returns of each run around them, (run, n)."""
        return self._curves.get((agent, grid, *_chosen(vars(_LEARNING[choice]))))

    def grid_scores(self, agent: str, grid: str, choice: str = ZERO) -> Floats | None:
        """Mean greedy return over all episodes of each run, (run,)."""
        found = self.grid_curve(agent, grid, choice)
        return None if found is None else found[1].mean(axis=1)

    @cached_property
    def _tables(self) -> dict[tuple[str, str], Table | None]:
        return {}

    @cached_property
    def _folders(self) -> list[Path]:
        return sorted(path.parent for path in self.results.glob("*/rows.csv"))

    @cached_property
    def _curves(self) -> dict[tuple[Any, ...], tuple[Floats, Floats]]:
        """By agent, grid and what the choices differ in."""
        found = {}
        for folder in self._folders:
            manifest = read_manifest(folder)
            if manifest is None or manifest.study != STUDY:
                continue
            rows = row_folder(folder)
            for job_id, entry in manifest.jobs.items():
                setting = entry["setting"]
                key = setting["agent"], setting["grid"], *_chosen(setting)
                if setting["runs"] == SIZES["paper"].runs and key not in found:
                    found[key] = matrix(rows.read(job_id, manifest), "greedy", "episode")
        return found


def _chosen(setting: Mapping[str, Any]) -> tuple[float, float, float]:
    return setting["initial_std"], setting["step_limit"], setting["alpha"]


@cache
def kept_in(results: Path) -> Kept:
    """The rows in a folder, read once."""
    return Kept(results)
