from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.files import flush


def test_files_and_folders_are_flushed_and_nothing_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("text")
    flushed: list[tuple[int, int]] = []

    def noted(handle: int) -> None:
        flushed.append((handle, os.fstat(handle).st_ino))

    monkeypatch.setattr(os, "fsync", noted)
    flush(tmp_path / "a")
    flush(tmp_path)
    assert [number for _, number in flushed] == [(tmp_path / "a").stat().st_ino, tmp_path.stat().st_ino]
    for handle, _ in flushed:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(handle)


def test_a_disk_that_fails_is_heard_of_and_nothing_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handles: list[int] = []

    def failing(handle: int) -> None:
        handles.append(handle)
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="the disk is gone"):
        flush(tmp_path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handles[0])


def test_what_is_missing_cannot_be_flushed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        flush(tmp_path / "a")
