"""One step into a folder: inspecting, opening, making and removing a name, without following a link.

On systems where folders have handles, a step starts from the folder's handle, so that no other process can swap
the folder in between. On others, the handle is None and the name is a whole path. Nothing here blocks, as opening
a pipe would.
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
    "NOT_FOLLOWED",
    "PASSED",
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
"""Whether the system has folder handles from which steps can be taken."""

CAN_FLUSH_FOLDERS = hasattr(os, "O_DIRECTORY")
"""Whether a folder's list of names can be flushed by itself; Windows does so on its own."""


def _flags(*names: str) -> int:
    """The named flags, as far as the system has them."""
    found = 0
    for name in names:
        found |= getattr(os, name, 0)
    return found


FOLLOWED = _flags("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY", "O_NOINHERIT")
"""Flags to open what may be a link."""
NOT_FOLLOWED = FOLLOWED | _flags("O_NOFOLLOW")
"""Flags to open what must not be a link."""
LISTED = os.O_RDONLY | _flags("O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC")
"""Flags to open a folder."""
PASSED = _flags("O_PATH", "O_DIRECTORY", "O_CLOEXEC") if hasattr(os, "O_PATH") else LISTED
"""Flags to open a folder on the way, which need not be readable."""

_LINK_TAGS = (0xA000000C, 0xA0000003)
"""Tags of links and junctions on Windows."""


def in_folder(folder: int | None) -> dict[str, int]:
    """The argument that names the folder of a relative name."""
    return {} if folder is None else {"dir_fd": folder}


def lstat(name: str, folder: int | None) -> os.stat_result:
    """The status of the name itself, not of a link's target."""
    return os.stat(name, follow_symlinks=False, **in_folder(folder))


def is_folder(found: os.stat_result) -> bool:
    """Whether it is a folder, not a link to one."""
    return stat.S_ISDIR(found.st_mode) and not _is_link(found)


def is_file(found: os.stat_result) -> bool:
    """Whether it is a plain file, not a link to one."""
    return stat.S_ISREG(found.st_mode) and not _is_link(found)


def _is_link(found: os.stat_result) -> bool:
    return stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) in _LINK_TAGS


def not_a_folder(path: Path) -> InputError:
    """The error for a link, a file or a pipe where a folder must be."""
    return InputError(f"{path} must be a folder, but is a link or something else: remove it")


def not_a_file(path: Path, kind: str) -> InputError:
    """The error for anything but a plain file where one must be; ``kind`` names it."""
    return InputError(f"{path} must be a plain file, not {kind}")


def kind_of(found: os.stat_result) -> str:
    """A word or two for anything that is not a plain file."""
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
        InputError: It is a link, or not a folder.
    """
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise not_a_folder(path) from None
        raise OSError(error.errno, error.strerror, str(path)) from None


def remove_name(name: str, folder: int | None) -> None:
    """Remove anything but a folder; it is not an error if nothing exists."""
    with suppress(FileNotFoundError):
        os.unlink(name, **in_folder(folder))


def remove_with_contents(name: str, folder: int | None) -> None:
    """Remove whatever has this name; never a link's target."""
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
