"""Making sure that written data is on disk."""

from __future__ import annotations

from pathlib import Path

from holdfast.files.entries import Entry

__all__ = ["flush"]


def flush(path: Path | Entry) -> None:
    """Wait until a file, or a folder's list of names, is on disk."""
    (path if isinstance(path, Entry) else Entry(path)).flush()
