"""Folders that only one process at a time may write to."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import SoftFileLock, Timeout, lock_descriptor

from holdfast.core.errors import InputError
from holdfast.files.entries import Entry, refuse_second_name

__all__ = [
    "LOCK",
    "FolderInUseError",
    "FolderLock",
    "LockableFolder",
    "folder_in_use",
    "locked_folder",
    "remove_lock",
]

LOCK = ".lock"
"""Name of the file that locks a folder."""

_MARKER = ".lock.held"
"""Name of the file that exists while a folder is locked, on systems that cannot lock files."""

_LOCKED_BYTES = 1
"""First bytes of the file; on Windows, only the process that locked them can read them."""

_TRIES = 5
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


class FolderInUseError(InputError):
    """Another process is writing to the folder."""


class FolderLock:
    """A folder that this process has locked.

    Args:
        folder: The folder.
        handle: Handle of the lock file.
    """

    def __init__(self, folder: Entry, handle: int) -> None:
        self._folder = folder
        self._handle = handle

    def check(self) -> None:
        """Check that the folder is still the one that was locked.

        Raises:
            InputError: It was removed, or another folder has its name.
        """
        if not _is_same(self._handle, self._folder / LOCK):
            raise InputError(
                f"{self._folder} was removed, renamed or replaced while it was being written: "
                "nothing more can be stored in it"
            )


@contextmanager
def locked_folder(folder: Path | Entry) -> Iterator[FolderLock]:
    """Hold the lock on ``folder`` for as long as the block lasts; the lock ends with the process.

    Raises:
        FolderInUseError: Another process holds it.
        InputError: The lock file is not a plain file, or has a second name.
    """
    entry = folder if isinstance(folder, Entry) else Entry(folder)
    lock = entry / LOCK
    handle = lock.handle_to_lock(is_made=True)
    try:
        refuse_second_name(handle, lock)
        with _held(handle, entry):
            if not _is_same(handle, lock):
                raise FolderInUseError(f"{entry} was removed by another process")
            _note_owner(handle)
            yield FolderLock(entry, handle)
    finally:
        os.close(handle)


class LockableFolder:
    """A folder that only one process at a time may write to.

    Args:
        entry: The folder.
    """

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._lock: FolderLock | None = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock for as long as the block lasts; the lock ends with the process.

        Raises:
            FolderInUseError: Another process holds it.
        """
        with locked_folder(self.entry) as self._lock:
            try:
                yield
            finally:
                self._lock = None

    def check_lock(self) -> None:
        """Check that the locked folder still exists.

        Raises:
            ValueError: It was removed or replaced in the meantime.
        """
        if self._lock is not None:
            self._lock.check()


def folder_in_use(folder: Path | Entry) -> bool:
    """Whether a process has locked ``folder``."""
    entry = folder if isinstance(folder, Entry) else Entry(folder)
    lock = entry / LOCK
    if not lock.is_there:
        return False
    handle = lock.handle_to_lock(is_made=False)
    try:
        return not _is_free(handle, entry)
    finally:
        os.close(handle)


def remove_lock(folder: Path | Entry) -> None:
    """Remove the lock file; only the process that holds the lock calls this."""
    entry = folder if isinstance(folder, Entry) else Entry(folder)
    (entry / LOCK).remove()


@contextmanager
def _held(handle: int, folder: Entry) -> Iterator[None]:
    """Hold the lock; closing the handle releases it."""
    try:
        is_taken = _lock(handle)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        with _marked(folder):
            yield
        return
    if not is_taken:
        owner = _owner(handle)
        raise _in_use(folder, int(owner) if owner.isdigit() else None)
    yield


def _lock(handle: int) -> bool:
    """Take the lock; a process that only checks the lock holds it for a moment, so try several times."""
    for _ in range(_TRIES):
        if lock_descriptor(handle, blocking=False):
            return True
        time.sleep(0.02)
    return lock_descriptor(handle, blocking=False)


def _is_free(handle: int, folder: Entry) -> bool:
    try:
        return _lock(handle)
    except OSError as error:
        if error.errno == errno.EBADF:
            # A read-only file on a network drive cannot be locked, and its owner cannot be seen either.
            return True
        if error.errno not in _NO_LOCKS:
            raise
    try:
        with _marked(folder):
            return True
    except FolderInUseError:
        return False


def _note_owner(handle: int) -> None:
    """Write down which process holds the lock."""
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, b" " * _LOCKED_BYTES + str(os.getpid()).encode())


def _owner(handle: int) -> str:
    os.lseek(handle, _LOCKED_BYTES, os.SEEK_SET)
    return os.read(handle, 20).decode("ascii", errors="replace").strip()


def _in_use(folder: Entry, owner: int | None) -> FolderInUseError:
    who = "another process" if owner is None else f"process {owner}"
    return FolderInUseError(f"{folder} is in use by {who}")


def _is_same(handle: int, lock: Entry) -> bool:
    """Whether the open file is still the one with its name."""
    try:
        named = lock.status()
    except (InputError, OSError):
        return False
    found = os.fstat(handle)
    return named is not None and (found.st_dev, found.st_ino) == (named.st_dev, named.st_ino)


# On systems without file locks ----------------------------------------------------------------------------------


@contextmanager
def _marked(folder: Entry) -> Iterator[None]:
    """Hold a lock that is a file; it counts for nothing once its process is gone."""
    marker = SoftFileLock(folder.path / _MARKER)
    try:
        marker.acquire(timeout=_TRIES * 0.02, poll_interval=0.02)
    except Timeout:
        raise _in_use(folder, marker.pid) from None
    try:
        yield
    finally:
        marker.release()
