"""Replacing a file as a whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replace_file"]


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` to write to; what was written takes its place when all went well.

    If an exception leaves the block, the old file stays as it was and the temporary one is removed.
    """
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
