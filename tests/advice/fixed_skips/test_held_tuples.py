"""Samples of the k-persistent process: exactly those that Algorithm 3 and absorbing ends give, fairly weighted."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.advice.fixed_skips.held_tuples import episode_starts, held_tuples, hold_survival
from holdfast.mdp import TabularMDP, persistent_kernel
from tests.advice.fixed_skips.rings import random_ring
from tests.deep.literal_replay import EnvChoice, Trial, decode, scripts, with_steps


def numbers_in(trial, rows):
    """The states in rows of the store, by number."""
    return decode(trial.space, trial.buffer.store.get(rows)) if len(rows) else []


def found_in(trial, k):
    """What ``held_tuples`` finds, as a multiset of (s, a, s', r, done)."""
    found = held_tuples(trial.buffer, k)
    states, next_states = (numbers_in(trial, rows) for rows in (found.rows, found.next_rows))
    parts = (states, found.actions.tolist(), next_states, found.rewards.tolist(), found.dones.tolist())
    return Counter(zip(*parts, strict=True)), found.weights


def expected_in(trial, k):
    """The tuples of Algorithm 3 that last k steps, and those that end sooner because the episode terminated."""
    complete, ended = Counter(), Counter()
    for one, count in trial.literal.tuples(k).items():
        kind = complete if one.length == k else ended
        kind[one.state, one.action, one.next_state, one.reward, one.done] += count
    return complete, ended


@given(st.data())
@settings(max_examples=60)
def test_samples_are_those_of_the_literal_buffers(data):
    n_envs = data.draw(st.integers(1, 3), label="n_envs")
    trial = Trial(
        n_envs=n_envs,
        capacity=data.draw(st.integers(1, 9), label="capacity"),
        bootstrap=False,
        pad_terminal=True,
        timeout_is_terminal=data.draw(st.booleans(), label="timeout_is_terminal"),
    )
    trial.play(data.draw(scripts(n_envs, 3)))
    for k in (1, 2, 3):
        found, weights = found_in(trial, k)
        complete, ended = expected_in(trial, k)
        # Where no option was meant to last that long, an end within k steps counts nothing.
        assert complete <= found <= complete + ended
        assert np.all((weights > 0.0) & (weights <= 1.0))


def played(*steps, **settings):
    """A trial of one environment: (action, duration, end)."""
    return with_steps(Trial(**settings), steps, 4)


GO, END, CUT = "goes on", "terminated", "truncated"


@pytest.mark.parametrize("end", [GO, CUT, END])
def test_only_a_terminal_end_stands_for_a_longer_hold(end):
    # After an option of three steps, one of two, whose last step is a hold of two only if it terminates.
    found = held_tuples(played(*[(1, 3, GO)] * 3, (0, 2, GO), (0, 2, end)).buffer, 2)
    is_end = end == END
    assert found.actions.tolist() == [1, 1, 0] + [0] * is_end
    assert found.rewards.tolist() == [1.5, 1.5, 1.5] + [1.0] * is_end
    assert found.dones.tolist() == [False, False, is_end] + [True] * is_end
    assert found.weights.tolist() == [1.0] * (3 + is_end)


def test_a_running_option_is_no_sample():
    assert len(held_tuples(played((0, 3, GO), (0, 3, GO)).buffer, 1).rows) == 0


def test_options_are_numbered_apart_in_every_environment():
    trial = Trial(n_envs=2)
    for durations in ((2, 1), (2, 2), (1, 2)):
        trial.step([EnvChoice(0, duration, 4, GO) for duration in durations])
    assert held_tuples(trial.buffer, 1).options.tolist() == [0, 1, 0, 3, 2, 3]


def test_survival_by_hand():
    # Over by choice after 1, 2, 3 and 3 steps; one cut off by the end of the episode after 1, one after 2.
    durations = np.array([1, 2, 3, 3, 1, 2])
    cut = np.array([False, False, False, False, True, True])
    # After 1, five could be seen to choose, one stopped. After 2, of three, one. After 3 both.
    np.testing.assert_allclose(hold_survival(durations, cut, 5), [1, 1, 4 / 5, 4 / 5 * 2 / 3, 0, 0])
    np.testing.assert_allclose(hold_survival(durations, cut, 2), [1, 1, 4 / 5])
    assert hold_survival(durations[:0], cut[:0], 2).tolist() == [1, 1, 0]


def test_weights_by_hand():
    # Options over by choice after 1, 2 and 3 steps; then one that terminates with its second step.
    steps = [(0, 1, GO)] + [(1, 2, GO)] * 2 + [(2, 3, GO)] * 3 + [(0, 3, GO), (0, 3, END)]
    found = held_tuples(played(*steps).buffer, 2)
    # Ŝ = 1, 1, 3/4, 3/4·1/2, 0. Its first step is a hold of two; its second, at e = 1 with one to go, counts
    # Ŝ(3)/Ŝ(2) = 1/2, as much as options that lasted two steps went on to a third.
    assert found.actions.tolist() == [1, 2, 2, 0, 0]
    assert found.weights.tolist() == [1, 1, 1, 1, 0.5]


def test_ends_are_as_likely_as_in_the_model():
    # In state 0 every step ends the episode with probability 1/4; options last 1, 2 or 3 steps.
    P = np.array([[[0.75, 0.25]], [[0.0, 1.0]]])
    mdp = TabularMDP(P, np.zeros((2, 1)), 0.9, initial=0, terminal=[1])
    ring = random_ring(mdp, 20_000, 3, time_limit=10**6)
    for k in (1, 2, 3):
        found = held_tuples(ring, k)
        likely = persistent_kernel(mdp, k)[0, 0, 1]
        assert np.average(found.dones, weights=found.weights) == pytest.approx(likely, abs=0.02)
    assert found.dones.mean() > likely + 0.1  # as it would be without weights


def test_an_agent_that_never_holds_gives_no_sample_of_two_steps():
    P = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    ring = random_ring(TabularMDP(P, np.zeros((2, 1)), 0.9, initial=0, terminal=[1]), 100, 1)
    assert len(held_tuples(ring, 1).rows) == 100
    assert [len(part) for part in held_tuples(ring, 2)] == [0] * 8
    assert len(held_tuples(ring, 10**12).rows) == 0


@pytest.mark.parametrize(("capacity", "numbers"), [(9, [1, 4, 6]), (4, [4, 6]), (3, [4, 6]), (2, [6]), (1, [])])
def test_episode_starts(capacity, numbers):
    # States are numbered as they are met: 1, 2, 3 and a new episode in 4; 5 and a new one in 6; 7, 8.
    steps = ((0, 1, GO), (0, 1, END), (0, 1, CUT), (0, 1, GO), (0, 1, GO))
    trial = played(*steps, capacity=capacity)
    assert numbers_in(trial, episode_starts(trial.buffer)) == numbers
