"""The page: what was found, as one file that needs no network."""

from __future__ import annotations

import base64
import functools
import gzip
import importlib.util
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.core.errors import InputError
from holdfast.files import make_folders, replace_file
from holdfast.report.agents import TaskResults, group_tasks
from holdfast.report.cautions import cautions
from holdfast.report.exhibits import policy_exhibits
from holdfast.report.finding import find_all, named_folders
from holdfast.report.page_room import LARGEST_PAGE, ROOMS, Shown, shown_within
from holdfast.report.page_tables import agent_rows, setting_tables, task_lines
from holdfast.report.records import QUANTITIES, Exhibit, Findings, Record
from holdfast.report.trace_numbers import final_value

__all__ = ["NothingToReportError", "Report", "make_report", "need_libraries", "safe_json", "write_report"]

_TEMPLATES = Path(__file__).parent / "templates"
_LIBRARIES = ("jinja2", "plotly")


class NothingToReportError(InputError):
    """There is no run and no campaign in the folders."""


@dataclass(frozen=True)
class Report:
    """A page, before it is written.

    Attributes:
        title: Its heading.
        findings: What was found.
        tasks: The same by task and agent.
        cautions: What a careful reader would say.
    """

    title: str
    findings: Findings
    tasks: list[TaskResults]
    cautions: list[str]

    def html(self, is_live: bool = False, with_library: bool = True, is_dated: bool = True) -> str:
        """The page, of at most ``LARGEST_PAGE`` bytes; if something is left out for that, it says so.

        Args:
            is_live: Whether it asks its server for news.
            with_library: Whether it contains the plotting library; without it, it is of use to a page that does.
            is_dated: Whether it says when it was written.

        Raises:
            ValueError: There is too much of what cannot be left out, such as the settings of an agent.
        """
        need_libraries()
        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_TEMPLATES),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        environment.filters["json"] = safe_json
        template = environment.get_template("report.html")
        library = _packed_library() if with_library else None
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC") if is_dated else None
        for share in ROOMS:
            shown = shown_within(self.findings, self.tasks, self.cautions, share)
            page = template.render(**self._contents(shown), now=now, is_live=is_live, library=library)
            size = len(page.encode())
            if size <= LARGEST_PAGE:
                return page
        raise InputError(
            f"what must contain less: with as much as possible left out, its page still has {size / 1e6:.1f} MB, "
            f"more than the {LARGEST_PAGE // 10**6} MB that a page may have",
            "what",
        )

    def _contents(self, shown: Shown) -> dict[str, Any]:
        tasks = shown.tasks
        n_trainings = sum(bool(record.traces or record.folder) for record in self.findings.records)
        drawn = [agent for task in shown.data["tasks"] for agent in task["agents"]]
        return {
            "title": self.title,
            "version": __version__,
            "cautions": shown.cautions,
            "tasks": tasks,
            "quantities": _quantities(tasks),
            "switches": _switches(tasks),
            "task_lines": task_lines(tasks),
            "agents": agent_rows(tasks),
            "runs": shown.rows,
            "settings": setting_tables([*tasks, *_named_apart(shown.curveless, tasks)]),
            "exhibits": shown.exhibits,
            "problems": shown.problems,
            "n_trainings": n_trainings,
            "n_jobs": len(self.findings.records) - n_trainings,
            "has_holds": any(agent["holds"] is not None for agent in drawn),
            "has_decisions": any(agent["decisions"] is not None for agent in drawn),
            "data": shown.data,
        }


def make_report(
    what: Sequence[str | os.PathLike[str]],
    title: str | None = None,
    pictures: bool = True,
    may_be_empty: bool = False,
) -> Report:
    """Read runs, sweeps and campaigns.

    Args:
        what: Their folders, or folders that hold such.
        title: The page's heading; None for one that follows from the tasks.
        pictures: Whether maps of the best policies are drawn, for which each of them plays an episode.
        may_be_empty: Whether a page may say that there is nothing yet.

    Raises:
        ValueError: A folder is none, or there is nothing in them.
    """
    folders = named_folders(what)
    findings = find_all(folders)
    if not (findings.records or findings.exhibits or findings.problems or may_be_empty):
        told = ", ".join(str(folder) for folder in folders)
        raise NothingToReportError(f"what must contain a run or a campaign; there is none in {told}", "what")
    tasks = group_tasks(findings.records)
    if pictures:
        findings.exhibits[:0] = policy_exhibits(_best_records(tasks))
    return Report(title or _title(tasks, findings.exhibits), findings, tasks, cautions(findings, tasks))


def write_report(
    what: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    title: str | None = None,
    pictures: bool = True,
) -> Path:
    """Write the report of runs, sweeps and campaigns into one HTML file, as a whole or not at all.

    Args:
        what: As in ``make_report``.
        out: The file.
        title: As in ``make_report``.
        pictures: As in ``make_report``.

    Returns:
        The file.

    Raises:
        ValueError: There is nothing to report or too much for a page, the file cannot be written, or a library is
            missing.
    """
    need_libraries()
    target = Path(out)
    if target.suffix.lower() not in (".html", ".htm") or target.is_dir():
        raise InputError(f"out must name a file that ends in .html, not {str(out)!r}", "out")
    page = make_report(what, title, pictures).html()
    try:
        make_folders(target.parent)
        with replace_file(target) as file:
            file.write(page.encode())
    except OSError as error:
        raise InputError(
            f"out must be a file that can be written, and {str(out)!r} is not: {error.strerror or error}", "out"
        ) from None
    return target


def need_libraries() -> None:
    """InputError if one of the libraries that pages are made with is missing."""
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"a report needs {' and '.join(missing)}: pip install 'holdfast-rl[report]'")


def safe_json(document: Any) -> Any:
    """JSON that may stand in a script element, whatever texts it has: no ``<`` can end the element early."""
    import markupsafe

    text = json.dumps(_finite(document), separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return markupsafe.Markup(text)


def _finite(value: Any) -> Any:
    """The same with None for numbers that JSON has not."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


@functools.cache
def _packed_library() -> str:
    """The plotting library, compressed, as text: a third of the page that it would be otherwise."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode("ascii")


def _title(tasks: Sequence[TaskResults], exhibits: Sequence[Exhibit]) -> str:
    names = list(dict.fromkeys(task.name for task in tasks))
    names = names or list(dict.fromkeys(exhibit.title for exhibit in exhibits if exhibit.kind == "image"))
    if not names:
        return "Report"
    return ", ".join(names) if len(names) <= 2 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def _named_apart(tasks: Sequence[TaskResults], others: Sequence[TaskResults]) -> list[TaskResults]:
    """Tasks under names that the others do not have."""
    names = {task.name for task in others}
    return [replace(task, name=f"{task.name}, without curves") if task.name in names else task for task in tasks]


def _quantities(tasks: Sequence[TaskResults]) -> list[tuple[str, str]]:
    there = {name for task in tasks for agent in task.agents for record in agent.records for name in record.traces}
    return [(name, title) for name, title in QUANTITIES.items() if name in there]


def _switches(tasks: Sequence[TaskResults]) -> list[dict[str, Any]]:
    """Algorithms with their agents, each label once."""
    families: dict[str, dict[str, dict[str, Any]]] = {}
    for task in tasks:
        for agent in task.agents:
            known = families.setdefault(agent.family, {})
            known.setdefault(agent.label, {"label": agent.label, "color": agent.color, "dash": agent.dash})
    return [{"family": family, "agents": list(agents.values())} for family, agents in families.items()]


def _end_of(quantity: str, record: Record) -> float:
    return final_value(record.traces[quantity]) if quantity in record.traces else -math.inf


def _best_records(tasks: Sequence[TaskResults]) -> list[Record]:
    """Of each kind of agent in each task the record that ends best."""
    found = []
    for task in tasks:
        seen = set()
        for agent in task.agents:
            able = [record for record in agent.records if record.folder is not None]
            if agent.family in seen or not able:
                continue
            seen.add(agent.family)
            found.append(max(able, key=functools.partial(_end_of, task.quantity)))
    return found
