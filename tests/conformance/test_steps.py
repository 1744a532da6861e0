"""Steps, updates and schedules happen where those of SB3's DQN do."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch as th
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.utils import polyak_update

from holdfast.deep import OptionReplayBuffer
from tests.conformance.agents import decide, make_dqn, same, weights
from tests.conformance.worlds import Counting, Samples, singles, vector


class Watch(BaseCallback):
    """What can be seen of an agent at every step."""

    def __init__(self):
        super().__init__()
        self.steps, self.rates, self.targets, self.updates = [], [], [], []

    def _on_step(self):
        self.steps.append(self.model.num_timesteps)
        self.rates.append(self.model.exploration_rate)
        self.targets.append(weights(self.model.q_net_target))
        self.updates.append(self.model._n_updates)
        return True

    @property
    def target_changes(self):
        """Steps after which the target network was another one."""
        pairs = zip(self.steps, self.targets[:-1], self.targets[1:], strict=False)
        return [step for step, before, after in pairs if not same(before, after)]


def both(make, env, total, pieces=1, **overrides):
    """Our agent and SB3's after the same training, each with what was seen of it."""
    found = []
    for factory in (make, make_dqn):
        model, watch = factory(env(), **overrides), Watch()
        for _ in range(pieces):
            model.learn(total, callback=watch, reset_num_timesteps=False)
        found += [model, watch]
    return found


# Steps ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_envs", "train_freq", "total"),
    [(1, 1, 1), (1, 1, 31), (1, 4, 31), (1, (5, "step"), 30), (4, 1, 30), (4, 3, 30), (4, (5, "step"), 1)],
)
def test_learning_ends_where_dqn_ends(make, n_envs, train_freq, total):
    ours, seen, theirs, expected = both(make, lambda: vector(n_envs), total, train_freq=train_freq)
    assert ours.num_timesteps == theirs.num_timesteps
    assert seen.steps == expected.steps
    assert seen.updates == expected.updates
    assert ours._n_updates == theirs._n_updates
    assert [len(env.done) for env in singles(ours.env)] == [ours.num_timesteps // n_envs] * n_envs


@pytest.mark.parametrize("train_freq", [1, 4])
def test_pieces_add_up_as_with_dqn(make, train_freq):
    ours, seen, theirs, expected = both(make, vector, total=10, pieces=3, train_freq=train_freq)
    assert seen.steps == expected.steps
    assert ours.num_timesteps == theirs.num_timesteps
    assert ours._episode_num == theirs._episode_num
    assert singles(ours.env)[0].resets == singles(theirs.env)[0].resets


def test_pieces_of_a_run_are_the_run(make):
    fixed = {"exploration_initial_eps": 0.3, "exploration_final_eps": 0.3, "learning_rate": 1e-3}
    if make(vector()).prioritized:
        fixed["priority_beta0"] = 1.0
    whole = make(vector(), **fixed).learn(40)
    pieces = make(vector(), **fixed)
    for piece in (7, 10, 1, 22):
        pieces.learn(piece, reset_num_timesteps=False)
    assert singles(pieces.env)[0].done == singles(whole.env)[0].done
    assert same(weights(pieces.policy), weights(whole.policy))


def test_learning_again_begins_anew_unless_told_otherwise(make):
    model = make(vector())
    model.learn(20)
    model.learn(15)
    assert (model.num_timesteps, singles(model.env)[0].resets) == (15, 2 + 15 // 6 + 20 // 6)
    assert model._episode_num == 2
    model.learn(15, reset_num_timesteps=False)
    assert (model.num_timesteps, model._episode_num) == (30, 5)
    assert model.replay_buffer.size() == 50


def test_a_reset_ends_what_is_held_and_going_on_does_not(make):
    quiet = {"exploration_initial_eps": 0.0, "exploration_final_eps": 0.0, "gradient_steps": 0}
    model = make(vector(length=50), learning_starts=0, **quiet)
    asked, k = [], model.policy.k_max
    decide(model, lambda observation: asked.append(model.num_timesteps) or 2)
    model.learn(1)
    model.learn(1)
    assert asked == [0, 0]
    model.learn(2 * k - 1, reset_num_timesteps=False)
    assert asked == [0, *range(0, 2 * k, k)]
    model.set_env(vector(length=50))
    model.learn(1, reset_num_timesteps=False)
    assert asked[-1] == 2 * k
    model.learn(1, reset_num_timesteps=False)
    model.set_env(vector(length=50))
    model.learn(1, reset_num_timesteps=False)
    assert asked[-1] == 2 * k + 2


def test_learning_for_no_steps(make):
    model = make(vector())
    before = weights(model.policy)
    assert model.learn(0) is model
    assert model.num_timesteps == 0
    assert same(before, weights(model.policy))


@pytest.mark.parametrize("train_freq", ["4", ("1", "episode"), (1, "day"), "often"])
def test_frequencies_that_are_none(make, train_freq):
    with pytest.raises(ValueError, match="train_freq"):
        make(vector(), train_freq=train_freq)


def test_frequencies_in_episodes_need_one_environment(make):
    with pytest.raises(AssertionError, match="only one env"):
        make(vector(2), train_freq=(1, "episode")).learn(20)


# Updates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("train_freq", "gradient_steps"), [(4, 0), (4, 3), (4, -1), ((2, "episode"), 1), ((2, "episode"), -1)]
)
def test_updates_are_counted_as_with_dqn(make, train_freq, gradient_steps):
    ours, seen, theirs, expected = both(
        make, lambda: vector(length=5), 40, train_freq=train_freq, gradient_steps=gradient_steps
    )
    assert seen.updates == expected.updates
    assert ours._n_updates == theirs._n_updates
    assert (ours._n_updates > 0) == (gradient_steps != 0)
    assert ours.num_timesteps == theirs.num_timesteps


def test_as_many_updates_as_steps_of_all_environments(make):
    model = make(vector(3), train_freq=4, gradient_steps=-1, learning_starts=12).learn(48)
    assert model._n_updates == 36
    assert model.logger.name_to_value["train/n_updates"] == 36


@pytest.mark.parametrize("n_envs", [1, 2])
def test_updates_begin_with_the_first_rollout_after_the_warm_up(make, n_envs):
    model = make(vector(n_envs), learning_starts=20)
    before = weights(model.q_net)
    model.learn(20)
    assert model._n_updates == 0
    assert same(before, weights(model.q_net))
    model.learn(20 + 2 * n_envs)
    assert model._n_updates == 2
    assert not same(before, weights(model.q_net))


def test_actions_are_random_during_the_warm_up_and_greedy_after_it(make):
    quiet = {"exploration_initial_eps": 0.0, "exploration_final_eps": 0.0, "gradient_steps": 0}
    env = Samples(n_actions=4, length=1000)
    model = make(env, learning_starts=60, **quiet).learn(60)
    assert set(env.done) == {0, 1, 2, 3}
    # A network that says the same of every observation, at least when its options end.
    with th.no_grad():
        for parameter in model.q_net.parameters():
            parameter.zero_()
    model.learn(40, reset_num_timesteps=False)
    assert env.done[-30:] == [0] * 30


def test_every_parameter_learns(make):
    model = make(vector(), learning_starts=40)
    before = copy.deepcopy(model.q_net.state_dict())
    model.learn(70)
    for name, value in model.q_net.state_dict().items():
        assert not th.equal(value, before[name]), name


def test_gradients_are_clipped(make):
    plain = {"policy_kwargs": {"net_arch": [8], "optimizer_class": th.optim.SGD}, "learning_rate": 1.0}
    moved = {}
    for norm in (1e-4, 1e4):
        model = make(vector(), max_grad_norm=norm, gradient_steps=0, **plain).learn(30)
        before = weights(model.q_net)
        model.train(gradient_steps=1, batch_size=8)
        steps = [after - start for start, after in zip(before, weights(model.q_net), strict=True)]
        moved[norm] = float(th.cat([step.flatten() for step in steps]).norm())
    assert moved[1e-4] == pytest.approx(1e-4, rel=0.05)
    assert moved[1e4] > 1e-3


# Schedules --------------------------------------------------------------------------------------------------


def test_exploration_falls_as_with_dqn(make):
    settings = {"exploration_fraction": 0.5, "exploration_initial_eps": 0.9, "exploration_final_eps": 0.1}
    _, seen, _, expected = both(make, vector, 40, **settings)
    assert seen.rates == pytest.approx(expected.rates)
    assert seen.rates[-1] == pytest.approx(0.1)
    assert 0.1 < seen.rates[10] < 0.9


def test_the_learning_rate_follows_its_schedule(make):
    model = make(vector(), learning_rate=lambda progress: 0.2 * progress + 0.1)
    assert model.policy.optimizer.param_groups[0]["lr"] == pytest.approx(0.3)
    model.learn(40)
    assert model.policy.optimizer.param_groups[0]["lr"] == pytest.approx(0.1)
    assert model.logger.name_to_value["train/learning_rate"] == pytest.approx(0.1)
    rates = []
    watch = Watch()
    watch._on_step = lambda: rates.append(model.policy.optimizer.param_groups[0]["lr"]) or True
    model.learn(40, callback=watch)
    # Asked for before the update of the same step; the warm-up has none.
    assert rates[15] == pytest.approx(0.2 * (1 - 15 / 40) + 0.1)


@pytest.mark.parametrize(("n_envs", "interval"), [(1, 7), (2, 8), (2, 7)])
def test_the_target_network_follows_when_that_of_dqn_does(make, n_envs, interval):
    settings = {"target_update_interval": interval, "learning_starts": 2}
    _, seen, _, expected = both(make, lambda: vector(n_envs), 50, **settings)
    assert seen.target_changes == expected.target_changes
    assert len(seen.target_changes) >= 6


def test_a_target_interval_shorter_than_a_step_of_all_environments_is_warned_of(make):
    with pytest.warns(UserWarning, match="number of environments used is greater"):
        make(vector(3), target_update_interval=2)


def test_soft_updates_of_the_target_network(make):
    model = make(vector(), tau=0.3, target_update_interval=5, gradient_steps=0)
    with th.no_grad():
        for parameter in model.q_net.parameters():
            parameter += 1.0
    online, target = weights(model.q_net), weights(model.q_net_target)
    model.learn(9)
    for mine, old, now in zip(online, target, weights(model.q_net_target), strict=True):
        th.testing.assert_close(now, 0.3 * mine + 0.7 * old)
    assert same(online, weights(model.q_net))


@pytest.mark.parametrize("how", ["polyak", "data", "vector"])
def test_whoever_writes_the_target_network_is_believed_at_once(make, how):
    """As a callback of the user's own might, with SB3's function or without."""

    def learned(write):
        model = make(vector(), target_update_interval=10_000).learn(30)
        write(model.q_net, model.q_net_target)
        model.set_random_seed(0)
        model.train(gradient_steps=1, batch_size=8)
        return weights(model.q_net)

    def write(online, target):
        if how == "polyak":
            polyak_update(online.parameters(), target.parameters(), 1.0)
        elif how == "data":
            for mine, other in zip(target.parameters(), online.parameters(), strict=True):
                mine.data = other.data.clone()
        else:
            target.load_from_vector(online.parameters_to_vector())

    expected = learned(lambda online, target: target.load_state_dict(online.state_dict()))
    assert not same(expected, learned(lambda online, target: None))
    assert same(expected, learned(write))


# Replay -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_envs", [1, 2])
def test_a_full_replay_holds_the_newest_steps(make, n_envs):
    size = 24
    model = make(vector(n_envs, kind=Counting, length=5), buffer_size=size, gradient_steps=0)
    model.learn(size - n_envs)
    assert not model.replay_buffer.full
    assert model.replay_buffer.size() == size // n_envs - 1
    for steps in (n_envs, 4 * size):
        model.learn(steps, reset_num_timesteps=False)
        assert model.replay_buffer.full
        assert model.replay_buffer.size() == size // n_envs
    drawn = model.replay_buffer.sample(300).observations[:, 0].unique().tolist()
    newest, episode = [], []
    for env in singles(model.env):
        # The last observation of an episode is that of no step; the newest one has had none yet.
        firsts = [seen for number, seen in enumerate(env.seen[:-1]) if number % 6 != 5]
        newest += firsts[-size // n_envs :]
        episode += firsts[-4:]
    assert set(drawn) <= set(newest)
    # All of them, but for an option that is still running.
    assert set(newest) - set(drawn) <= set(episode)


def test_saving_memory_is_accepted_and_changes_nothing(make):
    plain, saving = (make(vector(), optimize_memory_usage=flag).learn(30) for flag in (False, True))
    assert same(weights(plain.policy), weights(saving.policy))


def test_a_replay_of_a_users_own(make):
    class Own(OptionReplayBuffer):
        pass

    model = make(vector(), replay_buffer_class=Own).learn(20)
    assert type(model.replay_buffer) is Own
    assert model.replay_buffer.size() == 20


def test_a_replay_without_options_is_refused(make):
    sentence = "replay_buffer_class must be None, 'HerReplayBuffer' or a subclass of OptionReplayBuffer"
    with pytest.raises(ValueError, match=sentence):
        make(vector(), replay_buffer_class=ReplayBuffer)
    with pytest.raises(
        ValueError, match="env must have Dict observations with observation, achieved_goal, desired_goal"
    ):
        make(vector(), replay_buffer_class=HerReplayBuffer)


def test_returns_of_several_steps_are_refused(make):
    with pytest.raises(ValueError, match="n_steps must be 1"):
        make(vector(), n_steps=3)


def test_there_is_no_action_noise(make):
    model = make(vector())
    assert model.action_noise is None
    with pytest.raises(TypeError, match="action_noise"):
        make(vector(), action_noise=NormalActionNoise(np.zeros(1), np.ones(1)))


def test_the_smallest_of_everything(make):
    model = make(vector(), learning_starts=1, buffer_size=1, batch_size=1, policy_kwargs={"net_arch": [2]})
    model.learn(30)
    assert model._n_updates > 0
    assert model.replay_buffer.size() == 1


# Environments -----------------------------------------------------------------------------------------------


def test_another_environment(make):
    first, second = vector(), vector()
    model = make(first).learn(20)
    model.set_env(second)
    assert model._last_obs is None
    model.learn(14)
    assert (len(singles(first)[0].done), len(singles(second)[0].done)) == (20, 14)
    assert model.num_timesteps == 14
    with pytest.raises(AssertionError, match="number of environments"):
        model.set_env(vector(2))
    model.set_env(model.get_env(), force_reset=False)
    assert model._last_obs is not None
    model.learn(6, reset_num_timesteps=False)
    assert model.num_timesteps == 20


def test_a_single_environment_is_wrapped_and_watched_once(make):
    for env in (Samples(), Monitor(Samples())):
        model = make(env)
        inner, monitors = model.get_env().envs[0], 0
        while hasattr(inner, "env"):
            monitors += isinstance(inner, Monitor)
            inner = inner.env
        assert monitors == 1
        assert model.get_env().env_is_wrapped(Monitor) == [True]
        model.set_env(env)
        assert model.learn(13).num_timesteps == 13
        assert [info["l"] for info in model.ep_info_buffer] == [6, 6]
        assert sum(info["r"] for info in model.ep_info_buffer) == singles(model.env)[0].done[:12].count(1)


def test_an_environment_that_takes_no_options_at_its_reset(make):
    class Plain(Samples):
        def reset(self, seed=None):
            return super().reset(seed=seed)

    model = make(Plain()).learn(20)
    assert model.num_timesteps == 20
    assert make_dqn(Plain()).learn(20).num_timesteps == 20


def test_the_window_of_logged_means(make):
    model = make(vector(), stats_window_size=3).learn(40)
    assert model.ep_info_buffer.maxlen == model.ep_success_buffer.maxlen == 3
    assert len(model.ep_info_buffer) == 3
