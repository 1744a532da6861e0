import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.checks import (
    check_action,
    check_choice,
    check_discount,
    check_duration,
    check_integer,
    check_persistences,
    check_probability,
    check_real,
    check_truth,
    refuse_actions,
)


def sentence(text):
    """A pattern that accepts this sentence and no longer one."""
    return f"^{re.escape(text)}$"


# --- whole numbers ---


@pytest.mark.parametrize("value", [3, np.int8(3), np.int64(3), np.uint16(3)])
def test_integers_of_every_kind_become_python_ints(value):
    result = check_integer("n_envs", value)
    assert result == 3
    assert type(result) is int


@pytest.mark.parametrize(
    "value",
    [True, False, np.True_, np.False_, "3", b"3", 3.0, np.float64(3.0), math.nan, math.inf, None, [3], 3 + 0j],
)
def test_what_is_no_whole_number_is_a_type_error_naming_the_argument(value):
    with pytest.raises(TypeError, match=sentence(f"n_envs must be a whole number of at least 1, not {value!r}")):
        check_integer("n_envs", value)


def test_a_type_error_does_not_drag_its_cause_along():
    with pytest.raises(TypeError, match=sentence("k must be a whole number of at least 1, not 'x'")) as caught:
        check_integer("k", "x")
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("value", "at_least"), [(0, 1), (-1, 1), (-1, 0), (4, 5), (np.int64(0), 1), (-(10**30), 1)]
)
def test_too_small_integers_are_value_errors(value, at_least):
    with pytest.raises(
        ValueError, match=sentence(f"steps must be a whole number of at least {at_least}, not {value!r}")
    ):
        check_integer("steps", value, at_least=at_least)


@given(st.integers(), st.integers())
def test_integers_are_accepted_exactly_from_the_bound_upwards(value, at_least):
    if value >= at_least:
        assert check_integer("n", value, at_least) == value
    else:
        with pytest.raises(
            ValueError, match=sentence(f"n must be a whole number of at least {at_least}, not {value}")
        ):
            check_integer("n", value, at_least)


# --- real numbers ---


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_reals_of_every_kind_become_python_floats(value):
    result = check_real("margin", value)
    assert result == 0.5
    assert type(result) is float


def test_integers_are_reals():
    result = check_real("margin", 2)
    assert result == 2.0
    assert type(result) is float


@pytest.mark.parametrize("value", [True, np.False_, "0.5", "nan", None, [0.5], 1 + 0j])
def test_what_is_no_number_is_a_type_error_naming_the_argument(value):
    with pytest.raises(TypeError, match=sentence(f"margin must be a finite number, not {value!r}")):
        check_real("margin", value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("inf")])
def test_nan_and_infinity_are_refused_whatever_the_bounds(value):
    with pytest.raises(ValueError, match=sentence(f"margin must be a finite number, not {value!r}")):
        check_real("margin", value)
    with pytest.raises(ValueError, match=sentence(f"margin must be a finite number of at least 0, not {value!r}")):
        check_real("margin", value, low=0.0)
    with pytest.raises(ValueError, match=sentence(f"margin must be a number in [0, 1], not {value!r}")):
        check_real("margin", value, 0.0, 1.0)


def test_bounds_are_closed_and_the_lower_one_opens_on_request():
    assert check_real("x", 0.0, 0.0, 1.0) == 0.0
    assert check_real("x", 1.0, 0.0, 1.0) == 1.0
    assert check_real("x", 1.0, 0.0, 1.0, open_low=True) == 1.0
    assert check_real("x", 5e-324, low=0.0, open_low=True) == 5e-324
    with pytest.raises(ValueError, match=sentence("x must be a number in (0, 1], not 0.0")):
        check_real("x", 0.0, 0.0, 1.0, open_low=True)
    with pytest.raises(ValueError, match=sentence("x must be a finite number above 0, not 0")):
        check_real("x", 0, low=0.0, open_low=True)
    with pytest.raises(ValueError, match=sentence("x must be a finite number of at least 2.5, not 2.4")):
        check_real("x", 2.4, low=2.5)
    with pytest.raises(ValueError, match=sentence("x must be a number in [0, 1], not 1.0000000000000002")):
        check_real("x", 1.0000000000000002, 0.0, 1.0)


@given(st.floats(), st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_exactly_the_finite_numbers_between_the_bounds_pass(value, one, other):
    low, high = min(one, other), max(one, other)
    if math.isfinite(value) and low <= value <= high:
        assert check_real("x", value, low, high) == value
    else:
        with pytest.raises(ValueError, match=r"^x must be a .*number.*, not "):
            check_real("x", value, low, high)


# --- the named kinds ---


def test_a_duration_runs_from_one_to_k_max():
    assert [check_duration("k", k, 3) for k in (1, 2, np.int64(3))] == [1, 2, 3]
    with pytest.raises(ValueError, match=sentence("k must be a whole number of at least 1, not 0")):
        check_duration("k", 0, 3)
    with pytest.raises(ValueError, match=sentence("k must be at most k_max = 3, not 4")):
        check_duration("k", 4, 3)
    with pytest.raises(TypeError, match=sentence("k must be a whole number of at least 1, not 2.0")):
        check_duration("k", 2.0, 3)


@pytest.mark.parametrize("value", [0, 0.5, 1])
def test_discounts_and_probabilities_lie_in_the_closed_unit_interval(value):
    assert check_discount(value) == value
    assert check_probability("epsilon", value) == value


@pytest.mark.parametrize("value", [-1e-9, 1 + 1e-9, math.nan, math.inf])
def test_discounts_and_probabilities_outside_it_are_refused_by_name(value):
    with pytest.raises(ValueError, match=sentence(f"gamma must be a number in [0, 1], not {value!r}")):
        check_discount(value)
    with pytest.raises(ValueError, match=sentence(f"epsilon must be a number in [0, 1], not {value!r}")):
        check_probability("epsilon", value)


@pytest.mark.parametrize("value", [True, "0.9", None])
def test_discounts_and_probabilities_must_be_numbers(value):
    with pytest.raises(TypeError, match=sentence(f"gamma must be a number in [0, 1], not {value!r}")):
        check_discount(value)
    with pytest.raises(TypeError, match=sentence(f"epsilon must be a number in [0, 1], not {value!r}")):
        check_probability("epsilon", value)


def test_a_choice_is_one_of_its_words():
    assert check_choice("holes", "wall", ("wall", "free")) == "wall"
    for value in ("Wall", "wal", "", None, 0, ["wall"]):
        with pytest.raises(ValueError, match=sentence(f"holes must be one of 'wall', 'free', not {value!r}")):
            check_choice("holes", value, ("wall", "free"))


# --- sets of persistences ---


def test_a_set_of_persistences():
    assert check_persistences("persistences", None) is None
    assert check_persistences("persistences", [1, 2, 4]) == (1, 2, 4)
    assert check_persistences("persistences", range(1, 4)) == (1, 2, 3)
    assert check_persistences("persistences", np.array([1, 8])) == (1, 8)


@pytest.mark.parametrize("wrong", [[], [2, 4], [1, 4, 2], [1, 2, 2]])
def test_a_set_begins_with_1_and_increases(wrong):
    text = f"persistences must begin with 1 and increase, as [1, 2, 4, 8] does, not {wrong}"
    with pytest.raises(ValueError, match=sentence(text)):
        check_persistences("persistences", wrong)


@pytest.mark.parametrize("wrong", [4, "1,2", {1: 2}, 1.5])
def test_a_set_is_made_of_numbers(wrong):
    text = f"persistences must be numbers such as [1, 2, 4, 8], not {wrong!r}"
    with pytest.raises(TypeError, match=sentence(text)):
        check_persistences("persistences", wrong)


def test_the_numbers_of_a_set_are_whole_and_at_least_1():
    with pytest.raises(TypeError, match=r"^each of persistences must be a whole number of at least 1, not 2\.5$"):
        check_persistences("persistences", [1, 2.5])
    with pytest.raises(ValueError, match=r"^each of persistences must be a whole number of at least 1, not 0$"):
        check_persistences("persistences", [0, 1])


@pytest.mark.parametrize("value", [True, np.True_, False])
def test_truth_is_a_bool(value):
    found = check_truth("fire", value)
    assert type(found) is bool
    assert found == value


@pytest.mark.parametrize("value", [1, 0, None, "yes"])
def test_nothing_else_is_true_or_false(value):
    with pytest.raises(TypeError, match="fire must be true or false, not "):
        check_truth("fire", value)


def test_actions_that_there_are_pass():
    refuse_actions("action must be", np.array([[0], [2]]), 3)
    refuse_actions("action must be", np.array([[0.5, -1e9]]), None)


@pytest.mark.parametrize(("actions", "shown"), [([[0], [3]], "[0 3]"), ([[-1]], "[-1]")])
def test_numbers_of_actions_are_counted_from_0(actions, shown):
    with pytest.raises(ValueError, match=sentence(f"action must be counted from 0 and in 0..2, not {shown}")):
        refuse_actions("action must be", np.array(actions), 3)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_continuous_actions_are_finite(wrong):
    with pytest.raises(ValueError, match=r"^action must be finite, not \[ *0\. +-?(nan|inf)\]$"):
        refuse_actions("action must be", np.array([[0.0, wrong]]), None)


@pytest.mark.parametrize("wrong", [-1, 2, 1.5, True])
def test_an_action_is_the_index_of_a_name(wrong):
    assert check_action(np.int64(1), ("left", "right")) == 1
    expected = {2: r"in 0\.\.1 \(left, right\), not 2"}.get(wrong, "a whole number of at least 0, not ")
    with pytest.raises((TypeError, ValueError), match=f"^action must be {expected}"):
        check_action(wrong, ("left", "right"))
