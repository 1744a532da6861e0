"""Agents that replay with new goals: SB3's own with one persistence, exact to go on with, no stale targets."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3 import DQN, HerReplayBuffer
from stable_baselines3.common.env_util import make_vec_env as sb3_vec_env
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.vec_env import VecNormalize

from holdfast.core.errors import InputError
from holdfast.deep import EZGreedyDQN, PerDQN, PerSAC, PerTD3, TempoRLDQN, make_vec_env
from holdfast.deep.agents.targets import all_persistence_targets
from holdfast.deep.replay.hindsight import HindsightReplayBuffer, without_goals
from tests.deep.agents.test_sb3_identity import PLAIN, SHARED, assert_same_weights

SMALL: dict[str, Any] = {
    "replay_buffer_class": HerReplayBuffer,
    "replay_buffer_kwargs": {"n_sampled_goal": 4, "goal_selection_strategy": "future"},
    "policy_kwargs": {"net_arch": [16]},
    "learning_starts": 20,
    "batch_size": 16,
    "buffer_size": 200,
    "seed": 1,
    "device": "cpu",
}
OF_DQN = {"k_max": 4, "target_update_interval": 15}


def flips(n_bits: int = 5, continuous: bool = False) -> BitFlippingEnv:
    return BitFlippingEnv(n_bits=n_bits, continuous=continuous)


AGENTS: dict[str, Any] = {
    "perdqn": (PerDQN, OF_DQN),
    "separate draws": (PerDQN, {**OF_DQN, "shared_draws": False}),
    "msa-dqn": (PerDQN, {**OF_DQN, "bootstrap": False}),
    "plain": (PerDQN, {**OF_DQN, **PerDQN.plain(), "prioritized": False}),
    "dqn": (PerDQN, {"k_max": 1, "prioritized": False}),
    "temporl": (TempoRLDQN, OF_DQN),
    "ez": (EZGreedyDQN, OF_DQN),
    "pertd3": (PerTD3, {"k_max": 4}),
    "persac": (PerSAC, {"k_max": 4}),
}


def made(name: str, n_envs: int = 2, **overrides: Any) -> Any:
    kind, own = AGENTS[name]
    env = make_vec_env(flips, n_envs, seed=2, env_kwargs={"continuous": kind in (PerTD3, PerSAC)})
    return kind("MultiInputPolicy", env, **{**SMALL, **own, **overrides})


def everything(value: Any, name: str = "") -> dict[str, Any]:
    """A state's leaves by name."""
    if isinstance(value, dict):
        return {
            key: leaf for part, item in value.items() for key, leaf in everything(item, f"{name}/{part}").items()
        }
    if isinstance(value, list):
        return everything(dict(enumerate(value)), name)
    return {name: value}


@pytest.mark.parametrize("name", AGENTS)
def test_a_training_goes_on_exactly(name):
    whole = made(name)
    whole.learn(150)
    assert isinstance(whole.replay_buffer, HindsightReplayBuffer)
    state = copy.deepcopy(whole.state())
    whole.learn(150, reset_num_timesteps=False)
    again = made(name)
    again.restore(state)
    again.learn(150, reset_num_timesteps=False)
    ours, others = everything(again.state()), everything(whole.state())
    assert ours.keys() == others.keys()
    for key, value in others.items():
        if key.endswith("/t"):
            continue  # seconds that episodes took
        np.testing.assert_array_equal(ours[key], value, err_msg=key)
    assert whole._n_updates > 100


def test_another_share_of_goals_is_another_agent():
    state = made("perdqn").state()
    other = made("perdqn", replay_buffer_kwargs={"n_sampled_goal": 2})
    with pytest.raises(InputError, match="must be of an agent with n_sampled_goal=2, not 4"):
        other.restore(state)


@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_with_one_persistence_it_is_sb3s_dqn_with_its_replay(strategy):
    def trained(kind: Any, **own: Any) -> Any:
        settings = {**SHARED, "buffer_size": 150, "learning_starts": 40, "train_freq": 2, **own}
        return kind(
            "MultiInputPolicy",
            sb3_vec_env(flips, n_envs=1, seed=3),
            replay_buffer_class=HerReplayBuffer,
            replay_buffer_kwargs={"goal_selection_strategy": strategy},
            policy_kwargs={"net_arch": [16], "optimizer_kwargs": {"fused": True}},
            **settings,
        ).learn(500)

    ours, theirs = trained(PerDQN, k_max=1, **PLAIN), trained(DQN)
    assert ours._n_updates == theirs._n_updates == 230
    assert ours.replay_buffer.full
    assert_same_weights(ours, theirs)


@pytest.mark.parametrize("n_envs", [1, 2])
@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_batches_are_those_of_sb3s_replay(n_envs, strategy):
    env = sb3_vec_env(flips, n_envs=n_envs, seed=5)
    arguments = {"device": "cpu", "n_envs": n_envs, "env": env, "goal_selection_strategy": strategy}
    spaces = (60 * n_envs, env.observation_space, env.action_space)
    theirs = HerReplayBuffer(*spaces, **arguments)
    ours = HindsightReplayBuffer(*spaces, prioritized=False, **arguments)
    rng = np.random.default_rng(0)
    observations = env.reset()
    for step in range(150):
        actions = rng.integers(0, 5, n_envs)
        after, rewards, dones, infos = env.step(actions)
        reached = copy.deepcopy(after)
        for index in np.flatnonzero(dones):
            for key, values in reached.items():
                values[index] = infos[index]["terminal_observation"][key]
        for buffer in (ours, theirs):
            buffer.add(observations, reached, actions, rewards, dones, infos)
        observations = after
        if step % 10 != 9:
            continue
        np.random.seed(step)  # noqa: NPY002 - SB3's generator
        their_batch = theirs.sample(40)
        np.random.seed(step)  # noqa: NPY002
        batch = ours.sample(40)
        for first, second in (
            (batch.observations, their_batch.observations),
            (ours.observations_at(batch.next_rows.ravel()), their_batch.next_observations),
        ):
            assert all(th.equal(first[key], second[key]) for key in second)
        for name in ("actions", "rewards", "dones"):
            np.testing.assert_array_equal(getattr(batch, name).ravel(), getattr(their_batch, name).numpy().ravel())


def test_targets_are_those_of_the_states_with_their_new_goals():
    model = made("perdqn", target_value="options", clip_targets=False, learning_rate=0.01)
    model.learn(120)
    for _ in range(3):
        batch = model._sample(16, beta=0.5)
        found = model._targets(batch)
        asked = _literal_targets(model, batch)
        np.testing.assert_allclose(found, asked, rtol=1e-5, atol=1e-6)
    assert len(model.target_cache.known(model)) == 0


def _literal_targets(model: PerDQN, batch: Any) -> Any:
    """One tuple after the other, its last state put together from the store by hand."""
    buffer = model.replay_buffer
    rows, goals = without_goals(batch.next_rows)
    targets = np.zeros(batch.rewards.shape, dtype=np.float32)
    for view, b in np.ndindex(targets.shape):
        state = buffer.store.get(rows[view, b : b + 1])
        if goals[view, b] >= 0:
            state["desired_goal"] = buffer.store.get(goals[view, b : b + 1])["achieved_goal"]
        with th.no_grad():
            values = model.q_net_target({key: th.as_tensor(value) for key, value in state.items()})[0]
        rest = int(batch.rest[view, b])
        value = values.max() if rest == 0 else values[int(batch.actions[view, b]), rest - 1]
        numbers = (batch.rewards, batch.discounts, batch.dones)
        targets[view, b] = all_persistence_targets(
            *(th.as_tensor(part[view, b]) for part in numbers), th.tensor(True), value, value
        )
    return targets


@pytest.mark.parametrize("name", AGENTS)
def test_new_goals_are_learned_from(name):
    """Where no goal was ever reached, only new ones teach that there is a reward of 0."""

    class NeverReached(BitFlippingEnv):
        def step(self, action):
            observation, _, _, truncated, info = super().step(action)
            return observation, -1.0, False, truncated, info

    kind, own = AGENTS[name]
    env = make_vec_env(lambda: NeverReached(n_bits=3, continuous=kind in (PerTD3, PerSAC)), 1, seed=2)
    arguments = {**SMALL, **own, "gamma": 0.5, "initial_values": "zero", "learning_rate": 3e-3}
    model = kind("MultiInputPolicy", env, **arguments).learn(300)
    batch = model._sample(64, beta=0.5)
    _, goals = without_goals(batch.next_rows)
    assert (batch.rewards[0][goals[0] >= 0] == 0.0).any()
    assert (batch.rewards[0][goals[0] < 0] == -1.0).all()


def test_vec_normalize_scales_the_new_goals():
    env = VecNormalize(make_vec_env("goal-grid", 1, seed=2, env_kwargs={"step_limit": 10}))
    model = PerDQN("MultiInputPolicy", env, **{**SMALL, **OF_DQN}).learn(60)
    batch = model._sample(16, beta=0.5)
    rows, goals = without_goals(batch.next_rows.ravel())
    at = int(np.argmax(goals >= 0))
    shown = model.replay_buffer.observations_at(batch.next_rows.ravel(), env)
    state = model.replay_buffer.store.get(rows[at : at + 1])
    state["desired_goal"] = model.replay_buffer.store.get(goals[at : at + 1])["achieved_goal"]
    expected = env.normalize_obs(state)
    assert all(np.array_equal(shown[key][at].numpy(), expected[key][0]) for key in expected)


def test_holds_of_the_first_episode_stay_whole_though_learning_could_begin():
    env = make_vec_env("goal-grid", 1, seed=2, env_kwargs={"step_limit": 60})
    settings = {**SMALL, **OF_DQN, "learning_starts": 5, "exploration_final_eps": 1.0, "explore_by": "options"}
    model = PerDQN("MultiInputPolicy", env, **settings).learn(60)
    assert model.replay_buffer.to_end.max() == 60
    # An option has one last step.
    (decisions,) = model.hold_statistics.episode_decisions
    assert (model.replay_buffer.left[:60] == 1).sum() == decisions < 40


# As SB3's users type it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [HerReplayBuffer, "HerReplayBuffer", HindsightReplayBuffer])
def test_the_replay_by_its_class_and_by_name(given):
    assert type(made("perdqn", replay_buffer_class=given).replay_buffer) is HindsightReplayBuffer


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"replay_buffer_class": "Her"}, "replay_buffer_class must be None, 'HerReplayBuffer' or a subclass"),
        (
            {"replay_buffer_kwargs": {"n_goals": 3}},
            "names 'n_goals', which HindsightReplayBuffer does not have; choose from copy_info_dict, "
            "goal_selection_strategy, handle_timeout_termination, n_sampled_goal$",
        ),
        (
            {"replay_buffer_kwargs": {"goal_selection_strategy": "past"}},
            "'future', 'final', 'episode', not 'past'",
        ),
        ({"replay_buffer_kwargs": {"n_sampled_goal": -2}}, "n_sampled_goal must be"),
        ({"replay_buffer_kwargs": {"copy_info_dict": "no"}}, "^copy_info_dict must be true or false, not 'no'$"),
        (
            {"replay_buffer_kwargs": {"handle_timeout_termination": "no"}},
            "^handle_timeout_termination must be true or false, not 'no'$",
        ),
        ({"replay_buffer_kwargs": {"settings": 1}}, "names 'settings', which HindsightReplayBuffer does not have"),
        ({"replay_buffer_kwargs": {"env": 2}}, "must not have 'env': give env to the agent instead"),
    ],
)
def test_bad_arguments(overrides, sentence):
    with pytest.raises(InputError, match=sentence):
        made("perdqn", **overrides)


def test_goals_for_a_replay_that_has_none():
    with pytest.raises(
        InputError, match=r"names 'n_sampled_goal', which needs replay_buffer_class=HerReplayBuffer$"
    ):
        made("perdqn", replay_buffer_class=None)


def test_an_environment_without_goals():
    with pytest.raises(
        InputError, match="env must have Dict observations with observation, achieved_goal, desired_goal"
    ):
        PerDQN("MlpPolicy", "CartPole-v1", replay_buffer_class=HerReplayBuffer)


def test_a_saved_replay_is_loaded_with_or_without_the_last_episode(tmp_path):
    model = made("perdqn")
    model.learn(123)
    assert model.replay_buffer.running.any()
    model.save_replay_buffer(tmp_path / "replay.pkl")
    before = model.replay_buffer
    model.load_replay_buffer(tmp_path / "replay.pkl", truncate_last_traj=False)
    assert model.replay_buffer is not before
    assert np.array_equal(model.replay_buffer.running, before.running)
    with pytest.warns(UserWarning, match="will be truncated"):
        model.load_replay_buffer(tmp_path / "replay.pkl")
    assert not model.replay_buffer.running.any()
    del model.replay_buffer
    with pytest.warns(UserWarning, match="will be truncated"):
        model.load_replay_buffer(tmp_path / "replay.pkl")
    model.learn(60)


def test_a_replay_without_goals_is_not_loaded_for_one_with(tmp_path):
    other = made("perdqn", replay_buffer_class=None, replay_buffer_kwargs=None)
    other.save_replay_buffer(tmp_path / "replay.pkl")
    with pytest.raises(InputError, match="one that an agent of this kind saved"):
        made("perdqn").load_replay_buffer(tmp_path / "replay.pkl")


def test_a_loaded_agent_computes_rewards_with_the_environment_it_is_given(tmp_path):
    made("perdqn").learn(60).save(tmp_path / "agent.zip")
    loaded = PerDQN.load(tmp_path / "agent.zip")
    assert loaded.replay_buffer.env is None
    loaded.set_env(make_vec_env(flips, 2, seed=2))
    assert loaded.replay_buffer.env is loaded.env
    n_updates = loaded._n_updates
    loaded.learn(60)
    assert loaded._n_updates > n_updates


def test_a_reset_ends_the_episode_that_was_running():
    model = made("perdqn", n_envs=1)
    model.learn(33)
    assert model.replay_buffer.running.sum() > 0
    model.learn(1)
    assert model.replay_buffer.running.sum() <= 1
