"""The learning suite as part of a page: Markdown tables, made from rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from holdfast.experiments.figures.suite.measures import (
    RIVAL,
    Measured,
    Overall,
    agents_of,
    measure,
    overall,
    tasks_of,
)
from holdfast.experiments.figures.suite.tasks import SuiteTask
from holdfast.experiments.tables import Table
from holdfast.stats import bootstrap_estimate, interquartile_mean, mean_estimate
from holdfast.stats.estimates import Estimate

__all__ = ["ablation_page", "suite_page"]


def suite_page(rows: Table) -> str:
    """Over all tasks, then task by task: last fifth, worst seed, area, decisions, and every seed's last fifth."""
    parts = [*_overall_part(overall(rows), tasks_of(rows))]
    for task in tasks_of(rows):
        found = {agent: measure(rows, agent, task) for agent in agents_of(rows)}
        parts += _task_part(task, {agent: one for agent, one in found.items() if one is not None})
    return "\n".join(parts) + "\n"


def ablation_page(rows: Table, variants: Mapping[str, str], reference: str) -> str:
    """Task by task: each variant's last fifth, worst seed, area and decisions, and its gap to a reference.

    Args:
        rows: Rows of the variants and of the reference.
        variants: Each agent's name on the page, by its name in the rows; the reference is one of them.
        reference: The agent that the others are compared with, on the seeds that both have.
    """
    parts: list[str] = []
    for task in tasks_of(rows):
        found = {agent: measure(rows, agent, task) for agent in variants}
        measured = {agent: one for agent, one in found.items() if one is not None}
        parts += [f"### Ablation on {task.environment}, {task.steps:,} steps", ""]
        parts += _table(
            ("variant", "seeds", "last fifth", "worst seed", "area", "area − defaults' area", "decisions"),
            [
                (
                    variants[agent],
                    len(one.seeds),
                    _estimate(mean_estimate(one.ends), 1),
                    f"{one.ends.min():.1f}",
                    _estimate(mean_estimate(one.areas), 2),
                    "" if agent == reference else _estimate(_area_gap(one, measured.get(reference)), 2),
                    f"{one.decisions.mean():.1f}",
                )
                for agent, one in measured.items()
            ],
        )
    return "\n".join(parts) + "\n"


def _area_gap(one: Measured, other: Measured | None) -> Estimate | None:
    """The mean over common seeds of one area minus the other; None without a common seed."""
    shared = () if other is None else np.intersect1d(one.seeds, other.seeds)
    if other is None or len(shared) == 0:
        return None
    mine, theirs = (found.areas[np.isin(found.seeds, shared)] for found in (one, other))
    return mean_estimate(mine - theirs)


def _overall_part(told: dict[str, Overall], tasks: Sequence[SuiteTask]) -> Iterator[str]:
    yield f"### Over {len(tasks)} {'task' if len(tasks) == 1 else 'tasks'}"
    yield ""
    if not told:
        yield "No agent has runs on all of them."
        yield ""
        return
    yield (
        f"Interquartile means over all runs of all tasks, and the probability that a run is better than one of "
        f"{RIVAL}, on the seeds that both have; 95 % stratified bootstrap intervals."
    )
    yield ""
    yield from _table(
        ("agent", "runs per task", "last fifth", "area", "seeds of both", "better last fifth", "better area"),
        [
            (
                agent,
                one.runs,
                _estimate(one.scores, 2),
                _estimate(one.areas, 2),
                one.compared or "",
                _estimate(one.better_scores, 2),
                _estimate(one.better_areas, 2),
            )
            for agent, one in told.items()
        ],
    )


def _task_part(task: SuiteTask, found: dict[str, Measured]) -> Iterator[str]:
    yield f"### {task.environment}, {task.steps:,} steps"
    yield ""
    yield from _table(
        ("agent", "seeds", "mean", "interquartile mean", "worst seed", "area", "decisions per episode"),
        [
            (
                agent,
                len(one.seeds),
                _estimate(mean_estimate(one.ends), 1),
                _estimate(bootstrap_estimate(interquartile_mean, one.ends[:, None]), 1),
                f"{one.ends.min():.1f}",
                _estimate(mean_estimate(one.areas), 2),
                f"{one.decisions.mean():.1f}",
            )
            for agent, one in found.items()
        ],
    )
    seeds = sorted({seed for one in found.values() for seed in one.seeds.tolist()})
    yield "Last fifth, seed by seed:"
    yield ""
    yield from _table(
        ("agent", *seeds),
        [
            (agent, *(f"{one.ends[one.seeds == seed][0]:.1f}" if seed in one.seeds else "" for seed in seeds))
            for agent, one in found.items()
        ],
    )


def _table(head: Sequence[object], lines: Sequence[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(map(str, head)) + " |"
    yield "|---" * len(head) + "|"
    for line in lines:
        yield "| " + " | ".join(map(str, line)) + " |"
    yield ""


def _estimate(estimate: Estimate | None, digits: int) -> str:
    if estimate is None:
        return ""
    value, low, high = (f"{number:.{digits}f}" for number in estimate)
    return value if np.isnan(estimate.low) else f"{value} [{low}, {high}]"
