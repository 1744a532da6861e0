"""An option-holding DQN as an SB3 algorithm: steps, callbacks, logs, seeds, vectors and pictures."""

from __future__ import annotations

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

from holdfast import PerDQN
from holdfast.deep import OptionReplayBuffer
from holdfast.deep.networks.option_network import ConvFeatures
from tests.deep.diary import (
    LEARNING,
    Diary,
    agent,
    by_table,
    capture_log,
    diaries,
    executed_options,
    expected_replay,
    logs,
    plain_agent,
    watch_decisions,
    watch_learning,
)
from tests.deep.literal_replay import drawable_tuples
from tests.deep.probes import Pictures, Pier


def weights(model):
    return th.cat([parameter.detach().flatten() for parameter in model.policy.parameters()])


class Counter(BaseCallback):
    """Counts its calls, and stops the training after some."""

    def __init__(self, stop_after=None):
        super().__init__()
        self.stop_after = stop_after
        self.steps = []

    def _on_step(self):
        self.steps.append(self.num_timesteps)
        return len(self.steps) != self.stop_after


# Steps and callbacks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_envs", [1, 2])
def test_learn_64_is_64_steps_with_a_callback_each(n_envs):
    model, counter = agent(diaries(n_envs), k_max=8), Counter()
    assert model.learn(64, callback=counter) is model
    assert model.num_timesteps == 64
    assert counter.steps == list(range(n_envs, 65, n_envs))
    assert [len(log) for log in logs(model.env)] == [64 // n_envs] * n_envs


def test_an_option_straddles_learn_calls():
    whole, pieces = (plain_agent(diaries(lengths=[100]), prioritized=False) for _ in range(2))
    for model in (whole, pieces):
        values = np.zeros((3, 3))
        values[1, 2] = 1.0
        by_table(model.policy, values)
    seen = watch_decisions(whole), watch_decisions(pieces)
    whole.learn(10)
    for piece in (1, 3, 4, 2):
        pieces.learn(piece, reset_num_timesteps=False)
    assert [decided.step for decided in seen[0]] == [0, 3, 6, 9]
    assert seen[0] == seen[1]
    assert logs(whole.env) == logs(pieces.env)
    assert drawable_tuples(whole.replay_buffer) == drawable_tuples(pieces.replay_buffer)


def test_a_reset_between_learn_calls_ends_what_is_held():
    model = plain_agent(diaries(lengths=[100]), prioritized=False)
    values = np.zeros((3, 3))
    values[1, 2] = 1.0
    by_table(model.policy, values)
    decisions = watch_decisions(model)
    model.learn(5)
    assert sum(drawable_tuples(model.replay_buffer)[0].values()) == 3
    model.learn(4)
    assert [decided.step for decided in decisions] == [0, 3, 0, 3]
    # 3 of the first five, the 2 that the reset cut, and 3 of the last four.
    assert sum(drawable_tuples(model.replay_buffer)[0].values()) == 8
    lengths = sorted(found.length for found in drawable_tuples(model.replay_buffer)[2].elements())
    assert lengths == sorted([3, 2, 1, 2, 1, 3, 2, 1])


def test_another_environment_ends_what_is_held():
    model = plain_agent(diaries(lengths=[100]), prioritized=False)
    values = np.zeros((3, 3))
    values[1, 2] = 1.0
    by_table(model.policy, values)
    model.learn(5)
    model.set_env(diaries(lengths=[50]))
    assert model.clock.idle.all()
    assert sum(drawable_tuples(model.replay_buffer)[0].values()) == 5
    model.learn(3, reset_num_timesteps=False)
    assert len(logs(model.env)[0]) == 3
    assert sum(drawable_tuples(model.replay_buffer)[0].values()) == 8


def test_a_training_can_be_stopped_by_a_callback():
    model = agent(diaries())
    model.learn(50, callback=Counter(stop_after=7))
    assert model.num_timesteps == 7


def test_other_train_frequencies():
    model = agent(diaries(), train_freq=(2, "episode"), **{**LEARNING, "gradient_steps": -1})
    model.learn(60)
    assert model._n_updates > 0


# Logs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_envs", [1, 2])
def test_logged_decisions_and_holds(n_envs):
    model = agent(diaries(n_envs), interrupt_margin=0.01, exploration_initial_eps=0.5, exploration_final_eps=0.5)
    by_table(model.policy, lambda rows: np.random.default_rng(int(rows.sum())).random((len(rows), 3, 3)))
    rows = capture_log(model)
    decisions = watch_decisions(model)
    model.learn(120 * n_envs, log_interval=1)
    model.dump_logs()
    last = rows[-1]
    episodes, holds, cuts = [], [], []
    for env, log in enumerate(logs(model.env)):
        begun = [decided for decided in decisions if decided.env == env]
        made = 0
        for decided, option in zip(begun, executed_options(log, decisions, env), strict=True):
            made += 1
            ended = option[-1].terminated or option[-1].truncated
            running = option[-1] is log[-1] and not ended and len(option) < decided.duration
            if not running:
                holds.append(len(option))
                cuts.append(len(option) < decided.duration and not ended)
            if ended:
                episodes.append(made)
                made = 0
    assert 0.0 < np.mean(cuts) < 1.0
    assert last["rollout/decisions_mean"] == pytest.approx(np.mean(episodes))
    assert last["rollout/hold_mean"] == pytest.approx(np.mean(holds))
    assert last["rollout/interrupted_share"] == pytest.approx(np.mean(cuts))
    assert last["rollout/ep_len_mean"] == pytest.approx(np.mean([7, 4, 1, 9]), abs=0.5)
    assert last["rollout/exploration_rate"] == 0.5


def test_logged_losses_and_targets():
    model = agent(diaries(), **{**LEARNING, "gradient_steps": 0})
    rows = capture_log(model)
    model.learn(50, log_interval=1000)
    learned = watch_learning(model)
    model.train(gradient_steps=3, batch_size=5)
    model.dump_logs()
    (row,) = rows
    for k in (1, 2, 3):
        losses = [each.residuals.row_losses[k - 1].mean() for each in learned]
        targets = [each.targets[k - 1].mean() for each in learned]
        assert row[f"train/loss_k{k}"] == pytest.approx(np.mean(losses), rel=1e-5)
        assert row[f"train/target_k{k}"] == pytest.approx(np.mean(targets), rel=1e-5)
    assert row["train/loss"] == pytest.approx(np.mean([each.residuals.loss for each in learned]), rel=1e-5)
    assert row["train/n_updates"] == 3


def test_a_view_without_tuples_is_not_logged():
    model = plain_agent(diaries(lengths=[2]), bootstrap=False, **LEARNING)
    rows = capture_log(model)
    model.learn(40, log_interval=10)
    assert model.replay_buffer.drawable.tolist() == [True, True, False]
    assert {"train/loss_k1", "train/target_k2"} <= set(rows[-1])
    assert not {"train/loss_k3", "train/target_k3"} & set(rows[-1])


# Seeds ------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_weights_and_another_one_others():
    one, again, other = (agent(Pier(), **{**LEARNING, "seed": seed}).learn(80) for seed in (3, 3, 4))
    assert th.equal(weights(one), weights(again))
    assert not th.equal(weights(one), weights(other))


def test_dictionaries_and_vectors_draw_the_same_numbers():
    class Wrapped(gym.ObservationWrapper):
        def __init__(self, env):
            super().__init__(env)
            self.observation_space = spaces.Dict({"only": env.observation_space})

        def observation(self, observation):
            return {"only": observation}

    flat = plain_agent(Pier(), **LEARNING).learn(80)
    nested = plain_agent(Wrapped(Pier()), policy="MultiInputPolicy", **LEARNING).learn(80)
    assert th.equal(weights(flat), weights(nested))


def test_the_callers_dictionaries_are_left_alone():
    policy_kwargs = {"net_arch": [8], "optimizer_kwargs": {"eps": 1e-4}}
    replay_buffer_kwargs = {"handle_timeout_termination": False}
    before = copy.deepcopy((policy_kwargs, replay_buffer_kwargs))
    model = agent(
        diaries(), **{**LEARNING, "policy_kwargs": policy_kwargs}, replay_buffer_kwargs=replay_buffer_kwargs
    )
    model.learn(30)
    assert (policy_kwargs, replay_buffer_kwargs) == before
    assert not model.replay_buffer.handle_timeout_termination
    assert model.policy_kwargs == policy_kwargs
    head_arch = [4]
    agent(diaries(), head_arch=head_arch)
    assert head_arch == [4]


# Other observations -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "extractor", [{}, {"features_extractor_class": ConvFeatures, "net_arch": []}], ids=["nature", "paper"]
)
def test_pictures(extractor):
    model = agent(Pictures(), policy="CnnPolicy", **{**LEARNING, "policy_kwargs": extractor})
    model.learn(30)
    assert model.replay_buffer.store.own.dtype == np.uint8
    env = Pictures()
    decision = model.policy.decide(env.reset(seed=1)[0])
    assert decision.values.shape == (2, 3)


@pytest.mark.parametrize("n_envs", [1, 2])
def test_dictionaries_of_pictures_and_numbers(n_envs):
    env = DummyVecEnv([lambda: Pictures(beside=True)] * n_envs)
    model = agent(env, policy="MultiInputPolicy", normalize_observations="space", **LEARNING)
    model.learn(30)
    single = Pictures(beside=True)
    observation = single.reset(seed=1)[0]
    assert model.policy.decide(observation).values.shape == (2, 3)
    action, state = model.predict(observation, deterministic=True)
    assert action.shape == ()
    assert len(state) == 5


def test_discrete_observations():
    model = agent(gym.make("FrozenLake-v1"), **LEARNING).learn(60)
    assert model.policy.decide(3).values.shape == (4, 3)


def test_a_normalising_environment():
    env = VecNormalize(diaries(2))
    model = agent(env, **LEARNING)
    model.learn(80)
    (first, second) = logs(env)
    stored = model.replay_buffer.rewards[:40]
    assert stored[:, 0].tolist() == [entry.reward for entry in first]
    assert stored[:, 1].tolist() == [entry.reward for entry in second]


def test_evaluation_callbacks_hold_too(tmp_path):
    callback = EvalCallback(
        Monitor(Pier()), eval_freq=20, n_eval_episodes=2, best_model_save_path=str(tmp_path), verbose=0
    )
    # A bare environment in training and a vector of one in evaluation are SB3's own habit.
    agent(DummyVecEnv([lambda: Monitor(Pier())]), **LEARNING).learn(40, callback=callback)
    assert (tmp_path / "best_model.zip").exists()


def test_two_environments_are_two_histories():
    model = plain_agent(diaries(2), prioritized=False, buffer_size=60, exploration_initial_eps=0.5)
    decisions = watch_decisions(model)
    model.learn(100)
    literal = expected_replay(model, decisions)
    for k, view in enumerate(drawable_tuples(model.replay_buffer), start=1):
        assert view == literal.tuples(k)


# Environments that do not quite keep to their word ------------------------------------------------------------


def test_observations_of_another_precision_do_not_break_options():
    buffer = OptionReplayBuffer(50, gym.spaces.Box(-9, 9, (2,), np.float32), gym.spaces.Discrete(2), k_max=4)
    observation = np.full((1, 2), 0.1)
    for step in range(4):
        following = observation + 0.1
        buffer.add(observation, following, np.array([1]), np.ones(1), np.zeros(1), [{}], [step == 3])
        observation = following
    assert buffer.left[:4, 0].tolist() == [4, 3, 2, 1]
    assert len(buffer.store.lent) == 0


def test_a_reset_that_reuses_its_array_is_noticed():
    stacked = VecFrameStack(DummyVecEnv([lambda: gym.make("CartPole-v1")]), 2)
    model = PerDQN("MlpPolicy", stacked, k_max=50, learning_starts=1000, seed=3)
    model.learn(5)
    while model.clock.idle[0]:
        model.learn(1, reset_num_timesteps=False)
    model._setup_learn(5)
    assert model.clock.idle.all()
    assert model.hold_statistics.decisions.tolist() == [0]


def test_scaling_twice_is_refused():
    normalized = VecNormalize(DummyVecEnv([lambda: gym.make("MountainCar-v0")]))
    with pytest.raises(ValueError, match="normalize_observations must be None"):
        PerDQN("MlpPolicy", normalized, normalize_observations="space")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"policy_kwargs": {"normalize_observations": "sapce"}}, "must not have 'normalize_observations'"),
        ({"policy_kwargs": {"decision_tolerance": -1.0}}, "must not have 'decision_tolerance'"),
        ({"policy_kwargs": {"net_arch": 64}}, "net_arch in policy_kwargs must be a list of layer widths"),
        ({"replay_buffer_kwargs": {"alpha": 0.5}}, "give priority_alpha to the agent instead"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"buffer_size": 0}, "buffer_size must be a whole number of at least 1"),
        ({"gamma": 1.5}, "gamma must be a number in"),
        ({"max_grad_norm": None}, "max_grad_norm must be a finite number above 0"),
    ],
)
def test_arguments_that_would_be_ignored_or_fail_later(arguments, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        PerDQN("MlpPolicy", "CartPole-v1", **arguments)


def test_the_clip_follows_a_replaced_policy():
    model = agent(Pier(), **LEARNING)
    model.learn(40)
    model.policy = copy.deepcopy(model.policy)
    model._create_aliases()
    model.max_grad_norm = 1e-9
    model.train(1, 4)
    norm = sum(p.grad.norm().item() for p in model.q_net.parameters() if p.grad is not None)
    assert norm < 1e-7


@th.no_grad()
def test_kept_values_follow_the_network_and_the_replay():
    with th.enable_grad():
        model = plain_agent(Pier(), **LEARNING).learn(60)
    rows = np.arange(3)
    before = model.target_cache.values_of(model, rows)[rows]
    for parameter in model.q_net_target.parameters():
        parameter.mul_(2.0)
    fresh = model.q_net_target(model.replay_buffer.observations_at(rows)).numpy()
    np.testing.assert_allclose(model.target_cache.values_of(model, rows)[rows], fresh, rtol=1e-6)
    assert not np.allclose(before, fresh)


@th.no_grad()
def test_kept_values_follow_a_replaced_policy():
    with th.enable_grad():
        model = plain_agent(Pier(), **LEARNING).learn(60)
    rows = np.arange(3)
    model.target_cache.values_of(model, rows)
    model.policy = copy.deepcopy(model.policy)
    model._create_aliases()
    for factor in (2.0, 3.0):
        for parameter in model.q_net_target.parameters():
            parameter.mul_(factor)
        fresh = model.q_net_target(model.replay_buffer.observations_at(rows)).numpy()
        np.testing.assert_allclose(model.target_cache.values_of(model, rows)[rows], fresh, rtol=1e-6)


def test_the_first_updates_need_not_wait_for_the_first_option():
    model = agent(diaries(lengths=[50]), k_max=40, **{**LEARNING, "learning_starts": 0, "gradient_steps": 0})
    model.exploration_rate = 1.0
    while True:
        model.set_random_seed(int(model.num_timesteps) + 1)
        model.learn(2)
        if not model.replay_buffer.drawable.any():
            break
        model.replay_buffer.reset()
    model.train(1, 4)
    assert model._n_updates == 1
    assert model.replay_buffer.drawable.any()


def test_a_replay_of_other_spaces_is_refused(tmp_path):
    agent(diaries(), **LEARNING).save_replay_buffer(tmp_path / "replay")
    other = agent(Diary(n_actions=4), **LEARNING)
    before = other.replay_buffer
    with pytest.raises(ValueError, match=r"^the replay must be of action_space=Discrete\(4\)"):
        other.load_replay_buffer(tmp_path / "replay")
    assert other.replay_buffer is before


def test_a_training_that_begins_anew_forgets_how_actions_were_held():
    model = agent(diaries(), **LEARNING).learn(60)
    assert len(model.hold_statistics.episode_decisions) > 5
    kept = len(model.hold_statistics.holds)
    model.learn(10, reset_num_timesteps=False)
    assert len(model.hold_statistics.holds) > kept
    model.learn(10)
    assert sum(model.hold_statistics.holds) <= 10
