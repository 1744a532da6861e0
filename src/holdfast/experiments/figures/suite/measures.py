"""What the trainings of the learning suite came to: per agent and task, and over all tasks beside a rival.

Agents may have different numbers of seeds. What is said of one agent is said of all its runs; two are compared on
the seeds that both have on every task.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.figures.suite.contestants import CONTESTANTS
from holdfast.experiments.figures.suite.tasks import TASKS, Task, last_fifth, normalized
from holdfast.experiments.tables import Table, matrix, select
from holdfast.stats import bootstrap_estimate, improvement_estimate, interquartile_mean
from holdfast.stats.estimates import Estimate

__all__ = ["RIVAL", "Measured", "Overall", "agents_of", "measure", "overall", "score_arrays", "tasks_of"]

Floats = NDArray[np.float64]

RIVAL = "DQN, tuned"
"""With which all others are compared."""


@dataclass(frozen=True)
class Measured:
    """The runs of one agent on one task, in the order of their seeds.

    Attributes:
        seeds: (runs,) integers.
        ends: (runs,) mean greedy return of the last fifth of the training.
        scores: (runs,) the same on the common scale.
        areas: (runs,) mean of all evaluations on the common scale: the area under the curve.
        decisions: (runs,) decisions per greedy episode in the last fifth.
    """

    seeds: NDArray[np.int64]
    ends: Floats
    scores: Floats
    areas: Floats
    decisions: Floats


class Overall(NamedTuple):
    """One agent over all tasks.

    Attributes:
        runs: Number of runs on each task.
        scores: Interquartile mean of the last fifths, with its stratified bootstrap interval.
        areas: The same of the areas under the curve.
        compared: Number of seeds that it shares with the rival on every task.
        better_scores: Probability that one of its runs has a better last fifth than one of the rival's; None where
            there is nothing to compare.
        better_areas: The same of the areas.
    """

    runs: int
    scores: Estimate
    areas: Estimate
    compared: int
    better_scores: Estimate | None
    better_areas: Estimate | None


def tasks_of(rows: Table) -> list[Task]:
    """The tasks of which there are rows."""
    return [task for task in TASKS if task.environment in rows["environment"]]


def agents_of(rows: Table) -> list[str]:
    """The agents of whom there are rows."""
    return [contestant.name for contestant in CONTESTANTS if contestant.name in rows["agent"]]


def measure(rows: Table, agent: str, task: Task) -> Measured | None:
    """What an agent's runs on a task came to; None where there are none."""
    own = select(rows, agent=agent, environment=task.environment)
    if len(own["seed"]) == 0:
        return None
    _, returns = matrix(own, "return", "step")
    _, decisions = matrix(own, "decisions", "step")
    scaled = normalized(returns, task)
    return Measured(
        np.unique(own["seed"]).astype(np.int64),
        last_fifth(returns),
        last_fifth(scaled),
        scaled.mean(axis=1),
        last_fifth(decisions),
    )


def score_arrays(
    measured: Sequence[Measured], seeds: Collection[int] | None = None
) -> tuple[Floats, Floats] | None:
    """Last fifths and areas of one agent, (runs, tasks) each.

    Args:
        measured: What it came to on each task.
        seeds: Those to take; None for all where every task has as many, else for those that all tasks have.

    Returns:
        None where no run is left.
    """
    if seeds is None and len({len(one.seeds) for one in measured}) > 1:
        seeds = _common(measured)
    masks = [
        np.ones(len(one.seeds), dtype=bool) if seeds is None else np.isin(one.seeds, list(seeds))
        for one in measured
    ]
    if not measured or not masks[0].any():
        return None
    return (
        np.stack([one.scores[mask] for one, mask in zip(measured, masks, strict=True)], axis=1),
        np.stack([one.areas[mask] for one, mask in zip(measured, masks, strict=True)], axis=1),
    )


def overall(rows: Table) -> dict[str, Overall]:
    """Every agent that has runs on all tasks of which there are rows, by name."""
    by_agent: dict[str, list[Measured]] = {}
    for agent in agents_of(rows):
        found = [measure(rows, agent, task) for task in tasks_of(rows)]
        complete = [one for one in found if one is not None]
        if len(complete) == len(found):
            by_agent[agent] = complete
    told = {}
    for agent, measured in by_agent.items():
        arrays = score_arrays(measured)
        if arrays is None:
            continue
        scores, areas = arrays
        shared = _common([*measured, *by_agent[RIVAL]]) if RIVAL in by_agent and agent != RIVAL else set()
        ours, theirs = (score_arrays(by_agent[name], shared) if shared else None for name in (agent, RIVAL))
        better = (
            (None, None)
            if ours is None or theirs is None
            else tuple(improvement_estimate(mine, other) for mine, other in zip(ours, theirs, strict=True))
        )
        told[agent] = Overall(
            len(scores),
            bootstrap_estimate(interquartile_mean, scores),
            bootstrap_estimate(interquartile_mean, areas),
            len(shared),
            *better,
        )
    return told


def _common(measured: Sequence[Measured]) -> set[int]:
    """The seeds that all of them have."""
    return set.intersection(*(set(one.seeds.tolist()) for one in measured))
