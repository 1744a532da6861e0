"""A cost for each decision, and sparse sets of persistences: operators, their fixed points, and optimal values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from quantecon.markov import DiscreteDP

from holdfast.core.decomposition import window_lengths
from holdfast.mdp import (
    TabularMDP,
    all_persistence,
    bootstrap,
    fixed_point,
    held_returns,
    k_values,
    option_optimality,
    q_star,
    q_star_options,
)
from tests.mdp import literal
from tests.mdp.literal import assert_near
from tests.mdp.random_mdps import GAMMA_TO_ITERATE, RandomMDP, half_as_many_examples, random_mdps, values_like

COSTS = st.one_of(st.sampled_from([0.0, 0.25, 1.0, 10.0]), st.floats(0.0, 3.0))
SETS = st.sets(st.integers(2, 6), max_size=3).map(lambda others: (1, *sorted(others)))


class TestByHand:
    # Four states in a row, the last one terminal; left and right; the border blocks; entering it pays 8. γ = ½.
    mdp = TabularMDP([[0, 1], [0, 2], [1, 3], [3, 3]], [[0, 0], [0, 0], [0, 8], [0, 0]], 0.5, 0, [3])

    def test_values(self) -> None:
        # c = 1, k up to 2. Q is paid for already. From 2: right ends it, 8 either way. From 1: right once, then
        # pay again: ½(8 − 1) = 3.5; right twice: ½·8 = 4. From 0: right once, ½(4 − 1) = 1.5; twice, ¼·7 = 1.75.
        # Left from 0 stays: ½(1.75 − 1) = .375, ¼ of .75 = .1875; from 1 the same; from 2: ½(4 − 1) = 1.5, ¼·.75.
        expected = [
            [[0.375, 0.1875], [1.5, 1.75]],
            [[0.375, 0.1875], [3.5, 4.0]],
            [[1.5, 0.1875], [8.0, 8.0]],
            [[0.0, 0.0], [0.0, 0.0]],
        ]
        assert_near(q_star_options(self.mdp, 2, decision_cost=1.0), np.array(expected), 1e-15)
        assert_near(k_values(self.mdp, 2, decision_cost=1.0), np.max(expected, axis=1), 1e-15)

    def test_values_of_a_sparse_set(self) -> None:
        # With 1 and 3 alone, right three times from 0 is ¼·8 = 2, better than ½(V(1) − 1): the first row's best.
        # From 1, right three times ends it as twice does: ½·8 = 4.
        q = q_star_options(self.mdp, decision_cost=1.0, persistences=(1, 3))
        assert q[:3, 1, 1].tolist() == [2.0, 4.0, 8.0]
        assert q[0, 1, 0] == 0.5 * (4.0 - 1.0)
        # Left for three steps from 2: γ³(V(0) − 1) = ⅛(2 − 1).
        assert q[2, 0, 1] == 0.125

    def test_where_deciding_costs_more_than_all_there_is(self) -> None:
        # c = 100, k up to 2. The chain must decide until it ends: from 0, twice right, then once more, or hold on
        # to the left for ever: ¼(V − 100) again and again. V(0) = max Q(0) − 100: right twice, then right:
        # ¼(8 − 100) = −23; going nowhere: ¼ V(0), with V(0) = −100 / (1 − ¼) = −133.3: Q = −33.3. −23 is better.
        assert q_star_options(self.mdp, 2, decision_cost=100.0)[0, 1, 1] == pytest.approx(-23.0)

    def test_without_discount(self) -> None:
        # γ = 1, −1 a step, c = 2, up to 3 steps at once: from 0 three steps and one decision, which is paid for.
        mdp = TabularMDP(self.mdp.P, -np.ones((4, 2)), 1.0, terminal=[3])
        q = q_star_options(mdp, 3, decision_cost=2.0)
        assert q[0, 1].tolist() == [-1 - 2 - 2, -2 - 1 - 2, -3]

    def test_operators(self) -> None:
        f = np.array([[[16.0, 4.0], [0.0, 8.0]], [[2.0, 6.0], [32.0, 10.0]]])
        stay_or_toss = [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]
        mdp = TabularMDP(stay_or_toss, [[4.0, 1.0], [8.0, 2.0]], 0.5)
        # c = 4: V = (12, 28). Stay: 4 + 6 = 10, 8 + 14 = 22; coin: 1 + ½·20 = 11, 2 + 10 = 12.
        # Twice: stay 4 + 5 = 9, 8 + 11 = 19; coin 1 + ½·11.5 = 6.75, 7.75.
        expected = np.array([[[10.0, 9.0], [11.0, 6.75]], [[22.0, 19.0], [12.0, 7.75]]])
        assert np.array_equal(option_optimality(mdp, 2, decision_cost=4.0)(f), expected)
        # κ = 1: k = 2 holds on by f(·,·,1), where nothing is decided: the cost is not in it.
        held = all_persistence(mdp, 2, 1, decision_cost=4.0)(f)
        assert np.array_equal(held[:, :, 0], expected[:, :, 0])
        assert np.array_equal(held[:, :, 1], [[12.0, 9.0], [9.0, 10.0]])
        # The coin's other side ends the episode, where nothing is paid: coin 1 + ½·(12 + 0)/2 = 4, then
        # 1 + ½·(4 + 0)/2 = 2.
        ends = TabularMDP(stay_or_toss, [[4.0, 1.0], [8.0, 2.0]], 0.5, terminal=[1])
        assert option_optimality(ends, 2, decision_cost=4.0)(f)[0, 1].tolist() == [4.0, 2.0]

    def test_operators_of_a_sparse_set(self) -> None:
        # One state that pays 1, γ = ½, 1, 2 and 5 steps. κ = 2: k = 1 and k = 2 through V = max f = 40; for k = 5
        # no rest 5 − 1, 5 − 2 is in the set: left alone. κ = 3: 5 − 3 = 2 is: 1 + ½ + ¼ + ⅛·f(2) = 1.75 + 2.5.
        mdp, f = TabularMDP([[0]], [[1.0]], 0.5), np.array([[[10.0, 20.0, 40.0]]])
        through = [1.0 + 0.5 * 40.0, 1.5 + 0.25 * 40.0]
        assert all_persistence(mdp, kappa=2, persistences=(1, 2, 5))(f).tolist() == [[[*through, 40.0]]]
        assert all_persistence(mdp, kappa=3, persistences=(1, 2, 5))(f).tolist() == [[[*through, 1.75 + 2.5]]]
        assert np.isnan(bootstrap(mdp, kappa=2, persistences=(1, 2, 5))(f)).all()
        assert held_returns(mdp, [40.0], persistences=(1, 2, 5))[0, 0, 2] == 1.9375 + 40.0 / 32.0


@half_as_many_examples
@given(random=random_mdps(), durations=SETS, cost=COSTS, data=st.data())
def test_operators_are_their_formulas(
    random: RandomMDP, durations: tuple[int, ...], cost: float, data: st.DataObject
) -> None:
    mdp, plain, k_max = random.tabular(), (*random.plain(), random.terminal), durations[-1]
    kappa = data.draw(st.integers(1, k_max), label="kappa")
    f = data.draw(values_like(*random.r.shape, k_max), label="f")
    assert_near(
        option_optimality(mdp, k_max, decision_cost=cost)(f), literal.option_optimality(*plain, f, cost), 1e-12
    )
    assert_near(
        all_persistence(mdp, k_max, kappa, decision_cost=cost)(f),
        literal.all_persistence(*plain, kappa, f, cost),
        1e-12,
    )
    few = f[:, :, : len(durations)]
    assert_near(
        all_persistence(mdp, kappa=kappa, decision_cost=cost, persistences=durations)(few),
        literal.sparse_all_persistence(*plain, kappa, few, durations, cost),
        1e-12,
    )


class TestContraction:
    @given(random=random_mdps(), durations=SETS, cost=COSTS, data=st.data())
    def test_each_component_contracts_by_what_was_seen_of_it(
        self, random: RandomMDP, durations: tuple[int, ...], cost: float, data: st.DataObject
    ) -> None:
        kappa = data.draw(st.integers(1, durations[-1]), label="kappa")
        shape = (*random.r.shape, len(durations))
        f, g = data.draw(values_like(*shape), label="f"), data.draw(values_like(*shape), label="g")
        operator = all_persistence(random.tabular(), kappa=kappa, decision_cost=cost, persistences=durations)
        distance = np.abs(operator(f) - operator(g)).max(axis=(0, 1))
        factors = random.gamma ** window_lengths(durations)[:, kappa].astype(np.float64)
        assert np.all(distance <= factors * np.max(np.abs(f - g)) + 1e-11)

    @half_as_many_examples
    @given(
        random=random_mdps(gamma=GAMMA_TO_ITERATE, max_states=3, max_actions=2),
        durations=SETS,
        cost=COSTS,
        data=st.data(),
    )
    def test_every_kappa_leads_to_the_optimum(
        self, random: RandomMDP, durations: tuple[int, ...], cost: float, data: st.DataObject
    ) -> None:
        mdp = random.tabular()
        q = q_star_options(mdp, decision_cost=cost, persistences=durations)
        start = data.draw(values_like(*q.shape), label="start")
        for kappa in range(1, durations[-1] + 1):
            operator = all_persistence(mdp, kappa=kappa, decision_cost=cost, persistences=durations)
            assert_near(operator(q), q)
            if window_lengths(durations)[:, kappa].all():
                assert_near(fixed_point(operator, start, modulus=mdp.gamma).value, q)


def augmented(
    P: NDArray[np.float64],
    r: NDArray[np.float64],
    gamma: float,
    terminal: NDArray[np.bool_],
    durations: Sequence[int],
    cost: float,
) -> NDArray[np.float64]:
    """Q_c(s,a,k) by QuantEcon, where what is held and for how much longer is part of the state.

    First come the S states in which to decide, then (a, m, s) in which ``a`` is held for ``m`` more steps, where
    all choices are the same.
    """
    S, A = r.shape
    longest, n_options = durations[-1], A * len(durations)

    def number(s: int, a: int, m: int) -> int:
        return s if m == 0 else S + (a * (longest - 1) + m - 1) * S + s

    n = S + A * (longest - 1) * S
    Q, R = np.zeros((n, n_options, n)), np.zeros((n, n_options))
    for option, (a, k) in enumerate((a, k) for a in range(A) for k in durations):
        for s in range(S):
            R[s, option] = r[s, a] - (0.0 if terminal[s] else cost)
            for t in range(S):
                Q[s, option, t if terminal[s] else number(t, a, k - 1)] += P[s, a, t]
    for a in range(A):
        for m in range(1, longest):
            for s in range(S):
                R[number(s, a, m)] = r[s, a]
                for t in range(S):
                    Q[number(s, a, m), :, number(t, a, m - 1)] += P[s, a, t]
    values = DiscreteDP(R, Q, gamma).solve(method="policy_iteration").v
    q = (R + gamma * Q @ values)[:S].reshape(S, A, len(durations))
    return q + np.where(terminal, 0.0, cost)[:, None, None]


@half_as_many_examples
@given(
    random=random_mdps(gamma=GAMMA_TO_ITERATE, max_states=3, max_actions=2),
    durations=st.sampled_from([(1,), (1, 2), (1, 2, 3), (1, 3), (1, 2, 4)]),
    cost=COSTS,
)
def test_values_are_those_of_quantecon_with_the_hold_in_the_state(
    random: RandomMDP, durations: tuple[int, ...], cost: float
) -> None:
    q = q_star_options(random.tabular(), decision_cost=cost, persistences=durations)
    assert_near(q, augmented(*random.plain(), random.terminal, durations, cost))


def test_values_are_those_of_quantecon_on_a_larger_model() -> None:
    rng = np.random.default_rng(3)
    P, r = rng.dirichlet(np.full(12, 0.2), size=(12, 3)), rng.normal(size=(12, 3))
    q = q_star_options(TabularMDP(P, r, 0.97, terminal=[4]), decision_cost=0.3, persistences=(1, 2, 5))
    P[4], r[4] = np.eye(12)[4], 0.0
    assert_near(q, augmented(P, r, 0.97, np.arange(12) == 4, (1, 2, 5), 0.3))


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_large_models_are_iterated_to_the_same_values(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.mdp.kernels import DenseKernel, SparseKernel

    rng = np.random.default_rng(4)
    random = RandomMDP(
        rng.dirichlet(np.full(9, 0.3), size=(9, 2)), rng.normal(size=(9, 2)), 0.9, np.arange(9) == 2, form
    )
    exact = q_star_options(random.tabular(), 4, decision_cost=0.2)
    monkeypatch.setattr("holdfast.mdp.solve_options.LARGEST_LINEAR_SYSTEM", {DenseKernel: 8, SparseKernel: 8})
    assert_near(q_star_options(random.tabular(), 4, decision_cost=0.2), exact)


class TestNoCost:
    @half_as_many_examples
    @given(random=random_mdps(gamma=GAMMA_TO_ITERATE), durations=SETS)
    def test_a_sparse_set_has_the_values_of_the_full_one(
        self, random: RandomMDP, durations: tuple[int, ...]
    ) -> None:
        mdp = random.tabular()
        everything = q_star_options(mdp, durations[-1])
        assert np.array_equal(
            q_star_options(mdp, persistences=durations), everything[:, :, np.array(durations) - 1]
        )

    @given(random=random_mdps(), k_max=st.integers(1, 5), data=st.data())
    def test_a_full_set_is_k_max_to_the_last_bit(self, random: RandomMDP, k_max: int, data: st.DataObject) -> None:
        mdp, everything = random.tabular(), tuple(range(1, k_max + 1))
        kappa = data.draw(st.integers(1, k_max), label="kappa")
        f = data.draw(values_like(*random.r.shape, k_max), label="f")
        for one, other in (
            (option_optimality(mdp, k_max), option_optimality(mdp, persistences=everything, decision_cost=0.0)),
            (all_persistence(mdp, k_max, kappa), all_persistence(mdp, kappa=kappa, persistences=everything)),
        ):
            assert one(f).tobytes() == other(f).tobytes()


class TestWhatACostDoes:
    @half_as_many_examples
    @given(random=random_mdps(gamma=GAMMA_TO_ITERATE), durations=SETS, cost=COSTS)
    def test_a_longer_hold_is_worth_at_most_one_decision_more(
        self, random: RandomMDP, durations: tuple[int, ...], cost: float
    ) -> None:
        # Q_c(s,a,k) ≤ Q_c(s,a,j) + γ^j c where the rest k − j may be held on for in one decision.
        q = q_star_options(random.tabular(), decision_cost=cost, persistences=durations)
        for at, k in enumerate(durations):
            for before, j in enumerate(durations[:at]):
                if k - j in durations:
                    allowed = q[:, :, before] + random.gamma**j * cost
                    assert np.all(q[:, :, at] <= allowed + 1e-8 * (1.0 + np.abs(q).max()))

    @half_as_many_examples
    @given(random=random_mdps(gamma=GAMMA_TO_ITERATE), k_max=st.integers(1, 4), cost=COSTS)
    def test_it_only_takes(self, random: RandomMDP, k_max: int, cost: float) -> None:
        mdp = random.tabular()
        q, free = q_star_options(mdp, k_max, decision_cost=cost), q_star_options(mdp, k_max)
        rounding = 1e-8 * (1.0 + np.abs(q).max() + np.abs(free).max())
        assert np.all(q <= free + rounding)
        # Paying at every step is the worst that can happen.
        paid_for_ever = cost * mdp.gamma / (1.0 - mdp.gamma)
        assert np.all(q[:, :, 0] >= q_star(mdp) - paid_for_ever - rounding)


# What is refused, and in which words:

SMALL = TabularMDP([[1, 0], [0, 1]], np.zeros((2, 2)), 0.5)

PRICED: list[Callable[..., Any]] = [option_optimality, all_persistence, q_star_options, k_values]


@pytest.mark.parametrize("make", PRICED)
@pytest.mark.parametrize("cost", [-0.1, np.nan, np.inf])
def test_a_cost_that_is_none_is_refused(make: Callable[..., Any], cost: float) -> None:
    sentence = f"^decision_cost must be a finite number of at least 0, not {re.escape(repr(cost))}$"
    with pytest.raises(ValueError, match=sentence):
        make(SMALL, 2, decision_cost=cost)
    with pytest.raises(TypeError, match=r"^decision_cost must be a finite number of at least 0, not 'dear'$"):
        make(SMALL, 2, decision_cost="dear")


@pytest.mark.parametrize("make", [*PRICED, bootstrap])
@pytest.mark.parametrize("durations", [[], [2, 4], [1, 4, 2], [1, 2, 2]])
def test_a_set_that_is_none_is_refused(make: Callable[..., Any], durations: list[int]) -> None:
    sentence = f"persistences must begin with 1 and increase, as [1, 2, 4, 8] does, not {durations}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        make(SMALL, persistences=durations)


@pytest.mark.parametrize("make", [*PRICED, bootstrap])
def test_a_longest_hold_that_is_not_the_last_of_the_set_is_refused(make: Callable[..., Any]) -> None:
    sentence = "^k_max must be 4, the last of persistences, or be left out, not 8$"
    with pytest.raises(ValueError, match=sentence):
        make(SMALL, 8, persistences=[1, 2, 4])
    make(SMALL, 4, persistences=[1, 2, 4])


def test_a_set_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^persistences must be less than 2147483648, not 2147483648$"):
        q_star_options(SMALL, persistences=[1, 2**31])
