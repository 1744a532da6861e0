"""The results of the learning suite: per agent and task, and over all tasks compared with a rival.

Agents may have different numbers of seeds. Statements about one agent use all its runs; two agents are compared on
the seeds that both have on every task.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.array_types import Floats
from holdfast.experiments.figures.suite.contestants import CONTESTANTS
from holdfast.experiments.figures.suite.tasks import TASKS, SuiteTask, last_fifth, normalized
from holdfast.experiments.tables import Table, matrix, select
from holdfast.stats import bootstrap_estimate, improvement_estimate, interquartile_mean
from holdfast.stats.estimates import Estimate

__all__ = ["RIVAL", "Measured", "Overall", "agents_of", "measure", "overall", "score_arrays", "tasks_of"]


RIVAL = "DQN, tuned"
"""The agent that all others are compared with."""


@dataclass(frozen=True)
class Measured:
    """The runs of one agent on one task, in the order of their seeds.

    Attributes:
        seeds: (runs,) integers.
        ends: (runs,) mean greedy return of the last fifth of training.
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
        areas: The same for the areas under the curve.
        compared: Number of seeds that it shares with the rival on every task.
        better_scores: Probability that one of its runs has a better last fifth than one of the rival's; None if
            there is nothing to compare.
        better_areas: The same for the areas.
    """

    runs: int
    scores: Estimate
    areas: Estimate
    compared: int
    better_scores: Estimate | None
    better_areas: Estimate | None


def tasks_of(rows: Table) -> list[SuiteTask]:
    """The tasks that have rows."""
    return [task for task in TASKS if task.environment in rows["environment"]]


def agents_of(rows: Table) -> list[str]:
    """The agents that have rows: the suite's own first, then those that joined it."""
    there = dict.fromkeys(rows["agent"].tolist())
    own = [contestant.name for contestant in CONTESTANTS if contestant.name in there]
    return [*own, *(str(name) for name in there if name not in own)]


def measure(rows: Table, agent: str, task: SuiteTask) -> Measured | None:
    """The results of an agent's runs on a task; None if there are none."""
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
        measured: The agent's results on each task.
        seeds: Seeds to use (default: all if every task has the same number, else those that all tasks have).

    Returns:
        None if no run is left.
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
    """Every agent that has runs on all tasks that have rows, by name."""
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
