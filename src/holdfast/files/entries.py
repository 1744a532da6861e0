"""The one place where files and folders are opened, made, listed, renamed and removed.

A user may reach a folder through links: where it lies is the user's choice. What is below it was made here, so it
is a folder or a plain file, and nothing else is touched there:

- What is read or continued must be a plain file; a file that is changed in place must have no second name.
- What is written anew takes its name from whatever had it. Of a link or a pipe only the name goes.
- A folder on the way must be one, not a link to one.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
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
    PASSED,
    PLAIN,
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
"""What a plain file has become a moment ago, by the error of opening it."""


@dataclass(frozen=True)
class Entry:
    """A file or folder by the way that leads to it.

    Args:
        root: A folder that the user has named; it may be reached through links.
        names: Of the folders below it, and of the entry itself; none of them is followed if it is a link. Without
            any the entry is the root.
    """

    root: Path
    names: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The same as one path, for messages."""
        return self.root.joinpath(*self.names)

    @property
    def parent(self) -> Entry:
        """The folder that it is in; the user has named that of the root, too."""
        return Entry(self.root, self.names[:-1]) if self.names else Entry(self.root.parent)

    def __truediv__(self, name: str) -> Entry:
        return Entry(self.root, (*self.names, name))

    def __str__(self) -> str:
        return str(self.path)

    # What is there -------------------------------------------------------------------------------------------

    def status(self) -> os.stat_result | None:
        """What the system says of it, and not of what a link leads to; None where nothing is.

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
        """Whether anything has this name, a link that leads nowhere included."""
        return self.status() is not None

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, and no link to one."""
        found = self.status()
        return found is not None and is_folder(found)

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file, and no link to one."""
        found = self.status()
        return found is not None and is_file(found)

    def listed(self) -> list[str]:
        """The names in a folder, sorted; none where nothing is.

        Raises:
            InputError: It is a link, or something else than a folder.
        """
        try:
            with named_errors(self.path), self._opened_folder() as folder:
                return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    # Files ---------------------------------------------------------------------------------------------------

    def open_to_read(self, largest: int | None = None, what: str = "it") -> BinaryIO:
        """Open a plain file.

        Args:
            largest: Bytes that it may have.
            what: What it is, for the message about one that has more.

        Raises:
            InputError: It is missing, something else, or larger.
        """
        file = io.BufferedReader(NamedFile(self._handle(os.O_RDONLY), "rb", self.path))
        if largest is not None and os.fstat(file.fileno()).st_size > largest:
            file.close()
            raise InputError(f"{self} is too large: {what} may have {largest >> 20} MB")
        return file

    def read(self, largest: int, what: str) -> bytes:
        """All that is in a plain file; see ``open_to_read``."""
        with self.open_to_read(largest, what) as file:
            return file.read(largest)

    def create(self) -> BinaryIO:
        """Make a new file to write to, in place of whatever had its name.

        Raises:
            OSError: It cannot be made, as where a folder has that name.
        """
        with named_errors(self.path), self._reached() as (folder, name):
            remove_name(name, folder)
            handle = open_name(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, folder)
        return io.BufferedWriter(NamedFile(handle, "wb", self.path))

    def open_to_append(self, length: int) -> BinaryIO:
        """Cut a plain file back to a length, and write on from there.

        Raises:
            InputError: It is missing, something else, or has a second name.
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
        """A handle of a plain file whose contents stay as they are.

        Args:
            is_made: Whether it must be one that can be written to, and is made if it is missing.

        Raises:
            InputError: It is something else, or missing and not to be made.
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
                handle = open_name(name, flags | PLAIN, folder)
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
                # Where a rename replaces nothing, this does.
                os.replace(old, self.path.with_name(name))
            else:
                os.rename(old, name, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self) -> None:
        """Remove what is no folder; nothing need be there."""
        with named_errors(self.path), self._reached() as (folder, name):
            remove_name(name, folder)

    def remove_empty(self) -> None:
        """Remove an empty folder."""
        with named_errors(self.path), self._reached() as (folder, name):
            os.rmdir(name, **in_folder(folder))

    def remove_all(self) -> None:
        """Remove a folder with all that is in it, or what is there instead of one, as far as that is possible."""
        with suppress(OSError, InputError, RecursionError), self._reached() as (folder, name):
            remove_with_contents(name, folder)

    def flush(self) -> None:
        """Wait until a file, or the list of what is in a folder, is on the disk."""
        if not CAN_FLUSH_FOLDERS and self.path.is_dir():
            return
        # Windows flushes only what may be written to.
        flags = (os.O_RDONLY if CAN_FLUSH_FOLDERS else os.O_RDWR) | (PLAIN if self.names else FOLLOWED)
        with named_errors(self.path), self._reached() as (folder, name):
            handle = open_name(name, flags, folder)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    # The way -------------------------------------------------------------------------------------------------

    @contextmanager
    def _reached(self) -> Iterator[tuple[int | None, str]]:
        """A handle of the folder that it is in, and its name there; or None and its path."""
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
        """A handle of this folder; or its path."""
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
    """The entry of a path whose folder the user has named."""
    if isinstance(path, Entry):
        return path
    return Entry(path.parent, (path.name,)) if path.name not in ("", "..") else Entry(path)


def make_folders(path: Path) -> Path:
    """Make a folder that the user has named, and those above it; the path."""
    path.mkdir(parents=True, exist_ok=True)
    return path


def remove_tree(path: Path) -> None:
    """Remove a folder of this process's own, as far as that is possible."""
    as_entry(path).remove_all()


def walk_folders(top: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Each folder below ``top``, links left out, with the names of the folders and of everything else in it.

    Who takes names of folders out of the list is spared these.
    """
    for place, inner, others in os.walk(top, followlinks=False):
        yield Path(place), inner, others


def refuse_second_name(handle: int, entry: Entry) -> None:
    """InputError if an open file has a second name, under which it would be changed, too."""
    if os.fstat(handle).st_nlink > 1:
        name = entry.path.name
        raise InputError(
            f"{entry} is hard-linked to another file, which would change with it: replace it by a copy "
            f"(cp {name} {name}.copy && mv {name}.copy {name})"
        )
