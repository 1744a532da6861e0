"""The results of a study of random options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.advice.visitation.cells import Cells
from holdfast.advice.visitation.outcomes import GoingOn
from holdfast.advice.visitation.random_options import Budget, Setting
from holdfast.core.array_types import Floats, Integers
from holdfast.envs import GridMap
from holdfast.stats.estimates import Estimate

__all__ = ["Visitation", "VisitationStudy"]

NEARLY_ALL = 0.9
"""If more than this share of all observations is new, observations do not count as places."""


@dataclass(frozen=True, eq=False)
class Visitation:
    """What one setting visited and met. Rates have Wilson's 95 % interval, means Student's.

    Attributes:
        k_max: K, the longest hold.
        mode: ``"dynamic"``, k uniform in 1..K, or ``"fixed"``, always K.
        episodes: n, number of episodes.
        steps: Number of steps in all episodes.
        decisions: Number of options begun in all episodes.
        cut_off: Number of episodes that did not end and were cut off.
        returns: (n,) sums of the rewards.
        lengths: (n,) steps of each episode.
        mean_return: Mean of the returns.
        upper_return: 90 % quantile of the returns: what the better episodes get.
        mean_length: Mean of the lengths.
        reward_per_step: All rewards divided by all steps.
        ends: Share of episodes that ended in each of the ways of ``outcomes.ENDS``: by a ``"limit"``, or by
            themselves with a last reward that was ``"better"``, ``"alike"`` or ``"worse"`` compared with going on.
        successes_per_step: Successful episodes per step of all episodes; None if success is undefined.
        failures_per_step: Episodes per step that ended worse than by going on, or by giving up rewards.
        beats_typical: Share of episodes whose return is above the median return of the reference, the smallest K
            of the study. The median counts as known: the interval is that of the share alone.
        terminated: Share of episodes that ended by themselves, not by a limit.
        success: Share of episodes that met something better than going on as usual, see
            ``holdfast.advice.visitation.outcomes``; None if that is undefined.
        steps_to_success: Mean number of steps up to the end of the first such episode; infinite if there was none.
        counts: Visits to each cell: (50, 50) with the plane's first axis before the second, (S,), or
            (observations,). An episode's first observation counts too.
        visited: Number of cells visited.
        coverage: This setting's share of the cells that any setting of the study visited.
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
        env_name: Environment's name.
        seed: Random seed; the same seed gives the same study, bit for bit.
        budget: How long each setting was played.
        loop: ``"compiled"`` or ``"python"``: how it was played.
        reference: The setting with the smallest K, with which the others are compared.
        usual_reward: Reward of more than half of the reference's steps; None if no reward is that common.
        going_on: Rewards of the reference's steps that did not end an episode.
        results: One per setting, mode by mode, in the given order of K.
        cells: What counts as a place.
        grid: The map, if the states are its cells.
        goal: Position of the goal along the plane's first axis, if known: MountainCar's flag.
        notes: Sentences about what could not be examined.
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
            KeyError: The setting is not part of the study.
        """
        for result in self.results:
            if (result.k_max, result.mode) == (k_max, mode):
                return result
        raise KeyError(f"k_max={k_max}, mode={mode!r} is not part of the study")

    @property
    def has_places(self) -> bool:
        """Whether places were visited again; if nearly every observation is new, there are none to compare."""
        return not self.cells.are_open or any(
            result.visited <= NEARLY_ALL * (result.steps + result.episodes) for result in self.results
        )

    def document(self) -> dict[str, Any]:
        """Everything but the arrays, as plain types that JSON can hold; NaN and infinity become None."""
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
