import dataclasses
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.options import (
    Option,
    OptionSpace,
    duration_at,
    flat_index,
    persistence_index,
    persistence_positions,
    persistence_set,
    position_within,
)

SPACES = st.builds(OptionSpace, st.integers(1, 7), st.integers(1, 9))


# --- k and its index ---


def test_k_counts_from_one_and_its_index_from_zero():
    assert [persistence_index(k) for k in (1, 2, 3)] == [0, 1, 2]
    assert [duration_at(index) for index in (0, 1, 2)] == [1, 2, 3]
    np.testing.assert_array_equal(persistence_index(np.array([1, 4])), [0, 3])
    np.testing.assert_array_equal(duration_at(np.array([0, 3])), [1, 4])


@given(st.integers(1, 10**6))
def test_the_two_conversions_undo_each_other(k):
    assert duration_at(persistence_index(k)) == k


def test_flat_index_by_hand():
    # K = 4: action 0 owns 0..3, action 1 owns 4..7, action 2 owns 8..11; k = 3 is the third of each four.
    assert flat_index(0, 1, 4) == 0
    assert flat_index(0, 4, 4) == 3
    assert flat_index(1, 1, 4) == 4
    assert flat_index(2, 3, 4) == 10
    np.testing.assert_array_equal(flat_index(np.array([0, 1, 2]), np.array([4, 1, 3]), 4), [3, 4, 10])


# --- the space ---


def test_a_small_space_written_out():
    space = OptionSpace(n_actions=2, k_max=3)
    assert list(space) == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]
    assert all(isinstance(option, Option) for option in space)
    assert len(space) == 6
    assert space.shape == (2, 3)
    assert space.index(1, 2) == 4
    assert space.option(4) == Option(action=1, k=2)


def test_k_max_one_is_the_primitive_actions():
    space = OptionSpace(3, 1)
    assert list(space) == [(0, 1), (1, 1), (2, 1)]
    assert [space.index(action, 1) for action in range(3)] == [0, 1, 2]


@given(SPACES)
def test_index_and_option_are_a_bijection(space):
    indices = [space.index(action, k) for action in range(space.n_actions) for k in range(1, space.k_max + 1)]
    assert sorted(indices) == list(range(len(space)))
    assert [space.index(*space.option(index)) for index in range(len(space))] == list(range(len(space)))
    assert [space.option(space.index(*option)) for option in space] == list(space)


@given(SPACES, st.lists(st.integers(0, 3), max_size=2))
def test_the_flat_index_reads_a_reshaped_table(space, leading):
    table = np.arange(np.prod([*leading, *space.shape], dtype=int)).reshape(*leading, *space.shape)
    flat = table.reshape(*leading, len(space))
    for action, k in space:
        np.testing.assert_array_equal(flat[..., space.index(action, k)], table[..., action, k - 1])


@given(SPACES, st.data())
def test_split_is_option_for_arrays_of_any_shape(space, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 3), max_size=2)))
    size = int(np.prod(shape, dtype=int))
    chosen = data.draw(st.lists(st.integers(0, len(space) - 1), min_size=size, max_size=size))
    actions, durations = space.split(np.array(chosen).reshape(shape))
    assert actions.shape == durations.shape == shape
    assert actions.dtype == durations.dtype == np.int64
    expected = [space.option(index) for index in chosen]
    assert list(zip(actions.ravel().tolist(), durations.ravel().tolist(), strict=True)) == expected


def test_split_by_hand_and_through_an_argmax():
    space = OptionSpace(2, 3)
    actions, durations = space.split(np.array([0, 2, 3, 5], dtype=np.int32))
    np.testing.assert_array_equal(actions, [0, 0, 1, 1])
    np.testing.assert_array_equal(durations, [1, 3, 1, 3])
    values = np.array([[[0, 9, 1], [2, 3, 4]], [[0, 1, 2], [3, 4, 5]]])
    actions, durations = space.split(values.reshape(2, -1).argmax(axis=-1))
    np.testing.assert_array_equal(actions, [0, 1])
    np.testing.assert_array_equal(durations, [2, 3])


def test_indices_may_be_numpy_integers_and_come_back_as_python_ints():
    space = OptionSpace(2, 3)
    index = space.index(np.int64(1), np.int64(2))
    assert index == 4
    assert type(index) is int
    option = space.option(np.int64(4))
    assert option == (1, 2)
    assert {type(option.action), type(option.k)} == {int}


@given(SPACES, st.integers(-2, 9), st.integers(-2, 11))
def test_membership_and_index_agree_with_the_set(space, action, k):
    belongs = action in range(space.n_actions) and k in range(1, space.k_max + 1)
    assert ((action, k) in space) == belongs
    assert ((action, k) in set(space)) == belongs
    if not belongs:
        sentence = (
            f"option must be an action in 0..{space.n_actions - 1} with k in 1..{space.k_max}, not ({action}, {k})"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            space.index(action, k)


@pytest.mark.parametrize("thing", [0, "01", None, (0,), (0, 1, 1), [0, 1]])
def test_what_is_no_pair_is_no_option(thing):
    assert thing not in OptionSpace(2, 3)


def test_options_that_last_exactly_k():
    space = OptionSpace(3, 4)
    assert space.with_persistence(2) == ((0, 2), (1, 2), (2, 2))
    assert space.with_persistence(4) == ((0, 4), (1, 4), (2, 4))


@given(SPACES)
def test_the_persistence_classes_partition_the_space(space):
    classes = [space.with_persistence(k) for k in range(1, space.k_max + 1)]
    assert sorted(option for members in classes for option in members) == sorted(space)
    assert {len(members) for members in classes} == {space.n_actions}


# --- errors ---


@pytest.mark.parametrize("index", [-1, 6, 100])
def test_an_index_outside_the_space_is_refused(index):
    with pytest.raises(ValueError, match=rf"^index must be in 0\.\.5, not {index}$"):
        OptionSpace(2, 3).option(index)


def test_durations_outside_the_space_are_refused():
    space = OptionSpace(2, 3)
    with pytest.raises(ValueError, match=r"^k must be at most k_max = 3, not 4$"):
        space.with_persistence(4)
    with pytest.raises(ValueError, match=r"^k must be a whole number of at least 1, not 0$"):
        space.with_persistence(0)
    with pytest.raises(TypeError, match=r"^k must be a whole number of at least 1, not 1\.0$"):
        space.with_persistence(1.0)


@pytest.mark.parametrize("size", [0, -2])
def test_an_empty_space_is_refused(size):
    with pytest.raises(ValueError, match=f"^n_actions must be a whole number of at least 1, not {size}$"):
        OptionSpace(size, 3)
    with pytest.raises(ValueError, match=f"^k_max must be a whole number of at least 1, not {size}$"):
        OptionSpace(3, size)


@pytest.mark.parametrize("size", [2.0, "2", True, None])
def test_sizes_must_be_whole_numbers(size):
    with pytest.raises(TypeError, match=r"^n_actions must be a whole number of at least 1, not "):
        OptionSpace(size, 3)
    with pytest.raises(TypeError, match=r"^k_max must be a whole number of at least 1, not "):
        OptionSpace(3, size)


def test_a_space_is_a_frozen_value():
    space = OptionSpace(np.int64(2), np.int64(3))
    assert space == OptionSpace(2, 3)
    assert hash(space) == hash(OptionSpace(2, 3))
    assert space != OptionSpace(3, 2)
    assert {type(space.n_actions), type(space.k_max)} == {int}
    assert pickle.loads(pickle.dumps(space)) == space
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'k_max'"):
        space.k_max = 4


# --- sparse sets ---


def test_a_set_is_what_is_given_or_all_up_to_the_largest():
    assert persistence_set(4) == (1, 2, 3, 4)
    assert persistence_set(8, [1, 2, 8]) == (1, 2, 8)


def test_positions_by_hand():
    assert persistence_positions((1, 2, 5)).tolist() == [-1, 0, 1, -1, -1, 2]
    assert persistence_positions(range(1, 4)).tolist() == [-1, 0, 1, 2]
    assert position_within([1, 2, 5], 4) == 1
    assert position_within([1, 2, 5], np.array([1, 2, 3, 5, 9])).tolist() == [0, 1, 1, 2, 2]


@given(st.sets(st.integers(2, 30), max_size=6), st.integers(1, 40))
def test_position_within_is_that_of_the_longest_that_fits(longer, steps):
    members = sorted({1, *longer})
    assert members[position_within(members, steps)] == max(k for k in members if k <= steps)
