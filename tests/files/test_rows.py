from __future__ import annotations

import math
import os
import re
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.errors import InputError
from holdfast.files import Rows, read_numbers, read_rows, rows_bytes

COLUMNS = ("step", "return")
HEADER = "step,return\n"
NUMBERS = st.none() | st.floats() | st.integers(-(2**63), 2**64 - 1)


def sentence(path: Path, text: str = "") -> str:
    return rf"^{re.escape(str(path))} [^\n]*{text}[^\n]*$"


def assert_only_plain_files(use: Callable[[Path], object], folder: Path) -> None:
    """That ``use`` refuses a link to a file, a folder, a pipe and what is missing, and says which it is."""
    (folder / "link").symlink_to(folder / "real")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    for name in ("link", "folder", "pipe", "missing"):
        problem = "is missing" if name == "missing" else f"must be a plain file, not a {name}"
        with pytest.raises(ValueError, match=sentence(folder / name, problem)):
            use(folder / name)


def bits(number: float) -> bytes:
    return b"nan" if math.isnan(number) else struct.pack("d", number)


def written(
    path: Path, *rows: tuple[Any, ...], columns: tuple[str, ...] = COLUMNS, length: int | None = None
) -> int:
    file = Rows(path, columns, length)
    file.begin()
    for row in rows:
        file.append(*row)
    found = file.flush()
    file.close()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.csv"


# Numbers ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=5))
def test_numbers_are_read_as_they_were_written(folder: Path, rows: list[tuple[Any, Any]]) -> None:
    written(folder / "a.csv", *rows)
    found = read_rows(folder / "a.csv")
    assert list(found) == list(COLUMNS)
    for name, values in zip(COLUMNS, zip(*rows, strict=True), strict=False):
        expected = [math.nan if value is None else float(value) for value in values]
        assert list(map(bits, found[name])) == list(map(bits, expected))


@pytest.mark.parametrize(
    "value",
    [
        0.0, -0.0, 1.0, -1.0, 0.1, 1e15, 1e16, 1e17, -1e22, 1e300, 5e-324, math.inf, -math.inf, 2**53 - 1, 2**53,
        2**53 + 1, -(2**63), 10**300, True, np.float32(0.1), np.float64(-0.0), np.float16(1.5), np.int8(-128),
        np.int64(-(2**63)), np.uint64(2**64 - 1), np.True_,
    ],
    ids=repr,
)  # fmt: skip
def test_numbers_of_every_kind_and_size_are_read_as_they_were_written(value: Any, path: Path) -> None:
    written(path, (value,), columns=("a",))
    (found,) = read_rows(path)["a"]
    assert bits(found) == bits(float(value))


def test_an_empty_cell_is_no_number(path: Path) -> None:
    written(path, (None, 1.5), (2, None), (float("nan"), 3))
    assert path.read_text() == f"{HEADER},1.5\n2,\nnan,3\n"
    np.testing.assert_array_equal(read_rows(path)["step"], [np.nan, 2, np.nan])
    np.testing.assert_array_equal(read_rows(path)["return"], [1.5, np.nan, 3])


def test_whole_numbers_look_like_whole_numbers(path: Path) -> None:
    written(path, (3, 4.0), (np.int64(5), np.float32(-6)))
    assert path.read_text() == f"{HEADER}3,4\n5,-6\n"


def test_a_row_has_a_value_for_every_column(path: Path) -> None:
    rows = Rows(path, COLUMNS)
    rows.begin()
    for values in ((), (1,), (1, 2, 3)):
        with pytest.raises(ValueError, match=rf"^a row must have 2 values, not {len(values)}$"):
            rows.append(*values)
    rows.close()
    assert path.read_text() == HEADER


# Writing ---------------------------------------------------------------------------------------------------------


def test_nothing_changes_before_the_beginning(path: Path) -> None:
    rows = Rows(path, COLUMNS)
    assert not path.exists()
    for use in (lambda: rows.append(1, 2), rows.flush, rows.show):
        with pytest.raises(ValueError, match=r"^rows must be begun before they are appended$"):
            use()
    rows.close()
    assert not path.exists()

    length = written(path, (1, 2))
    whole = path.read_bytes() + b"3,4\n"
    path.write_bytes(whole)
    Rows(path, COLUMNS).close()
    Rows(path, COLUMNS, length).close()
    assert path.read_bytes() == whole


def test_a_new_file_takes_the_place_of_the_old_one(path: Path) -> None:
    written(path, (1, 2), (3, 4))
    written(path, (5, 6))
    assert path.read_text() == f"{HEADER}5,6\n"


def test_rows_are_there_for_others_when_they_are_shown(path: Path) -> None:
    rows = Rows(path, COLUMNS)
    rows.begin()
    rows.append(1, 2)
    rows.show()
    assert read_rows(path) == {"step": [1.0], "return": [2.0]}
    rows.append(3, 4)
    assert rows.flush() == path.stat().st_size
    assert read_rows(path) == {"step": [1.0, 3.0], "return": [2.0, 4.0]}
    rows.close()


def test_flushing_puts_the_rows_onto_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    length = written(path, (1, 2))
    assert sizes == [length] == [path.stat().st_size]


@pytest.mark.parametrize("more", ["", "3,4\n", "3,4\n5,", "nonsense\n\n\0"])
def test_going_on_cuts_the_file_back_to_the_length_that_was_kept(more: str, path: Path) -> None:
    length = written(path, (1, 2))
    with path.open("a") as file:
        file.write(more)
    assert written(path, (7, 8), length=length) == path.stat().st_size
    assert path.read_text() == f"{HEADER}1,2\n7,8\n"


def test_the_length_that_was_kept_is_told_before_there_is_a_new_row(path: Path) -> None:
    length = written(path, (1, 2))
    assert written(path, length=length) == length


def test_a_file_without_rows_is_gone_on_with(path: Path) -> None:
    length = written(path)
    assert length == len(HEADER)
    written(path, (1, 2), length=length)
    assert path.read_text() == f"{HEADER}1,2\n"


@pytest.mark.parametrize("length", [-1, 0, 1, len(HEADER) - 1, len(HEADER) + 5, 2**62])
def test_a_file_that_is_too_short_is_refused_and_stays_as_it_is(length: int, path: Path) -> None:
    path.write_text(f"{HEADER}1,2\n")
    with pytest.raises(ValueError, match=sentence(path, "is shorter than it was at the last checkpoint")):
        Rows(path, COLUMNS, length)
    assert path.read_text() == f"{HEADER}1,2\n"


@pytest.mark.parametrize(
    "content",
    ["step,other\n1,2\n", "return,step\n1,2\n", "step,return,more\n1\n", "step;return\n1,2\n", "1,2\n" * 9],
)
def test_a_file_with_another_header_is_refused_and_stays_as_it_is(content: str, path: Path) -> None:
    path.write_text(content)
    with pytest.raises(ValueError, match=sentence(path, "is damaged: it must have the columns step, return")):
        Rows(path, COLUMNS, len(content))
    assert path.read_text() == content


def test_a_length_within_a_row_is_refused(path: Path) -> None:
    length = written(path, (1, 2), (3, 4))
    for wrong in (length - 1, length - 2, len(HEADER) + 1):
        with pytest.raises(ValueError, match=sentence(path, "is damaged")):
            Rows(path, COLUMNS, wrong)
    Rows(path, COLUMNS, length - len("3,4\n"))


def test_only_a_plain_file_is_gone_on_with(tmp_path: Path) -> None:
    length = written(tmp_path / "real", (1, 2))
    assert_only_plain_files(lambda path: Rows(path, COLUMNS, length), tmp_path)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_link_is_replaced_and_not_written_through(is_there: bool, tmp_path: Path) -> None:
    path, target = tmp_path / "a.csv", tmp_path / "elsewhere"
    if is_there:
        target.write_text("mine")
    path.symlink_to(target)
    written(path, (1, 2))
    assert not path.is_symlink()
    assert path.read_text() == f"{HEADER}1,2\n"
    assert target.exists() == is_there
    assert not is_there or target.read_text() == "mine"


# Reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("torn", ["3", "3,", "3,4", "3,4,5", "nonsense", "\0\0"])
def test_a_torn_last_line_is_left_out(torn: str, path: Path) -> None:
    path.write_text(f"{HEADER}1,2\n{torn}")
    assert read_rows(path) == {"step": [1.0], "return": [2.0]}


def test_wherever_a_file_ends_its_whole_rows_are_read(path: Path) -> None:
    length = written(path, (1, 2.5), (-3, None), (5, 1e-5))
    content = path.read_bytes()
    for end in range(len(HEADER), length + 1):
        path.write_bytes(content[:end])
        whole = content[:end].count(b"\n") - 1
        assert read_rows(path)["step"] == [1.0, -3.0, 5.0][:whole]


@pytest.mark.parametrize("content", ["", "step", "step,return"])
def test_a_file_without_a_whole_header_is_refused(content: str, path: Path) -> None:
    path.write_text(content)
    with pytest.raises(ValueError, match=sentence(path, "is empty")):
        read_rows(path)


def test_only_the_columns_that_are_asked_for_must_be_there(path: Path) -> None:
    written(path, (1, 2))
    for columns in (None, (), ("step",), ("return", "step")):
        assert read_rows(path, columns) == {"step": [1.0], "return": [2.0]}
    with pytest.raises(ValueError, match=sentence(path, "must have the columns step, other, each once")):
        read_rows(path, ("step", "other"))


def test_a_column_that_is_there_twice_is_refused(path: Path) -> None:
    path.write_text("a,b,a\n1,2,3\n")
    with pytest.raises(ValueError, match=sentence(path, "each once")):
        read_rows(path, ("a",))


@pytest.mark.parametrize("line", ["", "1", "1,2,3", ",,"])
def test_a_row_of_another_length_is_refused(line: str, path: Path) -> None:
    path.write_text(f"{HEADER}1,2\n{line}\n3,4\n")
    cells = len(line.split(","))
    with pytest.raises(ValueError, match=sentence(path, f"line 3 must have 2 values, not {cells}")):
        read_rows(path)


@pytest.mark.parametrize("cell", ["x", "1.2.3", "0x10", "1e", "--1", "None", '"1"', "\0", "é", "x" * 10_000])
def test_a_cell_that_is_no_number_is_refused(cell: str, path: Path) -> None:
    path.write_text(f"{HEADER}1,2\n3,{cell}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=sentence(path, "in line 3 is not a number")) as caught:
        read_rows(path)
    assert len(str(caught.value)) < len(str(path)) + 250


@given(st.binary(max_size=40), st.booleans())
def test_bytes_from_anywhere_are_rows_or_refused(folder: Path, content: bytes, with_header: bool) -> None:
    path = folder / "b.csv"
    path.write_bytes(HEADER.encode() * with_header + content)
    try:
        found = read_rows(path, COLUMNS)
    except ValueError as error:
        if type(error) is InputError and re.match(sentence(path), str(error)):
            return
        raise
    assert len(found["step"]) == len(found["return"])


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    written(tmp_path / "real", (1, 2))
    assert_only_plain_files(read_rows, tmp_path)


def test_a_whole_table_is_the_file_that_rows_would_have_made(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.csv", ("a", "b"))
    rows.begin()
    for values in ((1, 0.1), (None, -0.0), (5e-324, float("inf"))):
        rows.append(*values)
    rows.close()
    data = rows_bytes({"a": [1, None, 5e-324], "b": [0.1, -0.0, float("inf")]})
    assert data == (tmp_path / "rows.csv").read_bytes()
    with pytest.raises(ValueError, match="shorter"):
        rows_bytes({"a": [1], "b": []})


@pytest.mark.parametrize("rows", ["1,2\n3,0.1\n", "1,2\n", "", "1,\n,2\n", "inf,nan\n-0,1e300\n"])
def test_the_quick_reader_reads_what_the_other_reads(rows: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + rows)
    quick = read_numbers(path, ("a", "b"))
    for name, values in read_rows(path).items():
        assert quick[name].tobytes() == np.array(values, dtype=np.float64).tobytes()


@pytest.mark.parametrize("rows", ["1\n", "1,2,3\n", "1,x\n", "1,2\n3\n"])
def test_the_quick_reader_refuses_what_the_other_refuses(rows: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + rows)
    with pytest.raises(ValueError, match="is damaged"):
        read_numbers(path, ("a", "b"))


@pytest.mark.parametrize("every", [2**19, 2**20, 3 * 2**18])
def test_lines_of_zeros_are_not_read_to_their_end(every: int, path: Path) -> None:
    with path.open("wb") as file:
        file.write(HEADER.encode())
        for place in range(every, 2**25, every):
            file.seek(place)
            file.write(b"\n")
        file.truncate(2**25)

    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=sentence(path, "is damaged: it has zero bytes in its lines")):
            read_rows(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**23


def test_a_large_file_that_is_nearly_all_holes_is_refused(path: Path) -> None:
    with path.open("wb") as file:
        file.write(f"{HEADER}1,2\n".encode())
        file.truncate(2**27)
    with pytest.raises(InputError, match=sentence(path, "is damaged: it consists almost entirely of holes")):
        read_rows(path)


def test_zeros_that_a_crash_left_behind_a_large_file_are_left_out(path: Path) -> None:
    row = "1,2\n"
    n = 2**20 // len(row)
    path.write_bytes(HEADER.encode() + row.encode() * n + bytes(4096))
    assert len(read_rows(path)["step"]) == n


def test_a_length_that_is_too_large_is_refused_and_not_cut(path: Path) -> None:
    written(path, (1, 2))
    with pytest.raises(InputError, match=sentence(path, "is too large: rows may have at most 1024 MB")):
        read_rows(path, length=2**30 + 1)
