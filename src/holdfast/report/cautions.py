"""What a careful reader would say of a comparison before believing it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.report.agents import TaskResults
from holdfast.report.exhibits import MOST_FILES, RUN_ROOM
from holdfast.report.records import Findings, Record

__all__ = ["cautions"]

_MOST_NAMED = 3
_FEW = 3


def cautions(findings: Findings, tasks: Sequence[TaskResults]) -> list[str]:
    """Sentences, the gravest first."""
    found = [
        f"{problem.name} is missing, or shown only in part: {problem.sentence}" for problem in findings.problems
    ]
    for task in tasks:
        found += [*_seeds(task), *_flat(task), *_overlaps(task), *_exploration(task)]
    found += [*_unfinished(findings.records), *_lengths(tasks), *_versions(findings.records), *_twins(tasks)]
    return found + _beyond(findings.n_beyond)


def _seeds(task: TaskResults) -> list[str]:
    alone = [agent.label for agent in task.agents if len(agent.records) == 1]
    few = [agent.label for agent in task.agents if 1 < len(agent.records) < _FEW]
    found = []
    if alone:
        found.append(
            f"{task.name}: {_named(alone)} {_has(alone)} one seed. No interval can be given, and another seed may "
            "tell another story."
        )
    if few:
        found.append(f"{task.name}: {_named(few)} {_has(few)} only two seeds, too few for a narrow interval.")
    return found


def _flat(task: TaskResults) -> list[str]:
    """Agents whose seeds all end with one value, as at the largest return that there is."""
    labels = [
        agent.label
        for agent in task.agents
        if len(finals := agent.finals(task.quantity)) > 1 and finals.min() == finals.max()
    ]
    if not labels:
        return []
    return [
        f"{task.name}: all seeds of {_named(labels)} end with the same value. An interval without width is not "
        "certainty: other seeds may end elsewhere."
    ]


def _overlaps(task: TaskResults) -> list[str]:
    """Agents whose interval overlaps that of the best: which of them is better is not known."""
    ranked = [
        (agent, final)
        for agent in task.agents
        if (final := agent.final(task.quantity)) is not None and final.low == final.low
    ]
    if len(ranked) < 2:
        return []
    (best, leading), *others = ranked
    labels = [agent.label for agent, final in others if final.high >= leading.low]
    if not labels:
        return []
    whose = "interval" if len(labels) == 1 else "intervals"
    return [
        f"{task.name}: {best.label} ends best, but the 95 % {whose} of {_named(labels)} "
        f"{'overlaps' if len(labels) == 1 else 'overlap'} with its own. These seeds do not tell which is better."
    ]


def _exploration(task: TaskResults) -> list[str]:
    if task.quantity != "training":
        return []
    return [
        f"{task.name}: only returns of training episodes are there, exploration included. Greedy evaluations "
        "would compare what was learned."
    ]


def _unfinished(records: Sequence[Record]) -> list[str]:
    told = [
        f"{record.name} ({record.done:,.0f} of {record.planned:,.0f} {record.unit or record.axis})"
        if record.planned
        else record.name
        for record in records
        if record.status in ("unfinished", "in use")
    ]
    found = [f"Unfinished: {_named(told)}. What they end with is what they have reached so far."] if told else []
    failed = [record.name for record in records if record.status == "failed"]
    return found + ([f"Failed: {_named(failed)}. What they had reached is shown."] if failed else [])


def _lengths(tasks: Sequence[TaskResults]) -> list[str]:
    found = []
    for task in tasks:
        for agent in task.agents:
            lasts = [trace.x[-1] for trace in agent.traces(task.quantity)]
            if lasts and max(lasts) > 1.1 * min(lasts):
                found.append(
                    f"{task.name}: the seeds of {agent.label} are of different lengths, {min(lasts):,.0f} to "
                    f"{max(lasts):,.0f} {task.axis}. The mean curve ends where the shortest does."
                )
    return found


def _versions(records: Sequence[Record]) -> list[str]:
    found = []
    names = dict.fromkeys(name for record in records for name in record.versions)
    for name in names:
        values = sorted({record.versions[name] for record in records if name in record.versions})
        if len(values) > 1:
            found.append(f"{name} {' and '.join(values)}")
    commits = sorted({record.commit[:7] for record in records if record.commit})
    if len(commits) > 1:
        found.append(f"commits {_named(commits, 6)}")
    if not found:
        return []
    return [f"Made by different versions: {'; '.join(found)}. Differences may be those of the code."]


def _twins(tasks: Sequence[TaskResults]) -> list[str]:
    told = [record.name for task in tasks for agent in task.agents for record in agent.dropped]
    if not told:
        return []
    return [f"Left out: {_named(told)}. Another run has the same setting and seed, and is longer or as long."]


def _beyond(n_files: int) -> list[str]:
    if not n_files:
        return []
    what = "1 picture or film is" if n_files == 1 else f"{n_files:,} pictures and films are"
    return [
        f"{what} not shown. A picture may have 2 MB and a film 6 MB, and a run {MOST_FILES} such files of "
        f"{0.75e-6 * RUN_ROOM:.2g} MB together."
    ]


def _named(names: Sequence[str], most: int = _MOST_NAMED) -> str:
    told = [*names[:most], f"{len(names) - most:,} more"] if len(names) > most else list(names)
    if len(told) == 1:
        return told[0]
    if any("," in name for name in told[:-1]):
        return f"{'; '.join(told[:-1])}; and {told[-1]}"
    return f"{', '.join(told[:-1])} and {told[-1]}"


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
