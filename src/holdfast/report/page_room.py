"""How much of everything goes into a page, so that it can be mailed and opened however much was trained.

Each part of a page has room for some bytes, and is cut where it is least missed: curves get fewer points, then the
agents that end worst, the last rows of the table and the last pictures are left out. A sentence on the page says
what is missing. If texts are longer than expected, the page is made again with half the room.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from holdfast.report.agents import TaskResults, group_tasks
from holdfast.report.chart_data import chart_data
from holdfast.report.page_tables import run_rows
from holdfast.report.records import Exhibit, Findings, Problem

__all__ = ["LARGEST_PAGE", "ROOMS", "Shown", "shown_within"]

LARGEST_PAGE = 15_000_000
"""Bytes of a page."""

ROOMS = (1.0, 0.5, 0.25, 0.125, 0.0625)
"""Shares of the usual room, one after the other until the page is small enough."""

_AGENTS = 500
_CURVES = 3_000_000
_ROWS = 2_000_000
EXHIBITS_ROOM = 12_000_000
"""Bytes of pictures, films and numbers if nothing else is large; more than a run's files may have."""
_SENTENCES = 300_000

_PER_ROW = 450
"""Bytes of a row's tags, at most."""
_PER_AGENT = 2_500
"""Bytes of what tables and switches say of an agent, usually."""
_PER_EXHIBIT = 400
"""Bytes of a picture's tags, at most."""
_FRAME = 2_300_000
"""Bytes of the plotting library and of what is the same in all pages."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Shown:
    """What is on a page.

    Attributes:
        tasks: Tasks with the agents that are shown.
        curveless: The same of the trainings and jobs without curves, for their settings.
        data: What the charts show.
        rows: The table of trainings.
        exhibits: Pictures, films and numbers.
        problems: What could not be read.
        cautions: What a careful reader would say, and first of all what is left out.
    """

    tasks: list[TaskResults]
    curveless: list[TaskResults]
    data: dict[str, Any]
    rows: list[dict[str, Any]]
    exhibits: list[Exhibit]
    problems: list[Problem]
    cautions: list[str]


def shown_within(findings: Findings, tasks: Sequence[TaskResults], cautions: Sequence[str], share: float) -> Shown:
    """As much as there is room for.

    Args:
        findings: All that was found.
        tasks: The same by task and agent, the best agents first.
        cautions: What a careful reader would say.
        share: Share of the usual room.
    """
    kept_tasks = _best(tasks, max(1, int(share * _AGENTS)))
    curveless = group_tasks(findings.records, with_curves=False)
    kept_curveless = _best(curveless, max(0, int(share * _AGENTS) - _n_agents(kept_tasks)))
    data, missing_points = chart_data(kept_tasks, int(share * _CURVES))
    all_rows = run_rows(findings.records, tasks)
    rows = _fitting(all_rows, share * _ROWS, _row_bytes)
    problems = _fitting(findings.problems, share * _SENTENCES, lambda problem: len(str(problem).encode()))
    sentences = _fitting(cautions, share * _SENTENCES, lambda sentence: len(sentence.encode()))
    n_agents, n_kept = _n_agents(tasks), _n_agents(kept_tasks)
    n_others, n_kept_others = _n_agents(curveless), _n_agents(kept_curveless)
    # Pictures get what the rest leaves.
    rest = _FRAME + _PER_AGENT * (n_kept + n_kept_others) + 2 * int(share * _SENTENCES)
    rest += len(json.dumps(data, ensure_ascii=False).encode()) + sum(map(_row_bytes, rows))
    exhibits_room = share * min(EXHIBITS_ROOM, LARGEST_PAGE - rest)
    exhibits = _fitting(findings.exhibits, exhibits_room, _exhibit_bytes, is_prefix=False)
    n_exhibits = len(findings.exhibits) + findings.n_unread
    missing = [
        *_missing(n_agents - n_kept, n_agents, "agents, those that end worst"),
        *_missing(n_others - n_kept_others, n_others, "settings without curves"),
        *missing_points,
        *_missing(len(all_rows) - len(rows), len(all_rows), "rows of the table of trainings"),
        *_missing(n_exhibits - len(exhibits), n_exhibits, "pictures, films and lists of numbers"),
        *_missing(len(findings.problems) - len(problems), len(findings.problems), "damaged trainings"),
        *_missing(len(cautions) - len(sentences), len(cautions), "warnings"),
    ]
    if missing:
        sentences.insert(
            0,
            f"Left out to keep the page below {LARGEST_PAGE // 10**6} MB: {'; '.join(missing)}. A report of fewer "
            "folders leaves out less.",
        )
    return Shown(kept_tasks, kept_curveless, data, rows, exhibits, problems, sentences)


def _n_agents(tasks: Sequence[TaskResults]) -> int:
    return sum(len(task.agents) for task in tasks)


def _best(tasks: Sequence[TaskResults], most: int) -> list[TaskResults]:
    """The tasks with so many agents altogether, as far as possible equally many of each."""
    each = max((len(task.agents) for task in tasks), default=0)
    while each > 1 and sum(min(each, len(task.agents)) for task in tasks) > most:
        each -= 1
    return [replace(task, agents=task.agents[:each]) for task in tasks[:most]]


def _fitting(
    items: Iterable[Item], room: float, size: Callable[[Item], int], is_prefix: bool = True
) -> list[Item]:
    """The first items that there is room for; if not a prefix, then every one that fits behind those before it."""
    kept = []
    for item in items:
        needed = size(item)
        if needed <= room:
            kept.append(item)
            room -= needed
        elif is_prefix:
            break
    return kept


def _row_bytes(row: dict[str, Any]) -> int:
    return _PER_ROW + len(json.dumps(row, ensure_ascii=False).encode())


def _exhibit_bytes(exhibit: Exhibit) -> int:
    return _PER_EXHIBIT + exhibit.n_bytes + 2 * len(exhibit.title.encode()) + len(exhibit.source.encode())


def _missing(n_missing: int, n_all: int, what: str) -> list[str]:
    return [f"{n_missing:,} of {n_all:,} {what}"] if n_missing else []
