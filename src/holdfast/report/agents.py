"""Agents: the records of one task that differ in nothing but their seed, and what their numbers come to."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.core.array_types import Floats
from holdfast.draw import ALGORITHM_COLORS, PALETTE
from holdfast.policies.algorithms import ALGORITHMS
from holdfast.report.records import QUANTITIES, Record, Trace
from holdfast.report.short_names import short_digest, short_name
from holdfast.report.trace_numbers import final_value, mean_over_training
from holdfast.stats import Estimate, mean_estimate

__all__ = ["Agent", "TaskResults", "differing_settings", "group_tasks", "main_quantity", "told_value"]

_COLOR_NAMES = {code: name for name, code in PALETTE.items()}
_OTHER_COLORS = ("vermilion", "sky", "purple", "green", "orange", "blue")
_NEARLY = 0.9
_LONGEST_LABEL = 60
_LONGEST_VALUE = 24
_LONGEST_CELL = 120
_DIGITS = 4


@dataclass
class Agent:
    """Records of one task that differ in nothing but their seed.

    Attributes:
        label: What tells it from the others of its task.
        family: What its algorithm is called.
        color: A name of ``PALETTE``.
        dash: Which of the agents with this colour it is, from 0.
        setting: What was set.
        records: One for each seed.
        dropped: Further records of the same seeds, which are shorter.
    """

    label: str
    family: str
    color: str
    dash: int
    setting: Mapping[str, Any]
    records: list[Record]
    dropped: list[Record] = field(default_factory=list)

    def finals(self, quantity: str) -> Floats:
        """(seeds,) what each record ends with."""
        return np.array([final_value(record.traces[quantity]) for record in self._with(quantity)])

    def means(self, quantity: str) -> Floats:
        """(seeds,) the mean of each record over its training."""
        return np.array([mean_over_training(record.traces[quantity]) for record in self._with(quantity)])

    def final(self, quantity: str) -> Estimate | None:
        """The mean of what the records end with, and its interval; None where none has the quantity."""
        finals = self.finals(quantity)
        return mean_estimate(finals) if len(finals) else None

    def traces(self, quantity: str) -> list[Trace]:
        """Those of all seeds that have the quantity."""
        return [record.traces[quantity] for record in self._with(quantity)]

    def _with(self, quantity: str) -> list[Record]:
        return [record for record in self.records if quantity in record.traces]


@dataclass
class TaskResults:
    """What the agents of one environment came to.

    Attributes:
        name: The environment, with its arguments.
        axis: What curves are over.
        agents: The best first, by what they end with.
        quantity: What they are compared by, one of ``QUANTITIES``.
    """

    name: str
    axis: str
    agents: list[Agent]
    quantity: str

    @property
    def goal(self) -> float | None:
        """What "learned" means here: nine tenths of the way from the worst first value to the best final one."""
        traces = [trace for agent in self.agents for trace in agent.traces(self.quantity)]
        finals = [final.value for agent in self.agents if (final := agent.final(self.quantity)) is not None]
        if not traces or not finals:
            return None
        first = min(float(trace.y[0]) for trace in traces)
        return first + _NEARLY * (max(finals) - first) if max(finals) > first else None


def group_tasks(records: Sequence[Record], with_curves: bool = True) -> list[TaskResults]:
    """Records by task and setting: those that have curves, or those that have none."""
    groups: dict[tuple[str, str], dict[str, list[Record]]] = {}
    for record in records:
        if bool(record.traces) == with_curves:
            of_task = groups.setdefault((record.task, record.axis), {})
            of_task.setdefault(_identity(record), []).append(record)
    axes: dict[str, set[str]] = {}
    for name, axis in groups:
        axes.setdefault(name, set()).add(axis)
    colors = _family_colors(records)
    tasks = [
        _task(name if len(axes[name]) == 1 else f"{name}, by {axis}", axis, list(settings.values()), colors)
        for (name, axis), settings in groups.items()
    ]
    _choose_dashes(tasks)
    return tasks


def _choose_dashes(tasks: Sequence[TaskResults]) -> None:
    """Agents of one label look the same in all tasks, and no two of a task; those with most seeds are solid."""
    seeds: dict[tuple[str, str], int] = {}
    meeting: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for task in tasks:
        looks = [(agent.color, agent.label) for agent in task.agents]
        for look, agent in zip(looks, task.agents, strict=True):
            seeds[look] = seeds.get(look, 0) + len(agent.records)
            meeting.setdefault(look, set()).update(other for other in looks if other[0] == look[0])
    chosen: dict[tuple[str, str], int] = {}
    for look in sorted(seeds, key=lambda look: -seeds[look]):
        taken = {chosen[other] for other in meeting[look] if other in chosen}
        chosen[look] = min(set(range(len(taken) + 1)) - taken)
    for task in tasks:
        for agent in task.agents:
            agent.dash = chosen[agent.color, agent.label]


def _task(name: str, axis: str, groups: Sequence[list[Record]], colors: Mapping[str, str]) -> TaskResults:
    agents = []
    for group, label in zip(groups, _labels(groups), strict=True):
        kept: dict[int, Record] = {}
        for record in group:
            known = kept.get(record.seed)
            if known is None or record.done > known.done:
                kept[record.seed] = record
        dropped = [record for record in group if kept[record.seed] is not record]
        first = group[0]
        agents.append(
            Agent(
                label,
                ALGORITHMS[first.algo].title if first.algo in ALGORITHMS else first.agent,
                colors[first.algo or first.agent],
                0,
                first.setting,
                sorted(kept.values(), key=lambda record: record.seed),
                dropped,
            )
        )
    quantity = main_quantity([record for group in groups for record in group])
    agents.sort(key=lambda agent: _descending(agent.final(quantity)))
    return TaskResults(name, axis, agents, quantity)


def _descending(final: Estimate | None) -> float:
    return math.inf if final is None else -final.value


def main_quantity(records: Sequence[Record]) -> str:
    """What records are compared by: the most telling return that they all have, or else that any has."""
    for wanted in (all, any):
        for quantity in QUANTITIES:
            if wanted(quantity in record.traces for record in records):
                return quantity
    return "return"


def _identity(record: Record) -> str:
    return json.dumps([record.agent, _comparable(record)], sort_keys=True)


def _comparable(record: Record) -> dict[str, Any]:
    """What is set, without what follows from how long the training is."""
    setting = dict(record.setting)
    if setting.get("schedule_steps") == record.planned:
        setting.pop("schedule_steps", None)
    return setting


def _labels(groups: Sequence[list[Record]]) -> list[str]:
    """Names that tell settings apart: the agent, and what differs among those with the same name.

    Where all that differs is long, as among the trials of a study, the fewest settings that tell them apart are
    named.
    """
    twins: dict[str, list[dict[str, Any]]] = {}
    for group in groups:
        twins.setdefault(group[0].agent, []).append(_comparable(group[0]))
    telling = {}
    for agent, settings in twins.items():
        names = differing_settings(settings)
        is_long = any(len(_label(agent, setting, names)) > _LONGEST_LABEL for setting in settings)
        telling[agent] = _fewest_telling(settings, names) if is_long else names
    settings = [_comparable(group[0]) for group in groups]
    agents = [group[0].agent for group in groups]
    labels = [_label(agent, own, telling[agent]) for agent, own in zip(agents, settings, strict=True)]
    alike = {label for label, n in Counter(labels).items() if n > 1}
    # Values that differ only where they are cut or rounded.
    return [
        f"{label} …{short_digest(json.dumps(own, sort_keys=True))}" if label in alike else label
        for label, own in zip(labels, settings, strict=True)
    ]


def _label(agent: str, setting: Mapping[str, Any], names: Sequence[str]) -> str:
    told = ", ".join(f"{name}={_told_briefly(setting[name])}" for name in names if name in setting)
    return short_name(f"{agent}, {told}" if told else agent)


def _fewest_telling(settings: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Some of these names, in their order, whose values already tell all settings apart: each splits them most."""
    chosen: list[str] = []
    while _n_told_apart(settings, chosen) < _n_told_apart(settings, names):
        chosen.append(max(names, key=lambda name: _n_told_apart(settings, [*chosen, name])))
    return [name for name in names if name in chosen]


def _n_told_apart(settings: Sequence[Mapping[str, Any]], names: Sequence[str]) -> int:
    return len({json.dumps([setting.get(name, "–") for name in names]) for setting in settings})


def differing_settings(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names whose values are not the same in all settings, in the order in which they come."""
    names = dict.fromkeys(name for setting in settings for name in setting)
    return [name for name in names if len({json.dumps(setting.get(name, "–")) for setting in settings}) > 1]


def told_value(value: Any) -> str:
    """A value in a table, in full unless it is very long."""
    return short_name(value if isinstance(value, str) else repr(value), _LONGEST_CELL)


def _told_briefly(value: Any) -> str:
    """A value in a label."""
    text = f"{value:.{_DIGITS}g}" if isinstance(value, float) else value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _family_colors(records: Sequence[Record]) -> dict[str, str]:
    """A colour for each algorithm: the one it has in all pictures, or one that is left."""
    found: dict[str, str] = {}
    for record in records:
        if record.algo in ALGORITHM_COLORS:
            found.setdefault(record.algo, _COLOR_NAMES[ALGORITHM_COLORS[record.algo]])
    for record in records:
        key = record.algo or record.agent
        if key not in found:
            free = [name for name in _OTHER_COLORS if name not in found.values()] or list(_OTHER_COLORS)
            found[key] = free[len(found) % len(free)]
    return found
