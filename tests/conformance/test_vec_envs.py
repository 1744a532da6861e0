"""Vectorised environments and SB3's wrappers around them."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecCheckNan,
    VecExtractDictObs,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)

from tests.conformance.agents import same, weights
from tests.conformance.worlds import VECTOR, Counting, Samples, singles, vector


@pytest.mark.parametrize("n_envs", [1, 4])
def test_every_environment_is_stepped_and_stored(make, n_envs):
    env = vector(n_envs, kind=Counting)
    model = make(env).learn(40)
    buffer = model.replay_buffer
    assert buffer.size() == 40 // n_envs
    for index, single in enumerate(singles(env)):
        steps = 40 // n_envs
        assert len(single.done) == steps
        first = [seen for number, seen in enumerate(single.seen) if number % 7 != 6][:steps]
        assert buffer.observations[:steps, index, 0].tolist() == first
        assert buffer.actions[:steps, index, 0].tolist() == single.done
        assert buffer.rewards[:steps, index].tolist() == [float(action == 1) for action in single.done]
        assert np.flatnonzero(buffer.dones[:steps, index]).tolist() == list(range(5, steps, 6))
        assert np.flatnonzero(buffer.timeouts[:steps, index]).tolist() == list(range(5, steps, 6))


def test_environments_do_not_act_in_step(make):
    env = vector(4, n_actions=4, length=50)
    make(env, exploration_initial_eps=1.0, exploration_final_eps=1.0).learn(160)
    actions = [tuple(single.done) for single in singles(env)]
    assert len(set(actions)) == 4


def test_an_end_is_told_from_a_time_limit(make):
    model = make(vector(ends="terminated")).learn(30)
    assert model.replay_buffer.dones[:30].sum() == 5
    assert model.replay_buffer.timeouts[:30].sum() == 0


# In processes of their own ----------------------------------------------------------------------------------


def watched():
    return Monitor(Samples())


@pytest.fixture(scope="module")
def processes():
    # One import for both of them.
    multiprocessing.set_forkserver_preload(["tests.conformance.worlds"])
    env = SubprocVecEnv([watched, watched])
    yield env
    env.close()


def test_processes_give_what_one_process_gives(make, processes):
    apart = make(processes).learn(60)
    together = make(DummyVecEnv([watched, watched])).learn(60)
    assert same(weights(apart.policy), weights(together.policy))
    np.testing.assert_array_equal(apart.replay_buffer.observations, together.replay_buffer.observations)
    assert [info["r"] for info in apart.ep_info_buffer] == [info["r"] for info in together.ep_info_buffer]
    assert evaluate_policy(apart, processes, n_eval_episodes=2)[0] >= 0.0


# Wrappers ---------------------------------------------------------------------------------------------------


def test_a_monitor_around_all_of_them(make):
    model = make(VecMonitor(vector(3, monitored=False))).learn(45)
    assert [info["l"] for info in model.ep_info_buffer] == [6] * 6
    assert evaluate_policy(model, model.get_env(), n_eval_episodes=3)[0] >= 0.0


def test_nobody_watching(make):
    model = make(vector(2, monitored=False)).learn(40, log_interval=1)
    assert len(model.ep_info_buffer) == 0
    assert "rollout/ep_rew_mean" not in model.logger.name_to_value
    assert model._episode_num == 6


def test_stacked_vectors(make):
    env = VecFrameStack(vector(2, length=5), n_stack=3)
    model = make(env).learn(40)
    seen, stored = np.array(singles(env)[1].seen), model.replay_buffer.observations
    np.testing.assert_array_equal(stored[3, 1], np.concatenate(seen[1:4]))
    np.testing.assert_array_equal(stored[5, 1], np.concatenate([np.zeros(6), seen[6]]).astype(np.float32))
    assert model.predict(env.reset(), deterministic=True)[0].shape == (2,)


def test_one_part_of_a_dictionary(make):
    space = spaces.Dict({"wanted": VECTOR, "other": spaces.Discrete(4)})
    env = VecExtractDictObs(vector(2, space=space), key="wanted")
    model = make(env).learn(30)
    seen = [observation["wanted"] for observation in singles(env)[0].seen]
    np.testing.assert_array_equal(model.replay_buffer.observations[:6, 0], seen[:6])


class Broken(Counting):
    """Gives a number that is none after some steps."""

    what, value = "observation", np.nan

    def step(self, action):
        observation, reward, *rest = super().step(action)
        if len(self.done) == 15:
            if self.what == "observation":
                observation[1] = self.value
            else:
                reward = self.value
        return observation, reward, *rest


@pytest.mark.parametrize("what", ["observation", "reward"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("checked", [True, False])
def test_numbers_that_are_none_stop_the_training(make, what, value, checked):
    def broken():
        env = Broken(length=50)
        env.what, env.value = what, value
        return env

    env = DummyVecEnv([broken])
    model = make(VecCheckNan(env, raise_exception=True) if checked else env)
    sentence = "found nan|found inf" if checked else "NaN or infinite"
    with pytest.raises(ValueError, match=sentence):
        model.learn(40)
    assert model.num_timesteps in (14, 15)
    assert all(th.isfinite(value).all() for value in weights(model.policy))


def test_checking_changes_nothing(make):
    plain = make(vector()).learn(40)
    checked = make(VecCheckNan(vector(), raise_exception=True)).learn(40)
    assert same(weights(plain.policy), weights(checked.policy))


# Normalising ------------------------------------------------------------------------------------------------


class Scaled(Samples):
    """What a normaliser of mean ``mean`` and standard deviation 2 makes of it."""

    mean = 0.0

    def observe(self):
        return ((super().observe().astype(np.float64) - self.mean) / 2.0).astype(np.float32)

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward / 2.0, *rest


@pytest.mark.parametrize("mean", [0.0, 0.5])
@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_a_normaliser_gives_the_run_of_an_environment_that_is_scaled_by_itself(make, mean, ends):
    normaliser = VecNormalize(vector(ends=ends), training=False, epsilon=0.0, clip_obs=1e9, clip_reward=1e9)
    normaliser.obs_rms.mean[:], normaliser.obs_rms.var[:] = mean, 4.0
    normaliser.ret_rms.var = np.array(4.0)
    scaled = vector(kind=Scaled, ends=ends)
    singles(scaled)[0].mean = mean
    ours, other = (make(env, target_update_interval=5).learn(60) for env in (normaliser, scaled))
    assert singles(normaliser)[0].done == singles(scaled)[0].done
    for mine, theirs in zip(weights(ours.q_net), weights(other.q_net), strict=True):
        th.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("named", [False, True])
def test_what_was_seen_is_stored_and_what_is_learned_from_is_normalised(make, named):
    space = spaces.Dict({"a": VECTOR, "b": VECTOR}) if named else VECTOR
    env = VecNormalize(vector(2, space=space, length=5), norm_obs=True, norm_reward=True)
    model = make(env, "MultiInputPolicy" if named else "MlpPolicy").learn(60)
    assert model.get_vec_normalize_env() is env
    buffer = model.replay_buffer
    raw = buffer.observations["a"] if named else buffer.observations
    seen = [observation["a"] if named else observation for observation in singles(env)[0].seen[:5]]
    np.testing.assert_array_equal(raw[:5, 0], np.array(seen))
    assert set(np.unique(buffer.rewards[:30])) == {0.0, 1.0}

    def drawn(normaliser):
        np.random.seed(0)  # noqa: NPY002
        batch = buffer.sample(16, env=normaliser)
        observations = batch.observations["a"] if named else batch.observations
        return observations.numpy(), batch

    plain, plain_batch = drawn(None)
    scaled, scaled_batch = drawn(env)
    both = {"a": plain, "b": plain} if named else plain
    expected = env.normalize_obs(both)
    np.testing.assert_allclose(scaled, expected["a"] if named else expected, rtol=1e-6)
    assert not np.allclose(plain, scaled)
    np.testing.assert_allclose(
        scaled_batch.rewards[0], env.normalize_reward(plain_batch.rewards[0]), rtol=1e-5, err_msg="of one step"
    )
    assert not np.allclose(scaled_batch.rewards[0], plain_batch.rewards[0])


def test_the_last_observation_of_an_episode_is_stored_as_it_was(make):
    env = VecNormalize(vector(kind=Counting, length=5))
    model = make(env, gradient_steps=0).learn(20)
    buffer = model.replay_buffer
    for step in (4, 9, 14):
        last = buffer.store.get(buffer.next_row[step])
        # Five steps and the last observation make an episode.
        assert last[0, 0] == pytest.approx(5 + 6 * (step // 5), abs=1e-3)


def test_statistics_are_saved_and_loaded(make, tmp_path):
    env = VecNormalize(vector())
    model = make(env).learn(50)
    model.save(tmp_path / "model")
    env.save(str(tmp_path / "statistics.pkl"))
    again = VecNormalize.load(str(tmp_path / "statistics.pkl"), vector())
    again.training = False
    np.testing.assert_array_equal(again.obs_rms.mean, env.obs_rms.mean)
    loaded = type(model).load(tmp_path / "model", env=again, device="cpu")
    raw = np.array(singles(env)[0].seen[:5])
    one, other = (
        agent.predict(agent.get_vec_normalize_env().normalize_obs(raw), deterministic=True)[0]
        for agent in (model, loaded)
    )
    np.testing.assert_array_equal(one, other)
    loaded.learn(20)
    np.testing.assert_array_equal(again.obs_rms.mean, env.obs_rms.mean)


def test_a_normaliser_can_be_replaced(make):
    env, shown = VecNormalize(vector()), VecNormalize(vector(), training=False, norm_reward=False)
    model = make(env).learn(20)
    model.set_env(shown)
    assert model.get_vec_normalize_env() is shown
    model.learn(10)
    assert (shown.obs_rms.mean == 0).all()
    model.set_env(env)
    assert model.get_vec_normalize_env() is env
    count = env.obs_rms.count
    model.learn(10)
    assert env.obs_rms.count == pytest.approx(count + 11)
    model.set_env(vector())
    assert model.get_vec_normalize_env() is None
    model.learn(20)
