"""Seeing to it that what was written is on the disk."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["flush"]


def flush(path: Path) -> None:
    """Wait until a file, or the list of what is in a folder, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
