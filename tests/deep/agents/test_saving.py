"""What is written to files, and what a loaded agent makes of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.vec_env import DummyVecEnv

from holdfast.deep import PerDQN
from tests.deep.diary import LEARNING, agent, by_table, diaries, plain_agent
from tests.deep.literal_replay import drawable_tuples
from tests.deep.probes import Pier


def weights(model):
    return th.cat([parameter.detach().flatten() for parameter in model.policy.parameters()])


def pier_values(model):
    return model.policy.decide(Pier.every_observation()).values


def test_a_saved_agent_predicts_the_same(tmp_path):
    model = agent(
        Pier(), k_max=4, dueling=True, normalize_observations="space", decision_tolerance=0.01,
        interrupt_margin=0.02, target_value="double", bootstrap=False, **LEARNING,
    )  # fmt: skip
    model.learn(60)
    model.save(tmp_path / "model")
    loaded = PerDQN.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(pier_values(loaded), pier_values(model))
    for name in ("k_max", "target_value", "bootstrap", "prioritized", "timeout_is_terminal", "num_timesteps"):
        assert getattr(loaded, name) == getattr(model, name), name
    for name in ("decision_tolerance", "interrupt_margin", "dueling", "head_arch", "normalize_observations"):
        assert getattr(loaded.policy, name) == getattr(model.policy, name), name
    for observation in Pier.every_observation():
        actions = [each.predict(observation, deterministic=True)[0] for each in (model, loaded)]
        assert actions[0] == actions[1]


@pytest.mark.parametrize("n_envs", [1, 2])
def test_a_loaded_agent_goes_on_learning(tmp_path, n_envs):
    model = agent(Pier(), **LEARNING).learn(40)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "replay")
    env = DummyVecEnv([Pier] * n_envs)
    loaded = PerDQN.load(tmp_path / "model", env=env, device="cpu")
    assert loaded.clock.n_envs == n_envs
    if n_envs == 1:
        loaded.load_replay_buffer(tmp_path / "replay")
        assert loaded.replay_buffer.size() == 40
    before = weights(loaded).clone()
    loaded.learn(40, reset_num_timesteps=False)
    assert loaded.num_timesteps == 80
    assert not th.equal(before, weights(loaded))


def test_the_replay_is_stored_whole(tmp_path):
    model = plain_agent(diaries(2), prioritized=False, exploration_initial_eps=1.0, exploration_final_eps=1.0)
    model.learn(100)
    model.save_replay_buffer(tmp_path / "replay")
    other = plain_agent(diaries(2), prioritized=False)
    other.load_replay_buffer(tmp_path / "replay")
    other.replay_buffer.finish()
    model.replay_buffer.finish()
    assert drawable_tuples(other.replay_buffer) == drawable_tuples(model.replay_buffer)


def test_a_loaded_replay_has_nothing_running(tmp_path):
    model = plain_agent(diaries(lengths=[100]), k_max=3, prioritized=False)
    values = np.zeros((3, 3))
    values[1, 2] = 1.0
    by_table(model.policy, values)
    model.learn(5)
    model.save_replay_buffer(tmp_path / "replay")
    other = plain_agent(diaries(), prioritized=False)
    other.load_replay_buffer(tmp_path / "replay")
    assert sum(drawable_tuples(other.replay_buffer)[0].values()) == 5


def test_a_replay_of_another_kind_is_refused(tmp_path):
    agent(diaries(), k_max=2).save_replay_buffer(tmp_path / "replay")
    with pytest.raises(ValueError, match="the replay must be of k_max=3, as this agent's is, not 2"):
        agent(diaries()).load_replay_buffer(tmp_path / "replay")


def test_a_policy_can_be_saved_alone(tmp_path):
    model = agent(Pier(), k_max=2, dueling=True, normalize_observations="space", **LEARNING).learn(30)
    model.policy.save(tmp_path / "policy")
    loaded = type(model.policy).load(tmp_path / "policy", device="cpu")
    np.testing.assert_array_equal(
        loaded.decide(Pier.every_observation()).values, model.policy.decide(Pier.every_observation()).values
    )


def test_setting_up_twice_changes_nothing_that_counts():
    model = agent(Pier(), **LEARNING).learn(30)
    interval, size = model.target_update_interval, model.replay_buffer.size()
    model._setup_model()
    assert (model.target_update_interval, model.replay_buffer.size()) == (interval, size)
    model.learn(30)


@pytest.mark.parametrize(
    "differing", [{"gamma": 0.3}, {"prioritized": False}, {"priority_alpha": 0.1}, {"timeout_is_terminal": True}]
)
def test_a_replay_with_other_settings_is_refused_and_the_own_one_stays(tmp_path, differing):
    agent(diaries(), **differing).save_replay_buffer(tmp_path / "replay")
    model = agent(diaries())
    own = model.replay_buffer
    with pytest.raises(ValueError, match="the replay must be of "):
        model.load_replay_buffer(tmp_path / "replay")
    assert model.replay_buffer is own


def test_arguments_given_at_loading_take_effect(tmp_path):
    agent(diaries()).save(tmp_path / "model")
    loaded = type(agent(diaries())).load(
        tmp_path / "model", env=diaries(), gamma=0.25, priority_alpha=0.1, timeout_is_terminal=True
    )
    assert loaded.replay_buffer.gamma == loaded.gamma == 0.25
    assert loaded.replay_buffer.alpha == 0.1
    assert not loaded.replay_buffer.handle_timeout_termination


def test_loading_with_the_policy_arguments_that_were_given(tmp_path):
    model = agent(diaries())
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model", policy_kwargs={"net_arch": [8]})
    assert loaded.policy.net_arch == [8]
    assert agent(diaries(), policy_kwargs=model.policy_kwargs).policy.head_arch == [4]
