"""The only place where files and folders are opened, made, listed, renamed and removed.

A user may reach a folder through links: its location is the user's choice. Everything below that folder was made
here and is therefore a folder or a plain file. Nothing else is touched there:

- A file that is read or continued must be plain; a file that is changed in place must have no second name.
- A new file replaces whatever had its name. Of a link or a pipe, only the name is removed.
- Every folder on the way must be a real folder, not a link to one.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from holdfast.core.errors import InputError
from holdfast.files.named_errors import NamedFile, named_errors
from holdfast.files.steps import (
    CAN_FLUSH_FOLDERS,
    FOLLOWED,
    HAS_HANDLES,
    LISTED,
    NOT_FOLLOWED,
    PASSED,
    in_folder,
    inner_folder,
    is_file,
    is_folder,
    kind_of,
    lstat,
    not_a_file,
    not_a_folder,
    open_name,
    remove_name,
    remove_with_contents,
)

__all__ = ["Entry", "as_entry", "make_folders", "refuse_second_name", "remove_tree", "walk_folders"]

_BECAME = {errno.ELOOP: "a link", errno.ENXIO: "a pipe or a socket", errno.EISDIR: "a folder"}
"""What a plain file was replaced with just before it was opened, by the resulting error."""


@dataclass(frozen=True)
class Entry:
    """A file or folder, and the path that leads to it.

    Args:
        root: A folder that the user named; it may be reached through links.
        names: Names of the folders below the root, then of the entry itself; links among them are not followed.
            If empty, the entry is the root.
    """

    root: Path
    names: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The whole path, for messages."""
        return self.root.joinpath(*self.names)

    @property
    def parent(self) -> Entry:
        """The folder that contains it; for the root, too, the user chose that folder."""
        return Entry(self.root, self.names[:-1]) if self.names else Entry(self.root.parent)

    def __truediv__(self, name: str) -> Entry:
        return Entry(self.root, (*self.names, name))

    def __str__(self) -> str:
        return str(self.path)

    # What is there -------------------------------------------------------------------------------------------

    def status(self) -> os.stat_result | None:
        """The status of the entry itself, not of a link's target; None if nothing exists.

        Raises:
            InputError: A folder on the way is a link.
        """
        try:
            with named_errors(self.path), self._reached() as (folder, name):
                return lstat(name, folder)
        except (FileNotFoundError, NotADirectoryError):
            return None

    @property
    def is_there(self) -> bool:
        """Whether anything has this name, even a broken link."""
        return self.status() is not None

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, not a link to one."""
        found = self.status()
        return found is not None and is_folder(found)

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file, not a link to one."""
        found = self.status()
        return found is not None and is_file(found)

    def listed(self) -> list[str]:
        """The sorted names in a folder; empty if nothing exists.

        Raises:
            InputError: It is a link, or not a folder.
        """
        try:
            with named_errors(self.path), self._opened_folder() as folder:
                return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    @contextmanager
    def held(self) -> Iterator[Callable[[], bool]]:
        """Provide a function that tells whether this folder still has its name.

        Within the block the folder is kept open where the system allows it, so that no new folder is given its
        number. A folder that is gone at the beginning has lost its name.
        """
        try:
            handle, at_first = self._identified()
        except (OSError, InputError):
            yield lambda: False
            return

        def has_its_name() -> bool:
            try:
                again, now = self._identified()
            except (OSError, InputError):
                return False
            if again is not None:
                os.close(again)
            return os.path.samestat(now, at_first)

        try:
            yield has_its_name
        finally:
            if handle is not None:
                os.close(handle)

    def _identified(self) -> tuple[int | None, os.stat_result]:
        """A handle of this folder, or None where folders have none, and the folder's status."""
        with named_errors(self.path), self._reached() as (folder, name):
            if not HAS_HANDLES:
                return None, os.stat(name)
            handle = os.open(name, PASSED) if folder is None else inner_folder(name, folder, PASSED, self.path)
        return handle, os.fstat(handle)

    # Files ---------------------------------------------------------------------------------------------------

    def open_to_read(self, largest: int | None = None, what: str = "it") -> BinaryIO:
        """Open a plain file.

        Args:
            largest: Largest size in bytes.
            what: What the file holds, for the message if it is too large.

        Raises:
            InputError: It is missing, too large, or not a plain file.
        """
        file = io.BufferedReader(NamedFile(self._handle(os.O_RDONLY), "rb", self.path))
        if largest is not None and os.fstat(file.fileno()).st_size > largest:
            file.close()
            raise InputError(f"{self} is too large: {what} may have at most {largest >> 20} MB")
        return file

    def read(self, largest: int, what: str) -> bytes:
        """The contents of a plain file; see ``open_to_read``."""
        with self.open_to_read(largest, what) as file:
            return file.read(largest)

    def create(self) -> BinaryIO:
        """Make a new file to write to, replacing whatever had its name.

        Raises:
            OSError: The file cannot be made, for example because a folder has its name.
        """
        with named_errors(self.path), self._reached() as (folder, name):
            remove_name(name, folder)
            handle = open_name(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOT_FOLLOWED, folder)
        return io.BufferedWriter(NamedFile(handle, "wb", self.path))

    def open_to_append(self, length: int) -> BinaryIO:
        """Truncate a plain file to a length, and open it to append.

        Raises:
            InputError: It is missing, not a plain file, or has a second name.
        """
        handle = self._handle(os.O_WRONLY | os.O_APPEND)
        try:
            refuse_second_name(handle, self)
            with named_errors(self.path):
                os.ftruncate(handle, length)
        except BaseException:
            os.close(handle)
            raise
        return io.BufferedWriter(NamedFile(handle, "ab", self.path))

    def handle_to_lock(self, is_made: bool) -> int:
        """A handle of a plain file whose contents are not changed.

        Args:
            is_made: Whether the file must be writable and is made if it is missing.

        Raises:
            InputError: It is not a plain file, or is missing and must not be made.
        """
        try:
            return self._handle(os.O_RDWR | (os.O_CREAT if is_made else 0))
        except OSError as error:
            if is_made or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
        return self._handle(os.O_RDONLY)

    def _handle(self, flags: int) -> int:
        try:
            with named_errors(self.path), self._reached() as (folder, name):
                with suppress(*((FileNotFoundError,) if flags & os.O_CREAT else ())):
                    if not is_file(found := lstat(name, folder)):
                        raise not_a_file(self.path, kind_of(found))
                handle = open_name(name, flags | NOT_FOLLOWED, folder)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR) and not flags & os.O_CREAT:
                raise InputError(f"{self} is missing") from None
            if error.errno in _BECAME:
                raise not_a_file(self.path, _BECAME[error.errno]) from None
            raise
        if not is_file(found := os.fstat(handle)):
            os.close(handle)
            raise not_a_file(self.path, kind_of(found))
        return handle

    # Names ---------------------------------------------------------------------------------------------------

    def make_folder(self, may_be_there: bool = True) -> None:
        """Make a folder.

        Raises:
            InputError: Something else is there.
        """
        with named_errors(self.path), self._reached() as (folder, name):
            try:
                os.mkdir(name, **in_folder(folder))
            except FileExistsError:
                if not may_be_there:
                    raise
                if not is_folder(lstat(name, folder)):
                    raise not_a_folder(self.path) from None

    def rename(self, name: str) -> None:
        """Give it another name in its folder; a file that has that name is replaced."""
        with named_errors(self.path), self._reached() as (folder, old):
            if folder is None:
                # On systems where a rename does not replace a file, this does.
                os.replace(old, self.path.with_name(name))
            else:
                os.rename(old, name, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self) -> None:
        """Remove anything but a folder; it is not an error if nothing exists."""
        with named_errors(self.path), self._reached() as (folder, name):
            remove_name(name, folder)

    def remove_empty(self) -> None:
        """Remove an empty folder."""
        with named_errors(self.path), self._reached() as (folder, name):
            os.rmdir(name, **in_folder(folder))

    def remove_all(self) -> None:
        """Remove a folder and its contents, or whatever has its name, as far as possible."""
        with suppress(OSError, InputError, RecursionError), self._reached() as (folder, name):
            remove_with_contents(name, folder)

    def flush(self) -> None:
        """Wait until a file, or a folder's list of names, is on disk."""
        if not CAN_FLUSH_FOLDERS and self.path.is_dir():
            return
        # Windows can flush only what is open for writing.
        flags = (os.O_RDONLY if CAN_FLUSH_FOLDERS else os.O_RDWR) | (NOT_FOLLOWED if self.names else FOLLOWED)
        with named_errors(self.path), self._reached() as (folder, name):
            handle = open_name(name, flags, folder)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    # The way -------------------------------------------------------------------------------------------------

    @contextmanager
    def _reached(self) -> Iterator[tuple[int | None, str]]:
        """A handle of the parent folder and the entry's name in it; or None and the entry's path."""
        if not self.names:
            yield None, str(self.root)
            return
        if not HAS_HANDLES:
            way = self.root
            for name in self.names[:-1]:
                way = way / name
                if not is_folder(lstat(str(way), None)):
                    raise not_a_folder(way)
            yield None, str(way / self.names[-1])
            return
        handle = os.open(self.root, PASSED)
        try:
            for depth, name in enumerate(self.names[:-1], start=1):
                inner = inner_folder(name, handle, PASSED, self.root.joinpath(*self.names[:depth]))
                os.close(handle)
                handle = inner
            yield handle, self.names[-1]
        finally:
            os.close(handle)

    @contextmanager
    def _opened_folder(self) -> Iterator[int | str]:
        """A handle of this folder, or its path."""
        with self._reached() as (folder, name):
            if not HAS_HANDLES:
                if self.names and not is_folder(lstat(name, None)):
                    raise not_a_folder(self.path)
                yield name
                return
            handle = os.open(name, LISTED) if folder is None else inner_folder(name, folder, LISTED, self.path)
            try:
                yield handle
            finally:
                os.close(handle)


def as_entry(path: Path | Entry) -> Entry:
    """The entry of a path whose parent folder the user named."""
    if isinstance(path, Entry):
        return path
    return Entry(path.parent, (path.name,)) if path.name not in ("", "..") else Entry(path)


def make_folders(path: Path) -> Path:
    """Make a folder that the user named, and its parents; return its path."""
    path.mkdir(parents=True, exist_ok=True)
    return path


def remove_tree(path: Path) -> None:
    """Remove a folder that belongs to this process, as far as possible."""
    as_entry(path).remove_all()


def walk_folders(top: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Each folder below ``top``, without following links, with the names of its folders and of everything else.

    To skip a folder, remove its name from the list.
    """
    for place, inner, others in os.walk(top, followlinks=False):
        yield Path(place), inner, others


def refuse_second_name(handle: int, entry: Entry) -> None:
    """Raise InputError if an open file has a second name, under which it would change too."""
    if os.fstat(handle).st_nlink > 1:
        name = entry.path.name
        raise InputError(
            f"{entry} is hard-linked to another file, which would change with it: replace it with a copy "
            f"(cp {name} {name}.copy && mv {name}.copy {name})"
        )
