"""From what a user names to what there is: runs, campaigns, and folders that hold such."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from holdfast.core.errors import InputError
from holdfast.experiments.manifest import MANIFEST
from holdfast.files import walk_folders
from holdfast.report.campaign_records import campaign_findings
from holdfast.report.exhibits import files_of_run
from holdfast.report.page_room import EXHIBITS_ROOM
from holdfast.report.records import Findings, Problem
from holdfast.report.run_records import run_record
from holdfast.report.short_names import short_exhibit, short_problem, short_record
from holdfast.runs.directory import RunFolder, is_run_among

__all__ = ["find_all", "named_folders"]

Read = TypeVar("Read")


def named_folders(given: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The folders that a user has named, each once.

    Raises:
        ValueError: One of them is not a folder.
    """
    found: dict[Path, Path] = {}
    for one in given:
        path = Path(one)
        if not path.is_dir():
            raise InputError(
                f"what must be a run, a campaign or a folder that contains some; there is no folder {str(one)!r}",
                "what",
            )
        found.setdefault(path.resolve(), path)
    return list(found.values())


def find_all(folders: Sequence[Path]) -> Findings:
    """Everything there is to show in some folders, with short names; what is damaged is named instead."""
    found = Findings()
    room = EXHIBITS_ROOM
    runs, campaigns = _places(folders)
    for path in runs:
        name = str(path)
        record = _read(partial(run_record, path, name), name, found.problems)
        if record is None:
            continue
        record = short_record(record)
        found.records.append(record)
        files = _read(partial(files_of_run, record, room), f"{name}, its pictures", found.problems)
        if files is not None:
            found.exhibits += files.exhibits
            found.n_unread += files.n_unread
            found.n_beyond += files.n_beyond
            room -= sum(exhibit.n_bytes for exhibit in files.exhibits)
    for path in campaigns:
        part = _read(partial(campaign_findings, path, str(path)), str(path), found.problems)
        if part is not None:
            found.records += map(short_record, part.records)
            found.exhibits += map(short_exhibit, part.exhibits)
            found.problems += part.problems
    found.problems = [short_problem(problem) for problem in found.problems]
    return found


def _read(reader: Callable[[], Read], name: str, problems: list[Problem]) -> Read | None:
    """What ``reader`` makes of a folder; None if it is damaged, which ``problems`` then says."""
    try:
        return reader()
    except (InputError, OSError, ArithmeticError, MemoryError, RecursionError) as error:
        problems.append(Problem(name, " ".join(str(error).split())))
        return None


def _places(folders: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Folders of runs and of campaigns at or below some folders, each once, by name."""
    runs: dict[Path, Path] = {}
    campaigns: dict[Path, Path] = {}
    for top in folders:
        for place, inner, files in walk_folders(top):
            if MANIFEST in files:
                campaigns.setdefault(place.resolve(), place)
                inner.clear()
            elif is_run_among(inner, files) or (place == top and RunFolder(place).is_run):
                runs.setdefault(place.resolve(), place)
                inner.clear()
            inner[:] = sorted(name for name in inner if not name.startswith("."))
    return sorted(runs.values()), sorted(campaigns.values())
