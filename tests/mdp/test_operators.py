"""The Bellman operators: their formulas, and the paper's theorem about H^κ."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.mdp import (
    TabularMDP,
    all_persistence,
    bellman_optimality,
    bootstrap,
    fixed_point,
    held_returns,
    option_expectation,
    option_optimality,
    q_star_options,
)
from tests.mdp import literal
from tests.mdp.literal import assert_near
from tests.mdp.random_mdps import (
    GAMMA_TO_ITERATE,
    RandomMDP,
    half_as_many_examples,
    policies_over_options,
    random_mdps,
    values_like,
)


class TestByHand:
    # Two states, γ = ½. Action 0 stays (rewards 4 and 8), action 1 is a coin between the states (rewards 1 and 2).
    mdp = TabularMDP([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]], [[4.0, 1.0], [8.0, 2.0]], 0.5)
    # f(s,a,k): V(0) = max(16, 4, 0, 8) = 16, V(1) = max(2, 6, 32, 10) = 32.
    f = np.array([[[16.0, 4.0], [0.0, 8.0]], [[2.0, 6.0], [32.0, 10.0]]])
    # T*_K, k = 1: stay 4 + .5·16 = 12, 8 + .5·32 = 24; coin 1 + .5·(16+32)/2 = 13, 2 + 12 = 14.
    # k = 2, one step more of the same in front: stay 4 + .5·12 = 10, 8 + .5·24 = 20;
    # coin 1 + .5·(13+14)/2 = 7.75, 2 + 6.75 = 8.75.
    optimality = np.array([[[12.0, 10.0], [13.0, 7.75]], [[24.0, 20.0], [14.0, 8.75]]])
    # T^1 at k = 2 from f(·,·,1): stay 4 + .5·16 = 12, 8 + .5·2 = 9; coin 1 + .5·(0+32)/2 = 9, 2 + 8 = 10.
    second = np.array([[12.0, 9.0], [9.0, 10.0]])

    def test_bellman_optimality(self) -> None:
        # V = (16, 32) from the first persistence alone: max(16, 0), max(2, 32).
        actual = bellman_optimality(self.mdp)(self.f[:, :, 0])
        assert np.array_equal(actual, [[12.0, 13.0], [24.0, 14.0]])

    def test_option_optimality(self) -> None:
        assert np.array_equal(option_optimality(self.mdp, 2)(self.f), self.optimality)

    def test_held_returns(self) -> None:
        assert np.array_equal(held_returns(self.mdp, [16.0, 32.0], 2), self.optimality)

    def test_bootstrap(self) -> None:
        actual = bootstrap(self.mdp, 2, 1)(self.f)
        assert np.all(np.isnan(actual[:, :, 0]))
        assert np.array_equal(actual[:, :, 1], self.second)

    def test_bootstrap_after_two_steps(self) -> None:
        # K = 3, κ = 2: only k = 3, from f(·,·,1). r_2 + γ² P_2 f: stay 4 + 2 + 4 = 10 and 8 + 4 + .5 = 12.5;
        # coin: r_2 = 1 + .5·1.5 = 1.75 and 2.75; two coins are a coin: .25·16 = 4: 5.75 and 6.75.
        f = np.concatenate([self.f, np.full((2, 2, 1), 99.0)], axis=2)
        actual = bootstrap(self.mdp, 3, 2)(f)
        assert np.all(np.isnan(actual[:, :, :2]))
        assert np.array_equal(actual[:, :, 2], [[10.0, 5.75], [12.5, 6.75]])

    def test_nothing_is_left_to_bootstrap_when_all_was_seen(self) -> None:
        assert np.all(np.isnan(bootstrap(self.mdp, 2, 2)(self.f)))

    def test_all_persistence(self) -> None:
        # κ = 1: k = 1 by T*_K, k = 2 by T^1. κ = 2: T*_K throughout.
        once = all_persistence(self.mdp, 2, 1)(self.f)
        assert np.array_equal(once[:, :, 0], self.optimality[:, :, 0])
        assert np.array_equal(once[:, :, 1], self.second)
        assert np.array_equal(all_persistence(self.mdp, 2, 2)(self.f), self.optimality)

    def test_option_expectation(self) -> None:
        # ψ(·|0): half (stay, 1), half (coin, 2): V(0) = (16 + 8)/2 = 12. ψ(·|1): a quarter each: V(1) = 50/4.
        psi = np.array([[[0.5, 0.0], [0.0, 0.5]], [[0.25, 0.25], [0.25, 0.25]]])
        # k = 1: stay 4 + 6 = 10, 8 + 6.25 = 14.25; coin 1 + .25·24.5 = 7.125, 8.125.
        # k = 2: stay 4 + 5 = 9, 8 + 7.125 = 15.125; coin 1 + .25·15.25 = 4.8125, 5.8125.
        expected = [[[10.0, 9.0], [7.125, 4.8125]], [[14.25, 15.125], [8.125, 5.8125]]]
        assert np.array_equal(option_expectation(self.mdp, psi)(self.f), expected)

    def test_terminal_state(self) -> None:
        # The coin's other side ends the episode: V(1) = 0, not 32. Coin: 1 + .5·(16+0)/2 = 5, then
        # 1 + .5·(5+0)/2 = 2.25; κ = 1, k = 2: 1 + .5·(0+0)/2 = 1, where f(1,·,1) = 32 is not read.
        mdp = TabularMDP(self.mdp.P, self.mdp.r, 0.5, terminal=[1])
        assert np.array_equal(option_optimality(mdp, 2)(self.f)[0], [[12.0, 10.0], [5.0, 2.25]])
        assert np.array_equal(all_persistence(mdp, 2, 1)(self.f)[0], [[12.0, 12.0], [5.0, 1.0]])
        assert np.all(all_persistence(mdp, 2, 1)(self.f)[1] == 0.0)

    def test_values_may_be_lists_and_are_left_alone(self) -> None:
        before = self.f.copy()
        for operator in (option_optimality(self.mdp, 2), all_persistence(self.mdp, 2, 1)):
            assert np.array_equal(operator(self.f.tolist()), operator(self.f))
        assert np.array_equal(self.f, before)


@half_as_many_examples
@given(random=random_mdps(), k_max=st.integers(1, 4), data=st.data())
def test_operators_are_their_formulas(random: RandomMDP, k_max: int, data: st.DataObject) -> None:
    mdp, (P, r, gamma), terminal = random.tabular(), random.plain(), random.terminal
    kappa = data.draw(st.integers(1, k_max), label="kappa")
    f = data.draw(values_like(*r.shape, k_max), label="f")
    psi = data.draw(policies_over_options(*r.shape, k_max), label="psi")

    optimality = literal.option_optimality(P, r, gamma, terminal, f)
    assert_near(option_optimality(mdp, k_max)(f), optimality, 1e-12)
    primitive = literal.option_optimality(P, r, gamma, terminal, f[:, :, :1])[:, :, 0]
    assert_near(bellman_optimality(mdp)(f[:, :, 0]), primitive, 1e-12)
    longer = literal.bootstrap(P, r, gamma, terminal, kappa, f)
    np.testing.assert_allclose(bootstrap(mdp, k_max, kappa)(f), longer, rtol=0.0, atol=1e-10, equal_nan=True)
    both = literal.all_persistence(P, r, gamma, terminal, kappa, f)
    assert_near(all_persistence(mdp, k_max, kappa)(f), both, 1e-12)
    expectation = literal.option_expectation(P, r, gamma, terminal, psi, f)
    assert_near(option_expectation(mdp, psi)(f), expectation, 1e-12)
    held = literal.after_holding(P, r, gamma, np.where(terminal, 0.0, f[:, 0, 0]).tolist(), k_max)
    assert_near(held_returns(mdp, f[:, 0, 0], k_max), held, 1e-12)


class TestContraction:
    """H^κ contracts by γ^min(k,κ), Q*_K is its one fixed point for every κ, and Q*_K does not grow with k.

    Paper: Theorem prop:HQ_contraction
    """

    @given(random=random_mdps(), k_max=st.integers(1, 5), data=st.data())
    def test_each_component_contracts(self, random: RandomMDP, k_max: int, data: st.DataObject) -> None:
        kappa = data.draw(st.integers(1, k_max), label="kappa")
        shape = (*random.r.shape, k_max)
        f, g = data.draw(values_like(*shape), label="f"), data.draw(values_like(*shape), label="g")
        operator = all_persistence(random.tabular(), k_max, kappa)
        distance = np.abs(operator(f) - operator(g)).max(axis=(0, 1))
        for k in range(1, k_max + 1):
            assert distance[k - 1] <= random.gamma ** min(k, kappa) * np.max(np.abs(f - g)) + 1e-11

    @given(random=random_mdps(terminals=False), k_max=st.integers(1, 5), data=st.data())
    def test_by_no_more_than_that(self, random: RandomMDP, k_max: int, data: st.DataObject) -> None:
        # A constant c more everywhere is γ^min(k,κ)·c more after it: the bound is reached in every component.
        kappa = data.draw(st.integers(1, k_max), label="kappa")
        f = data.draw(values_like(*random.r.shape, k_max), label="f")
        c = data.draw(st.floats(-100.0, 100.0), label="c")
        operator = all_persistence(random.tabular(), k_max, kappa)
        factors = np.array([random.gamma ** min(k, kappa) for k in range(1, k_max + 1)])
        expected = np.broadcast_to(factors * c, f.shape)
        np.testing.assert_allclose(operator(f + c) - operator(f), expected, rtol=0.0, atol=1e-11)

    @half_as_many_examples
    @given(
        random=random_mdps(gamma=GAMMA_TO_ITERATE, max_states=3, max_actions=2),
        k_max=st.integers(1, 3),
        data=st.data(),
    )
    def test_every_kappa_leads_to_the_same_point(self, random: RandomMDP, k_max: int, data: st.DataObject) -> None:
        mdp = random.tabular()
        expected = literal.best_values(*random.plain(), k_max)
        start = data.draw(values_like(*random.r.shape, k_max), label="start")
        for kappa in range(1, k_max + 1):
            reached = fixed_point(all_persistence(mdp, k_max, kappa), start, modulus=mdp.gamma)
            assert_near(reached.value, expected)

    @pytest.mark.parametrize("kappa", [1, 2])
    def test_also_where_gamma_is_near_1(self, kappa: int) -> None:
        P = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.75, 0.25]]])
        r = np.array([[1.0, -0.5], [0.0, 0.25]])
        # From 20 beside it to 1e-4 beside it: ln(20/1e-4)/.001, some 12 000 iterations.
        expected = literal.best_values(P, r, 0.999, 3)
        start = expected + np.random.default_rng(kappa).uniform(-20.0, 20.0, size=(2, 2, 3))
        operator = all_persistence(TabularMDP(P, r, 0.999), 3, kappa)
        assert_near(fixed_point(operator, start, modulus=0.999, tolerance=1e-4).value, expected, 1e-6)

    @half_as_many_examples
    @given(random=random_mdps(gamma=GAMMA_TO_ITERATE), k_max=st.integers(1, 4))
    def test_the_optimum_stays_where_it_is(self, random: RandomMDP, k_max: int) -> None:
        mdp = random.tabular()
        q = q_star_options(mdp, k_max)
        assert_near(option_optimality(mdp, k_max)(q), q)
        for kappa in range(1, k_max + 1):
            assert_near(all_persistence(mdp, k_max, kappa)(q), q)
            assert_near(bootstrap(mdp, k_max, kappa)(q)[:, :, kappa:], q[:, :, kappa:])

    @half_as_many_examples
    @given(random=random_mdps(gamma=GAMMA_TO_ITERATE), k_max=st.integers(2, 5))
    def test_a_longer_hold_is_never_worth_more(self, random: RandomMDP, k_max: int) -> None:
        q = q_star_options(random.tabular(), k_max)
        assert np.all(np.diff(q, axis=2) <= 1e-8 * (1.0 + np.abs(q).max()))


@half_as_many_examples
@given(
    random=random_mdps(gamma=GAMMA_TO_ITERATE, max_states=3, max_actions=2),
    k_max=st.integers(1, 3),
    data=st.data(),
)
def test_the_values_of_a_policy_solve_its_linear_equations(
    random: RandomMDP, k_max: int, data: st.DataObject
) -> None:
    mdp, shape = random.tabular(), (*random.r.shape, k_max)
    psi = data.draw(policies_over_options(*shape), label="psi")
    start = data.draw(values_like(*shape), label="start")
    reached = fixed_point(option_expectation(mdp, psi), start, modulus=mdp.gamma)
    assert_near(reached.value, literal.policy_values(*random.plain(), psi))


# What is refused, and in which words:

SMALL = TabularMDP([[1, 0], [0, 1]], np.zeros((2, 2)), 0.5)
UNIFORM = np.full((2, 2, 2), 0.25)


@pytest.mark.parametrize("k_max", [0, -3])
@pytest.mark.parametrize(
    "make",
    [
        lambda k_max: option_optimality(SMALL, k_max),
        lambda k_max: bootstrap(SMALL, k_max, 1),
        lambda k_max: all_persistence(SMALL, k_max, 1),
        lambda k_max: held_returns(SMALL, [0.0, 0.0], k_max),
    ],
)
def test_a_longest_hold_below_1_is_refused(make: Callable[[Any], Any], k_max: int) -> None:
    with pytest.raises(ValueError, match=rf"^k_max must be a whole number of at least 1, not {k_max}$"):
        make(k_max)
    with pytest.raises(TypeError, match=r"^k_max must be a whole number of at least 1, not 2\.0$"):
        make(2.0)


@pytest.mark.parametrize("make", [bootstrap, all_persistence])
@pytest.mark.parametrize(
    ("kappa", "error", "sentence"),
    [
        (3, ValueError, "kappa must be at most k_max = 2, not 3"),
        (0, ValueError, "kappa must be a whole number of at least 1, not 0"),
        (1.5, TypeError, "kappa must be a whole number of at least 1, not 1.5"),
    ],
)
def test_more_steps_than_the_longest_hold_are_refused(
    make: Callable[..., Any], kappa: Any, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        make(SMALL, 2, kappa)


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 1), (2, 2, 3), (1, 2, 2), (2, 2, 2, 1), ()])
@pytest.mark.parametrize(
    "operator",
    [
        option_optimality(SMALL, 2),
        bootstrap(SMALL, 2, 1),
        all_persistence(SMALL, 2, 1),
        option_expectation(SMALL, UNIFORM),
    ],
)
def test_option_values_of_another_shape_are_refused(operator: Callable[..., Any], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^values must have shape \(2, 2, 2\), not \("):
        operator(np.zeros(shape))


def test_values_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^values must have shape \(2, 2\), not \(2, 2, 1\)$"):
        bellman_optimality(SMALL)(np.zeros((2, 2, 1)))
    with pytest.raises(ValueError, match=r"^values must have shape \(2,\), not \(3,\)$"):
        held_returns(SMALL, np.zeros(3), 2)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 2), (2, 3, 2), (2, 2, 0), (2, 2, 2, 1), ()])
def test_a_policy_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^psi must have shape \(2, 2, k_max\), not \("):
        option_expectation(SMALL, np.ones(shape))


@pytest.mark.parametrize("row", [[0.5, 0.4, 0.0, 0.0], [1.5, -0.5, 0.0, 0.0], [np.nan, 1.0, 0.0, 0.0], [0.0] * 4])
def test_a_policy_that_is_no_distribution_is_refused(row: list[float]) -> None:
    psi = UNIFORM.copy()
    psi[1] = np.reshape(row, (2, 2))
    sentence = "^psi must be a distribution over options in every state: not negative, summing to 1$"
    with pytest.raises(ValueError, match=sentence):
        option_expectation(SMALL, psi)


def test_a_policy_is_copied() -> None:
    psi = UNIFORM.copy()
    operator = option_expectation(TabularMDP([[1, 0], [0, 1]], np.zeros((2, 2)), 0.5), psi)
    f = np.arange(8.0).reshape(2, 2, 2)
    before = operator(f)
    psi[:] = 0.0
    assert np.array_equal(operator(f), before)
