"""Errors of the system that say which file they are about: a full disk is one somewhere."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

__all__ = ["NamedFile", "named_errors", "sync"]


class NamedFile(io.FileIO):
    """An open file whose errors name it.

    Args:
        handle: Of the file; closed with it.
        mode: As of ``open``.
        path: What it is called in errors.
    """

    def __init__(self, handle: int, mode: str, path: Path) -> None:
        super().__init__(handle, mode)
        self.path = path

    def write(self, data: Any, /) -> int:
        """Write as much as is possible."""
        with named_errors(self.path):
            return super().write(data)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Let errors name the whole path, not nothing or only the name at its end."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def sync(file: IO[Any]) -> None:
    """Wait until all that was written to an open file is on the disk."""
    file.flush()
    raw = getattr(file, "raw", None)
    if isinstance(raw, NamedFile):
        with named_errors(raw.path):
            os.fsync(file.fileno())
    else:
        os.fsync(file.fileno())
