"""What a study of random options found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.advice.visitation.cells import Cells
from holdfast.advice.visitation.outcomes import GoingOn
from holdfast.advice.visitation.random_options import Budget, Setting
from holdfast.envs import GridMap
from holdfast.stats.estimates import Estimate

__all__ = ["Visitation", "VisitationStudy"]

NEARLY_ALL = 0.9
"""Share of all observations that are new, above which they are no places."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Visitation:
    """What one setting visited and met. Rates have Wilson's 95 % interval, means Student's.

    Attributes:
        k_max: K, the longest hold.
        mode: ``"dynamic"``, k uniform in 1..K, or ``"fixed"``, always K.
        episodes: n, episodes played.
        steps: Steps in all of them.
        decisions: Options begun in all of them.
        cut_off: Episodes that did not end and were cut off.
        returns: (n,) sums of the rewards.
        lengths: (n,) steps of each.
        mean_return: Mean of the returns.
        upper_return: 90 % quantile of the returns: what the better episodes get.
        mean_length: Mean of the lengths.
        reward_per_step: All rewards divided by all steps: what equal time gives.
        ends: Share of the episodes that ended in each of the ways of ``outcomes.ENDS``: by a
            ``"limit"``, or by themselves with a last reward that was ``"better"``, ``"alike"`` or ``"worse"`` than
            those of going on.
        successes_per_step: Episodes that succeeded per step of all episodes; None where success is not defined.
        failures_per_step: Episodes per step that ended worse than by going on, or by giving up rewards.
        beats_typical: Share of the episodes whose return is above the median return of the reference, the smallest
            K of the study. The median counts as known: the interval is that of the share alone.
        terminated: Share of the episodes that ended by themselves and not by a limit.
        success: Share of the episodes that met something better than going on as usual, see
            ``holdfast.advice.visitation.outcomes``; None where that is not defined.
        steps_to_success: Steps taken on average up to the end of the first such episode; infinite where there was
            none.
        counts: Visits of each cell: (50, 50), the first axis of the plane before the second, (S,), or
            (observations,). An episode's first observation counts as one.
        visited: Cells visited.
        coverage: The share of the cells visited by any setting of the study that this one visited.
    """

    k_max: int
    mode: str
    episodes: int
    steps: int
    decisions: int
    cut_off: int
    returns: Floats
    lengths: Integers
    mean_return: Estimate
    upper_return: Estimate
    mean_length: Estimate
    reward_per_step: Estimate
    ends: Mapping[str, Estimate]
    successes_per_step: Estimate | None
    failures_per_step: Estimate
    beats_typical: Estimate
    terminated: Estimate
    success: Estimate | None
    steps_to_success: Estimate | None
    counts: Integers
    visited: int
    coverage: float


@dataclass(frozen=True, eq=False)
class VisitationStudy:
    """Where random options lead, setting by setting.

    Attributes:
        env_name: What was looked at.
        seed: The same seed is the same study, bit for bit.
        budget: How much of each setting.
        loop: ``"compiled"`` or ``"python"``: how it was played.
        reference: The setting with the smallest K, which others are compared with.
        usual_reward: Reward of more than half of its steps; None if no reward is that common.
        going_on: Rewards of its steps that did not end an episode.
        results: One per setting, mode by mode, in the order of the K that were given.
        cells: What counts as a place.
        grid: The map, where the states are the cells of one.
        goal: Where the goal lies along the first axis of the plane, where that is known: MountainCar's flag.
        notes: Sentences about what could not be looked at.
    """

    env_name: str
    seed: int
    budget: Budget
    loop: str
    reference: Setting
    usual_reward: float | None
    going_on: GoingOn
    results: tuple[Visitation, ...]
    cells: Cells
    grid: GridMap | None
    goal: float | None
    notes: tuple[str, ...]

    def of(self, k_max: int, mode: str = "dynamic") -> Visitation:
        """The result of one setting.

        Raises:
            KeyError: It is not part of the study.
        """
        for result in self.results:
            if (result.k_max, result.mode) == (k_max, mode):
                return result
        raise KeyError(f"k_max={k_max}, mode={mode!r} is not part of the study")

    @property
    def has_places(self) -> bool:
        """Whether places were met again; where nearly every observation was new, there are none to compare."""
        return not self.cells.are_open or any(
            result.visited <= NEARLY_ALL * (result.steps + result.episodes) for result in self.results
        )

    def document(self) -> dict[str, Any]:
        """Everything but the arrays, of plain types that JSON can hold; None is what is no finite number."""
        names = ("k_max", "mode", "episodes", "steps", "decisions", "cut_off", "visited", "coverage")
        estimates = (
            "mean_return",
            "upper_return",
            "mean_length",
            "reward_per_step",
            "successes_per_step",
            "failures_per_step",
            "beats_typical",
            "terminated",
            "success",
            "steps_to_success",
        )
        return {
            "environment": self.env_name,
            "seed": self.seed,
            "budget": self.budget._asdict(),
            "reference": self.reference._asdict(),
            "usual_reward": self.usual_reward,
            "going_on": {
                name: value if np.isfinite(value) else None for name, value in self.going_on._asdict().items()
            },
            "cells": {"kind": self.cells.kind, "names": list(self.cells.names)},
            "notes": list(self.notes),
            "results": [
                {name: getattr(result, name) for name in names}
                | {name: _plain(getattr(result, name)) for name in estimates}
                | {"ends": {name: _plain(share) for name, share in result.ends.items()}}
                for result in self.results
            ],
        }


def _plain(estimate: Estimate | None) -> dict[str, float | None] | None:
    if estimate is None:
        return None
    return {name: value if np.isfinite(value) else None for name, value in estimate._asdict().items()}
