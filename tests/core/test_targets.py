import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from holdfast.core.decomposition import sub_transitions
from holdfast.core.history import PartialHistory
from holdfast.core.targets import (
    STATE_VALUES,
    all_persistence_target,
    best_value,
    bootstrapped_return,
    constant_value,
    double_state_value,
    empirical_all_persistence,
    empirical_bootstrap,
    empirical_optimality,
    options_state_value,
    primitive_state_value,
    skip_target,
    state_value,
    toward,
    value_bounds,
    window_target,
)

# Three states, two actions, three persistences. Nothing may read the values of state 0, where histories start.
# V(1) = 7 over options and 2 over primitive actions; V(2) = 9 and 8.
Q = np.array(
    [
        [[100.0, 100.0, 100.0], [100.0, 100.0, 100.0]],
        [[1.0, 2.0, 3.0], [2.0, 7.0, -1.0]],
        [[5.0, 6.0, -4.0], [8.0, -2.0, 9.0]],
    ]
)


def walk(rewards=(3.0, -2.0), action=0, terminated=False):
    """0 → 1 → 2 by default; γ = .5 makes its reward 3 after one step and 3 - 1 = 2 after two."""
    return PartialHistory(np.arange(len(rewards) + 1), action, np.array(rewards), terminated)


# --- formulas ---


def test_bootstrapped_return_by_hand():
    # 3 + .5·7 = 6.5; beyond a terminal there is nothing.
    assert bootstrapped_return(3.0, 0.5, 7.0, False) == 6.5
    assert bootstrapped_return(3.0, 0.5, 7.0, True) == 3.0
    result = bootstrapped_return(
        np.array([3.0, 3.0]), np.array([0.5, 0.5]), np.array([7.0, 7.0]), np.array([False, True])
    )
    np.testing.assert_array_equal(result, [6.5, 3.0])


@pytest.mark.parametrize(
    ("rest", "terminated", "expected"),
    # V(1) = 7, Q(1,1,·) = 2, 7, -1: 3 + .5·7 complete; 3 + .5·2 and 3 + .5·(-1) with one and three steps to go.
    [(0, False, 6.5), (1, False, 4.0), (3, False, 2.5), (0, True, 3.0), (2, True, 3.0)],
)
def test_window_target_by_hand(rest, terminated, expected):
    assert window_target(3.0, 0.5, rest, best_value(Q[1], 3), Q[1, 1], terminated) == expected


def test_best_value_and_toward_by_hand():
    assert [best_value(Q[1], n) for n in (1, 2, 3)] == [2.0, 7.0, 7.0]
    assert toward(8.0, 4.0, 0.25) == 7.0


def test_all_persistence_target_by_hand():
    # complete and live:      1 + .5  · 10 (V)   = 6
    # complete and terminal:  1
    # cut short and live:     2 + .25 · 4  (held) = 3
    # cut short and terminal: 2
    targets = all_persistence_target(
        reward=np.array([1.0, 1.0, 2.0, 2.0]),
        discount=np.array([0.5, 0.5, 0.25, 0.25]),
        complete=np.array([True, True, False, False]),
        next_state_value=np.array([10.0, 10.0, 99.0, 99.0]),
        next_held_value=np.array([-99.0, -99.0, 4.0, 4.0]),
        terminated=np.array([False, True, False, True]),
    )
    np.testing.assert_array_equal(targets, [6.0, 1.0, 3.0, 2.0])


def test_all_persistence_target_takes_matrices_numbers_and_stored_done_flags():
    complete = np.array([[True, False], [False, True]])
    done = np.array([[0, 0], [1, 1]], dtype=np.uint8)
    targets = all_persistence_target(1.0, 0.5, complete, 10.0, 4.0, done)
    np.testing.assert_array_equal(targets, [[6.0, 3.0], [1.0, 1.0]])
    assert all_persistence_target(1.0, 0.5, True, 10.0, 4.0, False) == 6.0
    assert all_persistence_target(1.0, 0.5, False, 10.0, 4.0, True) == 1.0


# --- V(s) ---


def test_state_values_by_hand():
    np.testing.assert_array_equal(options_state_value(Q), [100.0, 7.0, 9.0])
    np.testing.assert_array_equal(primitive_state_value(Q), [100.0, 2.0, 8.0])
    assert options_state_value(Q[1]) == 7.0
    assert primitive_state_value(Q[1]) == 2.0


def test_state_value_by_name():
    assert STATE_VALUES == ("options", "primitive")
    assert state_value(Q[1]) == 7.0
    assert state_value(Q[1], "options") == 7.0
    assert state_value(Q[1], "primitive") == 2.0
    with pytest.raises(ValueError, match=r"^target_value must be one of 'options', 'primitive', not 'double'$"):
        state_value(Q[1], "double")


def test_double_value_by_hand():
    # Chosen by the first, valued by the second: Q[1] is largest at (1,2), where Q[2] is -2;
    # Q[2] is largest at (1,3), where Q[1] is -1.
    assert double_state_value(Q[1], Q[2]) == -2.0
    assert double_state_value(Q[2], Q[1]) == -1.0
    np.testing.assert_array_equal(double_state_value(Q[[1, 2]], Q[[2, 1]]), [-2.0, -1.0])
    np.testing.assert_array_equal(double_state_value(Q[None, [1, 2]], Q[None, [2, 1]]), [[-2.0, -1.0]])


def test_skip_target_by_hand():
    online, target = np.array([1.0, 3.0, 2.0]), np.array([9.0, 4.0, 7.0])
    # The second action is best online, and worth 4 elsewhere: 2 + ¼·4.
    assert skip_target(2.0, 0.25, online, target, False) == 3.0
    assert skip_target(2.0, 0.25, online, target, True) == 2.0
    several = skip_target(
        np.array([1.0, 0.0]),
        np.array([0.5, 1.0]),
        np.stack([online, -online]),
        np.stack([target, target]),
        np.array([0.0, 0.0]),
    )
    np.testing.assert_array_equal(several, [1.0 + 0.5 * 4.0, 9.0])


def test_double_value_breaks_ties_by_the_first_option():
    online = np.array([[0.0, 5.0], [5.0, 5.0]])
    assert double_state_value(online, np.array([[1.0, 2.0], [3.0, 4.0]])) == 2.0


TABLES = arrays(
    np.float64,
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4)),
    elements=st.integers(-50, 50).map(float),
)


@given(TABLES)
def test_state_values_are_maxima_over_plain_loops(q):
    n_states, n_actions, k_max = q.shape
    for state in range(n_states):
        options = [q[state, action, k - 1] for action in range(n_actions) for k in range(1, k_max + 1)]
        assert options_state_value(q)[state] == max(options)
        assert primitive_state_value(q)[state] == max(q[state, action, 0] for action in range(n_actions))


@given(TABLES, st.integers(0, 2**32 - 1))
def test_double_value_is_the_other_tables_entry_and_never_above_its_maximum(online, seed):
    target = np.random.default_rng(seed).normal(size=online.shape)
    values = double_state_value(online, target)
    for state in range(len(online)):
        action, position = np.unravel_index(np.argmax(online[state]), online[state].shape)
        assert values[state] == target[state, action, position]
    assert np.all(values <= options_state_value(target))
    np.testing.assert_array_equal(double_state_value(online, online), options_state_value(online))


# --- the empirical operators, by hand ---


def test_empirical_optimality_by_hand():
    # k=1: 3 + .5·V(1) = 3 + 3.5. k=2: 2 + .25·V(2) = 2 + 2.25.
    assert empirical_optimality(Q, walk(), 1, 0.5) == 6.5
    assert empirical_optimality(Q, walk(), 2, 0.5) == 4.25


def test_empirical_optimality_reads_primitive_values_on_request():
    # k=1: 3 + .5·2. k=2: 2 + .25·8.
    assert empirical_optimality(Q, walk(), 1, 0.5, "primitive") == 4.0
    assert empirical_optimality(Q, walk(), 2, 0.5, "primitive") == 4.0


def test_only_the_end_of_a_terminated_history_is_terminal():
    assert empirical_optimality(Q, walk(terminated=True), 1, 0.5) == 6.5
    assert empirical_optimality(Q, walk(terminated=True), 2, 0.5) == 2.0


def test_empirical_bootstrap_by_hand():
    # κ=2, k=3: 2 + .25·Q(2,a,1), which is 5 for action 0 and 8 for action 1.
    assert empirical_bootstrap(Q, walk(), 3, 0.5) == 3.25
    assert empirical_bootstrap(Q, walk(action=1), 3, 0.5) == 4.0
    # κ=1: 3 + .5·Q(1,0,k-1), k=2 and 3.
    assert empirical_bootstrap(Q, walk([3.0]), 2, 0.5) == 3.5
    assert empirical_bootstrap(Q, walk([3.0]), 3, 0.5) == 4.0


def test_beyond_a_terminal_there_is_only_the_reward():
    assert empirical_bootstrap(Q, walk(terminated=True), 3, 0.5) == 2.0
    assert empirical_bootstrap(Q, walk([3.0], terminated=True), 2, 0.5) == 3.0
    assert empirical_bootstrap(Q, walk([3.0], terminated=True), 3, 0.5) == 3.0


@pytest.mark.parametrize(
    ("gamma", "terminated", "kind", "expected"),
    [
        (0.5, False, "options", [6.5, 4.25, 3.25]),
        (0.5, False, "primitive", [4.0, 4.0, 3.25]),
        (0.5, True, "options", [6.5, 2.0, 2.0]),
        (0.5, True, "primitive", [4.0, 2.0, 2.0]),
        (0.0, False, "options", [3.0, 3.0, 3.0]),
        (0.0, True, "options", [3.0, 3.0, 3.0]),
        # γ=1: 3 + 7; 3 - 2 + 9; 3 - 2 + Q(2,0,1).
        (1.0, False, "options", [10.0, 10.0, 6.0]),
        (1.0, True, "options", [10.0, 1.0, 1.0]),
    ],
)
def test_empirical_all_persistence_by_hand(gamma, terminated, kind, expected):
    targets = empirical_all_persistence(Q, walk(terminated=terminated), gamma, kind)
    assert targets.dtype == np.float64
    np.testing.assert_array_equal(targets, expected)


def test_a_single_step_informs_every_persistence():
    np.testing.assert_array_equal(empirical_all_persistence(Q, walk([3.0]), 0.5), [6.5, 3.5, 4.0])
    np.testing.assert_array_equal(empirical_all_persistence(Q, walk([3.0], terminated=True), 0.5), [3.0, 3.0, 3.0])


def test_a_history_longer_than_k_max_uses_its_first_steps():
    # K=1, κ=2: only k=1 exists, and its window is not the terminal one: 3 + .5·2.
    np.testing.assert_array_equal(empirical_all_persistence(Q[..., :1], walk(terminated=True), 0.5), [4.0])


def test_k_max_one_is_the_target_of_q_learning():
    # r + γ max_a Q(s',a) with a table of (state, action): 3 + .5·max(1, 2).
    table = Q[..., :1]
    for kind in STATE_VALUES:
        targets = empirical_all_persistence(table, walk([3.0]), 0.5, kind)
        np.testing.assert_array_equal(targets, [3.0 + 0.5 * max(table[1, 0, 0], table[1, 1, 0])])
        np.testing.assert_array_equal(targets, [4.0])


def test_operators_leave_the_table_alone():
    table = Q.copy()
    table.flags.writeable = False
    empirical_all_persistence(table, walk(), 0.5)
    np.testing.assert_array_equal(table, Q)


# --- the empirical operators, against a literal twin ---


def literal_targets(q, states, action, rewards, terminated, gamma):
    """Ĥ^κ word for word in plain Python: T̂* where k ≤ κ, T̂^κ where k > κ, terminal states worth 0."""
    n_actions, k_max = len(q[0]), len(q[0][0])
    kappa = len(rewards)
    targets = []
    for k in range(1, k_max + 1):
        total = 0.0
        for step in range(min(k, kappa)):
            total += gamma**step * rewards[step]
        if k <= kappa:
            end = states[k]
            value = max(q[end][b][m - 1] for b in range(n_actions) for m in range(1, k_max + 1))
            over = terminated and k == kappa
        else:
            end = states[kappa]
            value = q[end][action][(k - kappa) - 1]
            over = terminated
        targets.append(total + (0.0 if over else gamma ** min(k, kappa) * value))
    return targets


@st.composite
def situations(draw):
    n_states, n_actions, k_max = draw(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 6)))
    q = draw(arrays(np.float64, (n_states, n_actions, k_max), elements=st.floats(-100, 100, width=32)))
    kappa = draw(st.integers(1, 8))
    states = draw(st.lists(st.integers(0, n_states - 1), min_size=kappa + 1, max_size=kappa + 1))
    rewards = draw(st.lists(st.floats(-10, 10, width=32), min_size=kappa, max_size=kappa))
    action = draw(st.integers(0, n_actions - 1))
    history = PartialHistory(np.array(states), action, np.array(rewards), draw(st.booleans()))
    return q, history, draw(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0)))


@given(situations())
def test_all_persistence_targets_equal_the_literal_twin(situation):
    q, history, gamma = situation
    expected = literal_targets(
        q.tolist(), history.states.tolist(), history.action, history.rewards.tolist(), history.terminated, gamma
    )
    result = empirical_all_persistence(q, history, gamma)
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-10)
    for index, target in enumerate(result):
        k = index + 1
        one = (
            empirical_optimality(q, history, k, gamma)
            if k <= history.kappa
            else empirical_bootstrap(q, history, k, gamma)
        )
        assert one == target
        assert type(one) is float


@given(situations())
def test_targets_of_replayed_tuples_are_the_operator_at_their_start(situation):
    # A tuple of D_k that starts at step i says what Ĥ says of (s_{t+i}, a, k) from the history left there.
    q, history, gamma = situation
    k_max = q.shape[-1]
    for row in sub_transitions(history, k_max, gamma):
        end = history.states[row.end]
        held = q[end, history.action, row.k - row.length - 1] if row.length < row.k else 1e9
        target = all_persistence_target(
            row.reward, gamma**row.length, row.length == row.k, q[end].max(), held, row.done
        )
        operator = empirical_all_persistence(q, history.window(row.start, history.kappa), gamma)
        assert target == pytest.approx(operator[row.k - 1], rel=1e-12, abs=1e-10)


@given(situations(), st.integers(0, 2**32 - 1))
def test_the_operator_contracts_each_component_by_its_own_power_of_gamma(situation, seed):
    q, history, gamma = situation
    other = q + np.random.default_rng(seed).normal(size=q.shape)
    distance = np.max(np.abs(q - other))
    moved = np.abs(empirical_all_persistence(q, history, gamma) - empirical_all_persistence(other, history, gamma))
    for index, gap in enumerate(moved):
        assert gap <= gamma ** min(index + 1, history.kappa) * distance + 1e-10


# --- the fixed point on a deterministic chain ---

GOAL = 3


def step(state, action):
    """States 0..3, 3 terminal; 0 is left, 1 is right; -1 a step, +10 on the goal; a wall at the left end."""
    following = max(state - 1, 0) if action == 0 else state + 1
    return following, (10.0 if following == GOAL else -1.0)


def roll(state, action, steps):
    states, rewards = [state], []
    while len(rewards) < steps and states[-1] != GOAL:
        following, reward = step(states[-1], action)
        states.append(following)
        rewards.append(reward)
    return states, rewards


def optimal_table(k_max, gamma):
    """Q*_K by its meaning: hold the action for k steps (or to the goal), then behave optimally.

    Going right is optimal, so V* is known: at γ = .5, V(2) = 10, V(1) = -1 + 5 = 4, V(0) = -1 + 2 = 1.
    """
    values = [0.0, 0.0, 10.0, 0.0]
    values[1] = -1.0 + gamma * values[2]
    values[0] = -1.0 + gamma * values[1]
    table = np.zeros((4, 2, k_max))
    for state, action, k in itertools.product(range(3), range(2), range(1, k_max + 1)):
        states, rewards = roll(state, action, k)
        held = sum(gamma**index * reward for index, reward in enumerate(rewards))
        table[state, action, k - 1] = held + gamma ** len(rewards) * values[states[-1]]
    return table


def test_the_optimal_table_by_hand():
    table = optimal_table(3, 0.5)
    # Right: 1 from state 0 for every k; the goal is passed at k = 3, and then nothing follows.
    np.testing.assert_array_equal(table[:3, 1], [[1.0, 1.0, 1.0], [4.0, 4.0, 4.0], [10.0, 10.0, 10.0]])
    # Left from 1: -1 + .5·1 = -.5; -1.5 + .25·1 = -1.25; -1.75 + .125·1 = -1.625.
    np.testing.assert_array_equal(table[1, 0], [-0.5, -1.25, -1.625])


@pytest.mark.parametrize("kind", STATE_VALUES)
@pytest.mark.parametrize("k_max", [1, 2, 3, 6])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 1.0])
def test_the_optimal_table_is_a_fixed_point_for_every_kappa(gamma, k_max, kind):
    table = optimal_table(k_max, gamma)
    assert np.all(np.diff(table, axis=-1) <= 1e-12)
    for state, action, steps in itertools.product(range(3), range(2), range(1, k_max + 3)):
        states, rewards = roll(state, action, steps)
        history = PartialHistory(np.array(states), action, np.array(rewards), states[-1] == GOAL)
        targets = empirical_all_persistence(table, history, gamma, kind)
        np.testing.assert_allclose(targets, table[state, action], rtol=0, atol=1e-12)


def test_repeating_the_operator_finds_the_optimal_table_from_anywhere():
    # γ^25 ≈ 3e-8 at .5, times an initial distance of under 30.
    gamma, k_max = 0.5, 3
    for steps in (1, 2, 3):
        table = np.random.default_rng(0).normal(size=(4, 2, k_max))
        for _ in range(25):
            table = np.array(
                [
                    [
                        empirical_all_persistence(
                            table, PartialHistory(states, action, rewards, states[-1] == GOAL), gamma
                        )
                        for action in range(2)
                        for states, rewards in [roll(state, action, steps)]
                    ]
                    for state in range(3)
                ]
                + [np.zeros((2, k_max))]
            )
        np.testing.assert_allclose(table, optimal_table(k_max, gamma), rtol=0, atol=1e-6)


# --- errors ---


@pytest.mark.parametrize("k", [0, -1, 3])
def test_optimality_needs_a_k_that_was_executed(k):
    with pytest.raises(ValueError, match=rf"^k must be in 1\.\.kappa = 2 to be read off the history, not {k}$"):
        empirical_optimality(Q, walk(), k, 0.5)


@pytest.mark.parametrize("k", [0, 1, 2, 4])
def test_bootstrap_needs_a_k_beyond_the_history_and_within_the_table(k):
    with pytest.raises(ValueError, match=rf"^k must be in kappa\+1 = 3\.\.k_max = 3, not {k}$"):
        empirical_bootstrap(Q, walk(), k, 0.5)


@pytest.mark.parametrize("gamma", [-0.5, 1.5])
def test_operators_check_the_discount(gamma):
    sentence = rf"^gamma must be a number in \[0, 1\], not {gamma}$"
    with pytest.raises(ValueError, match=sentence):
        empirical_optimality(Q, walk(), 1, gamma)
    with pytest.raises(ValueError, match=sentence):
        empirical_bootstrap(Q, walk(), 3, gamma)
    with pytest.raises(ValueError, match=sentence):
        empirical_all_persistence(Q, walk(), gamma)


def test_operators_check_the_kind_of_value():
    sentence = "^target_value must be one of 'options', 'primitive', not 'max'$"
    with pytest.raises(ValueError, match=sentence):
        empirical_optimality(Q, walk(), 1, 0.5, "max")
    with pytest.raises(ValueError, match=sentence):
        empirical_all_persistence(Q, walk(), 0.5, "max")


@pytest.mark.parametrize(
    ("q", "states", "action", "sentence"),
    [
        (np.zeros((2, 2)), [0, 1], 0, r"q must be a table \(S, A, K\)"),
        (np.zeros((2, 1, 1)), [0, -1], 0, r"whole numbers in 0\.\.1, the rows of q, as states"),
        (np.zeros((2, 1, 1)), [0, 2], 0, r"whole numbers in 0\.\.1, the rows of q, as states"),
        (np.zeros((2, 1, 1)), [0.5, 1.0], 0, r"whole numbers in 0\.\.1, the rows of q, as states"),
        (np.zeros((2, 1, 1)), [0, 1], 3, r"an action in 0\.\.0, not 3"),
    ],
)
def test_a_history_that_does_not_fit_the_table_is_refused(
    q: np.ndarray, states: list[float], action: int, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        empirical_all_persistence(q, PartialHistory(np.array(states), action, [1.0]), 0.9)


def test_what_the_table_says_of_a_terminal_state_is_never_read() -> None:
    q = np.full((2, 1, 2), np.nan)
    history = PartialHistory(np.array([0, 1]), 0, [3.0], terminated=True)
    assert empirical_all_persistence(q, history, 0.9).tolist() == [3.0, 3.0]
    assert all_persistence_target(3.0, 0.9, np.array([True, False]), np.nan, np.nan, True).tolist() == [3.0, 3.0]


# --- bounds ---


def test_value_bounds_by_hand():
    assert value_bounds(-1.0, 0.0, 0.5) == (-2.0, 0.0)
    assert value_bounds(-1.0, 3.0, 0.75) == (-4.0, 12.0)
    assert value_bounds(-1.0, 3.0, 0.0) == (-1.0, 3.0)
    assert value_bounds(-1.0, 0.0, 1.0) == (-np.inf, 0.0)
    assert value_bounds(0.0, 2.0, 1.0) == (0.0, np.inf)
    assert value_bounds(0.0, 0.0, 1.0) == (0.0, 0.0)


@given(st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=30), st.floats(0.0, 0.99))
def test_no_return_leaves_its_bounds(rewards, gamma):
    low, high = value_bounds(min(0.0, *rewards), max(0.0, *rewards), gamma)
    total = sum(gamma**step * reward for step, reward in enumerate(rewards))
    assert low - 1e-9 <= total <= high + 1e-9


# --- where values begin ---


def test_the_constant_value_by_hand():
    # −1 for ever at γ = ½ is −2; an end in every fourth step leaves ½ · ¾ of it: 1 / (1 − 3/8) = 8/5.
    assert constant_value(-1.0, 0.0, 0.5) == -2.0
    assert constant_value(1.0, 0.25, 0.5) == 1.6
    assert constant_value(3.0, 1.0, 0.99) == 3.0
    assert constant_value(-1.0, 0.25, 1.0) == -4.0
    assert constant_value(-1.0, 0.0, 1.0) == 0.0


@given(st.lists(st.tuples(st.floats(-5.0, 5.0), st.booleans()), min_size=1, max_size=30), st.floats(0.0, 0.99))
def test_the_constant_value_is_the_mean_of_its_own_targets_within_the_bounds(steps, gamma):
    rewards, ends = np.array([reward for reward, _ in steps]), np.array([end for _, end in steps])
    value = constant_value(rewards.mean(), ends.mean(), gamma)
    targets = [bootstrapped_return(reward, gamma, value, end) for reward, end in steps]
    assert np.mean(targets) == pytest.approx(value, abs=1e-9)
    low, high = value_bounds(min(0.0, *rewards), max(0.0, *rewards), gamma)
    assert low - 1e-9 <= value <= high + 1e-9
