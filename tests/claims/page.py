"""The claims as parts of docs/claims.md: a table for each group, made of committed rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.claims.findings import Finding, verdict
from tests.claims.kept import Kept, kept_in
from tests.claims.statements import (
    ATARI,
    CAR,
    EXPLORATION,
    GRIDS,
    PROVEN,
    SYNCHRONOUS,
    UNTESTED_HERE,
    Measured,
    Proven,
)

_MEASURED = "| claim | where | verdict | numbers | command | rows |\n|---|---|---|---|---|---|\n"


def claims_text(results: Path) -> str:
    """All tables."""
    kept = kept_in(results)
    groups: dict[str, Sequence[Measured]] = {
        "Exploration": EXPLORATION,
        "Synchronous learning": SYNCHRONOUS,
        "The grids": GRIDS,
        "MountainCar": CAR,
    }
    parts = [f"### Theory\n\n{_proven(PROVEN)}"]
    parts += [f"### {title}\n\n{_measured(claims, kept)}" for title, claims in groups.items()]
    parts.append(f"### Atari\n\n{_atari()}")
    return "\n".join(parts)


def _proven(claims: Iterable[Proven]) -> str:
    lines = ["| claim | where | verdict | shown by |", "|---|---|---|---|"]
    for one in claims:
        tests = ", ".join(
            f"[`{test.rpartition('::')[2]}`](../tests/{test.partition('::')[0]})" for test in one.tests
        )
        lines.append(f"| {_with_note(one.claim, one.note)} | {one.where} | **{one.verdict}** | {tests} |")
    return "\n".join(lines) + "\n"


def _measured(claims: Iterable[Measured], kept: Kept) -> str:
    lines = []
    for one in claims:
        found = one.evidence(kept)
        decided = {choice: findings for choice, findings in found.items() if findings}
        if decided:
            told = "; ".join(_labelled(choice, f"**{verdict(part)}**") for choice, part in decided.items())
            numbers = "<br>".join(_labelled(choice, _numbers(part)) for choice, part in decided.items())
            rows = f"`results/{one.rows}`"
        else:
            told, numbers, rows = f"**{UNTESTED_HERE}**", one.known(kept) or "no rows yet", "–"
        claim = _with_note(one.claim, one.note)
        lines.append(f"| {claim} | {one.where} | {told} | {numbers} | `{one.command}` | {rows} |")
    return _MEASURED + "\n".join(lines) + "\n"


def _atari() -> str:
    lines = ["| claim | where | verdict | command |", "|---|---|---|---|"]
    for claim, figure in ATARI:
        command = f"holdfast reproduce {figure.removeprefix('fig:')} --scale paper"
        lines.append(f"| {claim} | `{figure}` | **{UNTESTED_HERE}**: a run takes days on a CPU | `{command}` |")
    return "\n".join(lines) + "\n"


def _with_note(claim: str, note: str) -> str:
    return f"{claim} *{note}*" if note else claim


def _labelled(choice: str, text: str) -> str:
    return f"{choice}: {text}" if choice else text


def _numbers(findings: Sequence[Finding]) -> str:
    """What is not as claimed is marked."""
    return ", ".join(one.text + ("" if one.is_as_claimed else " ✗") for one in findings)
