from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.files import LOCK, FolderInUseError, folder_in_use, locked_folder


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
