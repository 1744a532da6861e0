"""What a disk may hold after a power cut: a recording of what was done to a folder, and every state it may leave.

The rules are those that POSIX gives, which file systems mostly better. What was written to a file is on the disk
once the file was flushed (``fsync``); before that it may be there, be lost, be torn in the middle of the last
write, or be zeros, the file having its length already. A name in a folder (made, renamed, removed) is on the disk
once the folder was flushed; of the changes since, any may be there and any be lost, in whatever order, as long as
it is possible: a name that is not there is not renamed, and a folder that has something in it is not replaced.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from holdfast.files.named_errors import NamedFile

Tree = dict[str, Any]
"""Names with the bytes of a file, or the tree of a folder."""


@dataclass
class Event:
    """Something that was done: to the names in a folder (``of`` is the folder) or to the bytes of a file."""

    kind: str
    of: int
    name: str = ""
    other: Any = None
    offset: int = 0


@dataclass
class Recording:
    """What a folder held at first, and what was done to it since.

    Attributes:
        root: Number of the folder.
        folders: Names in each folder at first, with the numbers of what they stand for.
        files: Bytes of each file at first.
        events: What was done, in this order.
    """

    root: int = 0
    folders: dict[int, dict[str, int]] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)


class _Recorder:
    def __init__(self, top: Path) -> None:
        self.recording = Recording()
        self._numbers = itertools.count()
        self._of_inode: dict[int, int] = {}
        self.recording.root = self._add(top)

    def _add(self, path: Path) -> int:
        number = next(self._numbers)
        self._of_inode[path.stat().st_ino] = number
        if path.is_dir():
            self.recording.folders[number] = {inner.name: self._add(inner) for inner in sorted(path.iterdir())}
        else:
            self.recording.files[number] = path.read_bytes()
        return number

    def _folder(self, path: Any, handle: int | None) -> int | None:
        found = os.fstat(handle) if handle is not None else Path(path).parent.stat()
        return self._of_inode.get(found.st_ino)

    def _note(self, kind: str, of: int | None, *details: Any) -> None:
        if of is not None:
            self.recording.events.append(Event(kind, of, *details))

    def _made(self, kind: str, path: Any, handle: int | None) -> None:
        folder = self._folder(path, handle)
        if folder is not None:
            number = next(self._numbers)
            self._of_inode[os.stat(path, dir_fd=handle, follow_symlinks=False).st_ino] = number
            self._note(kind, folder, Path(path).name, number)

    def open(self, original: Any, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        is_new = bool(flags & os.O_CREAT)
        if is_new:
            try:
                os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
                is_new = False
            except FileNotFoundError:
                pass
        handle: int = original(path, flags, mode, dir_fd=dir_fd)
        if is_new:
            self._made("create", path, dir_fd)
        return handle

    def mkdir(self, original: Any, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        original(path, mode, dir_fd=dir_fd)
        self._made("mkdir", path, dir_fd)

    def rename(self, original: Any, old: Any, new: Any, *, src_dir_fd: Any = None, dst_dir_fd: Any = None) -> None:
        original(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        self._note("rename", self._folder(old, src_dir_fd), Path(old).name, Path(new).name)

    def unlink(self, original: Any, path: Any, *, dir_fd: int | None = None) -> None:
        original(path, dir_fd=dir_fd)
        self._note("remove", self._folder(path, dir_fd), Path(path).name)

    rmdir = unlink

    def fsync(self, original: Any, handle: int) -> None:
        original(handle)
        self._note("flush", self._of_inode.get(os.fstat(handle).st_ino))

    def ftruncate(self, original: Any, handle: int, length: int) -> None:
        original(handle, length)
        self._note("cut", self._of_inode.get(os.fstat(handle).st_ino), "", None, length)

    def write(self, original: Any, file: NamedFile, data: Any) -> int:
        found = os.fstat(file.fileno())
        place = found.st_size if "a" in file.mode else os.lseek(file.fileno(), 0, os.SEEK_CUR)
        written: int = original(file, data)
        self._note("write", self._of_inode.get(found.st_ino), "", bytes(data)[:written], place)
        return written


CALLS = ("open", "mkdir", "rename", "unlink", "rmdir", "fsync", "ftruncate")


@contextmanager
def recorded(top: Path) -> Iterator[Recording]:
    """Inside, record what ``holdfast.files`` does to the folder ``top``."""
    recorder = _Recorder(top)

    def calling(method: Callable[..., Any], original: Any) -> Callable[..., Any]:
        return lambda *arguments, **keywords: method(original, *arguments, **keywords)

    with ExitStack() as stack:
        for name in CALLS:
            made = calling(getattr(recorder, name), getattr(os, name))
            stack.enter_context(mock.patch.object(os, name, made))
        original = NamedFile.write
        stack.enter_context(
            mock.patch.object(NamedFile, "write", lambda file, data: recorder.write(original, file, data))
        )
        # What is asked of functions is asked of the new ones, too.
        stack.enter_context(mock.patch.object(os, "supports_dir_fd", {*os.supports_dir_fd, os.rename}))
        yield recorder.recording


def states(recording: Recording, most: int, draw: random.Random) -> Iterator[tuple[int, Tree]]:
    """What may be found after a power cut, each state once: how many events there had been, and the tree.

    Args:
        recording: What was done.
        most: States for each moment; where there are more, as many at random.
        draw: Random numbers.
    """
    seen = set()
    for moment in range(len(recording.events) + 1):
        for tree in _states_at(recording, moment, most, draw):
            key = (repr(tree), moment == len(recording.events))
            if key not in seen:
                seen.add(key)
                yield moment, tree


def _states_at(recording: Recording, moment: int, most: int, draw: random.Random) -> Iterator[Tree]:
    events = recording.events[:moment]
    flushed = {event.of: place for place, event in enumerate(events) if event.kind == "flush"}
    names = [place for place, event in enumerate(events) if event.kind in ("create", "mkdir", "rename", "remove")]
    kept = {place for place in names if place < flushed.get(events[place].of, -1)}
    open_ones = [place for place in names if place not in kept]
    contents = _contents(recording, events, flushed)
    choices: list[list[Any]] = [[False, True] for _ in open_ones] + [variants for _, variants in contents]
    n_states = 1
    for choice in choices:
        n_states *= len(choice)
    if n_states <= most:
        chosen: Any = itertools.product(*choices)
    else:
        # Nothing, all, and some of what lies between.
        between = ([draw.choice(choice) for choice in choices] for _ in range(most - 2))
        chosen = itertools.chain([[choice[0] for choice in choices], [choice[-1] for choice in choices]], between)
    for values in chosen:
        done = kept | {place for place, is_done in zip(open_ones, values, strict=False) if is_done}
        data = {number: value for (number, _), value in zip(contents, values[len(open_ones) :], strict=True)}
        yield _tree(recording, events, done, data)


def _contents(recording: Recording, events: list[Event], flushed: dict[int, int]) -> list[tuple[int, list[bytes]]]:
    """What each file may have in it."""
    found: dict[int, tuple[bytes, bytes, bytes]] = {
        number: (data, data, data) for number, data in recording.files.items()
    }
    for place, event in enumerate(events):
        if event.kind == "create":
            found[event.other] = (b"", b"", b"")
        elif event.kind in ("write", "cut"):
            safe, _, full = found[event.of]
            torn = _changed(full, event, half=True)
            full = _changed(full, event)
            if place < flushed.get(event.of, -1):
                safe = torn = full
            found[event.of] = (safe, torn, full)
    return [
        (number, list(dict.fromkeys((safe, torn, safe + bytes(max(0, len(full) - len(safe))), full))))
        for number, (safe, torn, full) in found.items()
    ]


def _changed(data: bytes, event: Event, half: bool = False) -> bytes:
    if event.kind == "cut":
        return data if half else data[: event.offset].ljust(event.offset, b"\0")
    written = event.other[: len(event.other) // 2] if half else event.other
    return data[: event.offset].ljust(event.offset, b"\0") + written + data[event.offset + len(written) :]


def _tree(recording: Recording, events: list[Event], done: set[int], data: dict[int, bytes]) -> Tree:
    folders = {number: dict(names) for number, names in recording.folders.items()}
    # A folder that was made is there with what it has, once a name leads to it.
    folders.update({event.other: {} for event in events if event.kind == "mkdir"})
    for place in sorted(done):
        event = events[place]
        names = folders[event.of]
        if event.kind in ("create", "mkdir"):
            names[event.name] = event.other
        elif event.name in names:
            in_the_way = names.get(event.other) if event.kind == "rename" else None
            if in_the_way is not None and folders.get(in_the_way):
                continue
            number = names.pop(event.name)
            if event.kind == "rename":
                names[event.other] = number

    def built(number: int) -> Any:
        if number in folders:
            return {name: built(inner) for name, inner in sorted(folders[number].items())}
        return data[number]

    tree: Tree = built(recording.root)
    return tree


def put(tree: Tree, path: Path) -> None:
    """Write a tree into a new folder."""
    path.mkdir()
    for name, inner in tree.items():
        if isinstance(inner, dict):
            put(inner, path / name)
        else:
            (path / name).write_bytes(inner)
