"""The tables of a page: agents with their numbers, settings with their differences, trainings one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from holdfast.report.agents import Agent, TaskResults, told_value
from holdfast.report.records import QUANTITIES, Record
from holdfast.report.trace_numbers import steps_to_reach
from holdfast.runs.progress import duration
from holdfast.stats import Estimate

__all__ = ["agent_rows", "run_rows", "setting_tables", "task_lines"]

Cell = dict[str, Any]
"""What a cell shows, and what it is sorted by."""


def agent_rows(tasks: Sequence[TaskResults]) -> list[dict[str, Any]]:
    """A row for each agent of each task, the best of a task first."""
    return [
        {"task": task.name, "label": agent.label, "family": agent.family, "color": agent.color, "dash": agent.dash}
        | _numbers(task, agent, goal)
        for task in tasks
        for goal in [task.goal]
        for agent in task.agents
    ]


def _numbers(task: TaskResults, agent: Agent, goal: float | None) -> dict[str, Cell]:
    finals, means = agent.finals(task.quantity), agent.means(task.quantity)
    reached = [] if goal is None else [steps_to_reach(trace, goal) for trace in agent.traces(task.quantity)]
    soon = [step for step in reached if step is not None]
    told_soon = f"{np.median(soon):,.0f} {task.axis}" if soon else "–"
    if soon and len(soon) < len(reached):
        told_soon += f" ({len(soon)}/{len(reached)})"
    seconds = [record.seconds for record in agent.records if record.seconds is not None]
    return {
        "seeds": _cell(str(len(agent.records)), len(agent.records)),
        "final": _told(agent.final(task.quantity)),
        "worst": _cell(f"{finals.min():.4g}" if len(finals) else "–", finals.min() if len(finals) else None),
        "mean": _cell(f"{means.mean():.4g}" if len(means) else "–", means.mean() if len(means) else None),
        "soon": _cell(told_soon, float(np.median(soon)) if soon else None),
        "decisions": _told(agent.final("decisions"), with_interval=False),
        "hold": _told(agent.final("hold"), with_interval=False),
        "time": _time(float(np.mean(seconds)) if seconds else None),
    }


def _told(estimate: Estimate | None, with_interval: bool = True) -> Cell:
    if estimate is None:
        return _cell("–", None)
    text = f"{estimate.value:.4g}" if with_interval else f"{estimate.value:.3g}"
    if with_interval and estimate.low == estimate.low:
        text += f" [{estimate.low:.4g}, {estimate.high:.4g}]"
    return _cell(text, estimate.value)


def _time(seconds: float | None) -> Cell:
    return _cell("–" if seconds is None else duration(seconds), seconds)


def _cell(text: str, number: float | None) -> Cell:
    return {"text": text, "number": None if number is None else float(f"{number:.6g}")}


def task_lines(tasks: Sequence[TaskResults]) -> list[dict[str, str]]:
    """What the curves of each task come to, in a sentence for those who cannot see them."""
    found = []
    for task in tasks:
        ends = []
        for agent in task.agents:
            final = agent.final(task.quantity)
            if final is not None:
                between = f", 95 % interval {final.low:.4g} to {final.high:.4g}" if final.low == final.low else ""
                n = len(agent.records)
                ends.append(f"{agent.label} ends with {final.value:.4g} ({n} seed{'s' * (n > 1)}{between})")
        sentence = f"{QUANTITIES[task.quantity].capitalize()} over {task.axis}. " + "; ".join(ends) + "."
        found.append({"task": task.name, "sentence": sentence})
    return found


def setting_tables(tasks: Sequence[TaskResults]) -> list[dict[str, Any]]:
    """For each task its agents' settings, in three groups.

    Those that ``differ`` have several values; ``odd`` are those that most agents do not have. Those of ``some``
    agents have one value wherever there is one. The rest are the ``same`` for all.
    """
    found = []
    for task in tasks:
        labels = [agent.label for agent in task.agents]
        groups: dict[str, list[dict[str, Any]]] = {"differ": [], "some": [], "same": []}
        for name in dict.fromkeys(name for agent in task.agents for name in agent.setting):
            row = _setting_row(name, [agent.setting for agent in task.agents])
            # What the columns are called already needs no row.
            if [agent.setting.get(name) for agent in task.agents] != labels:
                groups[row.pop("group")].append(row)
        found.append({"task": task.name, "labels": labels, **groups})
    return found


def _setting_row(name: str, settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    keys = [repr(setting[name]) if name in setting else None for setting in settings]
    counts = Counter(key for key in keys if key is not None).most_common()
    is_usual = len(counts) == 1 or counts[0][1] > counts[1][1]
    return {
        "name": name,
        "values": [told_value(setting[name]) if name in setting else "–" for setting in settings],
        "odd": [key is not None and not (is_usual and key == counts[0][0]) for key in keys],
        "group": "differ" if len(counts) > 1 else "some" if None in keys else "same",
    }


def run_rows(records: Sequence[Record], tasks: Sequence[TaskResults]) -> list[dict[str, Any]]:
    """A row for each record, with the label that its agent has in its task."""
    agents = [agent for task in tasks for agent in task.agents]
    labels = {id(record): agent.label for agent in agents for record in (*agent.records, *agent.dropped)}
    return [
        {
            "name": record.name,
            "task": record.task,
            "agent": labels.get(id(record), record.agent),
            "seed": record.seed,
            "status": record.status,
            "done": _cell(record.done_text, record.done),
            "version": record.versions.get("holdfast", "–"),
            "commit": record.commit[:7] if record.commit else "–",
            "time": _cell("–", None)
            if record.seconds is None
            else _cell(duration(record.seconds), record.seconds),
            "again": record.again,
        }
        for record in records
    ]
