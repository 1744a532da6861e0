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
    """Give a file to write to; what was written takes the place of ``path`` when all went well and is on the disk.

    If an exception leaves the block, the old file stays as it was and the new one is removed.
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
        # Where the folder is gone, the file is.
        with suppress(OSError):
            unfinished.remove()
        if isinstance(error, OSError) and error.filename == str(unfinished.path):
            # The user has asked for the other one, and never sees this.
            error.filename = str(entry.path)
        raise


def tidy_files(folder: Entry) -> None:
    """Clear away what a killed process left of replacements; only for who may make them."""
    for name in folder.listed():
        if _UNFINISHED.fullmatch(name) and (folder / name).is_file:
            (folder / name).remove()
