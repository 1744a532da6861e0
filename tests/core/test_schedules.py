import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.schedules import Constant, Exponential, Linear, Schedule, tabulate

PROBABILITIES = st.floats(0.0, 1.0)


def test_a_constant_is_the_same_always():
    schedule = Constant(0.1)
    assert [schedule(t) for t in (0, 1, 10**9)] == [0.1, 0.1, 0.1]


def test_linear_by_hand():
    # From 1 to 0.2 in 4 steps: 0.2 less each step, and then no further.
    schedule = Linear(1.0, 0.2, 4)
    assert [schedule(t) for t in range(4)] == pytest.approx([1.0, 0.8, 0.6, 0.4], abs=1e-15)
    assert [schedule(t) for t in (4, 5, 10**9)] == [0.2, 0.2, 0.2]


def test_linear_upwards_and_in_one_step():
    assert [Linear(0.0, 1.0, 2)(t) for t in range(4)] == [0.0, 0.5, 1.0, 1.0]
    assert [Linear(1.0, 0.0, 1)(t) for t in range(3)] == [1.0, 0.0, 0.0]


@given(PROBABILITIES, PROBABILITIES, st.integers(1, 50))
def test_linear_starts_and_ends_exactly_and_moves_one_way_in_equal_steps(start, end, steps):
    rates = np.array([Linear(start, end, steps)(t) for t in range(steps + 3)])
    assert rates[0] == start
    assert set(rates[steps:]) == {end}
    np.testing.assert_allclose(rates[: steps + 1], np.linspace(start, end, steps + 1), rtol=0, atol=1e-15)
    assert np.all(np.diff(rates) * np.sign(end - start) >= -1e-15)
    assert np.all((rates >= 0.0) & (rates <= 1.0))


def test_exponential_by_hand():
    # .99^0, .99^1, .99^2 = 1, .99, .9801; at t = 100 the paper's rate is 0.3660...
    schedule = Exponential(0.99)
    assert schedule(0) == 1.0
    assert schedule(1) == 0.99
    assert schedule(2) == pytest.approx(0.9801, rel=1e-15)
    assert schedule(100) == pytest.approx(0.36603234127322950, rel=1e-12)


def test_exponential_stops_at_its_floor():
    # .5^3 = .125 is the last above .1; .5^4 = .0625 would be below.
    assert [Exponential(0.5, 0.1)(t) for t in range(6)] == [1.0, 0.5, 0.25, 0.125, 0.1, 0.1]


def test_exponential_at_the_ends_of_its_base():
    assert [Exponential(0.0)(t) for t in range(3)] == [1.0, 0.0, 0.0]
    assert [Exponential(1.0)(t) for t in (0, 1, 10**6)] == [1.0, 1.0, 1.0]
    assert Exponential(0.5)(10**6) == 0.0


@given(PROBABILITIES, PROBABILITIES)
def test_exponential_never_rises_and_never_passes_its_floor(base, floor):
    rates = np.array([Exponential(base, floor)(t) for t in range(40)])
    assert rates[0] == 1.0
    assert np.all(np.diff(rates) <= 0.0)
    assert np.all(rates >= floor)
    above = rates[:-1] * base > floor
    np.testing.assert_allclose(rates[1:][above], rates[:-1][above] * base, rtol=1e-12)


# --- as a protocol, and as a table ---


@pytest.mark.parametrize("schedule", [Constant(0.5), Linear(1, 0, 3), Exponential(0.9), lambda t: 0.0])
def test_anything_callable_is_a_schedule(schedule):
    assert isinstance(schedule, Schedule)


def test_a_number_is_no_schedule():
    assert not isinstance(0.5, Schedule)


@given(st.integers(0, 20), st.integers(0, 30))
def test_tabulate_lists_the_rates(n, start):
    schedule = Linear(0.9, 0.05, 17)
    table = tabulate(schedule, n, start)
    assert table.shape == (n,)
    assert table.dtype == np.float64
    assert table.tolist() == [schedule(start + offset) for offset in range(n)]


def test_tabulate_starts_at_zero_and_continues_without_a_seam():
    schedule = Exponential(0.9, 0.2)
    assert tabulate(schedule, 3).tolist() == [1.0, 0.9, 0.9**2]
    assert tabulate(0.25, 2).tolist() == [0.25, 0.25]
    whole = tabulate(schedule, 25)
    np.testing.assert_array_equal(
        np.concatenate([tabulate(schedule, 10), tabulate(schedule, 15, start=10)]), whole
    )


@pytest.mark.parametrize("bad", [-1e-9, 1.0 + 1e-9, math.nan, math.inf])
def test_tabulate_refuses_rates_that_are_no_probabilities(bad):
    with pytest.raises(ValueError, match=r"^epsilon must stay in \[0, 1\] at every time$"):
        tabulate(lambda t: bad if t == 2 else 0.5, 3)
    assert tabulate(lambda t: bad if t == 2 else 0.5, 2).tolist() == [0.5, 0.5]


# --- errors ---


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf])
@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("rate", Constant),
        ("start", lambda x: Linear(x, 0.1, 10)),
        ("end", lambda x: Linear(0.1, x, 10)),
        ("base", Exponential),
        ("floor", lambda x: Exponential(0.9, x)),
    ],
)
def test_rates_outside_the_unit_interval_are_refused_by_name(name, build, bad):
    with pytest.raises(ValueError, match=rf"^{name} must be a number in \[0, 1\], not {bad!r}$"):
        build(bad)
    for no_number in (True, "0.5", None):
        with pytest.raises(TypeError, match=rf"^{name} must be a number in \[0, 1\], not {no_number!r}$"):
            build(no_number)


def test_linear_needs_a_whole_positive_number_of_steps():
    with pytest.raises(ValueError, match=r"^steps must be a whole number of at least 1, not 0$"):
        Linear(1.0, 0.0, 0)
    for bad in (1.5, "10", True):
        with pytest.raises(TypeError, match=f"^steps must be a whole number of at least 1, not {bad!r}$"):
            Linear(1.0, 0.0, bad)


@pytest.mark.parametrize(
    ("schedule", "field"), [(Constant(0.5), "rate"), (Linear(1, 0, 3), "end"), (Exponential(0.9), "base")]
)
def test_schedules_are_frozen_values(schedule, field):
    assert schedule == dataclasses.replace(schedule)
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{field}'"):
        setattr(schedule, field, 0.2)


def test_whole_numbers_become_floats():
    schedule = Linear(1, 0, np.int64(3))
    assert {type(schedule.start), type(schedule.end)} == {float}
    assert type(schedule.steps) is int
    assert type(Constant(1)(0)) is float
