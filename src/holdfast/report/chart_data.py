"""What the charts of a page show, as JSON values: few numbers, rounded, however long the trainings were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.array_types import Floats
from holdfast.report.agents import Agent, TaskResults
from holdfast.report.records import QUANTITIES
from holdfast.report.trace_numbers import seed_band, thinned
from holdfast.stats import Band, Estimate

__all__ = ["MOST_POINTS", "chart_data", "hold_classes"]

_DIGITS = 5
_PER_NUMBER = 8
"""Bytes of a number in the page, with its comma."""
MOST_POINTS = 200
"""Points of a curve."""
_FEWEST_POINTS = 10
_RUN_POINTS = 120
_FEWEST_RUN_POINTS = 20
_MOST_RUNS = 400
"""Trainings of which single curves are in the page."""
_HOLD_POINTS = 80


def chart_data(tasks: Sequence[TaskResults], room: int) -> tuple[dict[str, Any], list[str]]:
    """All charts: by task and agent the curves, their ends and the holds.

    Args:
        tasks: What is to be drawn.
        room: Bytes for the curves and holds together, and as many again for the curves of single seeds.

    Returns:
        The charts, and what they lack for want of room.
    """
    agents = [agent for task in tasks for agent in task.agents]
    bands = [[_bands(agent) for agent in task.agents] for task in tasks]
    lengths = [len(at) for of_task in bands for of_agent in of_task for at, _ in of_agent.values()]
    # A curve has four rows of numbers: its points, the mean, and both ends of the interval.
    points = _points(room, 4 * len(lengths), MOST_POINTS, _FEWEST_POINTS)
    single = _single_lengths(agents)
    run_points = _points(room, 2 * len(single), _RUN_POINTS, 0)
    n_runs = sum(len(agent.records) for agent in agents if len(agent.records) > 1)
    if n_runs > _MOST_RUNS or run_points < _FEWEST_RUN_POINTS:
        run_points = 0
    data = {
        "quantities": dict(QUANTITIES),
        "tasks": [
            {
                "name": task.name,
                "axis": task.axis,
                "quantity": task.quantity,
                "agents": [
                    _agent(agent, task, of_agent, points, run_points)
                    for agent, of_agent in zip(task.agents, of_task, strict=True)
                ],
            }
            for task, of_task in zip(tasks, bands, strict=True)
        ],
    }
    missing = []
    if single and not run_points:
        missing.append("the curves of single seeds")
    elif run_points < min(_RUN_POINTS, max(single, default=0)):
        missing.append(f"all but {run_points} points of each single seed's curve")
    if points < max(lengths, default=0):
        missing.append(f"all but {points} points of each curve")
    return data, missing


def _bands(agent: Agent) -> dict[str, tuple[Floats, Band]]:
    """Curves of an agent by quantity: where their points are, at most ``MOST_POINTS``, and the means there."""
    return {quantity: seed_band(traces) for quantity in QUANTITIES if (traces := agent.traces(quantity))}


def _single_lengths(agents: Sequence[Agent]) -> list[int]:
    """Lengths of the curves of single seeds; an agent with one seed has none beside its own."""
    several = [traces for agent in agents for quantity in QUANTITIES if len(traces := agent.traces(quantity)) > 1]
    return [len(trace.x) for traces in several for trace in traces]


def _points(room: int, n_rows: int, most: int, fewest: int) -> int:
    """Points for which there is room in so many rows of numbers."""
    return max(fewest, min(most, room // (_PER_NUMBER * max(1, n_rows))))


def _spread(n: int, most: int) -> NDArray[np.intp]:
    """At most so many of n places, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))


def _agent(
    agent: Agent, task: TaskResults, bands: dict[str, tuple[Floats, Band]], most: int, points: int
) -> dict[str, Any]:
    curves, runs = {}, {}
    for quantity, (at, band) in bands.items():
        traces = agent.traces(quantity)
        chosen = _spread(len(at), most)
        curves[quantity] = {"x": _numbers(at[chosen]), "mean": _numbers(band.value[chosen])}
        if len(traces) > 1:
            curves[quantity] |= {"low": _numbers(band.low[chosen]), "high": _numbers(band.high[chosen])}
        if len(traces) > 1 and points:
            thin = [thinned(trace, points) for trace in traces]
            runs[quantity] = [{"x": _numbers(trace.x), "y": _numbers(trace.y)} for trace in thin]
    return {
        "label": agent.label,
        "family": agent.family,
        "color": agent.color,
        "dash": agent.dash,
        "seeds": [record.seed for record in agent.records],
        "curves": curves,
        "runs": runs,
        "finals": _numbers(agent.finals(task.quantity)),
        "final": _estimate(agent.final(task.quantity)),
        "decisions": _estimate(agent.final("decisions")),
        "holds": _holds(agent, min(most, _HOLD_POINTS)),
    }


def _holds(agent: Agent, most: int) -> dict[str, Any] | None:
    """Shares of the holds over the evaluations, the mean over those seeds that have the same ones."""
    found = [record.holds for record in agent.records if record.holds is not None]
    alike = [
        holds
        for holds in found
        if np.array_equal(holds.steps, found[0].steps) and holds.shares.shape == found[0].shares.shape
    ]
    if not alike:
        return None
    shares = np.mean([holds.shares for holds in alike], axis=0)
    chosen = _spread(len(shares), most)
    classes = {
        (low, high): shares[chosen, low - 1 : high].sum(axis=1) for low, high in hold_classes(shares.shape[1])
    }
    there = {bounds: part for bounds, part in classes.items() if part.any()}
    return {
        "steps": _numbers(found[0].steps[chosen]),
        "durations": [_told_steps(*bounds) for bounds in there],
        "shares": [_numbers(part) for part in there.values()],
        "seeds": len(alike),
    }


def _told_steps(low: int, high: int) -> str:
    return f"{low}–{high} steps" if high > low else f"{low} step{'s' * (low > 1)}"


def hold_classes(k_max: int) -> list[tuple[int, int]]:
    """Ranges of holds that a chart tells apart: 1, 2, 3–4, 5–8, ... up to the longest."""
    found = [(1, 1)]
    while found[-1][1] < k_max:
        low = found[-1][1] + 1
        found.append((low, min(2 * found[-1][1], k_max)))
    return found


def _estimate(estimate: Estimate | None) -> dict[str, float] | None:
    return None if estimate is None else dict(zip(("value", "low", "high"), _numbers(estimate), strict=True))


def _numbers(values: Iterable[float] | Floats) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]
