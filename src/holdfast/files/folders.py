"""Replacing a folder, so that a complete one is there whatever happens in between.

A new one is written under a temporary name and flushed. Then the old one is moved aside, the new one takes its
name, and the old one goes. Between the two renames there is none under the right name for a moment; whoever looks
then takes the one that was moved aside, which is complete.
"""

from __future__ import annotations

import glob
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.files.flushing import flush

__all__ = ["find_folder", "replace_folder", "tidy_folder"]


@contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """Give an empty folder beside ``path`` to write to; it takes the place of ``path`` when all went well.

    One process at a time may do this. If an exception leaves the block, what was there stays as it was.
    """
    unfinished = path.with_name(f".{path.name}.new-{secrets.token_hex(4)}")
    unfinished.mkdir()
    try:
        yield unfinished
        old = _aside(path)
        if _is_folder(path):
            _remove(old)
            path.rename(old)
        else:
            _remove(path)
        unfinished.rename(path)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    flush(path.parent)
    _remove(old)


def find_folder(path: Path) -> Path | None:
    """The last complete folder that was written as ``path``, if any."""
    for folder in (path, _aside(path)):
        if _is_folder(folder):
            return folder
    return None


def tidy_folder(path: Path) -> None:
    """Clear away what a killed process left of a replacement; only for who may replace it."""
    old = _aside(path)
    if find_folder(path) == old:
        _remove(path)
        old.rename(path)
    _remove(old)
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.new-*"):
        _remove(leftover)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _remove(path: Path) -> None:
    """Remove a folder, or what is there instead of one; of a link, never what it leads to."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)
