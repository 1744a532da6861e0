from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.files import replace_file


def test_the_new_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with replace_file(target) as file:
        file.write(b"new")
        assert target.read_text() == "old"
        assert len(list(tmp_path.iterdir())) == 2
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failure_half_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def write_half() -> None:
        with replace_file(target) as file:
            file.write(b"ne")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="every folder takes files here")
def test_errors_name_the_file_that_was_asked_for() -> None:
    with pytest.raises(FileNotFoundError) as caught, replace_file(Path("/proc/a.png")):
        pass
    assert caught.value.filename == "/proc/a.png"
    assert ".part" not in str(caught.value)


def test_errors_name_a_missing_folders_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, replace_file(tmp_path / "missing" / "a.png"):
        pass
    assert caught.value.filename == str(tmp_path / "missing" / "a.png")
