"""``holdfast runs``: what there is, and how it stands."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.runs import RunStatus

__all__ = ["add_parser"]

_DESCRIPTION = """\
List the runs in a folder and below it: environment, algorithm, steps, return of
the last 20 episodes, and whether a run is finished, resumable (the command that
began it goes on with it), in use by another process, or damaged.
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "runs",
        help="list runs: algorithm, environment, steps, return, and how they stand",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", type=Path, default=Path("runs"), help="where to look (default: runs)"
    )
    parser.add_argument("--json", action="store_true", help="print an object per line")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """List."""
    from holdfast.runs.directory import find_runs

    found = find_runs(arguments.folder)
    if arguments.json:
        for status in found:
            sys.stdout.write(json.dumps(_as_json(status)) + "\n")
    elif not found:
        sys.stdout.write(f"no runs in {arguments.folder}\n")
    else:
        sys.stdout.write(_as_text(found, arguments.folder))
    return 0


def _as_text(found: list[RunStatus], top: Path) -> str:
    from holdfast.cli.values import printable

    header = ("run", "algorithm", "environment", "steps", "return", "status")
    rows = [header]
    for status in found:
        config = status.config
        named = status.path.relative_to(top).as_posix() if status.path != top else str(top)
        rows.append(
            (
                named,
                "?" if config is None else config.algo,
                "?" if config is None else config.label,
                f"{status.steps:,}",
                "-" if status.last_return is None else f"{status.last_return:.4g}",
                status.status,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    right = (3, 4)
    lines = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines += [f"{status.path}: {status.problem}" for status in found if status.problem]
    return "\n".join(map(printable, lines)) + "\n"


def _as_json(status: RunStatus) -> dict[str, Any]:
    config = status.config
    return {
        "path": str(status.path),
        "status": status.status,
        "algo": None if config is None else config.algo,
        "environment": None if config is None else config.label,
        "k_max": None if config is None else config.k_max,
        "seed": None if config is None else config.seed,
        "steps": status.steps,
        "episodes": status.episodes,
        "last_return": status.last_return,
        "problem": status.problem,
    }
