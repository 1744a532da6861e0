"""``holdfast runs``: list runs and their status."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.streams import results
from holdfast.cli.verbs import add_verb

if TYPE_CHECKING:
    from holdfast.runs import RunStatus
    from holdfast.runs.config import RunConfig

__all__ = ["add_parser"]

_COLUMNS = 80

_DESCRIPTION = """\
List the runs in a folder and below it: algorithm, k_max, environment, steps,
return of the last 20 episodes, and whether a run is finished, resumable (type
its command again to continue), in use by another process, or damaged.
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "runs", "list runs: algorithm, environment, steps, return and status", _DESCRIPTION)
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", type=Path, default=Path("runs"), help="where to look (default: runs)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per run")
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """List."""
    from holdfast.runs.directory import find_runs

    found = find_runs(arguments.folder)
    if arguments.json:
        for status in found:
            results().write(json.dumps(_as_json(status)) + "\n")
    elif not found:
        results().write(f"no runs in {arguments.folder}\n")
    else:
        results().write(_as_text(found, arguments.folder))
    return 0


def _as_text(found: list[RunStatus], top: Path) -> str:
    from holdfast.cli.typed_values import environment_file_name, printable

    rows = [("run", "algorithm", "k_max", "environment", "steps", "return", "status")]
    for status in found:
        config = status.config
        named = status.path.relative_to(top).as_posix() if status.path != top else str(top)
        rows.append(
            (
                named,
                "?" if config is None else config.algo,
                "" if config is None else _held(config),
                "?" if config is None else config.label,
                f"{status.steps:,}",
                "-" if status.last_return is None else f"{status.last_return:.4g}",
                status.status,
            )
        )
    lines = _lines(rows)
    if max(map(len, lines)) > _COLUMNS and all(
        status.config is None or status.path.name.startswith(environment_file_name(status.config.label))
        for status in found
    ):
        # Default names begin with the environment.
        place = rows[0].index("environment")
        lines = _lines([row[:place] + row[place + 1 :] for row in rows])
    lines += [f"{status.path}: {status.problem}" for status in found if status.problem]
    return "\n".join(map(printable, lines)) + "\n"


def _held(config: RunConfig) -> str:
    """The largest persistence, or those of a sparse set."""
    if config.persistences is not None:
        return ",".join(map(str, config.persistences))
    return str(config.k_max) if "k_max" in config.arguments else ""


def _lines(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns, with numbers right-aligned; the first row is the header."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if title in ("k_max", "steps", "return") else cell.ljust(width)
            for cell, width, title in zip(row, widths, rows[0], strict=True)
        ).rstrip()
        for row in rows
    ]


def _as_json(status: RunStatus) -> dict[str, Any]:
    config = status.config
    return {
        "path": str(status.path),
        "status": status.status,
        "algo": None if config is None else config.algo,
        "environment": None if config is None else config.label,
        "k_max": None if config is None else config.k_max,
        "persistences": None if config is None else config.persistences,
        "seed": None if config is None else config.seed,
        "steps": status.steps,
        "episodes": status.episodes,
        "last_return": status.last_return,
        "problem": status.problem,
    }
