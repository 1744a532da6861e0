"""Things that somebody has put where a file or a folder of ours is to be."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class WaitsForEverError(BaseException):
    """Nobody is to catch it."""


KINDS = ("link", "dangling link", "pipe", "socket", "folder")
"""What is no plain file."""


def put(kind: str, path: Path, elsewhere: Path) -> None:
    """Put something at ``path``; a link leads to ``elsewhere``, a hard link is that file under another name."""
    match kind:
        case "link":
            path.symlink_to(elsewhere)
        case "dangling link":
            path.symlink_to(elsewhere.with_name("nowhere"))
        case "hard link":
            path.hardlink_to(elsewhere)
        case "pipe":
            os.mkfifo(path)
        case "socket":
            # Its name may have a hundred characters.
            here = Path.cwd()
            os.chdir(path.parent)
            try:
                with socket.socket(socket.AF_UNIX) as listening:
                    listening.bind(path.name)
            finally:
                os.chdir(here)
        case "folder":
            path.mkdir()


def everything_in(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder, with the contents of its files."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@contextmanager
def without_waiting(seconds: int = 60) -> Iterator[None]:
    """Fail a test that waits for ever."""

    def give_up(*_: object) -> None:
        raise WaitsForEverError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
