"""Whenever a process is killed, a complete folder is found: the old one or the new one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.files import Entry, find_folder, find_folders, replace_folder, tidy_folder

FILES = ("one.txt", "two.txt")


class KilledError(BaseException):
    pass


def write(path: Path, version: str, keep: int = 1) -> None:
    with replace_folder(path, keep) as unfinished:
        for name in FILES:
            (unfinished / name).write_text(version)


def version_of(path: Path | None) -> str | None:
    if path is None:
        return None
    assert sorted(file.name for file in path.iterdir()) == sorted(FILES)
    (version,) = {(path / name).read_text() for name in FILES}
    return version


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "mine.txt").write_text("mine")
    return folder


# Replacing -------------------------------------------------------------------------------------------------------


def test_there_is_nothing_before_the_first_folder(path: Path) -> None:
    assert find_folder(path) is None
    tidy_folder(path)
    assert find_folder(path) is None


def test_every_new_folder_takes_the_place_of_the_old_one(path: Path) -> None:
    for version in ("first", "second", "third"):
        write(path, version)
        assert find_folder(path) == path
        assert version_of(path) == version
        assert names_in(path.parent) == ["checkpoint"]


def test_the_old_folder_is_there_while_the_new_one_is_written(path: Path) -> None:
    write(path, "old")
    with replace_folder(path) as unfinished:
        assert unfinished.parent == path.parent
        assert list(unfinished.iterdir()) == []
        (unfinished / FILES[0]).write_text("new")
        assert find_folder(path) == path
        assert version_of(path) == "old"
        for name in FILES:
            (unfinished / name).write_text("new")
    assert version_of(path) == "new"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, KilledError, GeneratorExit])
@pytest.mark.parametrize("version", [None, "old"])
def test_a_failure_within_the_block_leaves_what_was_there_and_nothing_else(
    version: str | None, error: type[BaseException], path: Path
) -> None:
    if version is not None:
        write(path, version)
    before = names_in(path.parent)

    def write_half() -> None:
        with replace_folder(path) as unfinished:
            (unfinished / FILES[0]).write_text("new")
            raise error("half way")

    with pytest.raises(error, match="half way"):
        write_half()
    assert version_of(find_folder(path)) == version
    assert names_in(path.parent) == before


def test_the_old_folder_goes_only_when_the_new_one_is_on_the_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, "old")
    seen = []

    def noted(handle: int) -> None:
        assert os.fstat(handle).st_ino == path.parent.stat().st_ino
        seen.append((version_of(path), names_in(path.parent)))

    monkeypatch.setattr(os, "fsync", noted)
    write(path, "new")
    assert seen == [("new", [".checkpoint.old", "checkpoint"])]


@pytest.mark.parametrize("keep", [1, 2, 3, 4])
def test_as_many_as_are_to_be_kept_are_kept(keep: int, path: Path) -> None:
    for number in range(1, 7):
        write(path, str(number), keep)
        expected = [str(version) for version in range(number, max(0, number - keep), -1)]
        assert [version_of(found.path) for found in find_folders(path)] == expected
    assert names_in(path.parent) == ["checkpoint", *(f"checkpoint.{number}" for number in range(1, keep))]


def test_fewer_are_kept_from_the_next_one_on(path: Path) -> None:
    for number in range(1, 5):
        write(path, str(number), 4)
    tidy_folder(path)
    assert len(find_folders(path)) == 4
    write(path, "5", 2)
    assert [version_of(found.path) for found in find_folders(path)] == ["5", "4"]
    write(path, "6", 1)
    assert names_in(path.parent) == ["checkpoint"]


def test_a_gap_is_filled_before_others_move_on(path: Path) -> None:
    for number in range(1, 4):
        write(path, str(number), 4)
    (path.parent / "checkpoint.1").rename(path.parent / "checkpoint.3")
    write(path, "4", 4)
    assert [(found.path.name, version_of(found.path)) for found in find_folders(path)] == [
        ("checkpoint", "4"),
        ("checkpoint.1", "3"),
        ("checkpoint.2", "1"),
        ("checkpoint.3", "2"),
    ]


def test_what_only_looks_like_an_earlier_one_stays(path: Path) -> None:
    others = [
        "checkpoint.0",
        "checkpoint.01",
        "checkpoint.1x",
        "checkpoint.copy",
        "checkpoints.1",
        "checkpoint.20261118",
    ]
    for name in others:
        (path.parent / name).mkdir()
    for number in range(4):
        write(path, str(number), 2)
    assert names_in(path.parent) == sorted(["checkpoint", "checkpoint.1", *others])


@pytest.mark.parametrize("name", ["run[1]", "*", "?"])
def test_names_with_wildcards_are_only_names(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, "old")
    (tmp_path / f".{name}.new-1234").mkdir()
    (tmp_path / ".o.new-1234").mkdir()
    tidy_folder(tmp_path / name)
    assert version_of(find_folder(tmp_path / name)) == "old"
    assert names_in(tmp_path) == sorted([name, ".o.new-1234"])


# Kills -----------------------------------------------------------------------------------------------------------


def stop_at(number: int, function: Callable[..., Any], done: bool) -> Callable[..., Any]:
    calls = 0

    def stopped(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != number:
            return function(*args, **kwargs)
        if done:
            function(*args, **kwargs)
        raise KilledError

    return stopped


def remove_half(entry: Entry) -> None:
    if entry.is_folder:
        (entry / FILES[0]).remove()


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_a_stop_at_any_rename_leaves_a_complete_folder(
    number: int, done: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, "old")
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", stop_at(number, os.rename, done))
        with pytest.raises(KilledError):
            write(path, "new")
    expected = "new" if (number, done) == (2, True) else "old"
    assert version_of(find_folder(path)) == expected
    tidy_folder(path)
    assert find_folder(path) == path
    assert version_of(path) == expected
    assert names_in(path.parent) == ["checkpoint"]


@pytest.mark.parametrize("removal", [Entry.remove_all, remove_half, None])
@pytest.mark.parametrize("number", [1, 2])
def test_a_stop_at_any_removal_leaves_a_complete_folder(
    number: int, removal: Callable[..., Any] | None, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, "old")
    stop = stop_at(number, removal or Entry.remove_all, done=removal is not None)
    with monkeypatch.context() as patched:
        patched.setattr(Entry, "remove_all", stop)
        with pytest.raises(KilledError):
            write(path, "new")
    expected = "old" if number == 1 else "new"
    assert version_of(find_folder(path)) == expected
    write(path, "newer")
    assert version_of(find_folder(path)) == "newer"
    tidy_folder(path)
    assert version_of(find_folder(path)) == "newer"
    assert names_in(path.parent) == ["checkpoint"]


# Every case is two commands, each in a process that is killed before one of its steps: all that changes the disk.
KILLED = """
import itertools, os, shutil, sys
from pathlib import Path
from holdfast.files import find_folder, replace_folder, tidy_folder

os.fsync = lambda handle: None  # a process is killed here, not the machine

KEEP = int(sys.argv[2])

def write(path, version):
    with replace_folder(path, KEEP) as unfinished:
        for name in ("one.txt", "two.txt"):
            (unfinished / name).write_text(version)

STEPS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}

def survives(path, command, last):
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    left = last
    def step(event, arguments):
        nonlocal left
        if event in STEPS or (event == "open" and arguments[1] == "w"):
            left -= 1
            if left == 0:
                os._exit(9)
    sys.addaudithook(step)
    tidy_folder(path, KEEP) if command == "tidy" else write(path, command)
    os._exit(0)

top = Path(sys.argv[1])
for first in itertools.count(1):
    killed = top / str(first)
    killed.mkdir()
    if KEEP > 1:
        write(killed / "checkpoint", "older")
    write(killed / "checkpoint", "old")
    whole = survives(killed / "checkpoint", "new", first)
    for command in ("newer", "tidy"):
        for second in itertools.count(1):
            case = top / f"{first} {command} {second}"
            shutil.copytree(killed, case)
            if survives(case / "checkpoint", command, second):
                break
    if whole:
        break
"""


def test_a_kill_at_any_step_leaves_a_complete_folder_and_so_does_one_more(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "1"], check=True, timeout=60)
    ages = ["old", "new", "newer"]
    seen = set()
    for folder in tmp_path.iterdir():
        path = folder / "checkpoint"
        before = version_of(find_folder(tmp_path / folder.name.split()[0] / "checkpoint"))
        found = version_of(find_folder(path))
        assert before is not None
        assert found is not None
        assert ages.index(found) >= ages.index(before)
        seen.add((before, found, find_folder(path) == path))
        tidy_folder(path)
        assert find_folder(path) == path
        assert version_of(path) == found
        assert names_in(folder) == ["checkpoint"]
    # The kills came at every kind of moment, also while there was no folder under the right name.
    both = {(before, before, is_there) for before in ("old", "new") for is_there in (False, True)}
    assert seen == both | {("old", "newer", True), ("new", "newer", True)}


def test_a_kill_at_any_step_leaves_the_last_two_complete_folders(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "2"], check=True, timeout=60)
    ages = ["older", "old", "new", "newer"]

    def versions(folder: Path) -> list[str]:
        found = [ages.index(str(version_of(entry.path))) for entry in find_folders(folder / "checkpoint")[:2]]
        assert found == sorted(found, reverse=True)
        return [ages[age] for age in found]

    seen = set()
    for folder in tmp_path.iterdir():
        found = versions(folder)
        seen.add(tuple(found))
        tidy_folder(folder / "checkpoint", 2)
        assert versions(folder) == found
        assert names_in(folder)[:2] == ["checkpoint", "checkpoint.1"]
    assert seen == {("old", "older"), ("new", "old"), ("newer", "new"), ("newer", "old")}


# Tidying ---------------------------------------------------------------------------------------------------------


def test_the_folder_that_was_moved_aside_is_found_and_put_back(path: Path) -> None:
    write(path, "old")
    aside = path.rename(path.with_name(".checkpoint.old"))
    assert find_folder(path) == aside
    tidy_folder(path)
    assert find_folder(path) == path
    assert version_of(path) == "old"
    assert names_in(path.parent) == ["checkpoint"]


def test_a_new_folder_may_be_written_before_the_one_aside_is_put_back(path: Path) -> None:
    write(path, "old")
    path.rename(path.with_name(".checkpoint.old"))
    write(path, "new")
    assert version_of(find_folder(path)) == "new"
    assert names_in(path.parent) == ["checkpoint"]


def test_leftovers_go_and_everything_else_stays(path: Path) -> None:
    write(path, "old")
    kept = [".checkpoint", ".checkpoint.new", ".other.new-1234", ".other.old", "checkpoint.new-1234"]
    for name in (*kept, ".checkpoint.old", ".checkpoint.new-1234", ".checkpoint.new-5678"):
        (path.parent / name).mkdir()
        (path.parent / name / "one.txt").write_text("half")
    tidy_folder(path)
    assert names_in(path.parent) == sorted([*kept, "checkpoint"])
    assert version_of(path) == "old"


# Links -----------------------------------------------------------------------------------------------------------


def assert_untouched(elsewhere: Path) -> None:
    assert names_in(elsewhere) == ["mine.txt"]
    assert (elsewhere / "mine.txt").read_text() == "mine"


def test_links_and_files_are_not_found(path: Path, elsewhere: Path) -> None:
    path.symlink_to(elsewhere)
    path.with_name(".checkpoint.old").symlink_to(elsewhere)
    assert find_folder(path) is None
    for name in ("checkpoint", ".checkpoint.old"):
        path.with_name(name).unlink()
        path.with_name(name).write_text("a file")
    assert find_folder(path) is None


@pytest.mark.parametrize("target", ["elsewhere", "nowhere", "itself"])
def test_a_link_is_replaced_and_where_it_leads_stays_as_it_is(target: str, path: Path, elsewhere: Path) -> None:
    targets = {"elsewhere": elsewhere, "nowhere": path.parent / "nowhere", "itself": path}
    path.symlink_to(targets[target])
    for version in ("first", "second", "third"):
        write(path, version)
        assert find_folder(path) == path
        assert version_of(path) == version
        assert names_in(path.parent) == ["checkpoint"]
    assert_untouched(elsewhere)


@pytest.mark.parametrize("name", ["checkpoint", ".checkpoint.old"])
def test_a_file_in_the_way_is_replaced(name: str, path: Path) -> None:
    path.with_name(name).write_text("a file")
    for version in ("first", "second"):
        write(path, version)
        assert version_of(find_folder(path)) == version
        assert names_in(path.parent) == ["checkpoint"]


def test_a_link_instead_of_the_folder_aside_does_not_matter(path: Path, elsewhere: Path) -> None:
    write(path, "old")
    path.with_name(".checkpoint.old").symlink_to(elsewhere)
    write(path, "new")
    assert version_of(find_folder(path)) == "new"
    assert names_in(path.parent) == ["checkpoint"]
    assert_untouched(elsewhere)


@pytest.mark.parametrize("is_there", [False, True])
def test_tidying_removes_links_and_follows_none(is_there: bool, path: Path, elsewhere: Path) -> None:
    if is_there:
        write(path, "old")
    for name in (".checkpoint.old", ".checkpoint.new-1234", ".checkpoint.new-5678"):
        path.with_name(name).symlink_to(elsewhere)
    tidy_folder(path)
    assert version_of(find_folder(path)) == ("old" if is_there else None)
    assert names_in(path.parent) == ["checkpoint"] * is_there
    assert_untouched(elsewhere)


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
@pytest.mark.parametrize("command", [tidy_folder, lambda path: write(path, "old")])
def test_a_link_in_the_way_does_not_cost_the_folder_aside(
    command: Callable[[Path], None], target: str, path: Path, elsewhere: Path
) -> None:
    write(path, "old")
    path.rename(path.with_name(".checkpoint.old"))
    path.symlink_to(elsewhere if target == "elsewhere" else path.parent / "nowhere")
    assert version_of(find_folder(path)) == "old"
    command(path)
    assert find_folder(path) == path
    assert version_of(path) == "old"
    assert names_in(path.parent) == ["checkpoint"]
    assert_untouched(elsewhere)


def test_links_within_a_folder_are_removed_and_not_followed(path: Path, elsewhere: Path) -> None:
    with replace_folder(path) as unfinished:
        (unfinished / "link").symlink_to(elsewhere)
    write(path, "new")
    assert version_of(path) == "new"
    assert names_in(path.parent) == ["checkpoint"]
    assert_untouched(elsewhere)
