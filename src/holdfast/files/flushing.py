"""Seeing to it that what was written is on the disk."""

from __future__ import annotations

from pathlib import Path

from holdfast.files.entries import Entry

__all__ = ["flush"]


def flush(path: Path | Entry) -> None:
    """Wait until a file, or the list of what is in a folder, is on the disk."""
    (path if isinstance(path, Entry) else Entry(path)).flush()
