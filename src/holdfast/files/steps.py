"""One step into a folder: looking at a name, opening, making and removing it, without following a link.

A step is taken from the handle of a folder where the system has such handles, so that nobody can exchange the
folder in between; elsewhere the handle is None and the name is a whole path. Nothing here waits for a partner, as
opening a pipe would.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from holdfast.core.errors import InputError

__all__ = [
    "CAN_FLUSH_FOLDERS",
    "FOLLOWED",
    "HAS_HANDLES",
    "LISTED",
    "PASSED",
    "PLAIN",
    "in_folder",
    "inner_folder",
    "is_file",
    "is_folder",
    "lstat",
    "not_a_folder",
    "open_name",
    "remove_name",
    "remove_with_contents",
]

HAS_HANDLES = (
    hasattr(os, "O_NOFOLLOW")
    and hasattr(os, "O_DIRECTORY")
    and os.supports_dir_fd.issuperset((os.mkdir, os.open, os.rename, os.rmdir, os.stat, os.unlink))
    and os.listdir in os.supports_fd
)
"""Whether folders have handles from which steps can be taken."""

CAN_FLUSH_FOLDERS = hasattr(os, "O_DIRECTORY")
"""Whether the list of what is in a folder can be flushed by itself; Windows sees to it alone."""


def _flags(*names: str) -> int:
    """Those of the named flags that the system has."""
    found = 0
    for name in names:
        found |= getattr(os, name, 0)
    return found


FOLLOWED = _flags("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY", "O_NOINHERIT")
"""For opening what may be a link."""
PLAIN = FOLLOWED | _flags("O_NOFOLLOW")
"""For opening what must be none."""
LISTED = os.O_RDONLY | _flags("O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC")
"""For opening a folder."""
PASSED = _flags("O_PATH", "O_DIRECTORY", "O_CLOEXEC") if hasattr(os, "O_PATH") else LISTED
"""For opening a folder that is on the way, which need not be one that may be listed."""

_LINK_TAGS = (0xA000000C, 0xA0000003)
"""Of links and junctions on Windows."""


def in_folder(folder: int | None) -> dict[str, int]:
    """The argument that says in which folder a name is."""
    return {} if folder is None else {"dir_fd": folder}


def lstat(name: str, folder: int | None) -> os.stat_result:
    """What the system says of a name, and not of what it leads to."""
    return os.stat(name, follow_symlinks=False, **in_folder(folder))


def is_folder(found: os.stat_result) -> bool:
    """Whether it is a folder, and no link to one."""
    return stat.S_ISDIR(found.st_mode) and not _is_link(found)


def is_file(found: os.stat_result) -> bool:
    """Whether it is a plain file, and no link to one."""
    return stat.S_ISREG(found.st_mode) and not _is_link(found)


def _is_link(found: os.stat_result) -> bool:
    return stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) in _LINK_TAGS


def not_a_folder(path: Path) -> InputError:
    """What is said of a link, a file or a pipe where a folder must be."""
    return InputError(f"{path} must be a folder, and is a link or something else: remove it")


def not_a_file(path: Path, kind: str) -> InputError:
    """What is said of a link, a folder or a pipe where a plain file must be; ``kind`` says which."""
    return InputError(f"{path} must be a plain file, not {kind}")


def kind_of(found: os.stat_result) -> str:
    """What something is that is no plain file, in a word or two."""
    if _is_link(found):
        return "a link"
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(found.st_mode), "a device")


def open_name(name: str, flags: int, folder: int | None) -> int:
    """A handle of a file."""
    return os.open(name, flags, 0o666, **in_folder(folder))


def inner_folder(name: str, folder: int, flags: int, path: Path) -> int:
    """A handle of the folder ``path``, which is ``name`` in ``folder``.

    Raises:
        InputError: It is a link, or something else.
    """
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise not_a_folder(path) from None
        raise OSError(error.errno, error.strerror, str(path)) from None


def remove_name(name: str, folder: int | None) -> None:
    """Remove what is no folder; nothing need be there."""
    with suppress(FileNotFoundError):
        os.unlink(name, **in_folder(folder))


def remove_with_contents(name: str, folder: int | None) -> None:
    """Remove whatever has this name; of a link, never what it leads to."""
    try:
        found = lstat(name, folder)
    except FileNotFoundError:
        return
    if not is_folder(found):
        remove_name(name, folder)
        return
    if folder is None:
        for inner in os.listdir(name):
            remove_with_contents(os.path.join(name, inner), None)
    else:
        handle = os.open(name, LISTED | os.O_NOFOLLOW, dir_fd=folder)
        try:
            for inner in os.listdir(handle):
                remove_with_contents(inner, handle)
        finally:
            os.close(handle)
    os.rmdir(name, **in_folder(folder))
