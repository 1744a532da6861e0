from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.errors import InputError
from holdfast.files import documents, parse_json, read_json, replace_json
from holdfast.files.named_errors import NamedFile

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
SOMEWHERE = Path("somewhere", "a.json")


def sentence(path: Path, text: str = "") -> str:
    return rf"^{re.escape(str(path))} [^\n]*{text}[^\n]*$"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


@settings(max_examples=40)
@given(JSON, st.sampled_from([None, 0, 2]))
def test_what_was_written_is_read(folder: Path, document: Any, indent: int | None) -> None:
    path = folder / "a.json"
    replace_json(path, document, indent)
    found = read_json(path)
    assert found == document
    assert json.dumps(found) == json.dumps(document)  # 1 is not 1.0, and not True
    assert list(folder.iterdir()) == [path]


def test_a_document_is_written_for_people_too(tmp_path: Path) -> None:
    replace_json(tmp_path / "a.json", {"name": "Größe"})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "name": "Größe"\n}\n'


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    "document",
    [
        float("nan"),
        [float("inf")],
        {"a": -float("inf")},
        {"a": object()},
        {"a": {1, 2}},
        b"bytes",
        {(1, 2): 3},
        "\ud800",
        endless(),
    ],
    ids=lambda document: repr(document)[:20],
)
def test_what_is_no_document_leaves_the_old_file_and_nothing_else(document: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    replace_json(path, "old")
    with pytest.raises((TypeError, ValueError)):
        replace_json(path, document)
    assert read_json(path) == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_is_full_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    replace_json(path, "old")

    def full(handle: int) -> None:
        raise OSError("full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        replace_json(path, "new")
    assert read_json(path) == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("1")
    path = tmp_path / "a.json"
    path.symlink_to(tmp_path / "elsewhere")
    replace_json(path, 2)
    assert (tmp_path / "elsewhere").read_text() == "1"
    assert not path.is_symlink()
    assert read_json(path) == 2


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}'])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=sentence(SOMEWHERE, "is not a number")):
        parse_json(text.encode(), SOMEWHERE)


@pytest.mark.parametrize("text", ["1e999", "[-1e309]", '{"a": 1.8e308}', "-1" + "0" * 400 + ".0"])
def test_a_number_that_is_too_large_does_not_become_infinite(text: str) -> None:
    with pytest.raises(ValueError, match=sentence(SOMEWHERE, "is damaged: -?1")):
        parse_json(text.encode(), SOMEWHERE)


def test_a_name_that_is_there_twice_is_refused() -> None:
    for text in (b'{"a": 1, "a": 1}', b'[{"b": {"a": 1, "c": 2, "a": 3}}]', b'{"a": 1, "\\u0061": 2}'):
        with pytest.raises(ValueError, match=sentence(SOMEWHERE, "twice")):
            parse_json(text, SOMEWHERE)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_documents_may_be_nested_but_not_without_end(opening: bytes, closing: bytes) -> None:
    parse_json(opening * 63 + b"1" + closing * 63, SOMEWHERE)
    for depth in (64, 100, 900, 100_000):
        with pytest.raises(ValueError, match=sentence(SOMEWHERE)):
            parse_json(opening * depth + b"1" + closing * depth, SOMEWHERE)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"{",
        b"{}{}",
        b"[1,]",
        b"{'a': 1}",
        b"{a: 1}",
        b"01",
        b"+1",
        b"// no\n1",
        b'"\n"',
        b"\x80\x04K\x01.",
        b'"\xff"',
        '"a"'.encode("utf-16"),
        b"\xef\xbb\xbf{}",
        b"9" * 10_000,
        b"x" * 100_000,
    ],
    ids=lambda text: repr(text)[:20],
)
def test_what_is_no_strict_json_is_refused_in_one_short_sentence(text: bytes) -> None:
    with pytest.raises(ValueError, match=sentence(SOMEWHERE, "is damaged")) as caught:
        parse_json(text, SOMEWHERE)
    assert caught.type is InputError
    assert len(str(caught.value)) < 300


@given(st.binary(max_size=40))
def test_bytes_from_anywhere_are_a_document_or_refused(text: bytes) -> None:
    try:
        found = parse_json(text, SOMEWHERE)
    except ValueError as error:
        if type(error) is InputError and re.match(sentence(SOMEWHERE, "is damaged"), str(error)):
            return
        raise
    json.dumps(found, allow_nan=False)


def test_a_document_that_is_too_large_is_not_even_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_LARGEST", 2**20)
    path = tmp_path / "a.json"
    path.write_bytes(b"1" + b" " * (2**20 - 1))
    assert read_json(path) == 1
    path.write_bytes(b"1" + b" " * 2**20)
    for method in ("read", "readall", "readinto"):
        monkeypatch.setattr(NamedFile, method, lambda *arguments: pytest.fail("it was read"))
    with pytest.raises(ValueError, match=sentence(path, "is too large: a document may have at most 1 MB")):
        read_json(path)


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert read_json(tmp_path / "real") == 1
    kinds = {"link": "link", "dangling": "link", "loop": "link", "folder": "folder", "pipe": "pipe"}
    problems = {name: f"must be a plain file, not a {kind}" for name, kind in kinds.items()}
    for name, problem in {**problems, "missing": "is missing", "real/within": "is missing"}.items():
        with pytest.raises(ValueError, match=sentence(tmp_path / name, problem)):
            read_json(tmp_path / name)
