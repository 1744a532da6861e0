import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.polynomial import polyval

from holdfast.core.compiling import compiled
from holdfast.core.history import PartialHistory, discounts, is_terminal, k_step_return

REWARDS = st.lists(st.floats(-100.0, 100.0), min_size=1, max_size=9)
GAMMAS = st.one_of(st.sampled_from([0.0, 0.5, 0.99, 1.0]), st.floats(0.0, 1.0))


def history_of(rewards, terminated=False, action=0):
    return PartialHistory(np.arange(len(rewards) + 1), action, np.array(rewards), terminated)


# --- discounts ---


def test_discounts_by_hand():
    # .5^0 .. .5^4
    np.testing.assert_array_equal(discounts(0.5, 4), [1.0, 0.5, 0.25, 0.125, 0.0625])
    np.testing.assert_array_equal(discounts(0.0, 3), [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(discounts(1.0, 3), [1.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(discounts(0.9, 0), [1.0])


@given(GAMMAS, st.integers(0, 64))
def test_discounts_are_powers_and_each_is_gamma_times_the_last(gamma, k_max):
    powers = discounts(gamma, k_max)
    assert powers.shape == (k_max + 1,)
    assert powers.dtype == np.float64
    np.testing.assert_allclose(powers, gamma ** np.arange(k_max + 1), rtol=1e-13, atol=1e-300)
    assert powers[1:].tolist() == [power * gamma for power in powers[:-1].tolist()]


# --- discounted rewards ---


def test_k_step_return_by_hand():
    rewards = np.array([3.0, -2.0, 4.0, 8.0])
    # From 0 over 3 steps at .5: 3 - 2/2 + 4/4 = 3. From 1 over 3: -2 + 4/2 + 8/4 = 2. From 3 over 1: 8.
    assert k_step_return(rewards, 0, 3, 0.5) == 3.0
    assert k_step_return(rewards, 1, 3, 0.5) == 2.0
    assert k_step_return(rewards, 3, 1, 0.5) == 8.0
    assert k_step_return(rewards, 0, 4, 0.5) == 4.0


def test_k_step_return_at_the_ends_of_gamma():
    rewards = np.array([3.0, -2.0, 4.0, 8.0])
    assert k_step_return(rewards, 1, 3, 0.0) == -2.0
    assert k_step_return(rewards, 1, 3, 1.0) == 10.0
    assert k_step_return(rewards, 2, 0, 0.5) == 0.0


@given(REWARDS, GAMMAS)
def test_k_step_return_is_a_polynomial_in_gamma(rewards, gamma):
    array = np.array(rewards)
    history = history_of(rewards)
    for start in range(len(rewards)):
        for k in range(1, len(rewards) - start + 1):
            # np.polynomial: c_0 + c_1·γ + ... with the rewards as coefficients.
            expected = polyval(gamma, array[start : start + k])
            assert k_step_return(array, start, k, gamma) == pytest.approx(expected, rel=1e-12, abs=1e-10)
            result = history.k_step_return(start, k, gamma)
            assert result == pytest.approx(expected, rel=1e-12, abs=1e-10)
            assert type(result) is float


@given(REWARDS, GAMMAS, st.data())
def test_returns_of_two_halves_make_the_whole(rewards, gamma, data):
    # r^{m+n} = r^m + γ^m r^n, the identity that lets T^κ go on from where the history stops.
    history = history_of(rewards)
    cut = data.draw(st.integers(0, len(rewards) - 1))
    rest = history.k_step_return(cut, len(rewards) - cut, gamma)
    head = history.k_step_return(0, cut, gamma) if cut else 0.0
    whole = history.k_step_return(0, len(rewards), gamma)
    assert whole == pytest.approx(head + gamma**cut * rest, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize(("start", "k"), [(-1, 1), (0, 0), (0, -1), (0, 4), (2, 2), (3, 1)])
def test_steps_outside_the_history_are_refused(start, k):
    sentence = f"steps {start}..{start + k} must lie within the 3 executed steps"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        history_of([1.0, 2.0, 3.0]).k_step_return(start, k, 0.9)


@pytest.mark.parametrize(
    ("gamma", "error"), [(-0.1, ValueError), (1.1, ValueError), (True, TypeError), ("1", TypeError)]
)
def test_the_discount_must_be_a_number_in_the_unit_interval(gamma, error):
    with pytest.raises(error, match=rf"^gamma must be a number in \[0, 1\], not {gamma!r}$"):
        history_of([1.0, 2.0]).k_step_return(0, 2, gamma)


# --- the history itself ---


def test_kappa_counts_the_executed_steps():
    assert history_of([5.0]).kappa == 1
    assert history_of([5.0, 6.0, 7.0]).kappa == 3


def test_fields_are_normalised():
    history = PartialHistory([4, 5, 6], np.int64(1), [1, 2], np.True_)
    np.testing.assert_array_equal(history.states, [4, 5, 6])
    assert history.rewards.dtype == np.float64
    assert type(history.action) is int
    assert history.terminated is True
    assert PartialHistory([4, 5], 0, [1.0]).terminated is False


def test_states_may_be_observations_of_any_shape():
    frames = np.arange(3 * 2 * 4, dtype=np.uint8).reshape(3, 2, 4)
    history = PartialHistory(frames, 0, [1.0, 2.0])
    assert history.states.dtype == np.uint8
    np.testing.assert_array_equal(history.window(1, 2).states, frames[1:])


def test_the_arrays_are_frozen_and_the_callers_are_not():
    states, rewards = np.array([0, 1, 2]), np.array([1.0, 2.0])
    history = PartialHistory(states, 0, rewards)
    for array in (history.states, history.rewards, history.window(0, 1).states, history.window(0, 1).rewards):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    assert states.flags.writeable
    assert rewards.flags.writeable
    states[:] = 9
    rewards[:] = 9.0
    np.testing.assert_array_equal(history.states, [0, 1, 2])
    np.testing.assert_array_equal(history.rewards, [1.0, 2.0])


def test_read_only_arrays_of_the_caller_are_welcome():
    states, rewards = np.array([0, 1]), np.array([1.0])
    states.flags.writeable = rewards.flags.writeable = False
    assert PartialHistory(states, 0, rewards).kappa == 1


def test_the_fields_are_frozen():
    history = history_of([1.0])
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'terminated'"):
        history.terminated = True


# --- windows ---


def test_a_window_by_hand():
    history = PartialHistory(np.array([10, 11, 12, 13]), 2, np.array([1.0, 2.0, 3.0]), terminated=True)
    middle = history.window(1, 2)
    np.testing.assert_array_equal(middle.states, [11, 12])
    np.testing.assert_array_equal(middle.rewards, [2.0])
    assert middle.action == 2
    assert not middle.terminated
    tail = history.window(1, 3)
    np.testing.assert_array_equal(tail.states, [11, 12, 13])
    np.testing.assert_array_equal(tail.rewards, [2.0, 3.0])
    assert tail.terminated
    assert not history.window(0, 2).terminated


@given(REWARDS, st.booleans(), GAMMAS)
def test_windows_agree_with_the_whole(rewards, terminated, gamma):
    history = history_of(rewards, terminated, action=3)
    kappa = history.kappa
    for j in range(1, kappa + 1):
        for i in range(j):
            window = history.window(i, j)
            assert window.states.tolist() == list(range(i, j + 1))
            assert window.rewards.tolist() == rewards[i:j]
            assert window.kappa == j - i
            assert window.action == 3
            assert window.terminated == (terminated and j == kappa)
            assert window.k_step_return(0, j - i, gamma) == history.k_step_return(i, j - i, gamma)


@pytest.mark.parametrize(("i", "j"), [(-1, 1), (0, 0), (1, 1), (2, 1), (0, 4), (3, 4)])
def test_windows_outside_the_history_are_refused(i, j):
    sentence = f"a window must satisfy 0 <= i < j <= 3, not i={i}, j={j}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        history_of([1.0, 2.0, 3.0]).window(i, j)


# --- terminal states ---


def test_a_time_limit_is_an_end_only_where_nobody_looks_beyond_it():
    done, timeout = np.array([0.0, 1.0, 1.0], np.float32), np.array([0.0, 0.0, 1.0], np.float32)
    assert is_terminal(done, timeout, True).tolist() == [False, True, False]
    assert is_terminal(done, timeout, False).tolist() == [False, True, True]
    leaf = compiled(is_terminal)
    for through in (True, False):
        for step in range(3):
            assert leaf(done[step], timeout[step], through) == is_terminal(done[step], timeout[step], through)


# --- errors ---


@pytest.mark.parametrize("rewards", [[], 1.0, [[1.0]]])
def test_rewards_must_be_a_non_empty_vector(rewards):
    shape = re.escape(str(np.shape(rewards)))
    with pytest.raises(
        ValueError, match=f"^rewards must be a vector of at least one reward, not of shape {shape}$"
    ):
        PartialHistory([0, 1], 0, rewards)


@pytest.mark.parametrize(("states", "count"), [([0, 1], 2), ([0, 1, 2, 3], 4), ([], 0), (5, 1)])
def test_states_must_be_one_more_than_the_rewards(states, count):
    with pytest.raises(ValueError, match=f"^states must be one more than the 2 rewards, not {count}$"):
        PartialHistory(states, 0, [1.0, 2.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rewards_must_be_finite(bad):
    with pytest.raises(ValueError, match=r"^rewards must be finite$"):
        PartialHistory([0, 1, 2], 0, [1.0, bad])


def test_the_action_must_be_a_whole_number():
    with pytest.raises(ValueError, match=r"^action must be a whole number of at least 0, not -1$"):
        PartialHistory([0, 1], -1, [1.0])
    for bad in (1.0, "1", True, None):
        with pytest.raises(TypeError, match=f"^action must be a whole number of at least 0, not {bad!r}$"):
            PartialHistory([0, 1], bad, [1.0])
