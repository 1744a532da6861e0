"""Kemeny's constant, first-passage times and entropies of a chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from quantecon import MarkovChain

from holdfast.mdp import (
    kemeny_constant,
    mean_first_passage_times,
    row_entropy,
    stationary_distribution,
    stationary_entropy,
)
from tests.mdp.literal import assert_near

Floats = NDArray[np.float64]
METHODS = ("eigenvalues", "first_passage")


def complete_graph(n: int) -> Floats:
    return (np.ones((n, n)) - np.eye(n)) / (n - 1)


def cycle(n: int) -> Floats:
    steps = np.eye(n)[(np.arange(n) + 1) % n]
    return (steps + steps.T) / 2


def random_chain(n: int, seed: int) -> Floats:
    """Some of the moves are impossible; a cycle keeps it irreducible."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(n, n)) * (rng.random((n, n)) < 0.5) + np.roll(np.eye(n), 1, axis=1)
    return weights / weights.sum(axis=1, keepdims=True)


def passage_times_one_by_one(P: Floats) -> Floats:
    """m_ij from the equations m_ij = 1 + Σ_{k≠j} p_ik m_kj, for each j; m_jj = 0."""
    n = len(P)
    times = np.zeros((n, n))
    for j in range(n):
        others = np.arange(n) != j
        times[others, j] = np.linalg.solve(np.eye(n - 1) - P[np.ix_(others, others)], np.ones(n - 1))
    return times


@pytest.mark.parametrize("method", METHODS)
class TestClosedForms:
    @pytest.mark.parametrize("n", [2, 3, 10, 57])
    def test_complete_graph(self, method: str, n: int) -> None:
        assert kemeny_constant(complete_graph(n), method) == pytest.approx((n - 1) ** 2 / n, abs=1e-9)

    @pytest.mark.parametrize("n", [3, 4, 10, 57])
    def test_cycle(self, method: str, n: int) -> None:
        assert kemeny_constant(cycle(n), method) == pytest.approx((n**2 - 1) / 6, abs=1e-8)

    def test_two_states_by_hand(self, method: str) -> None:
        # λ_2 = 1 − ¼ − ½; π = (⅔, ⅓), m_01 = 4, m_10 = 2: from 0 it is 4/3, from 1 as well.
        assert kemeny_constant([[0.75, 0.25], [0.5, 0.5]], method) == pytest.approx(4 / 3, abs=1e-12)

    def test_one_state(self, method: str) -> None:
        assert kemeny_constant([[1.0]], method) == pytest.approx(0.0, abs=1e-12)

    def test_a_periodic_chain(self, method: str) -> None:
        # Always on to the next of three: 0, 1 or 2 steps to a state drawn from the uniform π.
        assert kemeny_constant(np.eye(3)[[1, 2, 0]], method) == pytest.approx(1.0, abs=1e-12)

    def test_a_sparse_matrix(self, method: str) -> None:
        assert kemeny_constant(sp.csr_array(cycle(10)), method) == pytest.approx(16.5, abs=1e-9)


@given(n=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_both_ways_agree_with_the_definition(n: int, seed: int) -> None:
    P = random_chain(n, seed)
    times, pi = passage_times_one_by_one(P), stationary_distribution(P)
    assert_near(mean_first_passage_times(P), times, 1e-9)
    # The same from every state.
    assert_near(times @ pi, np.full(n, kemeny_constant(P, "eigenvalues")), 1e-8)
    assert kemeny_constant(P, "eigenvalues") == pytest.approx(kemeny_constant(P, "first_passage"), abs=1e-8)


@given(n=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_the_stationary_distribution_is_that_of_quantecon(n: int, seed: int) -> None:
    P = random_chain(n, seed)
    assert_near(stationary_distribution(P), MarkovChain(P).stationary_distributions[0], 1e-12)


def test_entropies_by_hand() -> None:
    P = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]  # π = (½, ¼, ¼)
    assert stationary_distribution(P).tolist() == pytest.approx([0.5, 0.25, 0.25])
    assert row_entropy(P) == pytest.approx(np.log(2) / 3)
    assert stationary_entropy(P) == pytest.approx(1.5 * np.log(2))
    assert row_entropy(np.eye(4)) == 0.0  # needs no way from everywhere to everywhere
    assert stationary_entropy(cycle(8)) == pytest.approx(np.log(8))


@pytest.mark.parametrize(
    "function", [kemeny_constant, mean_first_passage_times, stationary_distribution, stationary_entropy]
)
class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("P", "sentence"),
        [
            (np.eye(3), "it has 3 closed classes:"),
            ([[0.5, 0.5], [0.0, 1.0]], "it has one closed class and 1 state that it leaves for good:"),
            ([[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]], "it has 2 closed classes and 1 state that"),
            (np.linalg.matrix_power(cycle(4), 2), "it has 2 closed classes: .*holes='restart'.*use another H$"),
        ],
    )
    def test_a_chain_that_falls_into_parts(self, function: Callable[..., Any], P: Any, sentence: str) -> None:
        with pytest.raises(ValueError, match=f"must lead from every state to every other, but {sentence}"):
            function(P)

    @pytest.mark.parametrize(
        ("P", "sentence"),
        [
            ([[0.5, 0.4], [1.0, 0.0]], ": the row of state 0 sums to 0.9$"),
            ([[1.5, -0.5], [1.0, 0.0]], ": some are negative or not finite$"),
            ([[1.0, np.inf], [1.0, 0.0]], ": some are negative or not finite$"),
            ([[0.5, 0.5]], r", not an array of shape \(1, 2\)$"),
            (np.zeros((0, 0)), r", not an array of shape \(0, 0\)$"),
            ("chain", ", not 'chain'$"),
        ],
    )
    def test_no_chain(self, function: Callable[..., Any], P: Any, sentence: str) -> None:
        with pytest.raises(ValueError, match=r"^P must be a matrix \(S,S\) of probabilities.*" + sentence):
            function(P)


def test_there_are_two_methods() -> None:
    with pytest.raises(ValueError, match=r"^method must be one of 'eigenvalues', 'first_passage', not 'trace'$"):
        kemeny_constant(cycle(3), "trace")
