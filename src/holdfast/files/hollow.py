"""Files that say that they are large and have next to nothing on the disk."""

from __future__ import annotations

import errno
import os

__all__ = ["is_hollow"]

_LARGE = 64 * 2**20
"""Bytes below which it does not matter."""
_SHARE = 16
"""One part in this many must be there."""


def is_hollow(handle: int) -> bool:
    """Whether a large open file is nearly all holes; False where the system does not tell."""
    size = os.fstat(handle).st_size
    if size < _LARGE or not hasattr(os, "SEEK_DATA"):
        return False
    there = end = 0
    try:
        while end < size and there * _SHARE < size:
            begin = os.lseek(handle, end, os.SEEK_DATA)
            end = os.lseek(handle, begin, os.SEEK_HOLE)
            there += end - begin
    except OSError as error:
        # Else the system does not tell after all.
        if error.errno != errno.ENXIO:
            return False
    finally:
        os.lseek(handle, 0, os.SEEK_SET)
    return there * _SHARE < size
