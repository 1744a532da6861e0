"""System errors that name the file they are about, so that a full disk can be found."""

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
        handle: Handle of the file; closed with it.
        mode: Mode, as for ``open``.
        path: Name of the file in errors.
    """

    def __init__(self, handle: int, mode: str, path: Path) -> None:
        super().__init__(handle, mode)
        self.path = path

    def write(self, data: Any, /) -> int:
        """Write as much as possible."""
        with named_errors(self.path):
            return super().write(data)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Make errors name the whole path, not only its last part or nothing at all."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def sync(file: IO[Any]) -> None:
    """Wait until everything written to an open file is on disk."""
    file.flush()
    raw = getattr(file, "raw", None)
    if isinstance(raw, NamedFile):
        with named_errors(raw.path):
            os.fsync(file.fileno())
    else:
        os.fsync(file.fileno())
