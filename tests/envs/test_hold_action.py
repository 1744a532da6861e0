"""Held for k steps, an environment is the k-persistent decision process, to every learner and every tool."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import scipy.sparse as sp
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, RecordVideo, RenderCollection, TimeLimit
from gymnasium.wrappers.vector import DictInfoToList
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3 import DQN
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import holdfast
from holdfast.deep import OptionReplayBuffer
from holdfast.envs import GridWorld, HoldAction, make_env
from holdfast.mdp import TabularMDP, persistent_kernel, persistent_mdp, persistent_reward, q_star
from holdfast.tabular import QLearning

GRIDS = ("cliff", "bridge", "zigzag", "open", "sync-grid", "frozen-lake")
ENDS = ("terminated", "truncated", "both")


class Script(gymnasium.Env[Any, Any]):
    """Pays the rewards of a list, then ends; shows the time, always in the same array.

    It refuses steps beyond the end, overwrites the action it is given, and reuses the info it gives.
    """

    SPACES: dict[str, spaces.Space[Any]] = {  # noqa: RUF012 - never written
        "box": spaces.Box(-1.0, 100.0, (2,), np.float32),
        "dict": spaces.Dict({"time": spaces.Box(-1.0, 100.0, (2,), np.float32), "odd": spaces.Discrete(2)}),
        "discrete": spaces.Discrete(101),
    }

    def __init__(
        self, rewards: Any, end: str = "terminated", kind: str = "box", box_actions: bool = False
    ) -> None:
        self.rewards, self.end, self.kind = list(rewards), end, kind
        self.observation_space = self.SPACES[kind]
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32) if box_actions else spaces.Discrete(5)
        self.buffer = np.zeros(2, np.float32)
        self.info: dict[str, Any] = {}
        self.actions: list[float] = []
        self.running = False

    def observe(self) -> Any:
        self.buffer[:] = self.time, -self.time / 100
        shown = {"box": self.buffer, "dict": {"time": self.buffer, "odd": self.time % 2}, "discrete": self.time}
        return shown[self.kind]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time, self.running, self.actions = 0, True, []
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.running, "a finished episode was stepped"
        self.actions.append(float(np.asarray(action).sum()))
        if isinstance(action, np.ndarray):
            action += 1.0
        reward = self.rewards[self.time]
        self.time += 1
        over = self.time == len(self.rewards)
        self.running = not over
        self.info["time"] = self.time
        terminated, truncated = over and self.end != "truncated", over and self.end != "terminated"
        return self.observe(), reward, terminated, truncated, self.info


def times(observations: Any) -> list[int]:
    """When a script's observations were made."""
    shown = [seen["time"] if isinstance(seen, dict) else seen for seen in observations]
    return [int(np.ravel(time)[0]) for time in shown]


# The record of a hold --------------------------------------------------------------------------------------


def test_a_hold_by_hand() -> None:
    env = HoldAction(Script([1.0, 2.0, 4.0, 8.0, 16.0], "truncated"), k=3, gamma=0.5)
    begin, info = env.reset()
    assert info == {}
    observation, reward, terminated, truncated, info = env.step(2)
    assert (observation.tolist(), reward, terminated, truncated) == ([3.0, np.float32(-0.03)], 3.0, False, False)
    hold = info.pop("hold")
    assert info == {"time": 3}
    assert list(hold) == ["observations", "rewards", "infos", "length", "discount"]
    assert times(hold["observations"]) == [1, 2, 3]
    assert hold["observations"][-1] is observation
    assert (hold["rewards"], hold["length"], hold["discount"]) == ((1.0, 2.0, 4.0), 3, 0.125)
    assert hold["infos"] == ({"time": 1}, {"time": 2}, {"time": 3})

    observation, reward, terminated, truncated, info = env.step(4)
    assert (times([observation]), reward, terminated, truncated) == ([5], 16.0, False, True)
    assert (info["hold"]["rewards"], info["hold"]["length"], info["hold"]["discount"]) == ((8.0, 16.0), 2, 0.25)
    assert env.unwrapped.actions == [2, 2, 2, 4, 4]
    assert times([begin, *hold["observations"]]) == [0, 1, 2, 3]


@given(
    rewards=st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=14),
    k=st.integers(1, 6),
    gamma=st.floats(0, 1),
    end=st.sampled_from(ENDS),
    kind=st.sampled_from(sorted(Script.SPACES)),
    box_actions=st.booleans(),
)
def test_episodes_fall_into_holds(
    rewards: list[float], k: int, gamma: float, end: str, kind: str, box_actions: bool
) -> None:
    env = HoldAction(Script(rewards, end, kind, box_actions), k, gamma)
    for _ in range(2):
        env.reset()
        given: list[Any] = []
        for first in range(0, len(rewards), k):
            action = np.array([len(given) % 5], np.float32) if box_actions else len(given) % 5
            length = min(k, len(rewards) - first)
            given += [len(given) % 5] * length
            observation, reward, terminated, truncated, info = env.step(action)
            assert env.observation_space.contains(observation)
            hold, window = info["hold"], rewards[first : first + length]
            assert times(hold["observations"]) == [*range(first + 1, first + length + 1)]
            assert [step["time"] for step in hold["infos"]] == times(hold["observations"])
            assert hold["rewards"] == tuple(window)
            assert hold["length"] == length
            assert hold["discount"] == pytest.approx(gamma**length)
            assert reward == pytest.approx(sum(gamma**i * r for i, r in enumerate(window)), abs=1e-9)
            over = first + length == len(rewards)
            assert (terminated, truncated) == (over and end != "truncated", over and end != "terminated")
            assert env.unwrapped.actions == given


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("k", "position"), [(k, position) for k in range(1, 6) for position in range(1, k + 1)])
def test_an_end_at_every_position_stops_the_hold_at_once(k: int, position: int, end: str) -> None:
    env = HoldAction(Script([1.0] * (k + position), end), k, gamma=0.5)
    env.reset()
    assert env.step(0)[2:4] == (False, False)
    _, reward, terminated, truncated, info = env.step(0)
    assert (terminated, truncated) == (end != "truncated", end != "terminated")
    assert info["hold"]["length"] == position == info["time"] - k
    assert reward == 2 - 2 * 0.5**position
    assert info["hold"]["discount"] == 0.5**position


def test_a_hold_may_be_longer_than_any_episode() -> None:
    env = HoldAction(Script([1.0] * 4), k=10**12)
    env.reset()
    _, reward, terminated, _, info = env.step(0)
    assert (reward, terminated, info["hold"]["length"], info["hold"]["discount"]) == (4.0, True, 4, 1.0)


def test_without_discount_only_the_first_reward_counts() -> None:
    env = HoldAction(Script([3.0, 5.0, 7.0]), k=2, gamma=0.0)
    env.reset()
    _, reward, *_, info = env.step(0)
    assert (reward, info["hold"]["rewards"], info["hold"]["discount"]) == (3.0, (3.0, 5.0), 0.0)


def test_an_environment_may_write_into_the_action_it_is_given() -> None:
    env = HoldAction(Script([0.0] * 3, box_actions=True), k=3)
    env.reset()
    action = np.array([5.0], np.float32)
    env.step(action)
    assert env.unwrapped.actions == [5.0, 5.0, 5.0]
    assert action == 5.0


def test_the_environments_own_entry_of_that_name_stays_in_the_steps_infos() -> None:
    inner = HoldAction(Script([1.0, 2.0, 4.0, 8.0, 16.0]), k=2, gamma=0.5)
    env = HoldAction(inner, k=2, gamma=0.25)
    whole = HoldAction(Script([1.0, 2.0, 4.0, 8.0, 16.0]), k=4, gamma=0.5)
    env.reset()
    whole.reset()
    for _ in range(2):
        nested, at_once = env.step(1), whole.step(1)
        assert data_equivalence(nested[:4], at_once[:4], exact=True)
        parts = [step["hold"]["rewards"] for step in nested[4]["hold"]["infos"]]
        assert sum(parts, ()) == at_once[4]["hold"]["rewards"]


# k = 1, and undiscounted sums ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "Taxi-v4", "holdfast/ZigZag-v0"])
def test_held_for_one_step_it_is_the_environment_itself(name: str) -> None:
    if name == "Taxi-v4" and name not in gymnasium.registry:
        name = "Taxi-v3"
    plain, held = gymnasium.make(name), HoldAction(gymnasium.make(name), k=1, gamma=0.9)
    plain.action_space.seed(0)
    assert data_equivalence(plain.reset(seed=3), held.reset(seed=3), exact=True)
    for _ in range(300):
        action = plain.action_space.sample()
        one, other = plain.step(action), held.step(action)
        hold = other[4].pop("hold")
        assert (hold["length"], hold["discount"], hold["rewards"]) == (1, 0.9, (one[1],))
        assert data_equivalence(one[0], other[0], exact=True)
        assert one[1:4] == other[1:4]
        assert data_equivalence(one[4], other[4], exact=True)
        if one[2] or one[3]:
            assert data_equivalence(plain.reset(), held.reset(), exact=True)


@pytest.mark.skipif(not hasattr(gymnasium.wrappers, "RepeatAction"), reason="came with Gymnasium 1.3")
@given(rewards=st.lists(st.integers(-8, 8).map(float), min_size=1, max_size=9), k=st.integers(1, 5))
@settings(max_examples=50)
def test_undiscounted_it_is_gymnasiums_repeated_action(rewards: list[float], k: int) -> None:
    held, discounted = HoldAction(Script(rewards), k), HoldAction(Script(rewards), k, gamma=0.5)
    repeated = gymnasium.wrappers.RepeatAction(Script(rewards), k)
    for env in (held, discounted, repeated):
        env.reset()
    over = False
    while not over:
        one, other = held.step(0), repeated.step(0)
        assert data_equivalence(one[:4], other[:4], exact=True)
        window = one[4]["hold"]["rewards"]
        assert other[1] - discounted.step(0)[1] == sum(r * (1 - 0.5**i) for i, r in enumerate(window))
        over = one[2]


# The k-persistent decision process -------------------------------------------------------------------------


def dense(table: Any) -> np.ndarray:
    """A kernel's table as an (S, A, S) array."""
    if isinstance(table, np.ndarray):
        return table if table.ndim == 3 else np.eye(len(table))[table]
    return np.stack([matrix.toarray() if sp.issparse(matrix) else matrix for matrix in table], axis=1)


def played_table(env: HoldAction, live: Any) -> Iterator[tuple[int, int, int, float, bool, float]]:
    """Every hold of a deterministic grid: s, a, s', reward, terminated, γ^ℓ."""
    for state, action in itertools.product(live, range(4)):
        env.reset(options={"state": int(state)})
        observation, reward, terminated, truncated, info = env.step(action)
        assert not truncated
        yield int(state), action, observation, reward, terminated, info["hold"]["discount"]


@pytest.mark.parametrize("k", [1, 2, 3, 8])
@pytest.mark.parametrize("name", GRIDS)
def test_on_a_grid_every_hold_is_the_exact_kernel_and_reward(name: str, k: int) -> None:
    grid = make_env(name)
    for gamma in (0.5, 0.99):  # powers of one half are exact
        model = TabularMDP.from_gymnasium(grid, gamma)
        next_states, rewards = persistent_kernel(model, k), persistent_reward(model, k)
        for state, action, led_to, reward, terminated, discount in played_table(
            HoldAction(grid, k, gamma), np.flatnonzero(~model.terminal)
        ):
            assert led_to == next_states[state, action]
            assert terminated == model.terminal[led_to]
            if gamma == 0.5:
                assert reward == rewards[state, action]
                assert terminated or discount == 0.5**k
            else:
                assert reward == pytest.approx(rewards[state, action], rel=1e-14)


@pytest.mark.parametrize("name", ["cliff", "sync-grid"])
@pytest.mark.parametrize("k", [2, 5])
def test_learning_from_the_holds_finds_the_optimal_persistent_values(name: str, k: int) -> None:
    grid, gamma = make_env(name), 0.9
    model = TabularMDP.from_gymnasium(grid, gamma)
    table = list(played_table(HoldAction(grid, k, gamma), np.flatnonzero(~model.terminal)))
    s, a, s_next, reward, terminated, discount = (np.array(column) for column in zip(*table, strict=True))
    q = np.zeros((model.n_states, model.n_actions))
    for _ in range(300):
        # Terminal states' values are spoilt, to see that none is bootstrapped from.
        spoilt = np.where(model.terminal[:, None], 1e9, q)
        q[s, a] = reward + np.where(terminated, 0.0, discount * spoilt[s_next].max(axis=1))
    np.testing.assert_allclose(q, q_star(persistent_mdp(model, k)), atol=1e-9)


class Dice:
    """In the place of a random generator: draws what it is told to."""

    def __init__(self) -> None:
        self.draws: list[float] = []

    def random(self) -> float:
        return self.draws.pop(0)


LAKE = gymnasium.make("FrozenLake-v1", is_slippery=True)
THIRDS = [(1 / 3, 1 / 6), (1 / 3, 3 / 6), (1 / 3, 5 / 6)]
BRINK = GridWorld("S.#\n..G", slip=0.25, step_reward=-0.5, border="deadly", border_reward=-3.0)
SIDES = [(0.75, 0.9), (0.125, 0.05), (0.125, 0.2)]


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("env", "outcomes"), [(LAKE, THIRDS), (BRINK, SIDES)], ids=["lake", "brink"])
def test_where_steps_slip_the_holds_average_to_the_kernel_and_the_reward(
    env: Any, outcomes: list[tuple[float, float]], k: int
) -> None:
    env = copy.deepcopy(env)
    model = TabularMDP.from_gymnasium(env, gamma=0.9)
    held, world, dice = HoldAction(env, k, gamma=0.9), env.unwrapped, Dice()
    reached, rewards = np.zeros((model.n_states, 4, model.n_states)), np.zeros((model.n_states, 4))
    live = np.flatnonzero(~model.terminal)
    for state, action in itertools.product(live, range(4)):
        for throws in itertools.product(outcomes, repeat=k):
            world.np_random = np.random.default_rng(0)
            if isinstance(world, GridWorld):
                held.reset(options={"state": int(state)})
            else:
                held.reset()
                world.s = int(state)
            world.np_random, dice.draws = dice, [draw for _, draw in throws]
            chance = math.prod(probability for probability, _ in throws)
            observation, reward, terminated, _, info = held.step(action)
            assert len(dice.draws) == k - info["hold"]["length"]
            assert terminated == model.terminal[observation]
            reached[state, action, observation] += chance
            rewards[state, action] += chance * reward
    np.testing.assert_allclose(reached[live], dense(persistent_kernel(model, k))[live], atol=1e-14)
    np.testing.assert_allclose(rewards, persistent_reward(model, k), atol=1e-13)


def test_a_model_of_the_environment_within_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be wrapped in HoldAction"):
        TabularMDP.from_gymnasium(HoldAction(make_env("cliff"), 3), gamma=0.9)


def test_tabular_learners_decide_once_per_hold() -> None:
    held = HoldAction(Script([1.0] * 7, kind="discrete"), k=3, gamma=0.5)
    result = QLearning(gamma=0.5**3, alpha=1.0).fit(held, episodes=40)
    assert result.training_returns.tolist() == [[1.75 + 1.75 + 1.0] * 40]
    assert result.steps.tolist() == [[3] * 40]
    np.testing.assert_allclose(result.q[0, [0, 3, 6], :, 0].max(axis=1), [1.75 + 1.875 / 8, 1.875, 1.0])


# Persistent DQN's k-step returns ---------------------------------------------------------------------------


@given(
    episodes=st.lists(
        st.tuples(st.lists(st.integers(-16, 16), min_size=1, max_size=9), st.sampled_from(ENDS[:2])),
        min_size=1,
        max_size=4,
    ),
    k=st.integers(1, 5),
    gamma=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
)
@settings(max_examples=40)
def test_a_hold_is_the_window_that_persistent_dqn_draws(
    episodes: list[tuple[list[int], str]], k: int, gamma: float
) -> None:
    """Each hold's steps, stored one by one; the window of κ from its first step is what a hold of κ returns."""
    space = Script.SPACES["box"]
    buffer = OptionReplayBuffer(64, space, spaces.Discrete(5), "cpu", k_max=k, gamma=gamma)
    expected: dict[int, list[tuple[Any, float, bool, float]]] = {}
    for quarters, end in episodes:
        rewards = [quarter / 4 for quarter in quarters]
        before, _ = HoldAction(Script(rewards, end), k).reset()
        for first in range(0, len(rewards), k):
            shorter = []
            for kappa in range(1, k + 1):
                env = HoldAction(Script(rewards[first:], end), kappa, gamma)
                env.reset()
                observation, reward, terminated, _, info = env.step(0)
                shorter.append((observation[0] + first, reward, terminated, info["hold"]["discount"]))
            expected[buffer.n_added] = shorter
            env = HoldAction(Script(rewards, end), k, gamma)
            env.reset()
            for _ in range(first // k + 1):
                *_, terminated, truncated, info = env.step(0)
            hold = info["hold"]
            for i, (observation, reward) in enumerate(zip(hold["observations"], hold["rewards"], strict=True)):
                last = i + 1 == hold["length"]
                over = last and (terminated or truncated)
                step_info = {"TimeLimit.truncated": over and not terminated}
                buffer.add(before[None], observation[None], np.zeros(1), [reward], [over], [step_info], [last])
                before = observation

    assert set(expected) <= set(range(64)), "no row was overwritten, so that rows count the steps"
    np.random.seed(0)  # noqa: NPY002 - the buffer draws as SB3's does
    seen = set()
    batch = buffer.sample(256)
    for index, column in np.argwhere(np.isin(batch.rows, list(expected))):
        row = int(batch.rows[index, column])
        led_to, reward, terminated, discount = expected[row][index]
        drawn = (batch.rewards, batch.dones, batch.discounts)
        got = [float(array[index, column]) for array in drawn]
        assert got == pytest.approx([reward, float(terminated), discount], rel=1e-6, abs=1e-6)
        next_row = batch.next_rows[index, column]
        assert float(buffer.observations_at(np.array([next_row]))[0, 0]) == led_to
        seen.add((row, int(index)))
    assert seen == set(itertools.product(expected, range(k)))


# Time limits, within and around ----------------------------------------------------------------------------


@pytest.mark.parametrize("limit", range(1, 8))
def test_a_time_limit_within_counts_primitive_steps(limit: int) -> None:
    env = HoldAction(TimeLimit(Script([1.0] * 50), limit), k=3)
    env.reset()
    lengths, truncated = [], False
    while not truncated:
        _, _, terminated, truncated, info = env.step(0)
        assert not terminated
        lengths.append(info["hold"]["length"])
    assert sum(lengths) == limit
    assert lengths[:-1] == [3] * ((limit - 1) // 3)


@pytest.mark.parametrize("limit", range(1, 4))
def test_a_time_limit_around_counts_decisions(limit: int) -> None:
    env = TimeLimit(HoldAction(Script([1.0] * 50), k=3), limit)
    env.reset()
    for decision in range(1, limit + 1):
        _, _, terminated, truncated, info = env.step(0)
        assert (terminated, truncated, info["hold"]["length"]) == (False, decision == limit, 3)


def test_a_terminal_on_the_last_allowed_step_is_both() -> None:
    env = HoldAction(TimeLimit(Script([1.0] * 5), 5), k=3)
    env.reset()
    env.step(0)
    assert env.step(0)[2:4] == (True, True)


# Gymnasium's world -----------------------------------------------------------------------------------------


def test_the_spec_makes_it_again() -> None:
    env = HoldAction(gymnasium.make("holdfast/Cliff-v0", step_limit=7), k=np.int64(4), gamma=np.float32(0.5))
    spec = EnvSpec.from_json(env.spec.to_json())
    for again in (gymnasium.make(env.spec), gymnasium.make(spec)):
        assert isinstance(again, HoldAction)
        assert (again.k, again.gamma, again.unwrapped.step_limit) == (4, 0.5, 7)
        assert again.spec == env.spec
        env.reset(seed=0)
        again.reset(seed=0)
        assert data_equivalence(env.step(2), again.step(2), exact=True)


def test_the_spec_of_a_time_limited_environment_makes_it_again() -> None:
    again = gymnasium.make(HoldAction(gymnasium.make("CartPole-v1", max_episode_steps=5), 3).spec)
    again.reset(seed=0)
    lengths = [again.step(i)[4]["hold"]["length"] for i in range(2)]
    assert lengths == [3, 2]


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version.*")
@pytest.mark.filterwarnings("ignore:.*Not able to test alternative render modes.*")
@pytest.mark.parametrize(
    "env",
    [
        gymnasium.make("holdfast/Cliff-v0", slip=0.1),
        Script([1.0] * 50, kind="dict"),
        Script([1.0] * 50, kind="box", box_actions=True),
    ],
    ids=["grid", "dict", "box"],
)
def test_the_environment_checkers_accept_it(env: gymnasium.Env[Any, Any]) -> None:
    """Even where the environment within fails them, as one does that shows one array again and again."""
    check_env(HoldAction(env, k=3, gamma=0.9))
    sb3_check_env(HoldAction(env, k=3, gamma=0.9))


def vector_env(mode: AutoresetMode) -> SyncVectorEnv:
    """Two scripts of 3 and 5 steps, held for 4, so that holds of all lengths from 1 to 4 stand side by side."""
    return SyncVectorEnv(
        [lambda n=n: HoldAction(Script(range(1, n + 1), kind="dict"), k=4, gamma=0.5) for n in (3, 5)],
        autoreset_mode=mode,
    )


def test_vector_environments_lay_holds_of_all_lengths_side_by_side() -> None:
    envs = vector_env(AutoresetMode.NEXT_STEP)
    envs.reset(seed=0)
    observations, rewards, terminated, _, infos = envs.step(np.zeros(2, np.int64))
    assert observations["time"][:, 0].tolist() == [3.0, 4.0]
    assert rewards.tolist() == [1 + 1 + 0.75, 1 + 1 + 0.75 + 0.5]
    assert terminated.tolist() == [True, False]
    hold = infos["hold"]
    np.testing.assert_array_equal(hold["length"], [3, 4])
    np.testing.assert_array_equal(hold["discount"], [0.5**3, 0.5**4])
    assert hold["rewards"].tolist() == [(1.0, 2.0, 3.0), (1.0, 2.0, 3.0, 4.0)]
    assert [times(seen) for seen in hold["observations"]] == [[1, 2, 3], [1, 2, 3, 4]]

    *_, infos = envs.step(np.zeros(2, np.int64))  # the first is reset, the second ends on its first step
    assert infos["_hold"].tolist() == [False, True]
    assert infos["hold"]["length"].tolist() == [0, 1]
    assert infos["hold"]["rewards"][1] == (5.0,)


def test_vector_environments_that_reset_at_once_keep_the_hold_in_the_final_info() -> None:
    envs = DictInfoToList(vector_env(AutoresetMode.SAME_STEP))
    envs.reset(seed=0)
    lengths = []
    for _ in range(2):
        *_, infos = envs.step(np.zeros(2, np.int64))
        lengths += [[info.get("final_info", info)["hold"]["length"] for info in infos]]
    assert lengths == [[3, 4], [3, 1]]


@pytest.mark.parametrize("way", ["wrapper", "spec"])
def test_many_are_made_with_it_as_a_wrapper_or_in_a_spec(way: str) -> None:
    if way == "wrapper":
        envs = gymnasium.make_vec(
            "CartPole-v1", num_envs=3, vectorization_mode="sync", wrappers=[lambda env: HoldAction(env, 4, 0.9)]
        )
    else:
        spec = HoldAction(gymnasium.make("CartPole-v1"), k=4, gamma=0.9).spec
        envs = SyncVectorEnv([lambda: gymnasium.make(spec)] * 3)
    envs.reset(seed=0)
    for step in range(30):
        _, rewards, _, _, infos = envs.step(np.full(3, step % 2))
        if "hold" in infos:
            lengths = infos["hold"]["length"]
            np.testing.assert_allclose(rewards, (1 - 0.9**lengths) / 0.1)
            np.testing.assert_allclose(infos["hold"]["discount"][lengths > 0], 0.9 ** lengths[lengths > 0])


def test_infos_travel_between_processes() -> None:
    env = HoldAction(Script([1.0] * 5, kind="dict"), k=3)
    env.reset()
    info = env.step(0)[4]
    assert data_equivalence(pickle.loads(pickle.dumps(info)), info, exact=True)
    assert data_equivalence(copy.deepcopy(info), info, exact=True)


def test_episode_statistics_within_are_those_of_the_primitive_steps() -> None:
    inside = HoldAction(RecordEpisodeStatistics(Script([1.0] * 5)), k=3, gamma=0.5)
    outside = RecordEpisodeStatistics(HoldAction(Script([1.0] * 5), k=3, gamma=0.5))
    totals = []
    for env in (inside, outside):
        env.reset()
        env.step(0)
        info = env.step(0)[4]
        totals.append((float(info["episode"]["r"]), int(info["episode"]["l"])))
    assert totals == [(5.0, 5), (1.75 + 1.5, 2)]


def test_pictures_within_show_every_primitive_step() -> None:
    inside = HoldAction(RenderCollection(GridWorld("S....G", render_mode="rgb_array")), k=3)
    outside = RenderCollection(HoldAction(GridWorld("S....G", render_mode="rgb_array"), k=3))
    counts = []
    for env in (inside, outside):
        env.reset()
        env.step(2)
        env.step(2)
        counts.append(len(env.render()))
    assert counts == [1 + 5, 1 + 2]


def test_a_video_within_has_a_frame_per_primitive_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = {}

    class Clip:
        def __init__(self, frames: list[np.ndarray], fps: int) -> None:
            self.frames = frames

        def write_videofile(self, path: str, **_: Any) -> None:
            written[Path(path).name] = len(self.frames)

    for name in ("moviepy", "moviepy.video", "moviepy.video.io", "moviepy.video.io.ImageSequenceClip"):
        module = types.ModuleType(name)
        module.ImageSequenceClip = Clip  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
    grid = GridWorld("S....G", render_mode="rgb_array")
    recorded = RecordVideo(grid, str(tmp_path / "videos"), episode_trigger=lambda _: True, disable_logger=True)
    env = HoldAction(recorded, k=3)
    for _ in range(2):
        env.reset()
        env.step(2)
        env.step(2)
    env.close()
    assert written == {"rl-video-episode-0.mp4": 6, "rl-video-episode-1.mp4": 6}


# Stable-Baselines3's world ---------------------------------------------------------------------------------


def test_monitors_within_and_around() -> None:
    inside = HoldAction(Monitor(Script([1.0] * 5, "truncated")), k=3, gamma=0.5)
    outside = Monitor(HoldAction(Script([1.0] * 5, "truncated"), k=3, gamma=0.5))
    totals = []
    for env in (inside, outside):
        env.reset()
        env.step(0)
        *_, truncated, info = env.step(0)
        assert truncated
        assert info["hold"]["length"] == 2
        totals.append((info["episode"]["r"], info["episode"]["l"]))
    assert totals == [(5.0, 5), (3.25, 2)]


@pytest.mark.parametrize("kind", ["box", "dict"])
def test_through_dummy_vec_env_and_vec_normalize(kind: str) -> None:
    scripts = [Script([1.0] * 3, "terminated", kind), Script([1.0] * 5, "truncated", kind)]
    envs = DummyVecEnv([lambda env=env: HoldAction(env, k=4, gamma=0.5) for env in scripts])
    normalized = VecNormalize(envs, gamma=0.5**4, norm_obs_keys=["time"] if kind == "dict" else None)
    normalized.reset()
    first = normalized.step(np.zeros(2, np.int64))[3]
    np.testing.assert_array_equal(normalized.get_original_reward(), [1.75, 1.875])
    second = normalized.step(np.zeros(2, np.int64))[3]
    assert [[info["hold"]["length"] for info in infos] for infos in (first, second)] == [[3, 4], [3, 1]]
    assert [info["TimeLimit.truncated"] for info in (first[0], first[1], second[1])] == [False, False, True]
    for info, time in ((first[0], 3), (second[1], 5)):
        # The record is of what the environment showed, before any normalisation.
        reached = info["hold"]["observations"][-1]
        assert times([reached]) == [time]
        again, kept = normalized.normalize_obs(reached), info["terminal_observation"]
        assert times([kept]) != [time]
        assert (again.keys() if kind == "dict" else again.shape) == (kept.keys() if kind == "dict" else kept.shape)


def test_dqn_trains_and_knows_ends_from_limits() -> None:
    def make(end: str) -> DummyVecEnv:
        return DummyVecEnv([lambda: Monitor(HoldAction(Script([1.0] * 5, end), k=3, gamma=0.5))])

    for end in ("terminated", "truncated"):
        model = DQN(
            "MlpPolicy",
            make(end),
            gamma=0.5**3,
            learning_starts=8,
            train_freq=1,
            buffer_size=64,
            batch_size=8,
            seed=0,
        )
        model.learn(40)
        assert model._n_updates > 0
        buffer = model.replay_buffer
        assert buffer.rewards[:40, 0].tolist() == [1.75, 1.5] * 20
        assert buffer.dones[:40, 0].tolist() == [0.0, 1.0] * 20
        assert buffer.timeouts[:40, 0].tolist() == [0.0, float(end == "truncated")] * 20
        # The last observation of the hold, and not the first one of the next episode:
        assert buffer.next_observations[:4, 0, 0].tolist() == [3.0, 5.0, 3.0, 5.0]


def test_dqn_finds_the_persistent_values() -> None:
    """Two decisions to the end, of 3 and 2 steps: 1.5 is worth the second, 1.75 + γ³·1.5 the first."""
    env = Monitor(HoldAction(Script([1.0] * 5), k=3, gamma=0.5))
    model = DQN(
        "MlpPolicy",
        env,
        gamma=0.5**3,
        learning_rate=3e-3,
        learning_starts=32,
        train_freq=1,
        target_update_interval=50,
        buffer_size=500,
        policy_kwargs={"net_arch": [32]},
        seed=0,
    )
    model.learn(600)
    observations = np.array([[0.0, 0.0], [3.0, -0.03]], np.float32)
    values = model.q_net(model.policy.obs_to_tensor(observations)[0]).detach().numpy().max(axis=1)
    np.testing.assert_allclose(values, [1.75 + 0.125 * 1.5, 1.5], atol=0.1)


# Bad input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k": 0}, ValueError, "k must be a whole number of at least 1, not 0"),
        ({"k": -3}, ValueError, "k must be a whole number of at least 1, not -3"),
        ({"k": 2.0}, TypeError, "k must be a whole number of at least 1, not 2.0"),
        ({"k": "2"}, TypeError, "k must be a whole number of at least 1, not '2'"),
        ({"k": True}, TypeError, "k must be a whole number of at least 1, not True"),
        ({"k": None}, TypeError, "k must be a whole number of at least 1, not None"),
        ({"k": 2, "gamma": 1.01}, ValueError, "gamma must be a number in [0, 1], not 1.01"),
        ({"k": 2, "gamma": -0.1}, ValueError, "gamma must be a number in [0, 1], not -0.1"),
        ({"k": 2, "gamma": math.nan}, ValueError, "gamma must be a number in [0, 1], not nan"),
        ({"k": 2, "gamma": "1"}, TypeError, "gamma must be a number in [0, 1], not '1'"),
        ({"k": 2, "env": "CartPole-v1"}, TypeError, "env must be a Gymnasium environment, not 'CartPole-v1'"),
    ],
)
def test_bad_arguments_are_named_in_one_sentence(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        HoldAction(**{"env": Script([1.0]), **arguments})


def test_the_settings_can_be_read_but_not_set() -> None:
    env = HoldAction(Script([1.0]), 3, 0.5)
    assert (env.get_wrapper_attr("k"), env.get_wrapper_attr("gamma")) == (3, 0.5)
    with pytest.raises(AttributeError):
        env.k = 4  # type: ignore[misc]


def test_the_library_offers_it() -> None:
    assert holdfast.HoldAction is HoldAction
