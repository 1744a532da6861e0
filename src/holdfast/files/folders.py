"""Replacing a folder so that a complete one always exists.

The new folder is written under a temporary name and flushed. Then the old one is moved aside, the new one takes
its name, and the old one is removed. Between the two renames, no folder has the right name for a moment; readers
then use the one that was moved aside, which is complete.

Earlier folders may be kept, as NAME.1 (the one before), NAME.2 and so on. Only when the new one is on disk do they
move up by one, and the surplus ones are removed.

A folder has several files, and a reader without the lock may see it replaced half-way. ``read_newest`` therefore
believes a failure only if the folder still has its name afterwards; otherwise it begins again.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from holdfast.core.errors import InputError
from holdfast.files.entries import Entry, as_entry

__all__ = ["find_folder", "find_folders", "read_newest", "replace_folder", "tidy_folder"]

PathOrEntry = TypeVar("PathOrEntry", Path, Entry)
Contents = TypeVar("Contents")
Damage = tuple[Entry, Exception]
"""A folder that could not be read, and why."""

_LOOKS = 5
"""Looks after which a folder counts as missing; one look may fall between the two renames of a replacement."""
_READINGS = 100
"""Readings after which a failure is believed, even if the folder was replaced during each of them."""


@contextmanager
def replace_folder(path: PathOrEntry, keep: int = 1) -> Iterator[PathOrEntry]:
    """Provide an empty folder beside ``path`` to write to; it replaces ``path`` once the block succeeds.

    Only one process at a time may do this. If the block raises an exception, the old folder stays unchanged.

    Args:
        path: The folder.
        keep: Number of complete folders to keep, including the new one.
    """
    entry = as_entry(path)
    name = entry.path.name
    unfinished = entry.parent / f".{name}.new-{secrets.token_hex(4)}"
    unfinished.make_folder(may_be_there=False)
    try:
        yield unfinished if isinstance(path, Entry) else unfinished.path
        old = _aside(entry)
        if entry.is_folder:
            _put_away(entry, old, keep)
            entry.rename(old.path.name)
        else:
            entry.remove_all()
        unfinished.rename(name)
    except BaseException:
        unfinished.remove_all()
        raise
    entry.parent.flush()
    _put_away(entry, old, keep)
    # A gap ends what is ours: checkpoint.20261118 is somebody's own copy.
    for number, folder in _without_gap(_earlier(entry)):
        if number >= keep:
            folder.remove_all()


def find_folder(path: PathOrEntry) -> PathOrEntry | None:
    """The last complete folder written as ``path``, if any."""
    entry = as_entry(path)
    for folder in (entry, _aside(entry)):
        if folder.is_folder:
            return folder if isinstance(path, Entry) else folder.path
    return None


def find_folders(path: Path | Entry) -> list[Entry]:
    """All folders written as ``path`` that still exist, newest first."""
    entry = as_entry(path)
    newest = [folder for folder in (entry, _aside(entry)) if folder.is_folder]
    return newest + [earlier for _, earlier in _earlier(entry) if earlier.is_folder]


def read_newest(
    find: Callable[[], Sequence[Entry]],
    read: Callable[[Entry], Contents],
    is_damage: Callable[[Exception], bool] = lambda error: isinstance(error, InputError),
) -> tuple[Contents | None, list[Damage]]:
    """Read the newest undamaged folder, while another process may be replacing the folders.

    Args:
        find: Finds the folders, newest first, such as ``find_folders``.
        read: Reads a folder; it raises an exception unless all its files belong together.
        is_damage: Whether an exception means that the folder is damaged. Others are raised.

    Returns:
        What was read, from one folder only, or None if there is none; and the damaged folders before it.
    """
    for reading in range(1, _READINGS + 1):
        found = _found_folders(find)
        damaged: list[Damage] = []
        for folder in found:
            with folder.held() as has_its_name:
                try:
                    return read(folder), damaged
                except (InputError, OSError) as error:
                    if reading < _READINGS and not has_its_name():
                        break
                    if not is_damage(error):
                        raise
                    damaged.append((folder, error))
        else:
            break
    return None, damaged


def _found_folders(find: Callable[[], Sequence[Entry]]) -> Sequence[Entry]:
    for _ in range(_LOOKS):
        if found := find():
            return found
    return ()


def tidy_folder(path: Path | Entry, keep: int = 1) -> None:
    """Remove what a killed process left of a replacement; only a process that may replace ``path`` calls this.

    Args:
        path: The folder.
        keep: Number of complete folders to keep. With more than one, a folder that was moved aside becomes the
            first of the earlier ones; no earlier folder is removed before the next replacement is complete.
    """
    entry = as_entry(path)
    name, old = entry.path.name, _aside(entry)
    if find_folder(entry) == old:
        entry.remove_all()
        old.rename(name)
    _put_away(entry, old, keep)
    for leftover in entry.parent.listed():
        if leftover.startswith(f".{name}.new-"):
            (entry.parent / leftover).remove_all()


def _aside(entry: Entry) -> Entry:
    return entry.parent / f".{entry.path.name}.old"


def _earlier(entry: Entry) -> list[tuple[int, Entry]]:
    """The earlier folders that are kept, with their numbers, in order."""
    numbered = re.compile(re.escape(entry.path.name) + r"\.([1-9][0-9]{0,8})")
    found = [(int(match[1]), match[0]) for match in map(numbered.fullmatch, entry.parent.listed()) if match]
    return [(number, entry.parent / name) for number, name in sorted(found)]


def _put_away(entry: Entry, old: Entry, keep: int) -> None:
    """Make the folder that was moved aside the first of the earlier ones, or remove it if none are kept."""
    if keep == 1 or not old.is_folder:
        old.remove_all()
        return
    moving = _without_gap(_earlier(entry))
    for number, folder in reversed(moving):
        folder.rename(f"{entry.path.name}.{number + 1}")
    if moving:
        # The next rename must not reach the disk before these.
        entry.parent.flush()
    old.rename(f"{entry.path.name}.1")


def _without_gap(earlier: list[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    """The folders that must move up to free number 1: 1, 2, 3 of 1, 2, 3, 7."""
    return [found for place, found in enumerate(earlier, start=1) if found[0] == place]
