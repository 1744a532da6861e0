"""Optimal values: exact, bounded, honest about not converging, and never dense."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from quantecon.markov import DiscreteDP

from holdfast.mdp import (
    NoConvergenceError,
    TabularMDP,
    all_persistence,
    bellman_optimality,
    bootstrap,
    fixed_point,
    k_values,
    q_star,
    q_star_options,
)
from tests.mdp import literal
from tests.mdp.literal import assert_near
from tests.mdp.random_mdps import (
    ALL_FORMS,
    GAMMA_TO_ITERATE,
    RandomMDP,
    half_as_many_examples,
    in_form,
    random_mdps,
    values_like,
)

# Three states in a row, the last one terminal; left and right; 8 for entering it, 0 otherwise. γ = ½.
ROW = np.eye(3)[[[0, 1], [0, 2], [2, 2]]]
ROW_REWARDS = np.array([[0.0, 0.0], [0.0, 8.0], [0.0, 0.0]])


def row(form: str = "next states", gamma: float = 0.5) -> TabularMDP:
    return TabularMDP(in_form(ROW, form), ROW_REWARDS, gamma, terminal=[2])


class TestByHand:
    @pytest.mark.parametrize("form", ALL_FORMS)
    def test_q_star(self, form: str) -> None:
        # V(1) = 8, V(0) = ½·8 = 4. Left: from 0 stays, ½·4 = 2; from 1 back to 0, ½·4 = 2.
        assert_near(q_star(row(form)), np.array([[2.0, 4.0], [2.0, 8.0], [0.0, 0.0]]))

    @pytest.mark.parametrize("form", ALL_FORMS)
    def test_q_star_options(self, form: str) -> None:
        # Right costs nothing to hold on to, the terminal state ends it. Left from 0: ½^k·4. From 1 likewise,
        # as one step to the left leads to 0, where the others go nowhere.
        expected = [[[2, 1, 0.5], [4, 4, 4]], [[2, 1, 0.5], [8, 8, 8]], [[0, 0, 0], [0, 0, 0]]]
        assert_near(q_star_options(row(form), 3), np.array(expected, dtype=np.float64))

    def test_k_values(self) -> None:
        # Four states, where overshooting costs: 0 → 1 → 2 → 3 → 3 to the right, everything → 3 by giving up.
        # Only "give up" in state 2 pays: 8. V*_1: V(2) = 8, V(1) = 4, V(0) = 2, V(3) = 0.
        # V*_2: from 0 right twice, then 8: ¼·8 = 2. From 1 right twice is too far, 0. From 2 nothing is left
        # of giving up but its first step: 8, then 0.
        mdp = TabularMDP([[1, 3], [2, 3], [3, 3], [3, 3]], [[0, 0], [0, 0], [0, 8], [0, 0]], 0.5)
        expected = [[2.0, 2.0, 0.0], [4.0, 0.0, 0.0], [8.0, 8.0, 8.0], [0.0, 0.0, 0.0]]
        assert_near(k_values(mdp, 3), np.array(expected))

    def test_without_discount(self) -> None:
        # γ = 1 and −1 a step until the end: minus the number of steps.
        mdp = TabularMDP([[0, 1], [0, 2], [2, 2]], -np.ones((3, 2)), 1.0, terminal=[2])
        assert np.array_equal(q_star(mdp), [[-3.0, -2.0], [-3.0, -1.0], [0.0, 0.0]])
        # Left held twice from 1: two steps, then two more.
        assert np.array_equal(q_star_options(mdp, 2)[1], [[-3.0, -4.0], [-1.0, -1.0]])

    def test_without_discount_by_chance(self) -> None:
        # Each step costs 1 and ends the episode with chance ½: two steps on average.
        mdp = TabularMDP([[[0.5, 0.5]], [[0.0, 1.0]]], [[-1.0], [0.0]], 1.0, terminal=[1])
        assert q_star(mdp)[0, 0] == pytest.approx(-2.0, abs=1e-9)

    def test_with_no_future(self) -> None:
        # γ = 0: the first reward is all there is, however long it is held.
        assert np.array_equal(q_star_options(row(gamma=0.0), 2), np.stack([ROW_REWARDS, ROW_REWARDS], axis=2))


@given(random=random_mdps(gamma=GAMMA_TO_ITERATE))
def test_q_star_is_that_of_quantecon(random: RandomMDP) -> None:
    P, r, gamma = random.plain()
    values = DiscreteDP(r, P, gamma).solve(method="policy_iteration").v
    assert_near(q_star(random.tabular()), r + gamma * P @ values)


def test_q_star_is_that_of_quantecon_on_a_larger_model() -> None:
    rng = np.random.default_rng(0)
    P, r = rng.dirichlet(np.full(40, 0.1), size=(40, 5)), rng.normal(size=(40, 5))
    values = DiscreteDP(r, P, 0.99).solve(method="policy_iteration").v
    assert_near(q_star(TabularMDP(P, r, 0.99)), r + 0.99 * P @ values)


def test_q_star_is_that_of_quantecon_near_gamma_1() -> None:
    rng = np.random.default_rng(1)
    P, r = rng.dirichlet(np.ones(4), size=(4, 2)), rng.normal(size=(4, 2))
    values = DiscreteDP(r, P, 0.999).solve(method="policy_iteration").v
    assert_near(q_star(TabularMDP(P, r, 0.999)), r + 0.999 * P @ values)


@half_as_many_examples
@given(random=random_mdps(gamma=GAMMA_TO_ITERATE, max_states=3, max_actions=2), k_max=st.integers(1, 3))
def test_choosing_durations_gains_nothing(random: RandomMDP, k_max: int) -> None:
    """Q*_K, the best of all policies over options, is Q* of primitive actions at k = 1.

    Paper: Corollary cor:apx_Qstar_equiv
    """
    over_options = literal.best_values(*random.plain(), k_max)
    over_actions = literal.best_values(*random.plain(), 1)
    assert_near(over_options[:, :, 0], over_actions[:, :, 0], 1e-10)
    mdp = random.tabular()
    assert_near(q_star(mdp), over_options[:, :, 0])
    assert_near(q_star_options(mdp, k_max), over_options)
    assert_near(k_values(mdp, k_max), over_options.max(axis=1))


class TestFixedPoint:
    @staticmethod
    def halve(f: Any) -> Any:
        return 1.0 + 0.5 * np.asarray(f)

    def test_by_hand(self) -> None:
        # From 0: 1, 1.5, 1.75, and the fixed point is 2. The third step is .25 long and .25 short of it:
        # m/(1−m) = 1, the bound is exact. .3 is reached there and not before (1.5 is .5 short).
        reached = fixed_point(self.halve, [0.0], modulus=0.5, tolerance=0.3)
        assert reached.value.tolist() == [1.75]
        assert (reached.iterations, reached.residual, reached.error_bound) == (3, 0.25, 0.25)

    def test_the_bound_grows_with_the_modulus(self) -> None:
        # m = .9: m/(1−m) = 9. From 0 the n-th step is .9^(n−1) long, and 9·.9^(n−1) ≤ 1 first at n = 22:
        # .9^21 = .1094 < 1/9 < .1216 = .9^20.
        reached = fixed_point(lambda f: 1.0 + 0.9 * np.asarray(f), [0.0], modulus=0.9, tolerance=1.0)
        assert reached.iterations == 22
        assert reached.error_bound == pytest.approx(9 * 0.9**21)
        assert 10.0 - reached.value[0] == pytest.approx(reached.error_bound)

    def test_without_a_modulus_the_last_step_decides(self) -> None:
        # Steps 1, .5, .25: the third is the first within .3, and nothing bounds the distance.
        reached = fixed_point(self.halve, [0.0], tolerance=0.3)
        assert (reached.iterations, reached.residual, reached.error_bound) == (3, 0.25, np.inf)

    def test_a_fixed_point_is_noticed_at_once(self) -> None:
        reached = fixed_point(self.halve, [2.0])
        assert (reached.iterations, reached.residual, reached.error_bound) == (1, 0.0, 0.0)

    def test_the_start_is_left_alone(self) -> None:
        start = np.zeros(1)
        fixed_point(self.halve, start, modulus=0.5)
        assert start[0] == 0.0

    @given(
        random=random_mdps(gamma=GAMMA_TO_ITERATE, max_states=3, max_actions=2),
        tolerance=st.sampled_from([10.0, 0.1, 1e-3, 1e-6]),
        data=st.data(),
    )
    def test_the_bound_is_true(self, random: RandomMDP, tolerance: float, data: st.DataObject) -> None:
        mdp = random.tabular()
        kappa = data.draw(st.integers(1, 2), label="kappa")
        start = data.draw(values_like(*random.r.shape, 2), label="start")
        reached = fixed_point(all_persistence(mdp, 2, kappa), start, modulus=mdp.gamma, tolerance=tolerance)
        truth = literal.best_values(*random.plain(), 2)
        error = np.max(np.abs(reached.value - truth))
        assert error <= reached.error_bound + 1e-12 * (1.0 + np.abs(truth).max())
        assert reached.error_bound <= tolerance

    def test_values_near_rounding_are_near_the_truth(self) -> None:
        # V = 1/(1−γ) = 10^4, where neighbouring doubles are 1.8e-12 apart: steps of 1e-14, that a bound of 1e-10
        # needs, do not exist. Two roundings of 10^4 are 4.5e-12, and 9999 times that is 4.5e-8.
        mdp = TabularMDP([[0]], [[1.0]], 0.9999)
        reached = fixed_point(bellman_optimality(mdp), [[1e4 - 1e-6]], modulus=0.9999, max_iterations=100_000)
        assert reached.residual <= 4.5e-12
        assert reached.error_bound <= 4.5e-8
        assert abs(reached.value[0, 0] - 1e4) <= 4.6e-8
        # The first step, 1e-10, is 22 times as long: rounding is no excuse yet.
        assert reached.iterations > 1000

    def test_rounding_ends_the_iteration(self) -> None:
        # Two neighbours of 10^4 that swap for ever: the step is 1.8e-12, the bound 9999 times that, never 1e-10.
        low, high = 1e4, float(np.nextafter(1e4, np.inf))
        reached = fixed_point(lambda f: np.where(np.asarray(f) == low, high, low), [low], modulus=0.9999)
        assert (reached.iterations, reached.residual) == (1, high - low)
        assert reached.error_bound == pytest.approx(9999 * (high - low))
        # Three neighbours apart, 5.5e-12, is more than two roundings.
        high = low + 3 * (high - low)
        with pytest.raises(
            NoConvergenceError, match=r"^no fixed point within 9 iterations: the last step was 5\.46e-12"
        ):
            fixed_point(
                lambda f: np.where(np.asarray(f) == low, high, low), [low], modulus=0.9999, max_iterations=9
            )

    def test_no_convergence_without_discount(self) -> None:
        # One more each step, for ever.
        sentence = (
            r"^no fixed point within 50 iterations: the last step was 1, the tolerance is 1e-10 "
            r"\(with gamma = 1 there may be none\)$"
        )
        mdp = TabularMDP([[0]], [[1.0]], 1.0)
        for solve in (q_star, lambda m, **limits: q_star_options(m, 3, **limits)):
            with pytest.raises(NoConvergenceError, match=sentence):
                solve(mdp, max_iterations=50)
        with pytest.raises(NoConvergenceError, match=sentence):
            k_values(mdp, 3, max_iterations=50)

    def test_no_convergence_in_time(self) -> None:
        # The third step is .25.
        sentence = r"^no fixed point within 3 iterations: the last step was 0\.25, the tolerance is 0\.001$"
        operator = bellman_optimality(TabularMDP([[0]], [[1.0]], 0.5))
        with pytest.raises(NoConvergenceError, match=sentence):
            fixed_point(operator, np.zeros((1, 1)), modulus=0.5, tolerance=1e-3, max_iterations=3)

    def test_a_round_trip_never_ends(self) -> None:
        # γ = 1, +1 there and −1 back: the values swap for ever.
        with pytest.raises(NoConvergenceError, match=r"^no fixed point within 99 iterations: the last step was "):
            q_star(TabularMDP([[1], [0]], [[1.0], [-1.0]], 1.0), max_iterations=99)

    @pytest.mark.parametrize(
        ("setting", "sentence"),
        [
            ({"modulus": 1.5}, r"^modulus must be a number in \[0, 1\], not 1\.5$"),
            ({"modulus": np.nan}, r"^modulus must be a number in \[0, 1\], not nan$"),
            ({"tolerance": 0.0}, r"^tolerance must be a finite number above 0, not 0\.0$"),
            ({"tolerance": -1.0}, r"^tolerance must be a finite number above 0, not -1\.0$"),
            ({"max_iterations": 0}, "^max_iterations must be a whole number of at least 1, not 0$"),
        ],
    )
    def test_settings_that_are_refused(self, setting: dict[str, Any], sentence: str) -> None:
        with pytest.raises(ValueError, match=sentence):
            fixed_point(self.halve, [0.0], **setting)


@pytest.mark.parametrize("solve", [q_star_options, k_values])
def test_a_longest_hold_below_1_is_refused(solve: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"^k_max must be a whole number of at least 1, not 0$"):
        solve(row(), 0)
    with pytest.raises(TypeError, match=r"^k_max must be a whole number of at least 1, not None$"):
        solve(row(), None)


class TestLargeModels:
    """A ring: action 0 pays 1, action 1 nothing; so V* = 1/(1−γ) = 10, and k idle steps are worth γ^k·10."""

    limit = 200 * 10**6  # bytes

    @staticmethod
    def peak_of(solve: Callable[[], np.ndarray]) -> tuple[np.ndarray, int]:
        tracemalloc.start()
        try:
            result = solve()
            return result, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    @staticmethod
    def check(q: np.ndarray, n_states: int) -> None:
        assert q.shape == (n_states, 2, 8)
        assert_near(q[:, 0], np.full((n_states, 8), 10.0), 1e-6)
        assert_near(q[:, 1], np.broadcast_to(10.0 * 0.9 ** np.arange(1, 9), (n_states, 8)), 1e-6)

    def test_deterministic(self) -> None:
        n_states = 100_000  # dense: 160 GB

        def solve() -> np.ndarray:
            states = np.arange(n_states)
            P = np.stack([(states + 1) % n_states, states - 1], axis=1)
            P[0, 1] = n_states - 1
            return q_star_options(TabularMDP(P, np.tile([1.0, 0.0], (n_states, 1)), 0.9), 8, 1e-6)

        q, peak = self.peak_of(solve)
        self.check(q, n_states)
        assert peak < self.limit

    def test_sparse(self) -> None:
        n_states = 20_000  # dense: 6.4 GB

        def solve() -> np.ndarray:
            rows = np.repeat(np.arange(n_states), 2)
            matrices = [
                sp.csr_array((np.full(2 * n_states, 0.5), (rows, (rows + shifts) % n_states)))
                for shifts in (np.tile([0, 1], n_states), np.tile([0, -1], n_states))
            ]
            return q_star_options(TabularMDP(matrices, np.tile([1.0, 0.0], (n_states, 1)), 0.9), 8, 1e-6)

        q, peak = self.peak_of(solve)
        self.check(q, n_states)
        assert peak < self.limit


def test_values_that_are_not_finite_are_no_fixed_point() -> None:
    undefined = bootstrap(TabularMDP([[0]], [[1.0]], 0.9), 2, 1)
    with pytest.raises(NoConvergenceError, match="no longer finite after 1 iterations"):
        fixed_point(undefined, np.zeros((1, 1, 2)), modulus=0.9)


def test_small_values_are_right_too() -> None:
    # A corridor of 20 steps at gamma = 0.1: the start is worth 1e-19, far below any absolute tolerance.
    n = 20
    following = np.minimum(np.arange(n + 1) + 1, n)
    reward = (np.arange(n + 1) == n - 1).astype(np.float64)
    corridor = TabularMDP(
        np.stack([np.arange(n + 1), following], axis=1), np.stack([0 * reward, reward], axis=1), 0.1, terminal=[n]
    )
    q = q_star(corridor)
    assert q[:n, 1] == pytest.approx(0.1 ** np.arange(n - 1, -1, -1), rel=1e-12)
    assert (q[:n].argmax(axis=1) == 1).all()


@pytest.mark.parametrize("gamma", [0.9999, 0.99999, 0.9999999])
def test_gamma_near_1_is_as_exact_as_rounding_allows(gamma: float) -> None:
    # One state that pays 1 for ever, beside one that pays 2 once and then goes there.
    mdp = TabularMDP([[0, 0], [0, 1]], [[1.0, 0.5], [2.0, 0.0]], gamma)
    forever = 1.0 / (1.0 - gamma)
    assert q_star(mdp)[:, 0] == pytest.approx([forever, 2.0 + gamma * forever], rel=1e-15 / (1.0 - gamma))


def test_an_operator_that_works_in_place_is_refused() -> None:
    def halve(f: Any) -> Any:
        f *= 0.5
        return f

    with pytest.raises(ValueError, match="operator must return a new array"):
        fixed_point(halve, np.ones(1), modulus=0.5)
