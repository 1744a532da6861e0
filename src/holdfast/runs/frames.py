"""Runs as pandas frames with a row per episode, evaluation, hold or run."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.checks import check_choice
from holdfast.core.distribution import install_command
from holdfast.core.errors import InputError, InputTypeError
from holdfast.files import read_numbers
from holdfast.runs.directory import RunFolder, RunStatus, find_runs

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ROWS", "argument_cell", "argument_column", "as_frame", "read_runs"]

ROWS = ("episodes", "evaluations", "holds", "runs")
"""What the rows of a frame may be."""

_UNTOLD = "schedule_steps"
"""An argument that depends on the length of the run."""

_CALLED = {"environment": "env_index"}
"""Columns of a file with another name in a frame, where the name of its own is that of something else."""
_GIVEN = "set."
"""Prefix of an argument that has the name of another column, such as the rate ``epsilon`` of an episode."""


def read_runs(
    folder: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = "runs", rows: str = "episodes"
) -> pd.DataFrame:
    """The runs in a folder and below it as a pandas frame.

    Its first columns identify the run: folder, environment, algorithm, k_max, seed, and the arguments of the
    algorithm in which the runs differ. An argument with the name of another column has ``set.`` before it, and an
    episode's index of the environment is ``env_index``. Nothing that the files name is imported.

    Args:
        folder: One folder, or several.
        rows: ``"episodes"`` of the training, ``"evaluations"``, ``"holds"`` (how many decisions of an evaluation
            were held for how long), or ``"runs"`` with their status, damaged ones included.

    Raises:
        ValueError: There is no such folder, there are no runs in it, or pandas is not installed.
    """
    check_choice("rows", rows, ROWS)
    folders = [folder] if isinstance(folder, str | os.PathLike) else folder
    if not isinstance(folders, Sequence) or not all(isinstance(one, str | os.PathLike) for one in folders):
        raise InputTypeError(f"folder must be a folder or a list of folders, not {folder!r}", "folder")
    if not folders:
        raise InputError("folder must name at least one folder, and the list is empty", "folder")
    found = [status for one in folders for status in find_runs(one)]
    if rows != "runs":
        found = [status for status in found if status.status != "damaged"]
    if not found:
        raise InputError(
            f"folder must contain runs, and there are none in {', '.join(map(str, folders))}", "folder"
        )
    about = _told_apart(found)
    if rows == "runs":
        return as_frame([{**own, **_standing(status)} for own, status in zip(about, found, strict=True)])
    columns = _columns(rows)
    parts = [_numbers(status.path, rows, columns) for status in found]
    lengths = [len(part[columns[0]]) for part in parts]
    repeated = [own for own, length in zip(about, lengths, strict=True) for _ in range(length)]
    names = list(dict.fromkeys(name for own in about for name in own))
    told = {name: [own.get(name) for own in repeated] for name in names}
    read = {_CALLED.get(name, name): [value for part in parts for value in part[name]] for name in columns}
    return as_frame({**told, **read})


def as_frame(data: Any) -> pd.DataFrame:
    """Make a pandas frame.

    Raises:
        ValueError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise InputError(f"a frame needs pandas, which is not installed: {install_command('data')}") from None
    return pd.DataFrame(data)


def _told_apart(found: Sequence[RunStatus]) -> list[dict[str, Any]]:
    """The columns that identify each run, one mapping per run."""
    arguments = [{} if status.config is None else status.config.arguments for status in found]
    names = dict.fromkeys(name for own in arguments for name in own if name not in ("k_max", _UNTOLD))
    differing = [name for name in names if len({json.dumps(own.get(name)) for own in arguments}) > 1]
    taken = _taken()
    return [
        {
            **_named(status),
            **{argument_column(name, taken): argument_cell(own.get(name)) for name in differing},
        }
        for status, own in zip(found, arguments, strict=True)
    ]


def _taken() -> set[str]:
    """Names of columns that are not arguments, whatever the rows are: an argument has one name in all frames."""
    identifying = ("run", "environment", "algorithm", "k_max", "seed")
    standing = ("status", "steps", "episodes", "last_return", "problem")
    return {*identifying, *standing, *(name for rows in ROWS if rows != "runs" for name in _columns(rows))}


def _named(status: RunStatus) -> dict[str, Any]:
    config = status.config
    told = {"run": str(status.path)}
    if config is None:
        return {**told, "environment": None, "algorithm": None, "k_max": None, "seed": None}
    return {
        **told,
        "environment": config.label,
        "algorithm": config.algo,
        "k_max": config.k_max,
        "seed": config.seed,
    }


def _standing(status: RunStatus) -> dict[str, Any]:
    return {
        "status": status.status,
        "steps": status.steps,
        "episodes": status.episodes,
        "last_return": status.last_return,
        "problem": status.problem,
    }


def argument_column(name: str, taken: Container[str]) -> str:
    """What the column of an argument is called, beside columns with the names that are ``taken``."""
    return f"{_GIVEN}{name}" if name in taken else name


def argument_cell(value: Any) -> Any:
    """An argument as a cell: lists and mappings as JSON."""
    return json.dumps(value) if isinstance(value, list | dict) else value


def _columns(rows: str) -> tuple[str, ...]:
    from holdfast.runs.session import EVALUATION_COLUMNS, HOLD_COLUMNS, METRIC_COLUMNS

    return {"episodes": METRIC_COLUMNS, "evaluations": EVALUATION_COLUMNS, "holds": HOLD_COLUMNS}[rows]


def _numbers(path: Path, rows: str, columns: Sequence[str]) -> Mapping[str, Any]:
    folder = RunFolder(path)
    file = {"episodes": folder.metrics, "evaluations": folder.evaluations, "holds": folder.holds}[rows]
    return read_numbers(file, columns) if file.is_there else {name: [] for name in columns}
