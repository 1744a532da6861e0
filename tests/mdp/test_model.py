"""TabularMDP: frozen, validated, terminal states absorbing and worth nothing."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from holdfast.mdp import (
    TabularMDP,
    all_persistence,
    bellman_optimality,
    held_returns,
    option_expectation,
    option_optimality,
    q_star_options,
)
from tests.mdp.literal import assert_near
from tests.mdp.random_mdps import (
    ALL_FORMS,
    STOCHASTIC_FORMS,
    RandomMDP,
    half_as_many_examples,
    in_form,
    policies_over_options,
    random_mdps,
    values_like,
)

# Two states; action 0 is a coin, action 1 swaps.
P = np.array([[[0.75, 0.25], [0.0, 1.0]], [[0.5, 0.5], [1.0, 0.0]]])
ZEROS = np.zeros((2, 2))
SWAPS = np.array([[0, 1], [1, 0]])


def parts_of(table: Any) -> list[np.ndarray]:
    """The arrays behind a table of any form."""
    if isinstance(table, tuple | list):
        return [part for matrix in table for part in parts_of(matrix)]
    if sp.issparse(table) and table.format == "coo":
        return [table.data, *table.coords]
    return [table.data, table.indices, table.indptr] if sp.issparse(table) else [table]


class TestWhatAModelHolds:
    @pytest.mark.parametrize("form", ALL_FORMS)
    def test_its_attributes(self, form: str) -> None:
        mdp = TabularMDP(in_form(np.eye(2)[SWAPS], form), [[1, 2], [3, 4]], 0.5, initial=1)
        assert (mdp.n_states, mdp.n_actions, mdp.gamma) == (2, 2, 0.5)
        assert mdp.P is mdp.kernel.table
        assert mdp.r is mdp.reward
        assert mdp.reward.dtype == np.float64
        assert np.array_equal(mdp.reward, [[1.0, 2.0], [3.0, 4.0]])
        assert mdp.outcome_reward is None
        assert np.array_equal(mdp.terminal, [False, False])

    def test_its_short_description(self) -> None:
        assert repr(TabularMDP(SWAPS, ZEROS, 0.5, terminal=[1])) == (
            "TabularMDP(deterministic, n_states=2, n_actions=2, gamma=0.5, 1 terminal)"
        )
        assert repr(TabularMDP(P, ZEROS, 1)).startswith("TabularMDP(dense, ")
        assert repr(TabularMDP(in_form(P, "stacked"), ZEROS, 1)).startswith("TabularMDP(sparse, ")

    @pytest.mark.parametrize("gamma", [0, 0.0, 1, 1.0, np.float32(0.5)])
    def test_both_ends_of_the_discount(self, gamma: float) -> None:
        mdp = TabularMDP(P, ZEROS, gamma)
        assert type(mdp.gamma) is float
        assert mdp.gamma == gamma

    @pytest.mark.parametrize("initial", [1, np.int64(1), [0, 1], [0.0, 1.0], (0.0, 1.0)])
    def test_a_start_is_a_distribution(self, initial: Any) -> None:
        start = TabularMDP(P, ZEROS, 0.9, initial=initial).initial
        assert start is not None
        assert start.dtype == np.float64
        assert np.array_equal(start, [0.0, 1.0])

    def test_a_random_start_is_kept(self) -> None:
        assert np.array_equal(TabularMDP(P, ZEROS, 0.9, initial=[0.25, 0.75]).initial, [0.25, 0.75])
        assert TabularMDP(P, ZEROS, 0.9).initial is None

    @pytest.mark.parametrize("terminal", [1, [1], (1, 1), np.array([1], dtype=np.uint8), [False, True]])
    def test_terminal_states_as_mask_or_numbers(self, terminal: Any) -> None:
        mdp = TabularMDP(P, ZEROS, 0.9, terminal=terminal)
        assert mdp.terminal.dtype == np.bool_
        assert np.array_equal(mdp.terminal, [False, True])

    @pytest.mark.parametrize("terminal", [None, [], [False, False]])
    def test_no_terminal_states(self, terminal: Any) -> None:
        assert not TabularMDP(P, ZEROS, 0.9, terminal=terminal).terminal.any()


class TestFrozen:
    @pytest.mark.parametrize("name", ["kernel", "reward", "outcome_reward", "gamma", "initial", "terminal"])
    def test_no_attribute_can_be_set(self, name: str) -> None:
        mdp = TabularMDP(P, ZEROS, 0.9)
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(mdp, name, None)
        with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(mdp, name)

    @pytest.mark.parametrize("terminal", [None, [1]])
    @pytest.mark.parametrize("form", ALL_FORMS)
    def test_no_array_can_be_written(self, form: str, terminal: Any) -> None:
        by_outcome = np.ones((2, 2, 2))
        mdp = TabularMDP(in_form(np.eye(2)[SWAPS], form), by_outcome, 0.9, initial=0, terminal=terminal)
        arrays = [*parts_of(mdp.P), mdp.r, mdp.initial, mdp.terminal]
        if form != "next states":
            arrays += parts_of(mdp.outcome_reward)
        for array in arrays:
            assert isinstance(array, np.ndarray)
            assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            mdp.reward[0, 0] = 1.0

    def test_sparse_outcome_rewards_cannot_be_written(self) -> None:
        mdp = TabularMDP(in_form(P, "sparse"), in_form(P, "sparse"), 0.9)
        assert all(not part.flags.writeable for part in parts_of(mdp.outcome_reward))

    @pytest.mark.parametrize("terminal", [None, [1]])
    @pytest.mark.parametrize("n_actions", [1, 2])
    @pytest.mark.parametrize("form", [*ALL_FORMS, "stacked rows"])
    def test_the_callers_arrays_stay_the_callers(self, form: str, n_actions: int, terminal: Any) -> None:
        table = np.eye(2)[SWAPS[:, :n_actions]]
        given_P = sp.csr_array(in_form(table, "stacked")) if form == "stacked rows" else in_form(table, form)
        given_r, start, mask = np.full((2, n_actions, 2), 5.0), np.array([0.5, 0.5]), np.array([False, True])
        mdp = TabularMDP(given_P, given_r, 0.9, start, mask if terminal else None)
        before = [part.copy() for part in [*parts_of(mdp.P), mdp.reward, mdp.initial, mdp.terminal]]
        assert np.all(given_r == 5.0)  # the terminal state's reward is 0 in the model only
        for part in [*parts_of(given_P), given_r, start, mask]:
            assert part.flags.writeable
            part[...] = 0
        after = [*parts_of(mdp.P), mdp.reward, mdp.initial, mdp.terminal]
        assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))

    def test_sparse_rewards_stay_the_callers(self) -> None:
        rewards = in_form(P, "sparse")
        mdp = TabularMDP(in_form(P, "sparse"), rewards, 0.9)
        for part in parts_of(rewards):
            assert part.flags.writeable
            part[...] = 0
        assert np.array_equal(mdp.outcome_reward[0].toarray(), P[:, 0])


class TestRewardsByNextState:
    # .75·4 + .25·8 = 5; 0·100 + 1·7 = 7; .5·2 − .5·2 = 0; 1·3 + 0·100 = 3.
    by_outcome = np.array([[[4.0, 8.0], [100.0, 7.0]], [[2.0, -2.0], [3.0, 100.0]]])

    @pytest.mark.parametrize("form", STOCHASTIC_FORMS)
    def test_the_expected_reward(self, form: str) -> None:
        mdp = TabularMDP(in_form(P, form), self.by_outcome, 0.9)
        assert np.array_equal(mdp.reward, [[5.0, 7.0], [0.0, 3.0]])
        assert np.array_equal(mdp.outcome_reward, self.by_outcome)

    def test_sparse_rewards(self) -> None:
        rewards = [sp.coo_array(self.by_outcome[:, a]) for a in range(2)]
        mdp = TabularMDP(in_form(P, "sparse"), rewards, 0.9)
        assert np.array_equal(mdp.reward, [[5.0, 7.0], [0.0, 3.0]])
        for a in range(2):
            assert np.array_equal(mdp.outcome_reward[a].toarray(), self.by_outcome[:, a])

    def test_one_next_state_needs_no_rewards_by_next_state(self) -> None:
        mdp = TabularMDP(SWAPS, self.by_outcome, 0.9)
        # Stay: r(0,0,0) = 4, r(1,0,1) = −2. Swap: r(0,1,1) = 7, r(1,1,0) = 3.
        assert np.array_equal(mdp.reward, [[4.0, 7.0], [-2.0, 3.0]])
        assert mdp.outcome_reward is None

    @pytest.mark.parametrize("form", STOCHASTIC_FORMS)
    def test_terminal_states_have_none(self, form: str) -> None:
        mdp = TabularMDP(in_form(P, form), self.by_outcome, 0.9, terminal=[0])
        assert np.array_equal(mdp.reward, [[0.0, 0.0], [0.0, 3.0]])
        assert np.array_equal(mdp.outcome_reward[0], ZEROS)
        assert np.array_equal(mdp.outcome_reward[1], self.by_outcome[1])

    def test_terminal_states_have_none_in_sparse_rewards(self) -> None:
        rewards = [sp.csr_array(self.by_outcome[:, a]) for a in range(2)]
        mdp = TabularMDP(in_form(P, "sparse"), rewards, 0.9, terminal=[0])
        assert np.array_equal(mdp.reward, [[0.0, 0.0], [0.0, 3.0]])
        assert np.array_equal(mdp.outcome_reward[1].toarray(), [[0.0, 0.0], [3.0, 100.0]])


class TestTerminalStates:
    @pytest.mark.parametrize("form", ALL_FORMS)
    def test_absorbing_without_reward(self, form: str) -> None:
        # 0 → 1 → 2 → 0 with reward 1 each, but 1 is terminal.
        ring = np.eye(3)[[[1], [2], [0]]]
        mdp = TabularMDP(in_form(ring, form), np.ones((3, 1)), 0.5, terminal=[1])
        assert np.array_equal(mdp.reward, [[1.0], [0.0], [1.0]])
        to_one = mdp.kernel.expect(np.array([0.0, 1.0, 0.0]))
        assert np.array_equal(to_one, [[1.0], [1.0], [0.0]])
        # V(0) = 1, V(1) = 0, V(2) = 1 + .5·1 = 1.5; two steps from 0: the second one is in the terminal state.
        expected = [[[1.0, 1.0, 1.0]], [[0.0, 0.0, 0.0]], [[1.5, 1.5, 1.5]]]
        assert np.array_equal(q_star_options(mdp, 3), expected)

    @pytest.mark.parametrize("form", STOCHASTIC_FORMS)
    def test_what_is_said_of_them_is_not_read(self, form: str) -> None:
        table, r = P.copy(), np.ones((2, 2))
        table[1], r[1] = [[0.3, np.nan], [7.0, -7.0]], [np.nan, np.inf]
        mdp = TabularMDP(in_form(table, form), r, 0.9, terminal=[1])
        assert np.array_equal(mdp.reward, [[1.0, 1.0], [0.0, 0.0]])
        assert np.array_equal(mdp.kernel.expect(np.array([0.0, 1.0])), [[0.25, 1.0], [1.0, 1.0]])

    def test_next_states_of_terminal_states_are_not_read(self) -> None:
        assert np.array_equal(TabularMDP([[1, 0], [-1, 99]], ZEROS, 0.9, terminal=[1]).P, [[1, 0], [1, 1]])

    @half_as_many_examples
    @given(random=random_mdps(terminals=True), k_max=st.integers(1, 3), data=st.data())
    def test_values_given_to_them_change_nothing(self, random: RandomMDP, k_max: int, data: st.DataObject) -> None:
        mdp, (S, A) = random.tabular(), random.r.shape
        psi = data.draw(policies_over_options(S, A, k_max))
        f = data.draw(values_like(S, A, k_max))
        same = np.where(random.terminal[:, None, None], 77.0, f)
        operators = [option_optimality(mdp, k_max), option_expectation(mdp, psi)]
        operators += [all_persistence(mdp, k_max, kappa) for kappa in range(1, k_max + 1)]
        for operator in operators:
            assert np.array_equal(operator(f), operator(same))
            assert np.all(operator(f)[random.terminal] == 0.0)
        primitive = bellman_optimality(mdp)
        assert np.array_equal(primitive(f[:, :, 0]), primitive(same[:, :, 0]))
        assert np.all(primitive(f[:, :, 0])[random.terminal] == 0.0)
        v, same_v = f[:, 0, 0], same[:, 0, 0]
        assert np.array_equal(held_returns(mdp, v, k_max), held_returns(mdp, same_v, k_max))
        assert np.all(held_returns(mdp, v, k_max)[random.terminal] == 0.0)


@half_as_many_examples
@given(random=random_mdps(), k_max=st.integers(1, 3), data=st.data())
def test_all_forms_are_the_same_model(random: RandomMDP, k_max: int, data: st.DataObject) -> None:
    S, A = random.r.shape
    f, psi = data.draw(values_like(S, A, k_max)), data.draw(policies_over_options(S, A, k_max))
    kappa = data.draw(st.integers(1, k_max))
    reference = random.tabular("dense")
    for form in random.forms:
        mdp = random.tabular(form)
        assert (mdp.n_states, mdp.n_actions) == (S, A)
        assert np.array_equal(mdp.reward, reference.reward)
        for make in (
            lambda m: option_optimality(m, k_max)(f),
            lambda m: all_persistence(m, k_max, kappa)(f),
            lambda m: option_expectation(m, psi)(f),
            lambda m: bellman_optimality(m)(f[:, :, 0]),
            lambda m: held_returns(m, f[:, 0, 0], k_max),
        ):
            assert_near(make(mdp), make(reference), 1e-12)


# What is refused, and in which words:


@pytest.mark.parametrize("gamma", [-0.1, 1.1, np.nan, np.inf])
def test_a_discount_outside_0_to_1_is_refused(gamma: float) -> None:
    with pytest.raises(ValueError, match=r"^gamma must be a number in \[0, 1\], not (-0\.1|1\.1|nan|inf)$"):
        TabularMDP(P, ZEROS, gamma)


@pytest.mark.parametrize("gamma", [None, "0.9", True, [0.9, 0.8]])
def test_a_discount_that_is_no_number_is_refused(gamma: Any) -> None:
    with pytest.raises(TypeError, match=r"^gamma must be a number in \[0, 1\], not "):
        TabularMDP(P, ZEROS, gamma)


@pytest.mark.parametrize("form", STOCHASTIC_FORMS)
def test_a_wrong_kernel_is_refused(form: str) -> None:
    table = P.copy()
    table[1, 0] = [0.5, 0.4]
    sentence = r"^P must have rows that sum to 1: the row of state 1, action 0 sums to 0\.9$"
    with pytest.raises(ValueError, match=sentence):
        TabularMDP(in_form(table, form), ZEROS, 0.9)
    with pytest.raises(ValueError, match=sentence):  # a terminal state excuses its own row only
        TabularMDP(in_form(table, form), ZEROS, 0.9, terminal=[0])
    with pytest.raises(ValueError, match=r"^P must name next states in 0\.\.1: some are outside this range$"):
        TabularMDP([[0, 1], [2, 0]], ZEROS, 0.9)


@pytest.mark.parametrize("shape", [(2,), (2, 3), (3, 2), (2, 2, 3), (2, 2, 1), (1, 2, 2), (2, 2, 2, 1), ()])
def test_rewards_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^r must have shape \(2, 2\) or \(2, 2, 2\) to go with P, not \("):
        TabularMDP(P, np.zeros(shape), 0.9)


@pytest.mark.parametrize("rewards", [[[1.0, 2.0], [3.0]], [["one", "two"], ["three", "four"]], {}, "r"])
def test_rewards_that_are_no_numbers_are_refused(rewards: Any) -> None:
    with pytest.raises(ValueError, match=r"^r must be an array of numbers of shape \(2, 2\) or \(2, 2, 2\)$"):
        TabularMDP(P, rewards, 0.9)


def test_sparse_rewards_must_go_with_the_kernel() -> None:
    sparse_P, sparse_r = in_form(P, "sparse"), [sp.csr_array((2, 2)), sp.csr_array((2, 2))]
    for rewards in (sparse_r[:1], [*sparse_r, sparse_r[0]], [sparse_r[0], sp.csr_array((2, 3))]):
        with pytest.raises(ValueError, match=r"^r must be 2 sparse matrices of shape \(2, 2\) to go with P$"):
            TabularMDP(sparse_P, rewards, 0.9)
    for other in (P, SWAPS):
        with pytest.raises(ValueError, match=r"^r must be an array of numbers of shape \(2, 2\) or \(2, 2, 2\)$"):
            TabularMDP(other, sparse_r, 0.9)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 2)])
def test_rewards_that_are_not_finite_are_refused(shape: tuple[int, ...], wrong: float) -> None:
    rewards = np.zeros(shape)
    rewards[1, 1] = wrong
    sentence = "^r must hold finite rewards: it has NaN or infinite entries$"
    for form in STOCHASTIC_FORMS:
        with pytest.raises(ValueError, match=sentence):
            TabularMDP(in_form(P, form), rewards, 0.9, terminal=[0])
    with pytest.raises(ValueError, match=sentence):
        TabularMDP(in_form(P, "sparse"), [sp.csr_array(np.full((2, 2), wrong))] * 2, 0.9)


@pytest.mark.parametrize(
    "initial",
    [
        *[
            -1,
            2,
            0.0,
            1.0,
            True,
            "0",
            [0.5, 0.5, 0.0],
            [1.0],
            [[1.0, 0.0]],
            [0.5, 0.4],
            [1.5, -0.5],
            [np.nan, 1.0],
        ],
        [np.inf, 0.0],
        [True, False],
    ],
)
def test_a_start_that_is_none_is_refused(initial: Any) -> None:
    sentence = r"^initial must be a state in 0\.\.1 or 2 probabilities that sum to 1$"
    with pytest.raises(ValueError, match=sentence):
        TabularMDP(P, ZEROS, 0.9, initial=initial)


@pytest.mark.parametrize(
    ("terminal", "end"),
    [
        ([True], r", not a mask of shape \(1,\)$"),
        ([True, False, False], r", not a mask of shape \(3,\)$"),
        ([[True, False]], r", not a mask of shape \(1, 2\)$"),
        ([0.0, 1.0], r", not an array of shape \(2,\) and type float64$"),
        (["1"], r", not an array of shape \(1,\) and type <U1$"),
        ([[0, 1]], r", not an array of shape \(1, 2\) and type int64$"),
        ([2], "$"),
        ([0, -1], "$"),
    ],
)
def test_terminal_states_that_are_none_are_refused(terminal: Any, end: str) -> None:
    sentence = r"^terminal must be a mask of 2 bools or state numbers in 0\.\.1" + end
    with pytest.raises(ValueError, match=sentence):
        TabularMDP(P, ZEROS, 0.9, terminal=terminal)


def test_numbers_that_look_like_a_mask_are_refused() -> None:
    with pytest.raises(ValueError, match="give it as bools"):
        TabularMDP([[0], [1], [2]], np.zeros((3, 1)), 0.9, terminal=np.array([0, 0, 1]))
    assert TabularMDP([[0], [1], [2]], np.zeros((3, 1)), 0.9, terminal=[2, 0, 1]).terminal.all()
