from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from holdfast.core.choice import (
    best_option,
    best_skip,
    count_best,
    few_decision_option,
    is_exploratory,
    longest_skip,
    longest_within,
    nth_best,
    scaled_index,
)

TABLES = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=3, max_dims=3, max_side=5),
    elements=st.integers(-3, 3).map(lambda n: n / 4),
)


def test_the_greedy_option_is_the_first_maximum() -> None:
    values = np.array([[0.0, 2.0, 1.0], [2.0, 2.0, 0.0]])
    assert count_best(values) == 3
    assert [nth_best(values, n) for n in range(3)] == [1, 3, 4]
    assert [int(part) for part in best_option(values)] == [0, 2]


def test_the_longest_hold_within_the_tolerance_of_the_best_action() -> None:
    values = np.array([[1.0, 0.9, 0.95, 0.5], [0.99, 0.99, 0.99, 0.99]])
    for tolerance, k in ((0.0, 1), (0.05, 3), (0.1, 3), (0.5, 4)):
        action, duration = few_decision_option(values, tolerance + 1e-12)
        assert (int(action), int(duration)) == (0, k)


def test_at_tolerance_zero_equals_are_held_longest_and_below_zero_not() -> None:
    values = np.array([[0.0, 1.0, 1.0, 0.0]])
    assert few_decision_option(values, 0.0)[1] == 3
    assert longest_within(values, 0, 1, 0.0) == 2
    assert longest_within(values, 0, 1, -1.0) == 1


@given(TABLES, st.sampled_from([0.0, 0.25, 0.6, 2.0]))
def test_arrays_and_leaf_functions_choose_alike(values: np.ndarray, tolerance: float) -> None:
    actions, durations = best_option(values)
    held_actions, held = few_decision_option(values, tolerance)
    for row, table in enumerate(values):
        equals = np.flatnonzero(table == table.max()).tolist()
        assert [nth_best(table, n) for n in range(count_best(table))] == equals
        action, position = divmod(nth_best(table, 0), table.shape[1])
        assert (actions[row], durations[row]) == (action, position + 1)
        assert (held_actions[row], held[row]) == (action, longest_within(table, action, position, tolerance) + 1)


def test_the_action_is_chosen_by_its_own_value_and_then_its_skip() -> None:
    # Action 0 has the larger skip values, action 1 the larger value.
    actions = [1.0, 2.0, 2.0]
    skips = [[9.0, 9.0, 9.0], [0.5, 1.0, 1.0], [7.0, 7.0, 7.0]]
    assert [int(part) for part in best_skip(actions, skips)] == [1, 3]
    skips[1] = [1.0, 0.75, 0.5]
    assert [int(best_skip(actions, skips, tolerance)[1]) for tolerance in (0.0, 0.25, 0.3, 0.5)] == [1, 2, 2, 3]
    np.testing.assert_array_equal(longest_skip([skips, skips], [1, 0]), [1, 3])
    chosen, holds = best_skip(np.stack([actions, [5.0, 0.0, 0.0]]), np.stack([skips, skips]))
    assert chosen.tolist() == [1, 0]
    assert holds.tolist() == [1, 3]


def test_leading_axes_are_kept() -> None:
    values = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    actions, durations = few_decision_option(values, 0.1)
    assert actions.shape == durations.shape == (2, 3)


def test_the_coin() -> None:
    assert not is_exploratory(0.0, 0.0)
    assert is_exploratory(np.nextafter(1.0, 0.0), 1.0)


@pytest.mark.parametrize("n", [*range(1, 40), 2**20 + 1, 2**31 - 1])
def test_the_largest_draw_stays_below_n(n: int) -> None:
    assert scaled_index(0.0, n) == 0
    assert scaled_index(np.nextafter(1.0, 0.0), n) == n - 1
