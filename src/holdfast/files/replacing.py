"""Replacing a file as a whole or not at all."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from holdfast.files.entries import Entry, as_entry
from holdfast.files.named_errors import sync

__all__ = ["replace_file", "tidy_files"]

_UNFINISHED = re.compile(r"\..+\.[0-9a-f]+\.part")


@contextmanager
def replace_file(path: Path | Entry) -> Iterator[BinaryIO]:
    """Provide a file to write to; once the block succeeds and the data is on disk, it replaces ``path``.

    If the block raises an exception, the old file stays unchanged and the new one is removed.
    """
    entry = as_entry(path)
    name = entry.path.name
    unfinished = entry.parent / f".{name}.{secrets.token_hex(4)}.part"
    try:
        with unfinished.create() as file:
            yield file
            sync(file)
        unfinished.rename(name)
    except BaseException as error:
        # If the folder is gone, so is the file.
        with suppress(OSError):
            unfinished.remove()
        if isinstance(error, OSError) and error.filename == str(unfinished.path):
            # Users know only the file that they asked for, not this one.
            error.filename = str(entry.path)
        raise


def tidy_files(folder: Entry) -> None:
    """Remove what a killed process left of replacements; only the process that may make them calls this."""
    for name in folder.listed():
        if _UNFINISHED.fullmatch(name) and (folder / name).is_file:
            (folder / name).remove()
