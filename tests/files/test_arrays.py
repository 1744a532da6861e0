"""What is written is read again, here and by the safetensors library; all else is refused in one sentence."""

from __future__ import annotations

import json
import os
import pickle
import re
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from holdfast.core.errors import InputError
from holdfast.files import read_arrays, write_arrays

Arrays = dict[str, NDArray[Any]]

CODES = ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8"]
DTYPES = [np.dtype(order + code) for order in "<>" for code in CODES]
SHAPES = [(), (0,), (1,), (3,), (2, 0, 3), (2, 3), (3, 1, 2), (1,) * 32]
LAYOUTS: list[Callable[[NDArray[Any]], NDArray[Any]]] = [
    lambda array: array,
    lambda array: array.T,
    lambda array: array[..., ::-1] if array.ndim else array,
    lambda array: np.repeat(array, 2, axis=0)[::2] if array.ndim else array,
    lambda array: np.broadcast_to(array, (2, *array.shape)),
    np.asfortranarray,
]
WRONG_KINDS: list[Any] = [None, True, 2, 2.0, "2", ["F32"], {}, {"0": 2}]
ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@st.composite
def arrays(draw: st.DrawFn) -> NDArray[Any]:
    shape = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    array: NDArray[Any] = draw(npst.arrays(st.sampled_from(DTYPES), shape))
    found: NDArray[Any] = draw(st.sampled_from(LAYOUTS))(array)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arrays")


def fresh(folder: Path) -> Path:
    path = folder / "a.safetensors"
    path.unlink(missing_ok=True)  # never overwritten: views of the last one may be about
    return path


def assert_same(found: Arrays, written: Arrays) -> None:
    assert set(found) == set(written)
    for name, array in written.items():
        little_endian = array.dtype.newbyteorder("<")
        assert (found[name].dtype, found[name].shape) == (little_endian, array.shape)
        assert found[name].tobytes() == array.astype(little_endian).tobytes()


def file_bytes(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def small_file(folder: Path) -> bytes:
    path = fresh(folder)
    write_arrays(path, {"a": np.arange(6, dtype="f4").reshape(2, 3), "b": np.array([True]), "c": np.zeros((0, 5))})
    return path.read_bytes()


@contextmanager
def little_memory(most: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def sentence(path: Path) -> str:
    return rf"^{re.escape(str(path))} [^\n]{{,400}}$"


def assert_refused(path: Path) -> None:
    with little_memory(2**20), pytest.raises(ValueError, match=sentence(path)) as caught:
        read_arrays(path)
    assert caught.type is InputError


def assert_bytes_refused(content: bytes, folder: Path) -> None:
    path = fresh(folder)
    path.write_bytes(content)
    assert_refused(path)


def assert_read_or_refused(content: bytes, folder: Path) -> None:
    path = fresh(folder)
    path.write_bytes(content)
    try:
        found = read_arrays(path)
    except ValueError as error:
        if type(error) is InputError and re.match(sentence(path), str(error)):
            return
        raise
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    header.pop("__metadata__", None)
    assert {name: list(array.shape) for name, array in found.items()} == {
        name: entry["shape"] for name, entry in header.items()
    }
    for name, array in found.items():
        start, end = header[name]["data_offsets"]
        assert len(array.tobytes()) == end - start


# Round trips -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_and_shape_is_read_as_it_was_written(dtype: np.dtype[Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    written = {str(shape): (rng.random(shape) * 100).astype(dtype) for shape in SHAPES}
    write_arrays(tmp_path / "a", written)
    assert_same(read_arrays(tmp_path / "a"), written)


@settings(max_examples=60)
@given(st.dictionaries(st.text(), arrays(), max_size=4))
def test_whatever_was_written_is_read(folder: Path, written: Arrays) -> None:
    path = fresh(folder)
    write_arrays(path, written)
    assert_same(read_arrays(path), written)


@settings(max_examples=30)
@given(st.dictionaries(st.text(), arrays(), max_size=4))
def test_the_safetensors_library_reads_what_is_written_here(folder: Path, written: Arrays) -> None:
    path = fresh(folder)
    write_arrays(path, written)
    assert_same(safetensors.numpy.load_file(path), written)


@settings(max_examples=30)
@given(
    st.dictionaries(st.text(), arrays().map(lambda array: array.astype(array.dtype.newbyteorder("<"))), max_size=4)
)
def test_what_the_safetensors_library_wrote_is_read_here(folder: Path, written: Arrays) -> None:
    path = fresh(folder)
    safetensors.numpy.save_file({name: np.array(array, order="C") for name, array in written.items()}, path)
    assert_same(read_arrays(path), written)


def test_what_the_safetensors_library_notes_beside_the_arrays_is_passed_over(tmp_path: Path) -> None:
    written = {"a": np.arange(3)}
    safetensors.numpy.save_file(written, tmp_path / "a", metadata={"format": "pt"})
    assert_same(read_arrays(tmp_path / "a"), written)


def test_no_arrays_make_a_file_too(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", {})
    assert read_arrays(tmp_path / "a") == {}
    assert safetensors.numpy.load_file(tmp_path / "a") == {}


def test_types_that_are_the_same_under_another_name_are_written(tmp_path: Path) -> None:
    written = {code: np.arange(3, dtype=code) for code in "bBhHiIlLqQefd"}
    write_arrays(tmp_path / "a", written)
    assert_same(read_arrays(tmp_path / "a"), written)


def test_the_same_arrays_make_the_same_file_in_whatever_order(tmp_path: Path) -> None:
    written = {"b": np.zeros(3), "a": np.ones(2), "c": np.zeros(3, bool)}
    write_arrays(tmp_path / "one", written)
    write_arrays(tmp_path / "two", dict(reversed(written.items())))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_an_old_file_is_overwritten_as_a_whole(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", {"a": np.zeros(1000)})
    write_arrays(tmp_path / "a", {"b": np.ones(2)})
    assert_same(read_arrays(tmp_path / "a"), {"b": np.ones(2)})


def test_every_array_begins_where_its_numbers_may(tmp_path: Path) -> None:
    written = {code: np.ones(3, code) for code in CODES}
    write_arrays(tmp_path / "a", written)
    assert all(array.flags.aligned for array in read_arrays(tmp_path / "a").values())


def test_arrays_that_are_not_aligned_are_read_too(tmp_path: Path) -> None:
    header = {"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "b": {**ENTRY, "data_offsets": [1, 9]}}
    (tmp_path / "a").write_bytes(file_bytes(header, b"\x07" + np.array([1.5, 2.5], "<f4").tobytes()))
    assert_same(read_arrays(tmp_path / "a"), {"a": np.array([7], "u1"), "b": np.array([1.5, 2.5], "f4")})


def test_arrays_are_views_of_the_file_that_nobody_may_write_to(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", {"a": np.zeros(3)})
    found = read_arrays(tmp_path / "a")["a"]
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1.0


def test_arrays_outlive_the_name_of_their_file(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", {"a": np.arange(3)})
    found = read_arrays(tmp_path / "a")
    (tmp_path / "a").unlink()
    assert_same(found, {"a": np.arange(3)})


def test_neither_writing_nor_reading_copies_the_numbers(tmp_path: Path) -> None:
    large = np.zeros((2**11, 2**10))
    with little_memory(2**20):
        write_arrays(tmp_path / "a", {"a": large})
        found = read_arrays(tmp_path / "a")
    assert found["a"].nbytes == large.nbytes == 2**24


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2, object),
        np.array(["text"]),
        np.array([b"text"]),
        np.zeros(2, complex),
        np.zeros(2, "M8[s]"),
        np.zeros(2, "m8[s]"),
        np.zeros(2, [("x", "f4")]),
        np.zeros(2, "V4"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_of_something_else_are_not_written(array: NDArray[Any], tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^arrays must be of numbers or booleans, and 'a' is of "):
        write_arrays(tmp_path / "a", {"a": array})
    assert not (tmp_path / "a").exists()


def test_a_name_that_the_format_has_for_itself_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^arrays must not be called '__metadata__'"):
        write_arrays(tmp_path / "a", {"__metadata__": np.zeros(2)})
    assert not (tmp_path / "a").exists()


# Damage ----------------------------------------------------------------------------------------------------------


def test_a_file_that_ends_too_early_is_refused_wherever_it_ends(folder: Path) -> None:
    content = small_file(folder)
    for length in range(len(content)):
        assert_bytes_refused(content[:length], folder)


@pytest.mark.parametrize("more", [1, 8, 1000])
def test_bytes_behind_the_arrays_are_refused(more: int, folder: Path) -> None:
    assert_bytes_refused(small_file(folder) + bytes(more), folder)


@pytest.mark.parametrize("length", [0, 1, 2**16, 100_000_001, 2**31, 2**63, 2**64 - 1])
def test_a_wrong_length_of_the_header_is_refused(length: int, folder: Path) -> None:
    assert_bytes_refused(file_bytes({"a": ENTRY}, bytes(8), length), folder)


def test_a_header_that_would_fill_the_memory_is_refused(folder: Path) -> None:
    path = fresh(folder)
    path.write_bytes(file_bytes({"a": ENTRY}, bytes(8), 2**39))
    os.truncate(path, 2**40)  # has no numbers, and takes no room
    assert_refused(path)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"{}}",
        b"nonsense",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b"[" * 20_000,
        b'{"a":' * 20_000,
        b"[" * 100 + b"]" * 100,
        b"9" * 10_000,
        b'{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,8]}}',
        b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,Infinity]}}',
        b'{"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}}',
        b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
        b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,' + b"9" * 5000 + b"]}}",
        [],
        [ENTRY],
        None,
        True,
        8,
        "a",
        {},
        {"__metadata__": ENTRY},
    ],
    ids=lambda header: repr(header)[:40],
)
def test_a_header_that_is_none_is_refused(header: Any, folder: Path) -> None:
    assert_bytes_refused(file_bytes(header, bytes(8)), folder)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        8,
        "F32",
        {},
        {"dtype": "F32", "shape": [2]},
        {"dtype": "F32", "data_offsets": [0, 8]},
        {"shape": [2], "data_offsets": [0, 8]},
        {**ENTRY, "more": 1},
        *({**ENTRY, "dtype": code} for code in ("F99", "BF16", "F8_E4M3", "O", "|O", "<f4", "f32", "")),
        *({**ENTRY, "dtype": code} for code in ("F64", "U8", "BOOL")),
        *({**ENTRY, "dtype": code} for code in WRONG_KINDS),
        *(
            {**ENTRY, "shape": shape}
            for shape in (
                *WRONG_KINDS, [], [0], [1], [3], [2, 2], [-2], [-1, -2], [2.0], [2.5], [True, 2], [False], ["2"],
                [None], [[2]], [2**31], [2**32, 2**32], [2**62, 4], [2**63], [2**64], [2**64 + 2], [10**400],
                [2] + [1] * 32, [2] + [1] * 64,
            )
        ),
        *(
            {**ENTRY, "data_offsets": place}
            for place in (
                *WRONG_KINDS, [], [0], [8], [0, 8, 8], [-8, 0], [0, -8], [8, 0], [0, 8.0], [0.0, 8], [False, 8],
                ["0", "8"], [None, 8], [[0, 8]], [0, 4], [4, 8], [4, 12], [8, 16], [1, 9], [0, 2**63],
                [0, 10**400], [2**63 - 9, 2**63 - 1], [2**63, 2**63 + 8], [2**64, 2**64 + 8],
            )
        ),
        {"dtype": "U8", "shape": [2**62], "data_offsets": [0, 2**62]},
        {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]},
    ],
    ids=lambda entry: json.dumps(entry)[:100],
)  # fmt: skip
def test_an_entry_that_does_not_say_what_is_there_is_refused(entry: Any, folder: Path) -> None:
    assert_bytes_refused(file_bytes({"a": entry}, bytes(8)), folder)


@pytest.mark.parametrize("shape", [[0, 2**62, 2**62], [2**62, 2**62, 0], [0] + [1] * 64, [0, 2**63]])
def test_an_empty_array_of_an_impossible_shape_is_refused(shape: list[int], folder: Path) -> None:
    assert_bytes_refused(file_bytes({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}), folder)


@pytest.mark.parametrize(
    "places",
    [
        [(0, 8), (0, 8)],
        [(0, 8), (4, 12)],
        [(4, 12), (0, 8)],
        [(0, 16), (4, 8)],
        [(0, 8), (12, 20)],
        [(4, 12), (12, 20)],
        [(0, 8), (4, 4)],
        [(0, 8), (9, 9)],
        [(0, 8), (8, 8), (16, 16)],
    ],
)
def test_arrays_that_overlap_or_leave_holes_are_refused(places: list[tuple[int, int]], folder: Path) -> None:
    header = {
        str(number): {"dtype": "U8", "shape": [end - start], "data_offsets": [start, end]}
        for number, (start, end) in enumerate(places)
    }
    assert_bytes_refused(file_bytes(header, bytes(max(end for _, end in places))), folder)


def test_a_name_that_never_ends_is_not_repeated(folder: Path) -> None:
    for entry in (None, {**ENTRY, "shape": [3]}, {**ENTRY, "dtype": "F99"}, {**ENTRY, "data_offsets": [8, 16]}):
        assert_bytes_refused(file_bytes({"a" * 10_000: entry}, bytes(8)), folder)


class Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_what_could_run_is_refused_and_does_not_run(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    (tmp_path / "a").write_bytes(pickle.dumps(Trap(trap)))
    assert_refused(tmp_path / "a")
    np.save(tmp_path / "a.npy", np.array([Trap(trap)], object), allow_pickle=True)
    assert_refused(tmp_path / "a.npy")
    assert not trap.exists()


def test_files_of_other_formats_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.zeros(3))
    np.save(tmp_path / "a.npy", np.zeros(3))
    for path in tmp_path.iterdir():
        assert_refused(path)


def test_what_is_no_plain_file_is_refused_without_waiting(tmp_path: Path) -> None:
    write_arrays(tmp_path / "real", {"a": np.zeros(2)})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "dangling", "loop", "folder", "pipe", "missing", "real/within"):
        assert_refused(tmp_path / name)


def test_every_flipped_bit_gives_arrays_of_the_declared_shape_or_is_refused(folder: Path) -> None:
    content = small_file(folder)
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        assert_read_or_refused(bytes(damaged), folder)


@settings(max_examples=200)
@given(st.data())
def test_every_changed_byte_gives_arrays_of_the_declared_shape_or_is_refused(
    folder: Path, data: st.DataObject
) -> None:
    damaged = bytearray(small_file(folder))
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place] = data.draw(st.integers(0, 255))
    assert_read_or_refused(bytes(damaged), folder)


@given(st.binary(max_size=64), st.booleans())
def test_bytes_from_anywhere_are_arrays_or_refused(folder: Path, content: bytes, as_header: bool) -> None:
    assert_read_or_refused(file_bytes(content) if as_header else content, folder)
