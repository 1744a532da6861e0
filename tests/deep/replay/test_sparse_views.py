"""Views of a sparse set of persistences, and draws that all views share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from holdfast.deep.replay.priorities import PriorityTrees
from tests.deep.literal_replay import EnvChoice, Trial, drawable_tuples, scripts
from tests.deep.probes import Carousel

SETS = st.sets(st.integers(2, 7), max_size=3).map(lambda longer: tuple(sorted({1, *longer})))


def choice(action=0, duration=1, reward=4, end="goes on"):
    return [EnvChoice(action, duration, reward, end)]


def held(*durations, end="goes on", **arguments):
    """A trial whose one environment held action 0 for so long, time after time; ``end`` is the last step's."""
    trial = Trial(**{"capacity": 30, "k_max": 8, "persistences": (1, 2, 4, 8), **arguments})
    for number, duration in enumerate(durations):
        for step in range(duration):
            is_last = number == len(durations) - 1 and step == duration - 1
            trial.step(choice(0, duration, end=end if is_last else "goes on"))
    return trial


# Views -----------------------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=150)
def test_views_of_a_sparse_set_equal_the_definition(data):
    n_envs = data.draw(st.integers(1, 3), label="n_envs")
    persistences = data.draw(SETS, label="persistences")
    trial = Trial(
        n_envs=n_envs,
        capacity=data.draw(st.integers(1, 9), label="capacity"),
        k_max=persistences[-1],
        persistences=persistences,
        bootstrap=data.draw(st.booleans(), label="bootstrap"),
        pad_terminal=data.draw(st.booleans(), label="pad_terminal"),
        timeout_is_terminal=data.draw(st.booleans(), label="timeout_is_terminal"),
        prioritized=data.draw(st.booleans(), label="prioritized") or len(persistences) == 1,
        shared_draws=data.draw(st.booleans(), label="shared_draws"),
    )
    # Holds of every length: what is interrupted, or begun by somebody else, need not be in the set.
    script = data.draw(scripts(n_envs, persistences[-1]))
    for start in range(0, len(script), 8):
        trial.play(script[start : start + 8])
        trial.check()


@given(st.data())
@settings(max_examples=60)
def test_shared_draws_of_a_full_set_have_the_tuples_of_own_draws(data):
    n_envs, k_max = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 4))
    bootstrap = data.draw(st.booleans(), label="bootstrap")
    trial = Trial(n_envs=n_envs, capacity=7, k_max=k_max, shared_draws=True, bootstrap=bootstrap)
    trial.play(data.draw(scripts(n_envs, k_max)))
    trial.check()


def test_a_hold_of_five_steps_by_hand():
    views = drawable_tuples(held(5).buffer)
    lengths = [sorted(item.length for item in view.elements()) for view in views]
    # Five steps have 5, 4, 3, 2, 1 to go. Of 8 steps, 4 leave a rest that has values; of 4, 2 and 3 do.
    assert lengths == [[1] * 5, [1, 2, 2, 2, 2], [2, 3, 4, 4], [4, 4]]
    assert not any(item.done for view in views for item in view)


def test_a_hold_that_ended_the_episode_informs_all_longer_ones():
    views = drawable_tuples(held(3, end="terminated").buffer)
    assert [sorted(item.length for item in view.elements()) for view in views] == [
        [1, 1, 1],
        [1, 2, 2],
        [1, 2, 3],
        [1, 2, 3],
    ]
    assert [sum(item.done for item in view.elements()) for view in views] == [1, 2, 3, 3]


def test_a_time_limit_ends_a_hold_and_nothing_else():
    through, ends = held(3, end="truncated"), held(3, end="truncated", timeout_is_terminal=True)
    assert [sum(view.values()) for view in drawable_tuples(through.buffer)] == [3, 3, 2, 0]
    assert [sum(view.values()) for view in drawable_tuples(ends.buffer)] == [3, 3, 3, 3]


def test_a_view_that_no_hold_informs_is_empty():
    trial = held(1, 1, 2)
    assert trial.buffer.drawable.tolist() == [True, True, True, False]
    batch = trial.buffer.sample(8)
    assert (batch.weights[3] == 0.0).all()
    assert (batch.weights[:3] > 0.0).all()


def test_normalised_rewards_of_a_sparse_window():
    env = VecNormalize(DummyVecEnv([Carousel]), norm_obs=False, clip_reward=3.0)
    env.ret_rms.var = np.array(4.0)
    trial = held(5)
    rewards = trial.buffer.rewards.ravel()
    batch = trial.buffer.sample(16, env=env)
    for index, k in enumerate((1, 2, 4, 8)):
        for b in range(16):
            length = k - batch.rest[index, b]
            row = batch.rows[index, b]
            single = env.normalize_reward(rewards[row : row + length])
            expected = sum(0.5**step * reward for step, reward in enumerate(single))
            assert batch.rewards[index, b] == pytest.approx(expected, rel=1e-6)


# Shared draws ----------------------------------------------------------------------------------------------


def test_every_view_of_a_shared_draw_has_the_same_steps():
    buffer = held(5, 8, 2, 1, shared_draws=True).buffer
    batch = buffer.sample(10)
    assert batch.is_shared
    assert batch.rows.shape == batch.actions.shape == batch.is_there.shape == (4, 10)
    assert len(batch.observations) == 10
    assert (batch.rows == batch.rows[0]).all()
    left = buffer.left.ravel()[batch.rows[0]]
    np.testing.assert_array_equal(batch.is_there, [left >= 1, left >= 1, left >= 2, left >= 4])
    np.testing.assert_array_equal(batch.weights > 0.0, batch.is_there)
    assert buffer.trees.sums.shape[0] == 1


def test_one_draw_costs_one_row_of_random_numbers():
    for shared, rows in ((True, 1), (False, 4)):
        buffer = held(8, 8, shared_draws=shared).buffer
        np.random.seed(0)  # noqa: NPY002 - SB3's generator
        buffer.sample(6)
        ours = np.random.get_state()[1].copy()  # noqa: NPY002
        np.random.seed(0)  # noqa: NPY002
        np.random.random_sample((rows, 6))  # noqa: NPY002
        np.testing.assert_array_equal(ours, np.random.get_state()[1])  # noqa: NPY002


def test_uniform_shared_draws_weigh_what_is_there_alike():
    buffer = held(3, 8, shared_draws=True, prioritized=False).buffer
    batch = buffer.sample(30)
    assert not batch.is_there.all()
    np.testing.assert_array_equal(batch.weights, batch.is_there.astype(np.float32))
    whole = held(8, 8, shared_draws=True, prioritized=False, persistences=(1, 2), k_max=2).buffer
    assert whole.sample(30).weights is None


def test_the_priority_of_a_shared_step_is_one_number():
    buffer = held(4, shared_draws=True, alpha=1.0).buffer
    buffer.update_priorities(np.array([[0, 2]]), np.array([[3.0, -0.5]]))
    np.testing.assert_allclose(buffer.trees.priorities(0)[:4], [3.0, 1.0, 0.5, 1.0], rtol=1e-5)


# Importance weights ----------------------------------------------------------------------------------------


def test_weights_over_the_largest_of_the_batch_by_hand():
    trees = PriorityTrees(2, 4, alpha=1.0)
    trees.enter(np.arange(4), np.ones((4, 2), dtype=np.bool_))
    trees.update(np.tile(np.arange(4), (2, 1)), np.array([[1.0, 2.0, 4.0, 9.0], [1.0, 1.0, 1.0, 1.0]]))
    # Of 16 the quarters are drawn in the middle: 2, 6, 10 and 14, which are rows 1, 2, 3 and 3.
    uniforms = np.full((2, 4), 0.5)
    over_view = trees.sample(uniforms, beta=0.5)
    over_batch = trees.sample(uniforms, beta=0.5, over_batch=True)
    assert over_batch.rows.tolist() == over_view.rows.tolist() == [[1, 2, 3, 3], [0, 1, 2, 3]]
    np.testing.assert_allclose(over_view.weights[0], [2**-0.5, 4**-0.5, 9**-0.5, 9**-0.5])
    np.testing.assert_allclose(over_batch.weights[0], [1.0, 2**-0.5, 4.5**-0.5, 4.5**-0.5])
    assert over_batch.weights[1].tolist() == [1.0] * 4


def test_the_replay_divides_by_what_it_is_told_to():
    drawn = {}
    for importance in ("buffer", "batch"):
        buffer = held(4, importance=importance, alpha=1.0, persistences=None, k_max=1).buffer
        buffer.update_priorities(np.array([[0, 1, 2, 3]]), np.array([[1e-3, 5.0, 10.0, 20.0]]))
        np.random.seed(1)  # noqa: NPY002 - SB3's generator
        drawn[importance] = buffer.sample(8, beta=1.0)
    assert 0 not in drawn["buffer"].rows
    np.testing.assert_array_equal(drawn["buffer"].rows, drawn["batch"].rows)
    assert drawn["batch"].weights.max() == 1.0
    assert drawn["buffer"].weights.max() < 1e-3
    ratio = drawn["batch"].weights / drawn["buffer"].weights
    np.testing.assert_allclose(ratio, ratio.flat[0], rtol=1e-5)
