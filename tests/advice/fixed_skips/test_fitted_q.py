"""Fitted Q-iteration: means of targets, and on models that were counted the values of another solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.advice.fixed_skips.fitted_q import Averager, Samples, are_states, fitted_q_iteration
from holdfast.mdp import NoConvergenceError, TabularMDP, q_star
from tests.mdp.random_mdps import GAMMA_TO_ITERATE, half_as_many_examples, random_mdps


def samples(observations, actions, rewards, next_observations, dones, weights=None):
    """Samples with one number as observation."""
    return Samples(
        np.array(observations, dtype=np.float64).reshape(-1, 1),
        np.array(actions),
        np.array(rewards, dtype=np.float64),
        np.array(next_observations, dtype=np.float64).reshape(-1, 1),
        np.array(dones),
        np.ones(len(actions)) if weights is None else np.array(weights, dtype=np.float64),
    )


def at(*numbers):
    return np.array(numbers, dtype=np.float64).reshape(-1, 1)


class TestAveragesByHand:
    def test_by_state_all_samples_of_the_pair_count_by_their_weights(self):
        given = samples([0, 0, 0, 1], [0, 0, 1, 0], [0] * 4, [0] * 4, [True] * 4, weights=[1, 3, 1, 1])
        means = Averager(given, 2, by_state=True).means(at(0, 1, 2))
        assert means.places.tolist() == [0, 1, 2]
        assert [matrix.toarray().tolist() for matrix in means.matrices] == [
            [[0.25, 0.75, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]],
            [[0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
        ]

    def test_the_three_nearest_count_the_more_the_nearer(self):
        given = samples([0, 1, 2, 9], [0] * 4, [0] * 4, [0] * 4, [True] * 4)
        (means,) = Averager(given, 1, by_state=False).means(at(0.0)).matrices
        # The third of them, as far as the triangle reaches, counts nearly nothing.
        np.testing.assert_allclose(means.toarray(), [[2 / 3, 1 / 3, 0, 0]], atol=1e-3)

    def test_weights_count_among_neighbours_too(self):
        given = samples([-1, 1, 9], [0] * 3, [0] * 3, [0] * 3, [True] * 3, weights=[0.25, 0.75, 1.0])
        (means,) = Averager(given, 1, by_state=False).means(at(0.0)).matrices
        np.testing.assert_allclose(means.toarray()[0, :2], [0.25, 0.75], atol=1e-3)

    def test_scales_of_the_numbers_do_not_matter(self):
        rng = np.random.default_rng(0)
        places = rng.normal(size=(40, 2))
        asked = rng.normal(size=(5, 2))
        found = []
        for scale in ([1.0, 1.0], [1e-3, 1e4]):
            given = Samples(
                places * scale, np.zeros(40, int), np.zeros(40), places, np.ones(40, bool), np.ones(40)
            )
            found.append(Averager(given, 1, by_state=False).means(asked * scale).matrices[0].toarray())
        np.testing.assert_allclose(*found, atol=1e-9)


def test_an_action_that_was_never_tried_is_not_chosen():
    given = samples([0, 0], [0, 0], [-1.0, -1.0], [1, 1], [True, True])
    for by_state in (True, False):
        fitted = fitted_q_iteration(Averager(given, 2, by_state), 0.5)
        np.testing.assert_array_equal(fitted.q(at(0)), [[-1.0, np.nan]])
        assert fitted.v(at(0)).tolist() == [-1.0]


def test_a_state_where_nothing_was_tried_is_worth_as_little_as_the_worst_sample():
    # 0 → 1 with reward 2, and nobody knows 1; 5 ends with −3.
    given = samples([0, 5], [0, 0], [2.0, -3.0], [1, 5], [False, True])
    fitted = fitted_q_iteration(Averager(given, 1, by_state=True), 0.5)
    np.testing.assert_allclose(fitted.targets, [2.0 - 0.5 * 3.0, -3.0])


def test_values_along_a_line():
    # Steps of 1 to the right from 0..9, reward 1 for the last, which ends it: V(x) = γ^(9−x).
    x = np.arange(0.0, 10.0, 0.01)
    step = Samples(x[:, None], np.zeros(1000, int), (x >= 9.0) * 1.0, x[:, None] + 1.0, x >= 9.0, np.ones(1000))
    fitted = fitted_q_iteration(Averager(step, 1, by_state=False), 0.9)
    np.testing.assert_allclose(fitted.v(at(0.5, 4.5, 8.5, 9.5)), [0.9**9, 0.9**5, 0.9, 1.0], atol=0.01)


@given(mdp=random_mdps(gamma=GAMMA_TO_ITERATE, deterministic=True))
@half_as_many_examples
def test_every_transition_seen_once_gives_the_values_of_the_model(mdp):
    model = mdp.tabular("next states")
    s, a = (part.ravel() for part in np.indices((model.n_states, model.n_actions)))
    reached = model.P[s, a]
    given = samples(s, a, model.reward[s, a], reached, model.terminal[reached])
    fitted = fitted_q_iteration(Averager(given, model.n_actions, by_state=True), model.gamma, tolerance=1e-9)
    np.testing.assert_allclose(fitted.q(at(*range(model.n_states))), q_star(model), atol=1e-7)


@given(mdp=random_mdps(gamma=GAMMA_TO_ITERATE, deterministic=False), data=st.data())
@half_as_many_examples
def test_values_are_those_of_the_model_that_was_counted(mdp, data):
    _, r, gamma = mdp.plain()
    S, A = r.shape
    visits = data.draw(st.lists(st.tuples(*[st.integers(0, n - 1) for n in (S, A, S)]), max_size=30))
    visits += [(s, a, 0) for s in range(S) for a in range(A)]
    s, a, reached = np.array(visits).T
    counted = np.zeros((S, A, S))
    np.add.at(counted, (s, a, reached), 1.0)
    model = TabularMDP(counted / counted.sum(axis=2, keepdims=True), r, gamma, terminal=mdp.terminal)
    given = samples(s, a, r[s, a], reached, mdp.terminal[reached])
    fitted = fitted_q_iteration(Averager(given, A, by_state=True), gamma, tolerance=1e-9)
    live = ~mdp.terminal
    np.testing.assert_allclose(fitted.q(at(*range(S)))[live], q_star(model)[live], atol=1e-7)


def test_without_discount_a_reward_for_ever_does_not_converge():
    given = samples([0], [0], [1.0], [0], [False])
    with pytest.raises(NoConvergenceError):
        fitted_q_iteration(Averager(given, 1, by_state=True), 1.0, max_iterations=100)


def test_what_repeats_is_a_state():
    rng = np.random.default_rng(0)
    assert are_states(np.eye(5)[rng.integers(5, size=100)])
    assert not are_states(rng.normal(size=(100, 2)))
