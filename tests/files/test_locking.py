from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.core.errors import InputError
from holdfast.files import LOCK, FolderInUseError, folder_in_use, locked_folder, locking
from tests.files.intruders import KINDS, put, without_waiting


def test_a_folder_is_locked_for_a_while(tmp_path: Path) -> None:
    assert not folder_in_use(tmp_path)
    with locked_folder(tmp_path):
        assert folder_in_use(tmp_path)
        with pytest.raises(FolderInUseError, match=f"is in use by process {os.getpid()}"), locked_folder(tmp_path):
            pass
    assert not folder_in_use(tmp_path)
    with locked_folder(tmp_path):
        pass


def test_what_is_no_file_locks_nothing(tmp_path: Path) -> None:
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="must be a plain file"), locked_folder(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(ValueError, match="must be a plain file"):
        folder_in_use(tmp_path)


def test_a_lock_that_is_another_file_too_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("a letter of mine")
    (tmp_path / LOCK).hardlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="is hard-linked to another file"), locked_folder(tmp_path):
        pass
    assert (tmp_path / "mine").read_text() == "a letter of mine"
    assert not folder_in_use(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lock_that_is_no_file_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    put(kind, folder / LOCK, tmp_path / "elsewhere")
    with without_waiting():
        with pytest.raises(InputError, match="must be a plain file"), locked_folder(folder):
            pass
        with pytest.raises(InputError, match="must be a plain file"):
            folder_in_use(folder)


def test_a_folder_that_is_gone_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with locked_folder(folder) as lock:
        lock.check()
        folder.rename(tmp_path / "moved")
        with pytest.raises(InputError, match="was removed, renamed or replaced while it was being written"):
            lock.check()
        folder.mkdir()
        with locked_folder(folder) as another:
            another.check()
            with pytest.raises(InputError, match="removed, renamed or replaced"):
                lock.check()


HOLDING = """
import errno, os, signal, sys
from pathlib import Path
from holdfast.files import locked_folder, locking

def missing(handle, blocking):
    raise OSError(errno.ENOSYS, "Function not implemented")

if sys.argv[2] == "without":
    locking.lock_descriptor = missing
with locked_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("locks", ["with", "without"])
def test_a_lock_dies_with_its_process(locks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the system or the disk has no locks, as some in networks."""
    if locks == "without":

        def missing(handle: int, blocking: bool) -> bool:
            raise OSError(errno.ENOSYS, "Function not implemented")

        monkeypatch.setattr(locking, "lock_descriptor", missing)
    command = [sys.executable, "-c", HOLDING, str(tmp_path), locks]
    holding = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert holding.stdout is not None
    try:
        assert holding.stdout.readline() == "locked\n"
        assert folder_in_use(tmp_path)
        sentence = f"{re.escape(str(tmp_path))} is in use by process {holding.pid}$"
        with pytest.raises(FolderInUseError, match=sentence), locked_folder(tmp_path):
            pass
        assert folder_in_use(tmp_path)
    finally:
        holding.kill()
        holding.communicate()
    assert not folder_in_use(tmp_path)
    with locked_folder(tmp_path):
        assert folder_in_use(tmp_path)
    assert not folder_in_use(tmp_path)
