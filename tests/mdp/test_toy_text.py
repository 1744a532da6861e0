"""Models read from Gymnasium: what the table says, checked by walking in the real environment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import scipy.sparse as sp

from holdfast.mdp import TabularMDP, q_star
from tests.mdp.literal import assert_near

GAMMA = 0.99


def make(name: str, **options: Any) -> Any:
    return gymnasium.make(name, **options).unwrapped


def stub(table: dict[int, dict[int, list[tuple[float, int, float, bool]]]], **attributes: Any) -> Any:
    """An environment that is nothing but its table."""
    return SimpleNamespace(P=table, **attributes)


def values_from_the_table(env: Any, gamma: float, sweeps: int) -> np.ndarray:
    """Q* of the table itself: an ending transition is worth its reward, whatever state it names."""
    n_states, n_actions = len(env.P), len(env.P[0])
    reward, going_on = np.zeros((n_states, n_actions)), np.zeros((n_states, n_actions, n_states))
    for s, a in np.ndindex(n_states, n_actions):
        for chance, successor, gain, terminated in env.P[s][a]:
            reward[s, a] += chance * gain
            going_on[s, a, successor] += 0.0 if terminated else chance
    q = np.zeros((n_states, n_actions))
    for _ in range(sweeps):
        q = reward + gamma * going_on @ q.max(axis=1)
    return q


def walk(env: Any, q: np.ndarray, start: int, gamma: float, limit: int) -> tuple[float, bool]:
    """The discounted return of the greedy policy in the environment, and whether it ended by itself."""
    env.s = state = start
    total, discount = 0.0, 1.0
    for _ in range(limit):
        state, reward, terminated, _, _ = env.step(int(q[state].argmax()))
        total += discount * float(reward)
        discount *= gamma
        if terminated:
            return total, True
    return total, False


@pytest.mark.parametrize(
    ("name", "options", "terminal"),
    [
        ("FrozenLake-v1", {"is_slippery": False}, [5, 7, 11, 12, 15]),
        ("FrozenLake-v1", {"is_slippery": True}, [5, 7, 11, 12, 15]),
        ("CliffWalking-v1", {}, [47]),
        ("CliffWalking-v1", {"is_slippery": True}, [47]),
        ("Taxi-v4", {}, [500]),
    ],
)
def test_optimal_values_are_those_of_the_table(name: str, options: dict[str, Any], terminal: list[int]) -> None:
    env = make(name, **options)
    mdp = TabularMDP.from_gymnasium(env, 0.9)
    assert np.flatnonzero(mdp.terminal).tolist() == terminal
    live = np.flatnonzero(~mdp.terminal)
    # After 200 sweeps, γ^200 < 1e-9 of the first values is left.
    assert_near(q_star(mdp)[live], values_from_the_table(env, 0.9, 200)[live], 1e-7)
    assert np.all(q_star(mdp)[mdp.terminal] == 0.0)


def test_a_lake_without_slipping_is_given_by_next_states() -> None:
    mdp = TabularMDP.from_gymnasium(make("FrozenLake-v1", is_slippery=False), GAMMA)
    assert mdp.P.shape == (16, 4)
    assert np.array_equal(mdp.P[0], [0, 4, 1, 0])  # left, down, right, up; the borders block
    assert np.array_equal(mdp.P[14], [13, 14, 15, 10])
    assert np.array_equal(mdp.r[14], [0.0, 0.0, 1.0, 0.0])
    assert np.array_equal(mdp.initial, np.eye(16)[0])


def test_a_slippery_lake_is_sparse() -> None:
    mdp = TabularMDP.from_gymnasium(make("FrozenLake-v1", is_slippery=True), GAMMA)
    # From the start, "left" slips up, left or down: two bumps and one step down.
    assert_near(mdp.P[0].toarray()[0], np.eye(16)[0] * 2 / 3 + np.eye(16)[4] / 3, 1e-12)
    # Beside the goal, "down" slips left, down (a bump) or right (into the goal, reward 1): r = 1/3.
    assert_near(mdp.P[1].toarray()[14], (np.eye(16)[13] + np.eye(16)[14] + np.eye(16)[15]) / 3, 1e-12)
    assert mdp.r[14, 1] == pytest.approx(1 / 3, abs=1e-12)
    assert mdp.outcome_reward[1].toarray()[14, 15] == pytest.approx(1.0, abs=1e-12)
    assert mdp.outcome_reward[1].toarray()[14, 13] == 0.0


def test_the_way_over_the_ice() -> None:
    env = make("FrozenLake-v1", is_slippery=False)
    q = q_star(TabularMDP.from_gymnasium(env, GAMMA))
    env.reset(seed=0)
    # Six steps to the goal: γ^5.
    assert walk(env, q, 0, GAMMA, 6) == (pytest.approx(0.99**5), True)
    assert q[0].max() == pytest.approx(0.99**5)


def test_the_mean_return_on_slippery_ice() -> None:
    env = make("FrozenLake-v1", is_slippery=True)
    q = q_star(TabularMDP.from_gymnasium(env, GAMMA))
    env.reset(seed=1)
    returns = [walk(env, q, 0, GAMMA, 2000)[0] for _ in range(1000)]
    # Four standard errors of the mean.
    assert abs(np.mean(returns) - q[0].max()) < 4.0 * np.std(returns) / 1000**0.5
    assert np.std(returns) < 0.4


def test_the_way_along_the_cliff() -> None:
    env = make("CliffWalking-v1")
    mdp = TabularMDP.from_gymnasium(env, 1.0)
    q = q_star(mdp)
    env.reset(seed=0)
    # Up, eleven to the right, down: 13 steps of −1.
    assert walk(env, q, 36, 1.0, 13) == (-13.0, True)
    assert q[36].max() == -13.0
    assert np.array_equal(mdp.initial, np.eye(48)[36])
    # "Right" from the start falls off the cliff, back to the start: −100, then −13.
    assert q[36, 1] == -113.0


def test_every_taxi_reaches_its_goal() -> None:
    env = make("Taxi-v4")
    mdp = TabularMDP.from_gymnasium(env, GAMMA)
    assert (mdp.n_states, mdp.n_actions) == (501, 6)
    assert np.array_equal(mdp.P[500], [500] * 6)
    assert mdp.initial is not None
    assert mdp.initial[500] == 0.0
    starts = np.flatnonzero(mdp.initial)
    assert len(starts) == 300  # 25 places, 4 × 3 pairs of passenger and goal
    q = q_star(mdp)
    env.reset(seed=0)
    for start in starts:
        total, arrived = walk(env, q, int(start), GAMMA, 20)
        assert arrived
        assert total == pytest.approx(q[start].max(), abs=1e-8)


def test_a_state_entered_both_ways_gets_a_terminal_state_beside_it() -> None:
    # 1 is entered from 0, where the episode goes on, and from itself, where it ends.
    env = stub(
        {
            0: {0: [(1.0, 1, 2.0, False)], 1: [(1.0, 0, 0.0, False)]},
            1: {0: [(1.0, 1, 4.0, True)], 1: [(1.0, 1, 8.0, True)]},
        }
    )
    mdp = TabularMDP.from_gymnasium(env, 0.5)
    assert np.array_equal(mdp.P, [[1, 0], [2, 2], [2, 2]])
    assert np.array_equal(mdp.terminal, [False, False, True])
    assert mdp.initial is None
    # V(1) = 8, V(0) = 2 + .5·8 = 6, to wait: .5·6 = 3.
    assert_near(q_star(mdp), np.array([[6.0, 3.0], [4.0, 8.0], [0.0, 0.0]]))


def test_ending_and_going_on_into_the_same_state() -> None:
    # A coin from 0: the episode ends in 1, or goes on in 1, from where 0 is a sure step; reward 2 where it ends.
    env = stub(
        {0: {0: [(0.5, 1, 2.0, True), (0.5, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 0.0, False)]}},
        initial_state_distrib=[1.0, 0.0],
    )
    mdp = TabularMDP.from_gymnasium(env, 0.5)
    assert np.array_equal(mdp.P[0].toarray(), [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert np.array_equal(mdp.initial, [1.0, 0.0, 0.0])
    # V(0) = 1 + .5·.5·V(1), V(1) = .5·V(0): V(0) = 1 + V(0)/8 = 8/7.
    assert_near(q_star(mdp), np.array([[8 / 7], [4 / 7], [0.0]]))


def test_what_leaves_a_terminal_state_does_not_count() -> None:
    # 1 is entered by ending only; its own row leads on to 2, which else is entered by ending only.
    env = stub(
        {
            0: {0: [(1.0, 1, 0.0, True)], 1: [(1.0, 2, 0.0, True)]},
            1: {0: [(1.0, 2, 5.0, False)], 1: [(1.0, 1, 5.0, False)]},
            2: {0: [(1.0, 2, 5.0, True)], 1: [(1.0, 2, 5.0, True)]},
        },
        initial_state_distrib=np.array([1.0, 0.0, 0.0]),
    )
    mdp = TabularMDP.from_gymnasium(env, 0.5)
    assert np.array_equal(mdp.terminal, [False, True, True])
    assert np.array_equal(mdp.P, [[1, 2], [1, 1], [2, 2]])
    assert np.all(mdp.reward[1:] == 0.0)


def test_what_leaves_a_state_that_proves_live_does_count() -> None:
    # 1 is also entered live (from 0), so that its live step into 2 counts, and 2 is live too.
    env = stub(
        {
            0: {0: [(1.0, 1, 0.0, True)], 1: [(1.0, 1, 0.0, False)]},
            1: {0: [(1.0, 2, 1.0, False)], 1: [(1.0, 2, 0.0, True)]},
            2: {0: [(1.0, 2, 5.0, True)], 1: [(1.0, 2, 5.0, True)]},
        }
    )
    mdp = TabularMDP.from_gymnasium(env, 0.5)
    assert np.array_equal(mdp.terminal, [False, False, False, True])
    # V(2) = 5, V(1) = 1 + .5·5 = 3.5, V(0) = .5·3.5.
    assert_near(q_star(mdp).max(axis=1), np.array([1.75, 3.5, 5.0, 0.0]))


def test_outcomes_that_share_a_next_state_count_by_their_mean() -> None:
    # From 0 to 1 with chance ¼ for 8 and ½ for 2, else stay for 4: r(0,·,1) = (¼·8 + ½·2) / ¾ = 4, r = 2+1+1 = 4.
    env = stub(
        {
            0: {0: [(0.25, 1, 8.0, False), (0.5, 1, 2.0, False), (0.25, 0, 4.0, False)]},
            1: {0: [(1.0, 1, 0.0, False), (0.0, 0, 99.0, True)]},  # what has no chance is no transition
        }
    )
    mdp = TabularMDP.from_gymnasium(env, 0.5)
    assert not mdp.terminal.any()
    assert isinstance(mdp.P[0], sp.csr_array)
    assert np.array_equal(mdp.P[0].toarray(), [[0.25, 0.75], [0.0, 1.0]])
    assert_near(mdp.outcome_reward[0].toarray(), np.array([[4.0, 4.0], [0.0, 0.0]]), 1e-12)
    assert_near(mdp.reward, np.array([[4.0], [0.0]]), 1e-12)


def test_an_environment_may_know_its_own_model() -> None:
    class Known:
        def tabular_mdp(self, gamma: float) -> TabularMDP:
            return TabularMDP([[0]], [[1.0]], gamma)

    assert TabularMDP.from_gymnasium(Known(), 0.25).gamma == 0.25


def test_wrappers_are_looked_through() -> None:
    wrapped = gymnasium.wrappers.TimeLimit(gymnasium.make("FrozenLake-v1"), 5)
    assert TabularMDP.from_gymnasium(wrapped, GAMMA).n_states == 16


@pytest.mark.parametrize(
    ("env", "name"),
    [
        (gymnasium.make("CartPole-v1"), "CartPoleEnv"),
        (stub({}), "SimpleNamespace"),
        (SimpleNamespace(P=None), "SimpleNamespace"),
        (SimpleNamespace(P=np.eye(3)), "SimpleNamespace"),
    ],
)
def test_an_environment_without_a_table_is_refused(env: Any, name: str) -> None:
    sentence = (
        r"^env must expose its transition table P\[s\]\[a\], as Gymnasium's toy_text environments do; "
        rf"{name} does not$"
    )
    with pytest.raises(ValueError, match=sentence):
        TabularMDP.from_gymnasium(env, GAMMA)


def test_a_wrong_discount_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^gamma must be a number in \[0, 1\], not 1\.5$"):
        TabularMDP.from_gymnasium(make("FrozenLake-v1"), 1.5)


def test_a_table_whose_chances_do_not_sum_to_1_is_refused() -> None:
    env = stub({0: {0: [(0.5, 0, 0.0, False), (0.25, 1, 0.0, False)]}, 1: {0: [(1.0, 1, 0.0, False)]}})
    with pytest.raises(
        ValueError, match=r"^P must have rows that sum to 1: the row of state 0, action 0 sums to 0\.75$"
    ):
        TabularMDP.from_gymnasium(env, GAMMA)


class Table:
    """An environment that is nothing but its transition table."""

    def __init__(self, P: dict[int, Any], initial: list[float] | None = None) -> None:
        self.P = P
        if initial is not None:
            self.initial_state_distrib = np.array(initial)


def test_a_start_state_is_live_even_if_only_endings_lead_to_it() -> None:
    bandit = TabularMDP.from_gymnasium(Table({0: {0: [(1.0, 0, 1.0, True)]}}, [1.0]), 0.5)
    assert q_star(bandit)[0, 0] == pytest.approx(1.0)
    two_steps = Table({0: {0: [(1.0, 1, 2.0, False)]}, 1: {0: [(1.0, 0, 4.0, True)]}}, [1.0, 0.0])
    # 2 + 0.5 · 4, and 4 from the second state.
    assert q_star(TabularMDP.from_gymnasium(two_steps, 0.5))[:2, 0] == pytest.approx([4.0, 4.0])


def test_without_a_start_not_every_state_can_be_terminal() -> None:
    assert q_star(TabularMDP.from_gymnasium(Table({0: {0: [(1.0, 0, 1.0, True)]}}), 0.5))[0, 0] == pytest.approx(
        1.0
    )


@pytest.mark.parametrize(
    "P",
    [
        {0: {0: [(0.5, 0, 1.0, False)]}},
        {0: {0: [(0.5, 0, 1.0, False), (0.5, 1, 0.0, False)]}, 1: {0: []}},
    ],
)
def test_a_table_that_loses_probability_is_refused(P: dict[int, Any]) -> None:
    with pytest.raises(ValueError, match="rows that sum to 1"):
        TabularMDP.from_gymnasium(Table(P), 0.9)


def test_a_wrapper_that_may_change_the_problem_is_refused() -> None:
    scaled = gymnasium.wrappers.TransformReward(gymnasium.make("FrozenLake-v1"), lambda reward: 10.0 * reward)
    with pytest.raises(ValueError, match="must not be wrapped in TransformReward"):
        TabularMDP.from_gymnasium(scaled, GAMMA)


def test_tabular_mdp_must_be_a_model() -> None:
    with pytest.raises(TypeError, match="must return a TabularMDP"):
        TabularMDP.from_gymnasium(SimpleNamespace(tabular_mdp=lambda gamma: gamma), GAMMA)


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        (Table({1: {0: [(1.0, 1, 0.0, False)]}}), r"the states 0\.\.0 as its keys"),
        (Table({0: {0: [(1.0, 0, 0.0, False)]}, 1: {1: [(1.0, 0, 0.0, False)]}}), "the same actions"),
        (Table({0: {0: [(1.0, 0, 0.0, False)]}, 1: {}}), "the same actions"),
        (Table({0: {0: [(1.0, 5, 0.0, False)]}}), r"next states in 0\.\.0"),
        (Table({0: {0: [(-0.5, 0, 7.0, False), (1.0, 0, 1.0, False)]}}), "negative, NaN"),
        (Table({0: {0: [(float("nan"), 0, 7.0, False), (1.0, 0, 1.0, False)]}}), "negative, NaN"),
        (Table({0: {0: []}}), "have no next state"),
        (Table({0: {0: [(1.0, 0, 0.0, False)]}}, [0.5, 0.5]), r"initial_state_distrib must have shape \(1,\)"),
    ],
)
def test_broken_tables_are_refused_in_one_sentence(env: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        TabularMDP.from_gymnasium(env, GAMMA)


def test_without_a_start_a_state_that_is_left_again_is_live() -> None:
    round_trip = Table({0: {0: [(1.0, 1, 2.0, False)]}, 1: {0: [(1.0, 0, 4.0, True)]}})
    assert q_star(TabularMDP.from_gymnasium(round_trip, 0.5))[:2, 0] == pytest.approx([4.0, 4.0])
