"""P_H: H steps of random options as one Markov chain."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from holdfast.envs import GridWorld, exploration_kernel
from holdfast.mdp import ChainOperator, TabularMDP, persistent_chain, reduced_distribution
from tests.mdp.literal import assert_near, held_kernel
from tests.mdp.random_mdps import ALL_FORMS, RandomMDP, half_as_many_examples, in_form, random_mdps

Floats = NDArray[np.float64]


def distributions(*shape: int) -> st.SearchStrategy[Floats]:
    """Simple fractions that sum to 1 over the last axis."""
    weights = hnp.arrays(np.int64, shape, elements=st.integers(0, 3))
    return weights.map(lambda w: w + (w.sum(axis=-1, keepdims=True) == 0)).map(
        lambda w: w / w.sum(axis=-1, keepdims=True)
    )


def step_by_step(P: Floats, pi: Floats, omega: Floats, H: int) -> Floats:
    """P_H by following every action, persistence and state, one primitive step after the other."""
    S, A, _ = P.shape

    def ends(s: int, action: int, left: int, H: int) -> Floats:
        if H == 0:
            return np.eye(S)[s]
        if left > 0:
            return sum(P[s, action, t] * ends(t, action, left - 1, H - 1) for t in range(S) if P[s, action, t])
        options = ((a, k) for a in range(A) for k in range(1, len(omega) + 1) if pi[s, a] * omega[k - 1])
        return sum(pi[s, a] * omega[k - 1] * ends(s, a, k, H) for a, k in options)

    return np.stack([ends(s, 0, 0, H) for s in range(S)])


class TestReducedDistribution:
    def test_by_hand(self) -> None:
        omega = [0.125, 0.25, 0.5, 0.125]
        assert reduced_distribution(omega, 1).tolist() == [1.0, 0.0, 0.0, 0.0]
        assert reduced_distribution(omega, 2).tolist() == [0.125, 0.875, 0.0, 0.0]
        assert reduced_distribution(omega, 3).tolist() == [0.125, 0.25, 0.625, 0.0]
        assert reduced_distribution(omega, 4).tolist() == omega
        assert reduced_distribution(omega, 9).tolist() == omega

    @given(omega=distributions(5), H=st.integers(1, 8))
    def test_it_is_a_distribution(self, omega: Floats, H: int) -> None:
        reduced = reduced_distribution(omega, H)
        assert reduced.sum() == pytest.approx(1.0, abs=1e-12)
        assert np.all(reduced >= 0.0)
        assert not reduced[H:].any()


def test_the_example_of_the_paper() -> None:
    """K = 4, H = 3, written out; and the same by following every step."""
    rng = np.random.default_rng(1)
    P, pi = rng.dirichlet(np.ones(3), size=(3, 2)), rng.dirichlet(np.ones(2), size=3)
    omega = np.array([0.1, 0.2, 0.3, 0.4])
    one, two, three = (np.einsum("sa,sat->st", pi, held_kernel(P, k)) for k in (1, 2, 3))
    by_hand = 0.7 * three + 0.2 * two @ one + 0.1 * one @ (0.1 * one @ one + 0.9 * two)
    P_3 = persistent_chain(TabularMDP(P, np.zeros((3, 2)), 1.0), 3, pi=pi, omega=omega)
    assert_near(P_3, by_hand, 1e-14)
    assert_near(P_3, step_by_step(P, pi, omega, 3), 1e-14)
    # With P_k and P_{H−k} the other way round, as printed, it is another matrix.
    as_printed = 0.7 * three + 0.2 * one @ two + 0.1 * (0.1 * one @ one + 0.9 * two) @ one
    assert np.abs(P_3 - as_printed).max() > 1e-3


@half_as_many_examples
@given(random=random_mdps(max_states=3, max_actions=2), H=st.integers(1, 4), data=st.data())
def test_it_is_what_following_every_step_gives(random: RandomMDP, H: int, data: st.DataObject) -> None:
    P, _, _ = random.plain()
    pi = data.draw(distributions(*P.shape[:2]), label="pi")
    omega = data.draw(distributions(data.draw(st.integers(1, 5), label="K")), label="omega")
    assert_near(persistent_chain(random.tabular(), H, pi=pi, omega=omega), step_by_step(P, pi, omega, H), 1e-12)


@given(random=random_mdps(), H=st.integers(1, 12), data=st.data())
def test_rows_are_distributions(random: RandomMDP, H: int, data: st.DataObject) -> None:
    mdp = random.tabular()
    pi = data.draw(distributions(mdp.n_states, mdp.n_actions), label="pi")
    omega = data.draw(distributions(data.draw(st.integers(1, 15), label="K")), label="omega")
    P_H = persistent_chain(mdp, H, pi=pi, omega=omega)
    assert np.all(P_H >= 0.0)
    assert_near(P_H.sum(axis=1), np.ones(mdp.n_states), 1e-12)


@given(random=random_mdps(max_states=6), H=st.integers(1, 7), k_max=st.integers(1, 9))
def test_the_operator_is_the_matrix_from_both_sides(random: RandomMDP, H: int, k_max: int) -> None:
    chain = ChainOperator(random.tabular(), H, k_max)
    values = np.random.default_rng(0).normal(size=(chain.n_states, 2))
    P_H = chain.matrix()
    assert_near(chain.apply(values), P_H @ values, 1e-12)
    assert_near(chain.apply(values[:, 0]), P_H @ values[:, 0], 1e-12)
    assert_near(chain.apply_transposed(values), P_H.T @ values, 1e-12)
    assert_near(chain.apply_transposed(values[:, 0]), P_H.T @ values[:, 0], 1e-12)


@given(random=random_mdps(), H=st.integers(1, 6))
def test_without_persistence_it_is_a_matrix_power(random: RandomMDP, H: int) -> None:
    P, _, _ = random.plain()
    assert_near(persistent_chain(random.tabular(), H, 1), np.linalg.matrix_power(P.mean(axis=1), H), 1e-12)


@given(random=random_mdps(), H=st.integers(1, 6))
def test_one_hold_of_all_steps_is_the_persistent_kernel(random: RandomMDP, H: int) -> None:
    P, _, _ = random.plain()
    omega = np.eye(H + 2)[H + 1]
    assert_near(persistent_chain(random.tabular(), H, omega=omega), held_kernel(P, H).mean(axis=1), 1e-12)


@pytest.mark.parametrize("form", ALL_FORMS)
def test_every_form_gives_the_same(form: str) -> None:
    P = np.eye(5)[np.random.default_rng(3).integers(5, size=(5, 3))]
    mdp, dense = (TabularMDP(in_form(P, kind), np.zeros((5, 3)), 1.0) for kind in (form, "dense"))
    assert_near(persistent_chain(mdp, 7, 4), persistent_chain(dense, 7, 4), 1e-14)
    assert_near(persistent_chain(mdp.kernel, 7, 4), persistent_chain(dense, 7, 4), 1e-14)


def test_a_matrix_in_several_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = ChainOperator(exploration_kernel(GridWorld("S..\n..G")).kernel, 3, 2)
    whole = chain.matrix()
    monkeypatch.setattr("holdfast.mdp.chains._BLOCK_BYTES", 8 * 6 * 5 * 4)
    assert np.array_equal(chain.matrix(), whole)


def test_it_is_what_a_simulation_of_random_options_shows() -> None:
    """The environment itself, played: a slippery grid, 4 actions, persistences 1..5, 6 steps."""
    env, H, k_max, n = GridWorld("S..\n#..\n..G", slip=0.3), 6, 5, 3000
    kernel, states = exploration_kernel(env, "restart")
    P_H = persistent_chain(kernel, H, k_max)
    rng = np.random.default_rng(0)
    counts = np.zeros(9)
    for episode in range(n):
        state, _ = env.reset(seed=episode)
        left, action, over = 0, 0, False
        for _ in range(H):
            if left == 0:
                action, left = int(rng.integers(4)), int(rng.integers(1, k_max + 1))
            left -= 1
            if over:
                state, over = env.reset()[0], False
            else:
                state, _, over, _, _ = env.step(action)
        counts[state] += 1
    start = P_H[np.flatnonzero(states == env.map.start)[0]]
    deviation = np.abs(counts[states] / n - start)
    assert np.all(deviation <= 4.5 * np.sqrt(start * (1.0 - start) / n))


class TestWhatIsRefused:
    mdp = TabularMDP([[0, 1], [1, 0]], np.zeros((2, 2)), 0.5)

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            ({"H": 0, "k_max": 2}, "H must be a whole number of at least 1, not 0"),
            ({"H": 3, "k_max": 0}, "k_max must be a whole number of at least 1, not 0"),
            (
                {"H": 3, "omega": [0.5, 0.4]},
                r"omega must be probabilities of shape \(K,\) that sum to 1, not to 0.9",
            ),
            ({"H": 3, "omega": [1.5, -0.5]}, r"omega must be .*: some are negative or not finite"),
            ({"H": 3, "omega": [np.nan, 1.0]}, r"omega must be .*: some are negative or not finite"),
            ({"H": 3, "omega": [[1.0]]}, r"omega must be .*, not an array of shape \(1, 1\)"),
            ({"H": 3, "omega": []}, r"omega must be .*, not an array of shape \(0,\)"),
            ({"H": 3, "omega": ["a"]}, r"omega must be .*, not \['a'\]"),
            ({"H": 3, "k_max": 3, "omega": [0.5, 0.5]}, r"omega must be probabilities of shape \(3,\).*\(2,\)"),
            ({"H": 3, "k_max": 2, "pi": [0.5, 0.6]}, r"pi must be probabilities of shape \(2,\).* not to 1.1"),
            ({"H": 3, "k_max": 2, "pi": [[0.5, 0.5]]}, r"pi must be probabilities of shape \(2, 2\).*\(1, 2\)"),
            ({"H": 3, "k_max": 2, "pi": [1.0]}, r"pi must be probabilities of shape \(2,\).*\(1,\)"),
            ({"H": 3, "k_max": 2, "pi": [[1, 0], [1, 1]]}, "pi must be .* not to 2"),
        ],
    )
    def test_values(self, arguments: dict[str, Any], sentence: str) -> None:
        with pytest.raises(ValueError, match=f"^{sentence}$"):
            persistent_chain(self.mdp, **arguments)

    def test_types(self) -> None:
        with pytest.raises(TypeError, match=r"^H must be a whole number"):
            persistent_chain(self.mdp, 2.5, 2)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^k_max or omega must be given$"):
            persistent_chain(self.mdp, 3)
        with pytest.raises(TypeError, match=r"^model must be a TabularMDP or the kernel of one, not list$"):
            persistent_chain([[0]], 3, 2)  # type: ignore[arg-type]

    def test_a_policy_that_is_the_same_everywhere(self) -> None:
        once = persistent_chain(self.mdp, 3, 2, pi=[0.25, 0.75])
        assert np.array_equal(once, persistent_chain(self.mdp, 3, 2, pi=[[0.25, 0.75], [0.25, 0.75]]))


def test_a_longest_hold_far_beyond_the_steps_costs_no_more_than_the_steps() -> None:
    """ω̃ of 5 steps has 5 numbers, and almost all holds of up to a million steps are cut to what is left."""
    kernel = exploration_kernel(GridWorld("S..\n..G")).kernel
    tracemalloc.start()
    operator = ChainOperator(kernel, 5, 1_000_000)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # ω itself, and next to nothing else.
    assert kept < 1.5 * operator.omega.nbytes
    one_hold = persistent_chain(kernel, 5, omega=[0.0, 0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(operator.matrix(), one_hold, atol=1e-5)
