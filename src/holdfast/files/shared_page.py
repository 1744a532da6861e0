"""A few bytes shared with another process; changing them needs no system call."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["shared_page"]


@contextmanager
def shared_page(size: int) -> Iterator[tuple[mmap.mmap, int]]:
    """Writable memory of ``size`` zeros, and the file descriptor by which another process reads it."""
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        with mmap.mmap(file.fileno(), size) as memory:
            os.set_inheritable(file.fileno(), True)
            yield memory, file.fileno()
