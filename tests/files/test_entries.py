"""Nothing outside a folder is reached through what is in it, and nothing in it is waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InputError
from holdfast.files import Entry, as_entry, remove_tree
from holdfast.files.named_errors import NamedFile, sync
from tests.files.intruders import KINDS, everything_in, put, without_waiting


@pytest.fixture(params=[True, False], ids=["handles", "paths"], autouse=True)
def has_handles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        monkeypatch.setattr("holdfast.files.entries.HAS_HANDLES", False)
    return bool(request.param)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    (folder / "within").mkdir(parents=True)
    for path in (folder / "file", folder / "within" / "file"):
        path.write_text("mine")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def write(entry: Entry) -> None:
    with entry.create() as file:
        file.write(b"ours")


OPERATIONS: dict[str, Callable[[Entry], Any]] = {
    "read": lambda entry: entry.read(100, "it"),
    "create": write,
    "append": lambda entry: entry.open_to_append(0).close(),
    "lock": lambda entry: os.close(entry.handle_to_lock(is_made=True)),
    "make a folder": lambda entry: (entry.parent / "new").make_folder(),
    "rename": lambda entry: entry.rename("other"),
    "remove": lambda entry: entry.remove(),
    "remove an empty folder": lambda entry: (entry.parent / "empty").remove_empty(),
    "list": lambda entry: entry.parent.listed(),
    "look": lambda entry: entry.status(),
    "flush": lambda entry: entry.flush(),
}


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_folder_on_the_way_is_a_link(operation: str, depth: int, root: Path, elsewhere: Path) -> None:
    (root / "a").symlink_to(elsewhere)
    before = everything_in(elsewhere)
    entry = Entry(root, ("a", *["within"] * (depth - 1), "file"))
    with pytest.raises(InputError, match=f"{root / 'a'} must be a folder, but is a link"):
        OPERATIONS[operation](entry)
    entry.remove_all()
    assert everything_in(elsewhere) == before


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name != "make a folder"])
def test_links_that_lead_to_the_root_are_the_users(operation: str, root: Path, elsewhere: Path) -> None:
    (elsewhere / "empty").mkdir()
    (root / "link").symlink_to(elsewhere)
    OPERATIONS[operation](Entry(root / "link") / "file")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", ["read", "append", "lock"])
def test_only_a_plain_file_is_read_or_continued(operation: str, kind: str, root: Path, elsewhere: Path) -> None:
    put(kind, root / "file", elsewhere / "file")
    before = everything_in(elsewhere)
    said = f"must be a plain file, not a {kind.removeprefix('dangling ')}$"
    with without_waiting(), pytest.raises(InputError, match=said):
        OPERATIONS[operation](Entry(root) / "file")
    assert everything_in(elsewhere) == before
    assert not (elsewhere / "nowhere").exists()


@pytest.mark.parametrize("kind", [*KINDS[:-1], "hard link"])
def test_what_is_made_anew_takes_only_the_name(kind: str, root: Path, elsewhere: Path) -> None:
    put(kind, root / "file", elsewhere / "file")
    before = everything_in(elsewhere)
    with without_waiting():
        write(Entry(root) / "file")
    assert (root / "file").read_bytes() == b"ours"
    assert not (root / "file").is_symlink()
    assert everything_in(elsewhere) == before


def test_a_folder_is_not_replaced_by_a_file(root: Path) -> None:
    (root / "file").mkdir()
    with pytest.raises(OSError, match=str(root / "file")):
        write(Entry(root) / "file")
    assert (root / "file").is_dir()


def test_a_device_is_not_opened(root: Path) -> None:
    with pytest.raises(InputError, match="must be a plain file, not a device"):
        Entry(Path("/dev"), ("zero",)).read(100, "it")
    with pytest.raises(InputError, match="must be a plain file, not a device"):
        Entry(Path("/dev"), ("null",)).open_to_append(0)


def test_a_file_with_a_second_name_is_not_changed_in_place(root: Path, elsewhere: Path) -> None:
    put("hard link", root / "file", elsewhere / "file")
    with pytest.raises(InputError, match="is hard-linked to another file, which would change with it"):
        (Entry(root) / "file").open_to_append(1)
    assert (elsewhere / "file").read_text() == "mine"
    assert (Entry(root) / "file").read(4, "it") == b"mine"


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_what_is_removed_with_its_contents_is_not_followed(kind: str, root: Path, elsewhere: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    put(kind, root / "a" / "b" / "x", elsewhere)
    put(kind, root / "y", elsewhere)
    before = everything_in(elsewhere)
    with without_waiting():
        (Entry(root) / "a").remove_all()
        remove_tree(root / "y")
    assert list(root.iterdir()) == []
    assert everything_in(elsewhere) == before


def test_a_folder_that_is_exchanged_on_the_way_leads_nowhere_else(
    has_handles: bool, root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Just before the file itself is opened, somebody puts a link where its folder was."""
    if not has_handles:
        pytest.skip("only handles are safe from that")
    (root / "a").mkdir()
    before = everything_in(elsewhere)
    open_it = os.open

    def exchange(path: Any, flags: int, *arguments: Any, **keywords: Any) -> int:
        if path == "file":
            (root / "a").rename(root / "moved")
            (root / "a").symlink_to(elsewhere)
        return open_it(path, flags, *arguments, **keywords)

    monkeypatch.setattr(os, "open", exchange)
    write(Entry(root, ("a", "file")))
    monkeypatch.undo()
    assert everything_in(elsewhere) == before
    assert (root / "moved" / "file").read_bytes() == b"ours"


def test_a_file_that_becomes_a_pipe_on_the_way_is_not_waited_for(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "file").write_text("ours")
    open_it = os.open

    def exchange(path: Any, flags: int, *arguments: Any, **keywords: Any) -> int:
        if str(path).endswith("file"):
            (root / "file").unlink()
            os.mkfifo(root / "file")
        return open_it(path, flags, *arguments, **keywords)

    monkeypatch.setattr(os, "open", exchange)
    with without_waiting(), pytest.raises(InputError, match="must be a plain file, not a pipe"):
        (Entry(root) / "file").read(4, "it")
    with without_waiting(), pytest.raises(InputError, match="must be a plain file, not a pipe"):
        (Entry(root) / "file").open_to_append(0)


def test_a_file_that_is_too_large_is_not_read(root: Path) -> None:
    (root / "file").touch()
    os.truncate(root / "file", 2**40)
    with pytest.raises(InputError, match="file is too large: a note may have at most 1 MB"):
        (Entry(root) / "file").read(2**20, "a note")


def test_errors_name_the_whole_path(root: Path) -> None:
    missing = Entry(root, ("a", "b"))
    for attempt in (missing.remove, missing.make_folder, missing.create, lambda: missing.rename("c")):
        with pytest.raises(FileNotFoundError) as caught:
            attempt()
        assert str(caught.value.filename).startswith(str(root / "a"))
    assert missing.status() is None
    assert missing.listed() == []


def test_a_full_disk_is_one_somewhere(tmp_path: Path) -> None:
    full = NamedFile(os.open("/dev/full", os.O_WRONLY), "wb", tmp_path / "metrics.csv")
    with pytest.raises(OSError, match="No space left on device") as caught:
        full.write(b"row")
    assert caught.value.filename == str(tmp_path / "metrics.csv")
    full.close()


def test_a_disk_that_fails_is_one_somewhere(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with (Entry(root) / "file").create() as file, pytest.raises(OSError, match="Input/output error") as caught:
        sync(file)
    assert caught.value.filename == str(root / "file")


def test_nothing_stays_open(root: Path, elsewhere: Path) -> None:
    (root / "a").mkdir()
    (root / "link").symlink_to(elsewhere)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for entry in (Entry(root, ("a", "file")), Entry(root, ("link", "file"))):
        for _ in range(2):
            for operation in OPERATIONS.values():
                try:
                    operation(entry)
                except (OSError, InputError):
                    continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_entry_of_a_path_is_in_the_folder_that_was_named(tmp_path: Path) -> None:
    assert as_entry(tmp_path / "a" / "b") == Entry(tmp_path / "a", ("b",))
    assert as_entry(Path("b")) == Entry(Path(), ("b",))
    assert as_entry(Path("..")) == Entry(Path(".."))
    assert Entry(tmp_path, ("a", "b")).parent.parent == Entry(tmp_path)
    assert str(Entry(tmp_path) / "a" / "b") == str(tmp_path / "a" / "b")
