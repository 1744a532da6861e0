"""One ring is K replay buffers: every view holds exactly the tuples of the paper's Algorithm 3."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from holdfast.deep import OptionReplayBuffer
from tests.deep.literal_replay import GAMMA, SPACES, EnvChoice, Trial, drawable_tuples, encode, scripts
from tests.deep.probes import Carousel


def choices(*each, n_envs=1):
    """Choices of one environment, written short: (action, duration, reward in quarters, end)."""
    return [EnvChoice(*one, *((1, 4, "goes on")[len(one) - 1 :])) for one in each]


def played(*steps, **arguments):
    """A trial with one environment that has taken these steps."""
    trial = Trial(**arguments)
    for step in steps:
        trial.step(choices(step))
    return trial


# Views ≡ Algorithm 3 ---------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=150)
def test_views_equal_the_literal_buffers(data):
    n_envs = data.draw(st.integers(1, 3), label="n_envs")
    k_max = data.draw(st.integers(1, 4), label="k_max")
    trial = Trial(
        n_envs=n_envs,
        capacity=data.draw(st.integers(1, 9), label="capacity"),
        k_max=k_max,
        bootstrap=data.draw(st.booleans(), label="bootstrap"),
        pad_terminal=data.draw(st.booleans(), label="pad_terminal"),
        timeout_is_terminal=data.draw(st.booleans(), label="timeout_is_terminal"),
        prioritized=data.draw(st.booleans(), label="prioritized") or k_max == 1,
    )
    script = data.draw(scripts(n_envs, k_max))
    for start in range(0, len(script), 8):
        trial.play(script[start : start + 8])
        trial.check()


@pytest.mark.parametrize("space", sorted(SPACES))
@given(st.data())
@settings(max_examples=25)
def test_views_of_every_kind_of_observation(space, data):
    n_envs = data.draw(st.integers(1, 2), label="n_envs")
    trial = Trial(n_envs=n_envs, capacity=data.draw(st.integers(2, 7), label="capacity"), space=space)
    trial.play(data.draw(scripts(n_envs, 3)))
    trial.check()


@given(st.data())
@settings(max_examples=50)
def test_views_where_every_observation_looks_the_same(data):
    n_envs = data.draw(st.integers(1, 2), label="n_envs")
    trial = Trial(n_envs=n_envs, capacity=6, same_observation=True)
    trial.play(data.draw(scripts(n_envs, 3)))
    trial.check()


@given(script=scripts(2, 1))
@settings(max_examples=25)
def test_one_uniform_view_without_trees(script):
    trial = Trial(n_envs=2, capacity=5, k_max=1, prioritized=False)
    assert trial.buffer.trees is None
    trial.play(script)
    trial.check()


def test_an_option_longer_than_the_buffer():
    trial = played(*[(1, 6)] * 6, capacity=3, k_max=6)
    trial.check()
    assert [sum(view.values()) for view in drawable_tuples(trial.buffer)] == [3] * 6


def test_lent_rows_are_taken_back():
    trial = Trial(n_envs=2, capacity=4)
    for _ in range(300):
        trial.step(choices((0, 1, 4, "terminated"), (1, 1, 4, "truncated")))
    store = trial.buffer.store
    assert len(store.lent) - len(store.free) <= trial.buffer.n_slots * 2
    assert len(store.lent) == 64


# What is drawable, by hand -----------------------------------------------------------------------------------


def test_a_running_option_cannot_be_drawn_until_it_is_over():
    trial = played((2, 3), (2, 3))
    assert not trial.buffer.drawable.any()
    trial.step(choices((2, 3)))
    views = drawable_tuples(trial.buffer)
    assert [sum(view.values()) for view in views] == [3, 3, 3]
    assert sorted(found.length for found in views[2].elements()) == [1, 2, 3]
    assert {found.action for found in views[2]} == {2}


def test_without_bootstrap_a_view_has_complete_windows_only():
    trial = played((0, 2), (0, 2), (1, 1), bootstrap=False)
    views = drawable_tuples(trial.buffer)
    assert [sum(view.values()) for view in views] == [3, 1, 0]
    assert trial.buffer.drawable.tolist() == [True, True, False]
    batch = trial.buffer.sample(5)
    assert (batch.weights[:2] == 1).all()
    assert (batch.weights[2] == 0).all()


def test_padded_a_window_that_ends_the_episode_is_in_every_longer_view_too():
    for end, timeout_is_terminal, in_all in (
        ("terminated", False, True),
        ("truncated", False, False),
        ("truncated", True, True),
        ("goes on", False, False),
    ):
        steps = ((0, 2), (0, 2, 4, end))
        trial = played(*steps, bootstrap=False, pad_terminal=True, timeout_is_terminal=timeout_is_terminal)
        views = drawable_tuples(trial.buffer)
        lengths = [sorted(found.length for found in view.elements()) for view in views]
        assert lengths == ([[1, 1], [1, 2], [1, 2]] if in_all else [[1, 1], [2], []])
        assert all(found.done for found in views[2])


def test_terminal_and_truncated_ends():
    for end, timeout_is_terminal, done in (
        ("terminated", False, True),
        ("truncated", False, False),
        ("truncated", True, True),
    ):
        trial = played((0, 3), (0, 3, 4, end), timeout_is_terminal=timeout_is_terminal)
        views = drawable_tuples(trial.buffer)
        assert {(found.length, found.done) for found in views[0]} == {(1, False), (1, done)}
        assert {(found.length, found.done) for found in views[1]} == {(2, done), (1, done)}
        assert {(found.length, found.done) for found in views[2]} == {(2, done), (1, done)}


def test_an_unannounced_step_is_an_option_of_its_own_even_where_another_is_held():
    trial = played((2, 3))
    trial.step(choices((1, 1)), announced=False)
    views = drawable_tuples(trial.buffer)
    assert {(found.action, found.length) for found in views[2]} == {(2, 1), (1, 1)}


def test_extend_stores_single_steps():
    buffer = OptionReplayBuffer(10, SPACES["box"], spaces.Discrete(2), device="cpu", k_max=3, gamma=GAMMA)
    observations = encode(SPACES["box"], [1, 2, 9, 20]).reshape(4, 1, 2)
    next_observations = encode(SPACES["box"], [2, 3, 10, 21]).reshape(4, 1, 2)
    dones = np.array([[False], [False], [True], [False]])
    buffer.extend(observations, next_observations, np.zeros((4, 1)), np.ones((4, 1)), dones, [[{}]] * 4)
    for view in drawable_tuples(buffer):
        assert {(found.state, found.next_state, found.length, found.done) for found in view} == {
            (1, 2, 1, False),
            (2, 3, 1, False),
            (9, 10, 1, True),
            (20, 21, 1, False),
        }


def test_each_last_state_has_one_row():
    trial = played((0, 3), (0, 3), (0, 3), (1, 1))
    batch = trial.buffer.sample(64)
    assert batch.next_rows.shape == batch.rows.shape == (3, 64)
    last_states = trial.buffer.observations_at(np.unique(batch.next_rows)).numpy()
    assert len(last_states) == len(np.unique(last_states, axis=0)) == 4


def test_a_batch_is_made_of_arrays_and_its_observations_of_tensors():
    batch = full_buffer().sample(4, beta=0.5)
    assert batch.observations.dtype == th.float32
    assert batch.observations.shape == (12, 2)
    found = {name: value.dtype for name, value in batch._asdict().items() if isinstance(value, np.ndarray)}
    numbers = ("actions", "rest", "next_rows", "rows")
    kinds = dict.fromkeys(numbers, np.int64) | {"is_there": np.bool_}
    assert found == {name: kinds.get(name, np.float32) for name in found}
    assert set(batch._fields) - set(found) == {"observations", "is_shared"}
    assert all(getattr(batch, name).shape == (3, 4) for name in found)
    assert batch.is_shared is False


def test_reset_forgets_everything():
    trial = played((0, 1), (0, 1, 4, "terminated"), (0, 3))
    trial.buffer.update_priorities(np.zeros((3, 1), dtype=np.int64), np.full((3, 1), 9.0))
    trial.buffer.reset()
    assert trial.buffer.size() == 0
    assert not trial.buffer.drawable.any()
    assert len(trial.buffer.store.free) == len(trial.buffer.store.lent)
    again = Trial()
    again.buffer = trial.buffer
    for step in ((1, 2), (1, 2), (2, 1, 3, "truncated")):
        again.step(choices(step))
    again.check()


def test_size_and_position_are_those_of_sb3():
    ours = OptionReplayBuffer(7, SPACES["box"], spaces.Discrete(2), device="cpu", n_envs=2, k_max=2)
    theirs = ReplayBuffer(7, SPACES["box"], spaces.Discrete(2), device="cpu", n_envs=2)
    assert isinstance(ours, ReplayBuffer)
    for number in range(8):
        assert (ours.size(), ours.pos, ours.full) == (theirs.size(), theirs.pos, theirs.full)
        step = (encode(SPACES["box"], [number] * 2), encode(SPACES["box"], [number + 1] * 2))
        for buffer in (ours, theirs):
            buffer.add(*step, np.zeros((2, 1)), np.zeros(2), np.zeros(2), [{}, {}])


def test_the_rings_observations_are_exposed_as_views():
    trial = played((0, 1), (0, 1), space="dict")
    shown = trial.buffer.observations
    assert shown["where"].shape == (9, 1, 2)
    assert shown["which"][:3, 0, 0].tolist() == [1, 2, 3]
    assert np.shares_memory(shown["which"], trial.buffer.store.parts["which"].own)


# Draws and weights -------------------------------------------------------------------------------------------


def full_buffer(**arguments):
    """Twelve steps in options of 1, 2 and 3 steps."""
    steps = [(0, 1), (1, 2), (1, 2), (2, 3), (2, 3), (2, 3)] * 2
    return played(*steps, capacity=12, **arguments).buffer


def test_new_rows_enter_at_the_largest_priority_of_their_view():
    trial = played((0, 1), (0, 1), alpha=0.5)
    buffer = trial.buffer
    buffer.update_priorities(np.array([[0], [0], [1]]), np.array([[4.0], [0.25], [9.0]]) - 1e-6)
    trial.step(choices((0, 1)))
    newest = [buffer.trees.priorities(index)[2] for index in range(3)]
    np.testing.assert_allclose(newest, [2.0, 1.0, 3.0])


def test_td_errors_become_priorities():
    buffer = full_buffer(alpha=0.6)
    buffer.update_priorities(np.zeros((3, 1), dtype=np.int64), np.array([[-2.0], [0.0], [0.5]]))
    found = [buffer.trees.priorities(index)[0] for index in range(3)]
    np.testing.assert_allclose(found, (np.array([2.0, 0.0, 0.5]) + 1e-6) ** 0.6)


def test_weights_are_the_formula_over_the_largest_of_the_view():
    buffer = full_buffer(alpha=0.6)
    random = np.random.default_rng(0)
    rows = np.tile(np.arange(12), (3, 1))
    errors = random.exponential(size=(3, 12))
    buffer.update_priorities(rows, errors)
    beta = 0.7
    batch = buffer.sample(40, beta=beta)
    for index in range(3):
        priorities = (errors[index] + 1e-6) ** 0.6
        probabilities = priorities / priorities.sum()
        weights = (len(priorities) * probabilities) ** -beta
        expected = (weights / weights.max())[batch.rows[index]]
        np.testing.assert_allclose(batch.weights[index], expected, rtol=1e-6)


def test_uniform_draws_have_no_weights_and_ignore_td_errors():
    buffer = full_buffer(prioritized=False)
    assert buffer.sample(4).weights is None
    before = buffer.trees.sums.copy()
    buffer.update_priorities(np.zeros((3, 2), dtype=np.int64), np.full((3, 2), 5.0))
    np.testing.assert_array_equal(buffer.trees.sums, before)


def test_uniform_draws_weigh_an_empty_view_zero():
    buffer = played((0, 2), (0, 2), prioritized=False, bootstrap=False).buffer
    weights = buffer.sample(4).weights
    assert weights.tolist() == [[1.0] * 4, [1.0] * 4, [0.0] * 4]


def test_an_empty_view_names_rows_that_exist():
    trial = played(*[(0, 1)] * 5, capacity=4, bootstrap=False)
    assert trial.buffer.n_added % trial.buffer.n_slots == 0
    batch = trial.buffer.sample(6)
    assert (batch.weights[1:] == 0).all()
    assert (batch.next_rows >= 0).all()


def test_overwritten_rows_cannot_be_drawn_again():
    trial = played(*[(0, 1)] * 5, capacity=4)
    left = trial.buffer.n_added % trial.buffer.n_slots
    trial.buffer.update_priorities(np.full((3, 1), left), np.full((3, 1), 50.0))
    assert trial.buffer.trees.priorities(0)[left] == 0.0
    trial.check()


def test_k_max_1_draws_as_sb3_does():
    ours = OptionReplayBuffer(6, SPACES["box"], spaces.Discrete(2), device="cpu", n_envs=2, prioritized=False)
    theirs = ReplayBuffer(6, SPACES["box"], spaces.Discrete(2), device="cpu", n_envs=2)
    random = np.random.default_rng(1)
    states = [1, 1001]
    for number in range(2, 10):
        following = [number, 1000 + number]
        step = (
            encode(SPACES["box"], states),
            encode(SPACES["box"], following),
            random.integers(2, size=(2, 1)),
            random.normal(size=2).astype(np.float32),
            np.array([number == 5, False]),
            [{}, {}],
        )
        for buffer in (ours, theirs):
            buffer.add(*step)
        states = [number + 500 if number == 5 else number, 1000 + number]
        np.random.seed(number)  # noqa: NPY002 - both draw from it
        batch = ours.sample(5)
        np.random.seed(number)  # noqa: NPY002
        expected = theirs.sample(5)
        assert th.equal(batch.observations, expected.observations)
        assert th.equal(ours.observations_at(batch.next_rows[0]), expected.next_observations)
        np.testing.assert_array_equal(batch.actions[0], expected.actions[:, 0])
        np.testing.assert_array_equal(batch.rewards[0], expected.rewards[:, 0])
        np.testing.assert_array_equal(batch.dones[0], expected.dones[:, 0])


def test_normalised_rewards_are_those_of_single_steps():
    trial = played((0, 3, 1), (0, 3, 2), (0, 3, -5), (1, 2, 8), (1, 2, 7, "terminated"), capacity=4)
    env = VecNormalize(DummyVecEnv([Carousel]), clip_reward=3.0)
    env.ret_rms.var = np.array(0.09)
    env.obs_rms.mean, env.obs_rms.var = np.array([1.0, 2.0]), np.array([4.0, 9.0])
    env.observation_space = trial.space
    plain, normalised = [], []
    for chosen, into in ((None, plain), (env, normalised)):
        np.random.seed(3)  # noqa: NPY002 - the buffer's generator
        into.append(trial.buffer.sample(32, env=chosen))
    before, after = plain[0], normalised[0]
    np.testing.assert_array_equal(before.rows, after.rows)
    rewards = trial.buffer.rewards.ravel()
    for index in range(3):
        for b in range(32):
            length = index + 1 - int(after.rest[index, b])
            window = [rewards[(after.rows[index, b] + i) % 5] for i in range(length)]
            expected = sum(GAMMA**i * float(env.normalize_reward(reward)) for i, reward in enumerate(window))
            assert float(after.rewards[index, b]) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(after.observations, env.normalize_obs(before.observations.numpy()), rtol=1e-6)
    np.testing.assert_array_equal(before.next_rows, after.next_rows)
    stored = trial.buffer.observations_at(after.next_rows.ravel())
    shown = trial.buffer.observations_at(after.next_rows.ravel(), env)
    np.testing.assert_allclose(shown, env.normalize_obs(stored.numpy()), rtol=1e-6)
    assert after.observations.dtype == th.float32


# Memory ------------------------------------------------------------------------------------------------------

ATARI = spaces.Box(0, 255, (4, 84, 84), np.uint8)


def test_memory_of_the_papers_atari_replay():
    buffer = OptionReplayBuffer(50_000, ATARI, spaces.Discrete(18), device="cpu", k_max=8)
    assert buffer.nbytes <= 0.38e9
    assert 50_001 * 84 * 84 <= buffer.store.nbytes <= 1.01 * 50_001 * 84 * 84


def test_observation_memory_does_not_depend_on_k_max():
    few, many = (
        OptionReplayBuffer(5000, ATARI, spaces.Discrete(18), device="cpu", k_max=k_max) for k_max in (1, 16)
    )
    assert few.store.nbytes == many.store.nbytes
    trees = [buffer.trees.sums.nbytes + buffer.trees.least.nbytes for buffer in (few, many)]
    tables = [buffer._lengths.nbytes for buffer in (few, many)]
    assert many.nbytes - few.nbytes == trees[1] - trees[0] + tables[1] - tables[0]
    assert tables[1] < 3000
    assert trees[1] == 16 * trees[0]


@pytest.mark.parametrize(
    ("space", "row_bytes", "beside"),
    [
        # A frame, four entries of tables (for an eighth more) and four frames' numbers; 2^44 buckets.
        (ATARI, 84 * 84 + 20 * 9 / 8 + 16, 4 * 2**44),
        (SPACES["dict"], 2 * 4 + 8, 0),
        (SPACES["discrete"], 8, 0),
    ],
)
def test_a_replay_that_does_not_fit_is_refused_before_it_is_made(space, row_bytes, beside):
    steps = 10**13
    size = ((steps + 1) * (row_bytes + 40) + beside) / 1e9
    with pytest.raises(
        ValueError, match=rf"the replay of buffer_size={steps} needs {size:.1f} GB, but \d+\.\d GB"
    ):
        OptionReplayBuffer(steps, space, spaces.Discrete(2), device="cpu", k_max=1, prioritized=False)


def test_the_size_that_is_checked_is_the_size_that_is_used(monkeypatch):
    asked = []
    monkeypatch.setattr("holdfast.deep.replay.ring_arrays.check_fits", lambda what, n_bytes: asked.append(n_bytes))
    for space in (*SPACES.values(), ATARI):
        buffer = OptionReplayBuffer(100, space, spaces.Discrete(2), device="cpu", n_envs=2, k_max=3)
        assert asked.pop() == buffer.nbytes


@pytest.mark.parametrize("action", [-1, 2, 10**9])
def test_an_action_that_there_is_not_is_refused_before_anything_is_stored(action):
    trial = played((0, 1))
    buffer, state = trial.buffer, encode(SPACES["box"], np.array([3]))
    n_actions = int(buffer.action_space.n)
    action = n_actions if action == 2 else action
    with pytest.raises(ValueError, match=rf"^action must be counted from 0 and in 0\.\.{n_actions - 1}, not"):
        buffer.add(state, state, np.array([[action]]), np.array([0.0]), np.array([False]), [{}])
    assert buffer.n_added == 1


def test_time_limits_may_be_arrays_as_a_buffer_gives_them():
    buffer = OptionReplayBuffer(5, SPACES["box"], spaces.Discrete(2), "cpu")
    states = [encode(SPACES["box"], np.array([number])) for number in range(3)]
    infos = [[{"TimeLimit.truncated": np.array([flag])}] for flag in (0.0, 1.0)]
    buffer.extend(states[:2], states[1:], np.zeros((2, 1, 1)), np.zeros((2, 1)), np.array([[0.0], [1.0]]), infos)
    assert buffer.timeouts[:2, 0].tolist() == [0.0, 1.0]
