"""Files that claim to be large but have almost nothing on disk."""

from __future__ import annotations

import errno
import os

__all__ = ["is_hollow"]

_LARGE = 64 * 2**20
"""Files below this size, in bytes, are not checked."""
_SHARE = 16
"""At least 1/16 of the bytes must be on disk."""


def is_hollow(handle: int) -> bool:
    """Whether a large open file consists almost entirely of holes; False if the system cannot tell."""
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
        # Any other error means that the system cannot tell after all.
        if error.errno != errno.ENXIO:
            return False
    finally:
        os.lseek(handle, 0, os.SEEK_SET)
    return there * _SHARE < size
