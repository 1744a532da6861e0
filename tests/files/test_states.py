from __future__ import annotations

import gc
import hashlib
import json
import math
import os
import re
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from holdfast.core.errors import InputError
from holdfast.files import NewerFormatError, read_arrays, read_state, write_arrays, write_state
from tests.files.seals import seal_anew

ONE: dict[str, tuple[str, ...]] = {"all.safetensors": ()}
TWO: dict[str, tuple[str, ...]] = {"all.safetensors": (), "replay.safetensors": ("agent", "replay")}

NAMES = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), max_size=4)
ARRAYS = npst.arrays(
    st.sampled_from(["?", "u1", "<i4", "<f4", "<f8", "<i8"]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | ARRAYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)
STATES = st.dictionaries(NAMES, VALUES, max_size=4)
REPLAY_STATES = st.builds(
    lambda state, agent, replay: {**state, "agent": {**agent, "replay": replay}}, STATES, STATES, VALUES
)


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, np.ndarray):
        assert isinstance(found, np.ndarray)
        assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
        return
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name in expected:
            assert_same(found[name], expected[name])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert repr(found) == repr(expected)  # NaN, and the sign of zero
    else:
        assert found == expected


def sentence(path: Path, text: str = "") -> str:
    return rf"^{re.escape(str(path))} [^\n]*{text}[^\n]*$"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states")


def cleared(folder: Path) -> Path:
    for file in folder.iterdir():
        file.unlink()  # never overwritten: views of the last ones may be about
    return folder


# Round trips -----------------------------------------------------------------------------------------------------


def assert_comes_back(folder: Path, state: dict[str, Any], files: dict[str, tuple[str, ...]]) -> None:
    """Write a state into these files, and read the same from them alone."""
    write_state(cleared(folder), state, files)
    assert_same(read_state(folder, files), state)
    assert {file.name for file in folder.iterdir()} == {"state.json", *files}


@settings(max_examples=40)
@given(STATES)
def test_whatever_was_written_is_read(folder: Path, state: dict[str, Any]) -> None:
    assert_comes_back(folder, state, ONE)


@settings(max_examples=40)
@given(REPLAY_STATES)
def test_whatever_was_written_to_several_files_is_read(folder: Path, state: dict[str, Any]) -> None:
    assert_comes_back(folder, state, TWO)
    assert all(re.match("agent/replay(/|$)", name) for name in read_arrays(folder / "replay.safetensors"))


def test_numbers_that_json_does_not_have_are_read_again(tmp_path: Path) -> None:
    state = {"a": [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, 0.1], "b": {"c": math.nan}, "d": 2**200}
    write_state(tmp_path, state, ONE)
    assert_same(read_state(tmp_path, ONE), state)
    (tmp_path / "state.json").read_bytes().decode("ascii")
    json.loads(
        (tmp_path / "state.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON")
    )


def test_what_python_has_more_than_json_becomes_plain(tmp_path: Path) -> None:
    state = {
        "tuple": (1, np.float32(0.5), (np.int8(3),)),
        "mapping": types.MappingProxyType({1: np.True_, None: OrderedDict(b=np.float64("nan"))}),
        "text": np.str_("text"),
        "big-endian": np.arange(3, dtype=">i4"),
    }
    write_state(tmp_path, state, ONE)
    assert_same(
        read_state(tmp_path, ONE),
        {
            "tuple": [1, 0.5, [3]],
            "mapping": {"1": True, "None": {"b": math.nan}},
            "text": "text",
            "big-endian": np.arange(3, dtype="<i4"),
        },
    )


def test_the_document_may_have_another_name(tmp_path: Path) -> None:
    write_state(tmp_path, {"a": np.arange(3)}, ONE, "policy.json")
    assert_same(read_state(tmp_path, ONE, "policy.json"), {"a": np.arange(3)})
    assert {file.name for file in tmp_path.iterdir()} == {"policy.json", *ONE}


def test_the_arrays_of_a_part_go_to_its_own_file(tmp_path: Path) -> None:
    state = {
        "agent": {"replay": {"x": np.arange(2), "y": [np.arange(3)]}, "replay2": np.arange(4), "q": np.arange(5)},
        "replay": np.arange(6),
        "other": {"agent": {"replay": np.arange(7)}},
    }
    write_state(tmp_path, state, TWO)
    assert set(read_arrays(tmp_path / "replay.safetensors")) == {"agent/replay/x", "agent/replay/y/0"}
    assert set(read_arrays(tmp_path / "all.safetensors")) == {
        "agent/replay2",
        "agent/q",
        "replay",
        "other/agent/replay",
    }
    assert_same(read_state(tmp_path, TWO), state)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_smallest_part_that_an_array_is_in_counts(reverse: bool, tmp_path: Path) -> None:
    places = {"a": (), "b": ("x",), "c": ("x", "y"), "d": ("x", "z")}
    if reverse:
        places = dict(reversed(places.items()))
    state = {"w": np.arange(1), "x": {"w": np.arange(2), "y": {"y": np.arange(3)}, "z": np.arange(4)}}
    write_state(tmp_path, state, places)
    found = {file: list(read_arrays(tmp_path / file)) for file in "abcd"}
    assert found == {"a": ["w"], "b": ["x/w"], "c": ["x/y/y"], "d": ["x/z"]}
    assert_same(read_state(tmp_path, places), state)


def test_a_part_without_arrays_has_an_empty_file(tmp_path: Path) -> None:
    write_state(tmp_path, {"a": 1}, TWO)
    assert read_arrays(tmp_path / "replay.safetensors") == {}
    assert read_state(tmp_path, TWO) == {"a": 1}


def test_everything_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(os.fstat(handle).st_ino))
    write_state(tmp_path, {"a": np.arange(3)}, TWO)
    assert set(flushed) == {path.stat().st_ino for path in (*tmp_path.iterdir(), tmp_path)}
    assert flushed[-1] == tmp_path.stat().st_ino


# Not written -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, b"bytes", 1j, np.complex64(1), len, np.datetime64("2000-01-01")]
)
def test_something_else_in_the_state_is_named(value: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^state must hold arrays and JSON values, but a/1/b is \w+$"):
        write_state(tmp_path, {"a": [0, {"b": value}]}, ONE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "state",
    [
        {"a": {"b": np.zeros(1)}, "a/b": np.zeros(2)},
        {"a": [np.zeros(1)], "a/0": np.zeros(2)},
        {"a/b": {"c": np.zeros(1)}, "a": {"b/c": np.zeros(2)}},
    ],
)
def test_two_arrays_of_one_name_are_refused(state: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^state must not have two arrays with the name a/"):
        write_state(tmp_path, state, ONE)
    assert list(tmp_path.iterdir()) == []


def test_two_arrays_of_one_name_may_be_in_two_files(tmp_path: Path) -> None:
    state = {"agent": {"replay": np.arange(1)}, "agent/replay": np.arange(2)}
    write_state(tmp_path, state, TWO)
    assert_same(read_state(tmp_path, TWO), state)


@pytest.mark.parametrize("value", [1, np.zeros(1)])
def test_two_names_that_are_one_as_text_are_refused(value: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^state must not have two "):
        write_state(tmp_path, {"a": {1: value, "1": value}}, ONE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [{"$array": "a"}, {"$float": "nan"}, {"$float": 1.0}, {"$array": np.zeros(1)}])
def test_what_would_be_read_as_something_else_is_refused(value: Any, tmp_path: Path) -> None:
    for state in (value, {"a": value}, {"a": [value]}):
        with pytest.raises(TypeError, match=r"^state must not have a mapping with only "):
            write_state(tmp_path, state, ONE)
    assert list(tmp_path.iterdir()) == []


def test_the_marks_of_the_format_are_names_like_others_beside_others(tmp_path: Path) -> None:
    state = {"$array": 1, "$float": "nan", "a": {"$array": np.zeros(1), "b": 2}}
    write_state(tmp_path, state, ONE)
    assert_same(read_state(tmp_path, ONE), state)


def test_an_array_that_no_file_is_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^state must not have an array b/c: there is no file for it$"):
        write_state(tmp_path, {"a": np.zeros(1), "b": {"c": np.zeros(1)}}, {"a": ("a",)})
    assert list(tmp_path.iterdir()) == []


# Not read --------------------------------------------------------------------------------------------------------

STATE: dict[str, Any] = {
    "a": np.arange(3),
    "b": np.arange(3),
    "agent": {"replay": {"x": np.arange(3)}},
    "n": math.nan,
}


def change(edit: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        document = json.loads((folder / "state.json").read_text())
        edit(document)
        (folder / "state.json").write_text(json.dumps(document))
        seal_anew(folder / "state.json")

    return changed


def replace(text: str) -> Callable[[Path], None]:
    def replaced(folder: Path) -> None:
        (folder / "state.json").write_text(text)

    return replaced


DAMAGES: dict[str, Callable[[Path], None]] = {
    "an array that the document does not name": change(lambda document: document.pop("a")),
    "an array of the part that it does not name": change(lambda document: document["agent"].pop("replay")),
    "a number instead of an array": change(lambda document: document.update(a=3)),
    "a missing array": change(lambda document: document.update(c={"$array": "c"})),
    "a missing array of the part": change(lambda document: document["agent"]["replay"].update(c={"$array": "c"})),
    "an array under another name": change(lambda document: document.update(c=document.pop("a"))),
    "another array's name": change(lambda document: document.update(a={"$array": "b"})),
    "two swapped names": change(lambda document: document.update(a=document["b"], b=document["a"])),
    "a name of the other file": change(lambda document: document.update(a={"$array": "agent/replay/x"})),
    "a path instead of a name": change(lambda document: document.update(a={"$array": "../a"})),
    "no name": change(lambda document: document.update(a={"$array": None})),
    "a list instead of a name": change(lambda document: document.update(a={"$array": ["a"]})),
    "a mapping instead of a name": change(lambda document: document.update(a={"$array": {"$array": "a"}})),
    "a number that is none": change(lambda document: document.update(n={"$float": "1.5"})),
    "a number that has spaces": change(lambda document: document.update(n={"$float": " nan"})),
    "a list instead of a number": change(lambda document: document.update(n={"$float": ["nan"]})),
    "an endless text instead of a number": change(lambda document: document.update(n={"$float": "9" * 10_000})),
    "an endless name": change(lambda document: document.update({"c" * 10_000: {"$array": "c"}})),
    "a list": replace("[]"),
    "an array alone": replace('{"$array": ""}'),
    "a number alone": replace('{"$float": "nan"}'),
    "NaN": replace('{"n": NaN}'),
    "no document": lambda folder: (folder / "state.json").unlink(),
    "half a document": replace('{"a": {"$array":'),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_document_that_does_not_fit_its_arrays_is_refused(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    write_state(tmp_path, STATE, TWO)
    assert_same(read_state(tmp_path, TWO), STATE)
    damage(tmp_path)
    with pytest.raises(ValueError, match=sentence(tmp_path / "state.json")) as caught:
        read_state(tmp_path, TWO)
    assert caught.type is InputError
    assert len(str(caught.value)) < len(str(tmp_path)) + 300


@pytest.mark.parametrize("file", TWO)
def test_a_file_of_arrays_that_does_not_fit_is_refused(file: str, tmp_path: Path) -> None:
    write_state(tmp_path, STATE, TWO)
    arrays = {name: array.copy() for name, array in read_arrays(tmp_path / file).items()}
    for changed in ({}, {**arrays, "more": np.zeros(1)}, {f"{name}2": array for name, array in arrays.items()}):
        (tmp_path / file).unlink()
        write_arrays(tmp_path / file, changed)
        seal_anew(tmp_path / file)
        with pytest.raises(ValueError, match=sentence(tmp_path / "state.json", "array")):
            read_state(tmp_path, TWO)
    (tmp_path / file).write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=sentence(tmp_path / file)):
        read_state(tmp_path, TWO)
    (tmp_path / file).unlink()
    with pytest.raises(ValueError, match=sentence(tmp_path / file, "is missing")):
        read_state(tmp_path, TWO)


def test_the_files_of_two_parts_are_not_interchangeable(tmp_path: Path) -> None:
    write_state(tmp_path, STATE, TWO)
    one, other = (tmp_path / file for file in TWO)
    one.rename(tmp_path / "aside")
    other.rename(one)
    (tmp_path / "aside").rename(other)
    with pytest.raises(ValueError, match=sentence(one, "its checksum does not match")):
        read_state(tmp_path, TWO)
    seal_anew(one)
    with pytest.raises(ValueError, match=sentence(tmp_path / "state.json", "must have an array")):
        read_state(tmp_path, TWO)


def test_an_array_in_the_document_that_no_file_is_for_is_refused(tmp_path: Path) -> None:
    write_state(tmp_path, {"a": np.zeros(1), "b": 1}, {"a.safetensors": ("a",)})
    change(lambda document: document.update(b={"$array": "b"}))(tmp_path)
    with pytest.raises(ValueError, match=sentence(tmp_path / "state.json", "must have an array 'b'")):
        read_state(tmp_path, {"a.safetensors": ("a",)})


@pytest.mark.parametrize("name", ["state.json", "all.safetensors"])
def test_links_are_not_read(name: str, tmp_path: Path) -> None:
    write_state(tmp_path, STATE, TWO)
    (tmp_path / name).rename(tmp_path / "aside")
    (tmp_path / name).symlink_to(tmp_path / "aside")
    with pytest.raises(ValueError, match=sentence(tmp_path / name, "must be a plain file, not a link")):
        read_state(tmp_path, TWO)


@pytest.mark.parametrize("text", ["[]", "1", "null", '"a"'])
def test_a_document_that_is_no_mapping_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(ValueError, match=sentence(tmp_path / "state.json", "must hold a mapping")):
        read_state(tmp_path, {})


def test_a_document_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=sentence(tmp_path / "state.json", "is missing")):
        read_state(tmp_path, {})


# Checksums -------------------------------------------------------------------------------------------------------


def test_the_document_has_the_checksums_of_all_files_and_its_own(tmp_path: Path) -> None:
    write_state(tmp_path, STATE, TWO)
    text = (tmp_path / "state.json").read_bytes()
    digests = json.loads(text)["sha256"]
    assert set(digests) == {*TWO, "state.json"}
    for file in TWO:
        assert digests[file] == hashlib.sha256((tmp_path / file).read_bytes()).hexdigest()
    own = digests["state.json"].encode()
    assert text.count(own) == 1
    assert hashlib.sha256(text.replace(own, b"0" * 64)).hexdigest().encode() == own
    # What the tests change documents with agrees.
    seal_anew(tmp_path / "state.json")
    assert_same(read_state(tmp_path, TWO), STATE)


@pytest.mark.parametrize("file", ["state.json", *TWO])
def test_a_bit_that_is_another_one_is_told_wherever_it_is(file: str, tmp_path: Path) -> None:
    write_state(tmp_path, STATE, TWO)
    data = (tmp_path / file).read_bytes()
    for place in range(len(data)):
        for bit in (0, 5):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            (tmp_path / file).write_bytes(changed)
            with pytest.raises(InputError, match=re.escape(str(tmp_path))):
                read_state(tmp_path, TWO)
    (tmp_path / file).write_bytes(data)
    assert_same(read_state(tmp_path, TWO), STATE)


@pytest.mark.parametrize("digests", [None, [], {}, {"state.json": 1}, {"state.json": "0" * 63}, {"a": "0" * 64}])
def test_a_document_without_checksums_is_refused(digests: Any, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps({"format": 2, "sha256": digests}))
    with pytest.raises(
        InputError, match=sentence(tmp_path / "state.json", "must have the checksums of its files")
    ):
        read_state(tmp_path, {})
    (tmp_path / "state.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(InputError, match="must have the checksums of its files"):
        read_state(tmp_path, {})


def test_a_file_without_a_checksum_is_refused(tmp_path: Path) -> None:
    write_state(tmp_path, {"b": 1}, {})
    write_arrays(tmp_path / "all.safetensors", {})
    with pytest.raises(InputError, match=r"it must have the checksum of all\.safetensors"):
        read_state(tmp_path, ONE)


def test_a_state_from_before_there_were_checksums_is_read(tmp_path: Path) -> None:
    write_arrays(tmp_path / "all.safetensors", {"a": np.arange(3)})
    (tmp_path / "state.json").write_text(json.dumps({"format": 1, "a": {"$array": "a"}, "b": 2}))
    assert_same(read_state(tmp_path, ONE), {"a": np.arange(3), "b": 2})


def test_a_newer_format_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    write_state(tmp_path, {"b": 1}, {})
    document = json.loads((tmp_path / "state.json").read_text())
    (tmp_path / "state.json").write_text(json.dumps({**document, "format": 3}))
    with pytest.raises(
        InputError, match="has format 3, and this version of holdfast reads 1 to 2, or it is damaged"
    ) as told:
        read_state(tmp_path, {})
    assert not isinstance(told.value, NewerFormatError)
    seal_anew(tmp_path / "state.json")
    with pytest.raises(NewerFormatError, match=r"has format 3, and this version of holdfast reads 1 to 2$"):
        read_state(tmp_path, {})


def test_numbers_may_be_left_unread(tmp_path: Path) -> None:
    write_state(tmp_path, {"a": np.arange(3), "b": 1}, ONE)
    with (tmp_path / "all.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"x")
    assert read_state(tmp_path, ONE, are_numbers_checked=False)["b"] == 1
    with pytest.raises(InputError, match=r"all\.safetensors is damaged: its checksum does not match"):
        read_state(tmp_path, ONE)


@pytest.mark.parametrize("name", ["format", "sha256"])
def test_names_that_the_document_needs_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="state must not have the names format and sha256"):
        write_state(tmp_path, {name: 1}, {})
    assert list(tmp_path.iterdir()) == []


def test_arrays_are_let_go_of_when_they_are_written(tmp_path: Path) -> None:
    array = np.zeros(10)
    reference = weakref.ref(array)
    gc.disable()
    try:
        write_state(tmp_path, {"a": array}, {"arrays.safetensors": ()})
        del array
        assert reference() is None
    finally:
        gc.enable()
