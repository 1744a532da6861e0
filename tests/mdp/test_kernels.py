"""Three forms of a kernel, one meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from holdfast.mdp.kernels import DenseKernel, DeterministicKernel, SparseKernel, kernel_from
from tests.mdp.literal import assert_near, held_kernel
from tests.mdp.random_mdps import (
    STOCHASTIC_FORMS,
    RandomMDP,
    half_as_many_examples,
    in_form,
    random_mdps,
    values_like,
)

# Action 0 of two states is a coin, action 1 swaps them.
P = np.array([[[0.75, 0.25], [0.0, 1.0]], [[0.5, 0.5], [1.0, 0.0]]])
SWAP_OR_STAY = np.array([[0, 1], [1, 0]])  # next states: action 0 stays, action 1 swaps


def dense(table: Any) -> np.ndarray:
    """A kernel's table as (S,A,S)."""
    if isinstance(table, tuple):
        return np.stack([matrix.toarray() for matrix in table], axis=1)
    return np.eye(len(table))[table] if table.ndim == 2 else table


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("dense", DenseKernel),
        ("sparse", SparseKernel),
        ("stacked", SparseKernel),
        ("next states", DeterministicKernel),
    ],
)
def test_the_form_chooses_the_kernel(form: str, kind: type) -> None:
    kernel = kernel_from(in_form(np.eye(3)[[[1, 2], [2, 0], [0, 1]]], form))
    assert type(kernel) is kind
    assert (kernel.n_states, kernel.n_actions) == (3, 2)
    assert np.array_equal(dense(kernel.table).argmax(axis=2), [[1, 2], [2, 0], [0, 1]])


def test_three_dimensional_integers_are_probabilities() -> None:
    assert isinstance(kernel_from([[[0, 1]], [[1, 0]]]), DenseKernel)


@pytest.mark.parametrize("form", STOCHASTIC_FORMS)
class TestStochasticByHand:
    def test_expect(self, form: str) -> None:
        # V = (4, 8): .75·4 + .25·8 = 5 and 8 in state 0; .5·4 + .5·8 = 6 and 4 in state 1.
        actual = kernel_from(in_form(P, form)).expect(np.array([4.0, 8.0]))
        assert np.array_equal(actual, [[5.0, 8.0], [6.0, 4.0]])

    def test_expect_held(self, form: str) -> None:
        # f(·,0) = (1, 3): .75·1 + .25·3 = 1.5 and .5·1 + .5·3 = 2. f(·,1) = (2, 4), swapped: 4 and 2.
        values = np.array([[1.0, 2.0], [3.0, 4.0]])
        kernel = kernel_from(in_form(P, form))
        assert np.array_equal(kernel.expect_held(values), [[1.5, 4.0], [2.0, 2.0]])
        # A further axis goes along: f and 10·f.
        both = kernel.expect_held(np.stack([values, 10.0 * values], axis=2))
        assert np.array_equal(both, [[[1.5, 15.0], [4.0, 40.0]], [[2.0, 20.0], [2.0, 20.0]]])

    def test_expect_pairwise(self, form: str) -> None:
        # .75·4 + .25·8 = 5; 0·100 + 1·7 = 7; .5·2 − .5·2 = 0; 1·3 + 0·100 = 3.
        rewards = np.array([[[4.0, 8.0], [100.0, 7.0]], [[2.0, -2.0], [3.0, 100.0]]])
        kernel = kernel_from(in_form(P, form))
        assert np.array_equal(kernel.expect_pairwise(rewards), [[5.0, 7.0], [0.0, 3.0]])

    def test_then(self, form: str) -> None:
        # Action 0: (.75 .25; .5 .5)² = (.5625+.125 .1875+.125; .375+.25 .125+.25). Two swaps are none.
        kernel = kernel_from(in_form(P, form))
        twice = [[[0.6875, 0.3125], [1.0, 0.0]], [[0.625, 0.375], [0.0, 1.0]]]
        assert np.array_equal(dense(kernel.then(kernel).table), twice)

    def test_then_another_kernel(self, form: str) -> None:
        # First the coin, then always state 1: state 1. The other way round: the coin of state 1.
        coin = kernel_from(in_form(P[:, :1], form))
        right = kernel_from(in_form(np.array([[[0.0, 1.0]], [[0.0, 1.0]]]), form))
        assert np.array_equal(dense(coin.then(right).table)[:, 0], [[0.0, 1.0], [0.0, 1.0]])
        assert np.array_equal(dense(right.then(coin).table)[:, 0], [[0.5, 0.5], [0.5, 0.5]])

    def test_absorbing(self, form: str) -> None:
        kernel = kernel_from(in_form(P, form))
        table = dense(kernel.absorbing(np.array([False, True])).table)
        assert np.array_equal(table, [[[0.75, 0.25], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
        assert np.array_equal(dense(kernel.table), P)  # and the kernel itself is what it was

    def test_the_chain_of_a_policy(self, form: str) -> None:
        # 0 → {0, 1} by action 0, → 2 by action 1; 1 → 1; 2 → 0.
        chain = np.array(
            [[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], [[0.0, 1.0, 0.0]] * 2, [[1.0, 0.0, 0.0]] * 2], dtype=np.float64
        )
        kernel = kernel_from(in_form(chain, form))
        first = square(kernel.under(np.array([0, 0, 1])))
        assert np.array_equal(first, [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
        assert np.array_equal(square(kernel.under(np.array([1, 1, 0])))[0], [0.0, 0.0, 1.0])


class TestDeterministicByHand:
    kernel = kernel_from(SWAP_OR_STAY)

    def test_expect(self) -> None:
        assert np.array_equal(self.kernel.expect(np.array([4.0, 8.0])), [[4.0, 8.0], [8.0, 4.0]])

    def test_expect_held(self) -> None:
        # Action 0 stays: f(s,0). Action 1 swaps: f(other,1).
        values = np.array([[1.0, 2.0], [3.0, 4.0]])
        assert np.array_equal(self.kernel.expect_held(values), [[1.0, 4.0], [3.0, 2.0]])
        both = self.kernel.expect_held(np.stack([values, 10.0 * values], axis=2))
        assert np.array_equal(both, [[[1.0, 10.0], [4.0, 40.0]], [[3.0, 30.0], [2.0, 20.0]]])

    def test_expect_pairwise(self) -> None:
        rewards = np.arange(8.0).reshape(2, 2, 2)  # r(s,a,s') = 4s + 2a + s'
        assert np.array_equal(self.kernel.expect_pairwise(rewards), [[0.0, 3.0], [5.0, 6.0]])

    def test_then(self) -> None:
        assert np.array_equal(self.kernel.then(self.kernel).table, [[0, 0], [1, 1]])
        # Stay or swap first, then everything goes to 0. The other way round, action 1 swaps the 0 into a 1.
        to_zero = kernel_from(np.array([[0, 0], [0, 0]]))
        assert np.array_equal(self.kernel.then(to_zero).table, [[0, 0], [0, 0]])
        assert np.array_equal(to_zero.then(self.kernel).table, [[0, 1], [0, 1]])

    def test_absorbing(self) -> None:
        assert np.array_equal(self.kernel.absorbing(np.array([True, False])).table, [[0, 0], [1, 0]])
        assert np.array_equal(self.kernel.table, SWAP_OR_STAY)

    def test_the_chain_of_a_policy(self) -> None:
        chain = square(kernel_from([[1, 1], [2, 0], [2, 2]]).under(np.array([0, 1, 0])))
        assert np.array_equal(chain, [[0, 1, 0], [1, 0, 0], [0, 0, 1]])


@half_as_many_examples
@given(random=random_mdps(), data=st.data())
def test_all_forms_give_the_same(random: RandomMDP, data: st.DataObject) -> None:
    S, A = random.r.shape
    v = data.draw(values_like(S))
    f, rewards = data.draw(values_like(S, A, 2)), data.draw(values_like(S, A, S))
    policy = np.array(data.draw(st.lists(st.integers(0, A - 1), min_size=S, max_size=S)))
    for form in random.forms:
        kernel = kernel_from(in_form(random.P, form))
        assert kernel.checked() is kernel  # rows that are right stay as they are, to the bit
        assert np.array_equal(dense(kernel.table), random.P)
        assert_near(kernel.expect(v), (random.P * v).sum(axis=2), 1e-12)
        held = np.stack([random.P[:, a] @ f[:, a] for a in range(A)], axis=1)
        assert_near(kernel.expect_held(f), held, 1e-12)
        assert_near(kernel.expect_pairwise(rewards), (random.P * rewards).sum(axis=2), 1e-12)
        assert_near(dense(kernel.then(kernel).table), held_kernel(random.P, 2), 1e-12)
        assert np.array_equal(square(kernel.under(policy)), random.P[np.arange(S), policy])
        expected = random.P.copy()
        expected[random.terminal] = np.eye(S)[random.terminal][:, None, :]
        assert np.array_equal(dense(kernel.absorbing(random.terminal).table), expected)


@given(random=random_mdps())
def test_sparse_rewards_are_read_like_dense_ones(random: RandomMDP) -> None:
    rewards = random.P * np.arange(1.0, len(random.P) + 1.0)
    kernel = kernel_from(in_form(random.P, "sparse"))
    actual = kernel.expect_pairwise([sp.csr_array(rewards[:, a]) for a in range(random.P.shape[1])])
    assert_near(actual, (random.P * rewards).sum(axis=2), 1e-12)


# What is refused, and in which words:

FORMS = (
    r"^P must be a dense array \(S,A,S\) of probabilities, an integer array \(S,A\) of next states, "
    r"a sparse matrix \(S\*A,S\), or a sequence of A sparse matrices \(S,S\), not "
)


@pytest.mark.parametrize(
    ("given_P", "what"),
    [
        ([], r"an array of shape \(0,\) and type float64$"),
        (None, r"an array of shape \(\) and type object$"),
        ("next", r"an array of shape \(\) and type <U4$"),
        ([0, 1], r"an array of shape \(2,\) and type int64$"),
        (np.eye(2), r"an array of shape \(2, 2\) and type float64$"),
        (np.eye(2, dtype=np.bool_), r"an array of shape \(2, 2\) and type bool$"),
        (np.ones((2, 2, 2), dtype=np.complex128), r"an array of shape \(2, 2, 2\) and type complex128$"),
        (np.ones((2, 3, 4)), r"an array of shape \(2, 3, 4\) and type float64$"),
        (np.zeros((0, 2), dtype=np.int64), r"an array of shape \(0, 2\) and type int64$"),
        (np.zeros((2, 0), dtype=np.int64), r"an array of shape \(2, 0\) and type int64$"),
        (np.zeros((2, 0, 2)), r"an array of shape \(2, 0, 2\) and type float64$"),
        (np.zeros((1, 1, 1, 1)), r"an array of shape \(1, 1, 1, 1\) and type float64$"),
        ([[0, 1], [0]], "a ragged list$"),
        ([[[0.5, 0.5], [1.0]], [[1.0, 0.0]]], "a ragged list$"),
        (sp.csr_array((3, 2)), r"a sparse matrix of shape \(3, 2\)$"),
        (sp.csr_array((0, 2)), r"a sparse matrix of shape \(0, 2\)$"),
        ([sp.eye_array(2), sp.eye_array(3)], r"sparse matrices of shapes \[\(2, 2\), \(3, 3\)\]$"),
        ([sp.csr_array((2, 3))], r"sparse matrices of shapes \[\(2, 3\)\]$"),
    ],
)
def test_a_shape_that_is_no_kernel_is_refused(given_P: Any, what: str) -> None:
    with pytest.raises(ValueError, match=FORMS + what):
        kernel_from(given_P)


@pytest.mark.parametrize("form", STOCHASTIC_FORMS)
@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ([0.5, 0.4], r"^P must have rows that sum to 1: the row of state 1, action 2 sums to 0\.9$"),
        ([0.5, 0.5001], r"^P must have rows that sum to 1: the row of state 1, action 2 sums to 1\.0001$"),
        ([0.0, 0.0], r"^P must have rows that sum to 1: the row of state 1, action 2 sums to 0$"),
        ([1.5, -0.5], "^P must hold probabilities: it has negative entries$"),
        ([np.nan, 1.0], "^P must hold finite probabilities: it has NaN or infinite entries$"),
        ([np.inf, 1.0], "^P must hold finite probabilities: it has NaN or infinite entries$"),
    ],
)
def test_a_row_that_is_no_distribution_is_refused(form: str, row: list[float], sentence: str) -> None:
    table = np.full((2, 3, 2), 0.5)
    table[1, 2] = row
    with pytest.raises(ValueError, match=sentence):
        kernel_from(in_form(table, form)).checked()


@pytest.mark.parametrize("form", STOCHASTIC_FORMS)
def test_the_first_wrong_row_is_named(form: str) -> None:
    table = np.full((3, 2, 3), 0.5)  # each row sums to 1.5, but for three
    table[0, :] = table[1, 0] = [0.25, 0.25, 0.5]
    with pytest.raises(ValueError, match=r"the row of state 1, action 1 sums to 1\.5$"):
        kernel_from(in_form(table, form)).checked()


@pytest.mark.parametrize("form", STOCHASTIC_FORMS)
def test_rounding_of_a_row_is_forgiven(form: str) -> None:
    kernel_from(in_form(np.full((3, 1, 3), 1.0 / 3.0 + 1e-7), form)).checked()
    with pytest.raises(ValueError, match=r"^P must have rows that sum to 1: the row of state 0, action 0"):
        kernel_from(in_form(np.full((3, 1, 3), 1.0 / 3.0 + 1e-6), form)).checked()


@pytest.mark.parametrize("wrong", [-1, 2, 99])
def test_a_next_state_that_does_not_exist_is_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match=r"^P must name next states in 0\.\.1: some are outside this range$"):
        kernel_from([[0, 1], [wrong, 0]]).checked()


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_rows_in_single_precision_are_rescaled(form: str) -> None:
    thirds = np.full((3, 1, 3), np.float32(1.0) / np.float32(3.0), dtype=np.float32)
    assert abs(float(thirds.astype(np.float64).sum(axis=2)[0, 0]) - 1.0) > 1e-9
    rescaled = kernel_from(in_form(thirds.astype(np.float64), form)).checked()
    assert_near(dense(rescaled.table).sum(axis=2), np.ones((3, 1)), 1e-15)


def test_a_sparse_array_of_three_axes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sparse array of shape \(2, 1, 2\)"):
        kernel_from(sp.coo_array(np.ones((2, 1, 2))))


def square(chain: Any) -> np.ndarray:
    return np.asarray(chain.toarray() if sp.issparse(chain) else chain)
