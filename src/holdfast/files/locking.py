"""A folder that one process at a time writes to."""

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
"""Name of the file that is there while a folder is locked, where the system locks no files."""

_LOCKED_BYTES = 1
"""The first bytes of the file, which Windows lets nobody read who has not locked them."""

_TRIES = 5
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


class FolderInUseError(InputError):
    """Another process writes to the folder."""


class FolderLock:
    """A folder that this process has locked.

    Args:
        folder: The folder.
        handle: Of the locked file.
    """

    def __init__(self, folder: Entry, handle: int) -> None:
        self._folder = folder
        self._handle = handle

    def check(self) -> None:
        """See whether the folder is still the one that was locked.

        Raises:
            InputError: It was removed, or another one has its name.
        """
        if not _is_same(self._handle, self._folder / LOCK):
            raise InputError(
                f"{self._folder} was removed, renamed or replaced while it was written to: "
                "nothing more can be stored in it"
            )


@contextmanager
def locked_folder(folder: Path | Entry) -> Iterator[FolderLock]:
    """Be the one who writes to ``folder``, for as long as the block lasts; the lock dies with the process.

    Raises:
        FolderInUseError: Another process is.
        InputError: The lock's file is none, or is another file, too.
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
    """A folder that one process at a time writes to.

    Args:
        entry: The folder.
    """

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._lock: FolderLock | None = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the one who writes, for as long as the block lasts; the lock dies with the process.

        Raises:
            FolderInUseError: Another process is.
        """
        with locked_folder(self.entry) as self._lock:
            try:
                yield
            finally:
                self._lock = None

    def check_lock(self) -> None:
        """See whether the folder that was locked is still there.

        Raises:
            ValueError: It was removed or replaced meanwhile.
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
    """Remove the lock's file; only for who holds it."""
    entry = folder if isinstance(folder, Entry) else Entry(folder)
    (entry / LOCK).remove()


@contextmanager
def _held(handle: int, folder: Entry) -> Iterator[None]:
    """Hold the lock, which closing the handle lets go of."""
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
    """Take the lock; somebody who only looks whether it is taken has it for a moment."""
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
            # A network's file that may only be read cannot be locked, nor could it be seen who does.
            return True
        if error.errno not in _NO_LOCKS:
            raise
    try:
        with _marked(folder):
            return True
    except FolderInUseError:
        return False


def _note_owner(handle: int) -> None:
    """Write down who holds the lock."""
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
    """Whether the open file is still the one under its name."""
    try:
        named = lock.status()
    except (InputError, OSError):
        return False
    found = os.fstat(handle)
    return named is not None and (found.st_dev, found.st_ino) == (named.st_dev, named.st_ino)


# Without locks of the system ------------------------------------------------------------------------------------


@contextmanager
def _marked(folder: Entry) -> Iterator[None]:
    """Hold a lock that is a file: one whose process is gone counts for nothing."""
    marker = SoftFileLock(folder.path / _MARKER)
    try:
        marker.acquire(timeout=_TRIES * 0.02, poll_interval=0.02)
    except Timeout:
        raise _in_use(folder, marker.pid) from None
    try:
        yield
    finally:
        marker.release()
