"""A folder that one process at a time writes to."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.core.errors import InputError

__all__ = ["LOCK", "FolderInUseError", "folder_in_use", "locked_folder"]

LOCK = ".lock"
"""Name of the file that locks a folder."""

_TRIES = 5


class FolderInUseError(InputError):
    """Another process writes to the folder."""


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Be the one who writes to ``folder``, for as long as the block lasts; the lock dies with the process.

    Raises:
        FolderInUseError: Another process is.
    """
    path = folder / LOCK
    handle = _open_lock(path, os.O_RDWR | os.O_CREAT)
    try:
        try:
            _lock(handle)
        except BlockingIOError:
            owner = os.pread(handle, 20, 0).decode("ascii", errors="replace").strip()
            who = f"process {owner}" if owner.isdigit() else "another process"
            raise FolderInUseError(f"{folder} is in use by {who}") from None
        if not _is_same(handle, path):
            raise FolderInUseError(f"{folder} was removed by another process")
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)


def folder_in_use(folder: Path) -> bool:
    """Whether a process has locked ``folder``."""
    path = folder / LOCK
    if not os.path.lexists(path):
        return False
    handle = _open_lock(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _open_lock(path: Path, flags: int) -> int:
    """Open the file that locks a folder; it must be one, or there is nothing to open."""
    try:
        handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise InputError(f"{path} is damaged: it must be a plain file") from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError(f"{path} is damaged: it must be a plain file")
    return handle


def _lock(handle: int) -> None:
    """Take the lock; somebody who only looks whether it is taken has it for a moment."""
    for _ in range(_TRIES):
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
    return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_same(handle: int, path: Path) -> bool:
    """Whether the open file is still the one under its name."""
    try:
        found, named = os.fstat(handle), os.stat(path)  # noqa: PTH116 - beside fstat
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (named.st_dev, named.st_ino)
