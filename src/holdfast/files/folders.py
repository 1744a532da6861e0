"""Replacing a folder, so that a complete one is there whatever happens in between.

A new one is written under a temporary name and flushed. Then the old one is moved aside, the new one takes its
name, and the old one goes. Between the two renames there is none under the right name for a moment; whoever looks
then takes the one that was moved aside, which is complete.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from holdfast.files.entries import Entry, as_entry

__all__ = ["find_folder", "replace_folder", "tidy_folder"]

PathOrEntry = TypeVar("PathOrEntry", Path, Entry)


@contextmanager
def replace_folder(path: PathOrEntry) -> Iterator[PathOrEntry]:
    """Give an empty folder beside ``path`` to write to; it takes the place of ``path`` when all went well.

    One process at a time may do this. If an exception leaves the block, what was there stays as it was.
    """
    entry = as_entry(path)
    name = entry.path.name
    unfinished = entry.parent / f".{name}.new-{secrets.token_hex(4)}"
    unfinished.make_folder(may_be_there=False)
    try:
        yield unfinished if isinstance(path, Entry) else unfinished.path
        old = _aside(entry)
        if entry.is_folder:
            old.remove_all()
            entry.rename(old.path.name)
        else:
            entry.remove_all()
        unfinished.rename(name)
    except BaseException:
        unfinished.remove_all()
        raise
    entry.parent.flush()
    old.remove_all()


def find_folder(path: PathOrEntry) -> PathOrEntry | None:
    """The last complete folder that was written as ``path``, if any."""
    entry = as_entry(path)
    for folder in (entry, _aside(entry)):
        if folder.is_folder:
            return folder if isinstance(path, Entry) else folder.path
    return None


def tidy_folder(path: Path | Entry) -> None:
    """Clear away what a killed process left of a replacement; only for who may replace it."""
    entry = as_entry(path)
    name, old = entry.path.name, _aside(entry)
    if find_folder(entry) == old:
        entry.remove_all()
        old.rename(name)
    old.remove_all()
    for leftover in entry.parent.listed():
        if leftover.startswith(f".{name}.new-"):
            (entry.parent / leftover).remove_all()


def _aside(entry: Entry) -> Entry:
    return entry.parent / f".{entry.path.name}.old"
