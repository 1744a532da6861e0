from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.decomposition import (
    ScheduledUpdate,
    SubTransition,
    backward_schedule,
    sub_transitions,
    update_count,
    window_length,
    window_lengths,
)
from holdfast.core.history import PartialHistory

# Quarters with gamma 1/2 over at most 8 steps: every sum is exact in binary, so tuples compare with ==.
EXACT_REWARDS = st.lists(st.integers(-40, 40).map(lambda n: n / 4), min_size=1, max_size=8)
K_MAX = st.integers(1, 8)


def history_of(rewards, terminated):
    return PartialHistory(np.arange(len(rewards) + 1), 0, np.array(rewards), terminated)


# --- Algorithm 1: the order of updates ---


def test_the_schedule_of_two_steps_with_three_persistences():
    # The paper's drawing. From the end, s_{t+2}: first into s_{t+1} (k = 1, then d = 1, 2 reach k = 2, 3),
    # then into s_t (k = 2, then d = 1 reaches k = 3); last from s_{t+1} into s_t (k = 1, 2, 3).
    assert list(backward_schedule(2, 3)) == [
        (1, 2, 0),
        (1, 2, 1),
        (1, 2, 2),
        (0, 2, 0),
        (0, 2, 1),
        (0, 1, 0),
        (0, 1, 1),
        (0, 1, 2),
    ]


def test_scheduled_updates_have_names():
    update = next(iter(backward_schedule(2, 3)))
    assert isinstance(update, ScheduledUpdate)
    assert (update.i, update.j, update.d) == (1, 2, 0)


def test_one_persistence_is_one_update():
    assert list(backward_schedule(1, 1)) == [(0, 1, 0)]
    assert update_count(1, 1) == 1


def test_one_step_updates_every_persistence_once():
    assert list(backward_schedule(1, 4)) == [(0, 1, 0), (0, 1, 1), (0, 1, 2), (0, 1, 3)]


@given(K_MAX, st.data())
def test_the_schedule_is_every_update_once_last_end_first_shortest_first_d_upwards(k_max, data):
    kappa = data.draw(st.integers(1, k_max))
    schedule = list(backward_schedule(kappa, k_max))
    everything = {
        (i, j, d)
        for i in range(kappa)
        for j in range(kappa + 1)
        for d in range(k_max)
        if i < j and (j - i) + d <= k_max
    }
    assert set(schedule) == everything
    assert len(schedule) == len(everything)
    assert schedule == sorted(schedule, key=lambda update: (-update.j, -update.i, update.d))


@given(K_MAX, st.data())
def test_each_value_is_updated_once_for_each_sub_transition_that_informs_it(k_max, data):
    # Q(s_{t+i}, a, k) hears from the windows of 1..min(k, κ-i) steps that start there, and from no other.
    kappa = data.draw(st.integers(1, k_max))
    counts = Counter((i, j - i + d) for i, j, d in backward_schedule(kappa, k_max))
    expected = {(i, k): min(k, kappa - i) for i in range(kappa) for k in range(1, k_max + 1)}
    assert counts == expected
    assert update_count(kappa, k_max) == sum(expected.values())


@given(K_MAX, st.data())
def test_every_bootstrap_value_is_an_observed_one(k_max, data):
    kappa = data.draw(st.integers(1, k_max))
    for i, j, d in backward_schedule(kappa, k_max):
        assert 0 <= i < j <= kappa
        assert 0 <= d <= k_max - (j - i)


def test_update_count_by_hand():
    # κ=2, K=3: k=1 gives 2·3, k=2 gives 1·2. κ=3, K=4: 3·4 + 2·3 + 1·2.
    assert update_count(2, 3) == 8
    assert update_count(3, 4) == 20


@pytest.mark.parametrize("k_max", range(1, 17))
def test_update_count_is_the_length_and_a_pyramid_number_at_kappa_equal_k_max(k_max):
    for kappa in range(1, k_max + 1):
        assert update_count(kappa, k_max) == sum(1 for _ in backward_schedule(kappa, k_max))
    assert update_count(k_max, k_max) == k_max * (k_max + 1) * (2 * k_max + 1) // 6


@pytest.mark.parametrize(("k_max", "expected"), [(4, 6.5), (8, 125 / 6), (16, 73.5)])
def test_mean_cost_per_step_with_uniform_kappa(k_max, expected):
    # Long-run cost per primitive step: updates of all options over steps of all options, a ratio of means.
    # K=4: κ = 1, 2, 3, 4 cost 4 + 11 + 20 + 30 = 65 updates on 1 + 2 + 3 + 4 = 10 steps: 6.5.
    # (The mean of the ratios would be 5.9, 17.9 and 60.6.)
    kappas = range(1, k_max + 1)
    updates = sum(sum(1 for _ in backward_schedule(kappa, k_max)) for kappa in kappas)
    assert updates / sum(kappas) == pytest.approx(expected, rel=1e-12)


def test_the_costs_behind_that_mean():
    assert [update_count(kappa, 4) for kappa in (1, 2, 3, 4)] == [4, 11, 20, 30]


@pytest.mark.parametrize("function", [update_count, lambda *sizes: list(backward_schedule(*sizes))])
def test_sizes_of_a_schedule_are_checked(function):
    with pytest.raises(ValueError, match=r"^kappa must be at most k_max = 3, not 4$"):
        function(4, 3)
    with pytest.raises(ValueError, match=r"^kappa must be a whole number of at least 1, not 0$"):
        function(0, 3)
    with pytest.raises(ValueError, match=r"^k_max must be a whole number of at least 1, not 0$"):
        function(1, 0)
    for bad in (2.0, "2", True):
        with pytest.raises(TypeError, match=f"^kappa must be a whole number of at least 1, not {bad!r}$"):
            function(bad, 3)
        with pytest.raises(TypeError, match=f"^k_max must be a whole number of at least 1, not {bad!r}$"):
            function(1, bad)


# --- Algorithm 3: the tuples of the replay buffers ---


def closed_form(rewards, terminated, k_max, gamma):
    """For every executed step i and every k one tuple, of min(k, κ-i) steps."""
    kappa = len(rewards)
    tuples = []
    for i in range(kappa):
        for k in range(1, k_max + 1):
            length = k if k <= kappa - i else kappa - i
            reward = sum(gamma**step * rewards[i + step] for step in range(length))
            tuples.append((k, i, i + length, reward, length, terminated and i + length == kappa))
    return tuples


def algorithm_3_as_printed(kappa, k_max):
    """(k, start, end) of the tuples the paper's own two loops would store."""
    for k in range(1, k_max + 1):
        for tau in range(max(kappa - k, 0) + 1):
            yield k, tau, tau + k
        for tau in range(1, min(kappa, k - 1) + 1):
            yield k, kappa - tau, kappa


def test_sub_transitions_of_two_terminal_steps_by_hand():
    # Rewards 3, -2; γ = .5. Two steps together: 3 - 2/2 = 2. D_3 has no complete window at all.
    assert Counter(sub_transitions(history_of([3.0, -2.0], True), 3, 0.5)) == Counter(
        [
            (1, 0, 1, 3.0, 1, False),
            (1, 1, 2, -2.0, 1, True),
            (2, 0, 2, 2.0, 2, True),
            (2, 1, 2, -2.0, 1, True),
            (3, 0, 2, 2.0, 2, True),
            (3, 1, 2, -2.0, 1, True),
        ]
    )


def test_sub_transitions_of_more_steps_than_persistences_by_hand():
    # κ = 3 > K = 2: D_2's last tuple is cut short by the history's end.
    assert Counter(sub_transitions(history_of([4.0, 2.0, 8.0], False), 2, 0.5)) == Counter(
        [
            (1, 0, 1, 4.0, 1, False),
            (1, 1, 2, 2.0, 1, False),
            (1, 2, 3, 8.0, 1, False),
            (2, 0, 2, 5.0, 2, False),
            (2, 1, 3, 6.0, 2, False),
            (2, 2, 3, 8.0, 1, False),
        ]
    )


@given(EXACT_REWARDS, K_MAX, st.booleans())
def test_the_two_loops_equal_the_closed_form(rewards, k_max, terminated):
    history = history_of(rewards, terminated)
    literal = sub_transitions(history, k_max, 0.5)
    assert Counter(literal) == Counter(closed_form(rewards, terminated, k_max, 0.5))
    assert len(literal) == len(rewards) * k_max


@pytest.mark.parametrize("terminated", [False, True])
def test_the_two_loops_equal_the_closed_form_at_every_size(terminated):
    for kappa in range(1, 9):
        rewards = [2.0**step for step in range(kappa)]
        for k_max in range(1, 9):
            literal = sub_transitions(history_of(rewards, terminated), k_max, 0.5)
            assert Counter(literal) == Counter(closed_form(rewards, terminated, k_max, 0.5))


@given(EXACT_REWARDS, K_MAX, st.booleans(), st.floats(0.0, 1.0))
def test_tuples_are_consistent_and_name_observed_states_only(rewards, k_max, terminated, gamma):
    history = history_of(rewards, terminated)
    kappa = len(rewards)
    for row in sub_transitions(history, k_max, gamma):
        assert isinstance(row, SubTransition)
        assert 0 <= row.start < row.end <= kappa
        assert 1 <= row.length == row.end - row.start <= row.k <= k_max
        assert row.length == window_length(row.k, kappa - row.start)
        assert row.length == row.k or row.end == kappa
        assert row.done is (terminated and row.end == kappa)
        expected = sum(gamma**step * reward for step, reward in enumerate(rewards[row.start : row.end]))
        assert row.reward == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(EXACT_REWARDS, K_MAX)
def test_every_buffer_receives_every_step_once(rewards, k_max):
    rows = sub_transitions(history_of(rewards, False), k_max, 0.9)
    assert Counter((row.k, row.start) for row in rows) == Counter(
        (k, i) for k in range(1, k_max + 1) for i in range(len(rewards))
    )


def test_one_persistence_stores_the_plain_transitions():
    rows = sub_transitions(history_of([1.0, 2.0, 3.0], True), 1, 0.9)
    assert rows == [(1, 0, 1, 1.0, 1, False), (1, 1, 2, 2.0, 1, False), (1, 2, 3, 3.0, 1, True)]


@pytest.mark.parametrize("kappa", range(1, 9))
@pytest.mark.parametrize("k_max", range(1, 9))
def test_as_printed_each_longer_buffer_gets_one_tuple_whose_end_was_never_observed(kappa, k_max):
    printed = Counter(algorithm_3_as_printed(kappa, k_max))
    history = history_of([1.0] * kappa, False)
    corrected = Counter((row.k, row.start, row.end) for row in sub_transitions(history, k_max, 0.9))
    unobserved = Counter((k, 0, k) for k in range(kappa + 1, k_max + 1))
    assert printed - corrected == unobserved
    assert corrected - printed == Counter()
    assert {row for row in printed if row[2] > kappa} == set(unobserved)


def test_sub_transitions_check_their_arguments():
    history = history_of([1.0, 2.0], False)
    with pytest.raises(ValueError, match=r"^k_max must be a whole number of at least 1, not 0$"):
        sub_transitions(history, 0, 0.9)
    with pytest.raises(TypeError, match=r"^k_max must be a whole number of at least 1, not 2\.0$"):
        sub_transitions(history, 2.0, 0.9)
    with pytest.raises(ValueError, match=r"^gamma must be a number in \[0, 1\], not 1\.5$"):
        sub_transitions(history, 2, 1.5)


# --- the closed form on arrays ---


def test_window_length_by_hand():
    assert window_length(3, 5) == 3
    assert window_length(5, 3) == 3
    assert window_length(4, 4) == 4
    lengths = window_length(np.arange(1, 4)[:, None], np.array([1, 2, 5]))
    np.testing.assert_array_equal(lengths, [[1, 1, 1], [1, 2, 2], [1, 2, 3]])


@given(st.integers(1, 64), st.integers(1, 64))
def test_window_length_is_all_it_can_be(k, left):
    length = window_length(k, left)
    assert length in (k, left)
    assert length <= k
    assert length <= left


def test_window_lengths_of_powers_of_two_by_hand():
    # Of a hold of 8 steps, 4 or 6 or 7 are of use, since 4, 2 and 1 are left then; 5 are as good as 4.
    found = window_lengths((1, 2, 4, 8))
    assert found.tolist() == [
        [0, 1, 1, 1, 1, 1, 1, 1, 1],
        [0, 1, 2, 2, 2, 2, 2, 2, 2],
        [0, 0, 2, 3, 4, 4, 4, 4, 4],
        [0, 0, 0, 0, 4, 4, 6, 7, 8],
    ]


@pytest.mark.parametrize("k_max", [1, 2, 5, 16])
def test_window_lengths_of_a_full_set_are_window_length(k_max):
    found = window_lengths(range(1, k_max + 1))
    expected = window_length(np.arange(1, k_max + 1)[:, None], np.arange(k_max + 1)[None])
    np.testing.assert_array_equal(found, expected)


@given(st.sets(st.integers(2, 40), max_size=8))
def test_window_lengths_are_the_definition(longer):
    members = sorted({1, *longer})
    found = window_lengths(members)
    for position, k in enumerate(members):
        for left in range(1, members[-1] + 1):
            if left >= k:
                expected = k
            else:
                expected = max((length for length in range(1, left + 1) if k - length in members), default=0)
            assert found[position, left] == expected
