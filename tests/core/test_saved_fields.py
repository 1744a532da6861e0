"""What is read from a saved state is what it should be, or one sentence says that it is not."""

from __future__ import annotations

import collections
import copy
import json
import re
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import saved_fields as saved
from holdfast.core.errors import InputError

HUGE = 10**400
ANYTHING = [
    None,
    True,
    0,
    -1,
    1.5,
    HUGE,
    float("nan"),
    "text",
    [],
    [1],
    {},
    {"a": 1},
    np.zeros(2),
    np.float32(1),
    (),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
READERS = [
    lambda state: saved.take_mapping(state, "x"),
    lambda state: saved.take_integer(state, "x"),
    lambda state: saved.take_number(state, "x"),
    lambda state: saved.take_list(state, "x", int),
    lambda state: saved.take_array(state, "x", np.float64, (2,)),
    lambda state: saved.restore_generator(np.random.default_rng(0), state, "x"),
]


def test_a_field_is_taken_as_it_is():
    value = object()
    assert saved.take({"x": value}, "x") is value
    assert saved.take(types.MappingProxyType({"x": None}), "x") is None


@pytest.mark.parametrize("state", [{}, {"y": 1}, None, [1], "x", 3, np.zeros(3)])
@pytest.mark.parametrize("read", [lambda state: saved.take(state, "x"), *READERS])
def test_a_missing_field_is_named(read, state):
    with pytest.raises(ValueError, match=r"^the saved state is incomplete: 'x' is missing$"):
        read(state)


def refusal(read, value):
    try:
        read({"x": value})
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("value", ANYTHING, ids=range(len(ANYTHING)))
@pytest.mark.parametrize("read", READERS)
def test_whatever_is_there_is_taken_or_refused_in_a_sentence_that_names_the_field(read, value):
    sentence = refusal(read, value)
    assert sentence is None or re.fullmatch(r"the saved state must have [^\n]* as 'x'[^\n.]*", sentence)


def test_mappings():
    for value in ({}, {"a": 1}, types.MappingProxyType({}), collections.OrderedDict(a=2)):
        assert saved.take_mapping({"x": value}, "x") is value
    for value in (None, [], "text", 3, np.zeros(2)):
        with pytest.raises(ValueError, match="must have a mapping as 'x', not"):
            saved.take_mapping({"x": value}, "x")


def test_whole_numbers():
    for value in (0, 7, 2**63 - 1, np.int64(3), np.uint8(255)):
        found = saved.take_integer({"x": value}, "x")
        assert (found, type(found)) == (value, int)
    assert saved.take_integer({"x": -1}, "x", at_least=-1) == -1
    assert saved.take_integer({"x": HUGE}, "x", at_most=None) == HUGE
    assert saved.take_integer({"x": 4}, "x", at_most=4) == 4
    for value in (-1, 1.0, True, False, np.True_, "1", None, np.float64(2), np.array(2), [2]):
        with pytest.raises(ValueError, match=r"must have a whole number of at least 0 as 'x'$"):
            saved.take_integer({"x": value}, "x")
    with pytest.raises(ValueError, match=f"must have a whole number of at most {2**63 - 1} as 'x'$"):
        saved.take_integer({"x": 2**63}, "x")
    with pytest.raises(ValueError, match=r"must have a whole number of at most 4 as 'x'$"):
        saved.take_integer({"x": 5}, "x", at_most=4)
    with pytest.raises(ValueError, match=r"must have a whole number of at least 2 as 'x'$"):
        saved.take_integer({"x": 1}, "x", at_least=2)


def test_numbers():
    for value in (0, -3, 2.5, 10**300, np.float32(0.1), np.float64(1e-300), np.int8(-7)):
        found = saved.take_number({"x": value}, "x")
        assert (found, type(found)) == (float(value), float)
    for value in (
        HUGE, -HUGE, float("nan"), float("inf"), -np.inf, np.float32("inf"), True, np.False_, "1", None, 1j,
        np.complex64(1), np.array(1.0), [1.0],
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"must have a finite number as 'x'$"):
            saved.take_number({"x": value}, "x")


def test_lists():
    given = [1, 2]
    found = saved.take_list({"x": given}, "x", int)
    assert found == given
    assert found is not given
    assert saved.take_list({"x": []}, "x", dict) == []
    assert saved.take_list({"x": [None, 3]}, "x", (int, type(None))) == [None, 3]
    for value in ((1, 2), {1: 2}, "text", None, np.arange(2), [1, "2"], [1, None]):
        with pytest.raises(ValueError, match=r"must have a plain list as 'x'$"):
            saved.take_list({"x": value}, "x", int)


def test_arrays():
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    for shape in ((2, 3), (None, 3), (2, None), (None, None)):
        assert saved.take_array({"x": array}, "x", np.int32, shape) is array
    assert saved.take_array({"x": np.array(3.0)}, "x", np.float64, ()).shape == ()
    assert saved.take_array({"x": np.zeros((0, 3))}, "x", "f8", (None, 3)).shape == (0, 3)


@pytest.mark.parametrize(
    "value", [[0, 1], None, 3, "text", np.int32(3), np.arange(2), np.arange(2, dtype=">i4"), np.zeros(2, object)]
)
def test_arrays_of_another_type_are_refused(value):
    with pytest.raises(ValueError, match=r"^the saved state must have an array of int32 as 'x'$"):
        saved.take_array({"x": value}, "x", np.int32, (None,))


@pytest.mark.parametrize("shape", [(), (2,), (3, 2), (2, 3, 1), (None,), (None, 2), (0, None)])
def test_arrays_of_another_shape_are_refused(shape):
    wanted = "×".join("any" if length is None else str(length) for length in shape)
    with pytest.raises(ValueError, match=rf"must have an array of shape {wanted} as 'x', not \(2, 3\)$"):
        saved.take_array({"x": np.zeros((2, 3))}, "x", np.float64, shape)


@settings(max_examples=40)
@given(JSON)
def test_a_json_copy_is_what_json_gives_back(value):
    copied = saved.json_copy(value)
    assert copied == value
    assert json.dumps(copied) == json.dumps(json.loads(json.dumps(value)))


def test_a_json_copy_is_a_copy():
    value = {"a": [1, {"b": 2}]}
    copied = saved.json_copy(value)
    value["a"][1]["b"] = 3
    assert copied == {"a": [1, {"b": 2}]}


@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        {"a": (1,)},
        {1: 2},
        {None: 1},
        [float("nan")],
        float("inf"),
        {"a": np.zeros(2)},
        np.int64(3),
        {"a": object()},
        {1, 2},
        b"bytes",
    ],
)
def test_what_json_does_not_give_back_is_refused(value):
    with pytest.raises(ValueError, match=r"^a value must be made of JSON values[^.\n]*$"):
        saved.json_copy(value)


def test_what_has_no_bottom_is_refused():
    endless, deep = [], []
    endless.append(endless)
    for _ in range(100_000):
        deep = [deep]
    for value in (endless, deep):
        with pytest.raises(ValueError, match="a value must be made of JSON values"):
            saved.json_copy(value)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_a_generator_goes_on(bits):
    generator, other = np.random.Generator(bits(1)), np.random.Generator(bits(2))
    generator.integers(3, size=5, dtype=np.int32)
    state = copy.deepcopy(generator.bit_generator.state)
    expected = generator.integers(1000, size=20)
    saved.restore_generator(other, {"x": state}, "x")
    np.testing.assert_array_equal(other.integers(1000, size=20), expected)


def generator_damages():
    good = np.random.default_rng(0).bit_generator.state
    for name in good:
        yield {key: value for key, value in good.items() if key != name}
        yield {**good, name: None}
        yield {**good, name: "text"}
        yield {**good, name: 1.5}
    for name in good["state"]:
        yield {**good, "state": {key: value for key, value in good["state"].items() if key != name}}
        for value in (-1, 2**128, 1.5, None, "text", [1]):
            yield {**good, "state": {**good["state"], name: value}}
    yield {**good, "more": 1}
    yield np.random.Generator(np.random.MT19937(0)).bit_generator.state


@pytest.mark.parametrize("damage", list(generator_damages()))
def test_what_is_no_state_of_the_generator_is_refused(damage):
    with pytest.raises(ValueError, match=r"^the saved state must have the state of a PCG64 generator as 'x'$"):
        saved.restore_generator(np.random.default_rng(0), {"x": damage}, "x")
