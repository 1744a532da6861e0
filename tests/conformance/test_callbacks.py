"""Callbacks are called when those of SB3's DQN are, see what it shows them, and can stop the training."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    CheckpointCallback,
    ConvertCallback,
    EvalCallback,
    EveryNTimesteps,
    LogEveryNTimesteps,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnNoModelImprovement,
    StopTrainingOnRewardThreshold,
)
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from tests.conformance.agents import make_dqn, same, weights
from tests.conformance.worlds import Counting, Echo, Samples, singles, vector


class Diary(BaseCallback):
    """Writes down every event with the number of steps, and may stop the training."""

    def __init__(self, stop_after=None, answer=False):
        super().__init__()
        self.events, self.stop_after, self.answer = [], stop_after, answer

    def note(self, event):
        self.events.append((event, self.model.num_timesteps, self.num_timesteps, self.n_calls))

    def _on_training_start(self):
        self.note("training start")

    def _on_rollout_start(self):
        self.note("rollout start")

    def _on_step(self):
        self.note("step")
        return self.answer if self.n_calls == self.stop_after else True

    def _on_rollout_end(self):
        self.note("rollout end")

    def _on_training_end(self):
        self.note("training end")


@pytest.mark.parametrize(("n_envs", "train_freq"), [(1, 1), (1, 4), (1, (1, "episode")), (3, 2)])
def test_events_come_as_with_dqn(make, n_envs, train_freq):
    ours, theirs = Diary(), Diary()
    make(vector(n_envs), train_freq=train_freq).learn(20, callback=ours)
    make_dqn(vector(n_envs), train_freq=train_freq).learn(20, callback=theirs)
    assert ours.events == theirs.events
    assert [event for event, *_ in ours.events].count("step") >= 20 // n_envs


def test_what_a_callback_sees(make):
    seen = []

    class Look(BaseCallback):
        def _on_step(self):
            names = ("new_obs", "rewards", "dones", "infos", "actions", "buffer_actions", "replay_buffer")
            seen.append({name: self.locals[name] for name in names})
            assert self.training_env is self.model.get_env()
            assert self.logger is self.model.logger
            assert self.locals["self"] is self.model
            return True

    model = make(vector(2, kind=Counting))
    model.learn(40, callback=Look())
    assert len(seen) == 20
    for index, env in enumerate(singles(model.env)):
        assert [int(step["actions"][index]) for step in seen] == env.done
        assert [step["rewards"][index] for step in seen] == [float(action == 1) for action in env.done]
        # The last observation of an episode is seen in the infos only.
        shown = [observation for number, observation in enumerate(env.seen) if number % 7 != 6]
        assert [step["new_obs"][index, 0] for step in seen] == shown[1:]
    assert all(step["replay_buffer"] is model.replay_buffer for step in seen)
    ends = [step for step in seen if step["dones"].any()]
    assert len(ends) == 3
    assert all("terminal_observation" in step["infos"][0] and "episode" in step["infos"][0] for step in ends)


# Stopping ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "n_envs"), [(False, 1), (np.bool_(False), 2), (th.tensor(False), 1)])
def test_a_callback_stops_the_training_at_once(make, answer, n_envs):
    diary = Diary(stop_after=7, answer=answer)
    model = make(vector(n_envs), learning_starts=2)
    model.learn(100, callback=diary)
    assert model.num_timesteps == 7 * n_envs
    assert diary.events[-2:] == [("step", 7 * n_envs, 7 * n_envs, 7), ("training end", 7 * n_envs, 7 * n_envs, 7)]
    model.learn(20 * n_envs, reset_num_timesteps=False)
    assert model.num_timesteps == 27 * n_envs


def test_a_callback_stops_in_the_middle_of_a_rollout(make):
    model = make(vector(), train_freq=10)
    model.learn(100, callback=Diary(stop_after=15))
    assert model.num_timesteps == 15
    assert model._n_updates == 0


@pytest.mark.parametrize("n_envs", [1, 2])
def test_after_a_number_of_episodes(make, n_envs):
    model = make(vector(n_envs, length=5))
    stop = StopTrainingOnMaxEpisodes(max_episodes=3)
    model.learn(1000, callback=stop)
    assert stop.n_episodes == 3 * n_envs
    assert model.num_timesteps == 15 * n_envs


def test_after_a_reward(make):
    on_best = StopTrainingOnRewardThreshold(reward_threshold=-1.0)
    model = make(vector())
    model.learn(100, callback=EvalCallback(vector(), callback_on_new_best=on_best, eval_freq=9, verbose=0))
    assert model.num_timesteps == 9
    never = StopTrainingOnRewardThreshold(reward_threshold=1e6)
    model.learn(20, callback=EvalCallback(vector(), callback_on_new_best=never, eval_freq=9, verbose=0))
    assert model.num_timesteps == 20


def test_after_evaluations_without_progress(make):
    patience = StopTrainingOnNoModelImprovement(max_no_improvement_evals=2, min_evals=1)
    evaluation = EvalCallback(vector(kind=Echo), callback_after_eval=patience, eval_freq=5, verbose=0)
    model = make(vector(kind=Echo), gradient_steps=0)
    model.learn(200, callback=evaluation)
    # The first is the best, and so are all others: 2 without progress are borne, the third is not.
    assert model.num_timesteps == 20


# Combinations -----------------------------------------------------------------------------------------------


def test_lists_functions_and_every_n_steps(make):
    counted, inner = [], Diary()
    every = EveryNTimesteps(n_steps=8, callback=inner)

    def count(found_locals, found_globals):
        counted.append(found_locals["self"].num_timesteps)
        return True

    model = make(vector(2))
    model.learn(40, callback=CallbackList([every, ConvertCallback(count)]))
    assert counted == list(range(2, 41, 2))
    assert [steps for event, _, steps, _ in inner.events if event == "step"] == [8, 16, 24, 32, 40]
    assert inner.locals["new_obs"] is every.locals["new_obs"]

    again = Diary()
    model.learn(6, callback=[again])
    assert [event for event, *_ in again.events].count("step") == 3
    called = []
    model.learn(6, callback=lambda found_locals, found_globals: called.append(1) or len(called) < 2)
    assert len(called) == 2
    assert model.num_timesteps == 4


def test_logging_every_n_steps(make, tmp_path):
    from stable_baselines3.common.logger import configure

    model = make(vector())
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(40, callback=LogEveryNTimesteps(n_steps=10), log_interval=None)
    model.logger.close()
    rows = (tmp_path / "progress.csv").read_text().splitlines()
    column = rows[0].split(",").index("time/total_timesteps")
    assert [int(row.split(",")[column]) for row in rows[1:]] == [10, 20, 30, 40]


@pytest.mark.filterwarnings("ignore:rich is experimental")
def test_the_progress_bar(make, capsys):
    pytest.importorskip("tqdm")
    pytest.importorskip("rich")
    model = make(vector(2))
    model.learn(40, progress_bar=True)
    assert model.num_timesteps == 40
    assert "40/40" in "".join(capsys.readouterr())


# Evaluation -------------------------------------------------------------------------------------------------


def test_evaluations_are_written_and_the_best_agent_is_kept(make, tmp_path):
    evaluation = EvalCallback(
        vector(kind=Echo),
        best_model_save_path=str(tmp_path),
        log_path=str(tmp_path),
        eval_freq=20,
        n_eval_episodes=3,
        verbose=0,
    )
    model = make(vector(kind=Echo))
    model.learn(100, callback=evaluation)
    written = np.load(tmp_path / "evaluations.npz")
    assert written["timesteps"].tolist() == [20, 40, 60, 80, 100]
    assert written["results"].shape == written["ep_lengths"].shape == (5, 3)
    assert (written["ep_lengths"] == 7).all()
    means = written["results"].mean(axis=1)
    assert evaluation.last_mean_reward == means[-1]
    assert evaluation.best_mean_reward == means.max()
    best = type(model).load(tmp_path / "best_model", device="cpu")
    assert best.num_timesteps == 20 * (1 + int(means.argmax()))
    assert evaluate_policy(best, vector(kind=Echo), n_eval_episodes=2)[0] == means.max()


@pytest.mark.parametrize("n_envs", [1, 2])
def test_evaluating_does_not_disturb_the_training(make, n_envs):
    evaluation = EvalCallback(vector(3), eval_freq=7, n_eval_episodes=4, verbose=0)
    watched = make(vector(n_envs)).learn(40, callback=evaluation)
    alone = make(vector(n_envs)).learn(40)
    assert evaluation.n_calls == 40 // n_envs
    assert np.isfinite(evaluation.last_mean_reward)
    assert [env.done for env in singles(watched.env)] == [env.done for env in singles(alone.env)]
    assert same(weights(watched.policy), weights(alone.policy))


def test_children_know_the_evaluation_they_belong_to(make):
    parents = []

    class Child(BaseCallback):
        def _on_step(self):
            parents.append(self.parent)
            return True

    evaluation = EvalCallback(
        vector(),
        callback_on_new_best=Child(),
        callback_after_eval=CallbackList([Child()]),
        eval_freq=10,
        verbose=0,
    )
    make(vector()).learn(20, callback=evaluation)
    assert len(parents) >= 3
    assert all(parent is evaluation for parent in parents)


def test_success_is_evaluated_and_logged(make):
    class Lucky(gym.Wrapper):
        def step(self, action):
            *found, truncated, info = self.env.step(action)
            return *found, truncated, {"is_success": True} if truncated else info

    env = DummyVecEnv([lambda: Monitor(Lucky(Samples()))])
    evaluation = EvalCallback(env, eval_freq=10, verbose=0)
    model = make(DummyVecEnv([lambda: Monitor(Lucky(Samples()))]))
    model.learn(20, callback=evaluation, log_interval=1000)
    assert evaluation._is_success_buffer == [True] * 5
    assert list(model.ep_success_buffer) == [True] * 3


def test_the_statistics_of_a_normaliser_are_passed_on_to_evaluations(make):
    env, shown = VecNormalize(vector()), VecNormalize(vector(), training=False, norm_reward=False)
    make(env).learn(30, callback=EvalCallback(shown, eval_freq=30, verbose=0))
    np.testing.assert_array_equal(shown.obs_rms.mean, env.obs_rms.mean)
    assert np.abs(shown.obs_rms.mean).max() > 0
    with (
        pytest.warns(UserWarning, match="not of the same type"),
        pytest.raises(AssertionError, match="VecNormalize"),
    ):
        make(env).learn(30, callback=EvalCallback(vector(), eval_freq=30, verbose=0))


# Checkpoints ------------------------------------------------------------------------------------------------


def test_checkpoints_can_be_gone_on_from(make, tmp_path):
    env = VecNormalize(vector())
    model = make(env)
    checkpoints = CheckpointCallback(
        save_freq=20, save_path=str(tmp_path), save_replay_buffer=True, save_vecnormalize=True
    )
    model.learn(45, callback=checkpoints)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"rl_model_{kind}{steps}_steps.{suffix}"
        for steps in (20, 40)
        for kind, suffix in (("", "zip"), ("replay_buffer_", "pkl"), ("vecnormalize_", "pkl"))
    )
    again = VecNormalize.load(str(tmp_path / "rl_model_vecnormalize_40_steps.pkl"), vector())
    loaded = type(model).load(tmp_path / "rl_model_40_steps", env=again, device="cpu")
    loaded.load_replay_buffer(tmp_path / "rl_model_replay_buffer_40_steps.pkl")
    assert loaded.num_timesteps == 40
    # The callback is asked before the step is stored.
    assert loaded.replay_buffer.size() == 39
    assert loaded.get_vec_normalize_env() is again
    loaded.learn(10, reset_num_timesteps=False)
    assert loaded.num_timesteps == 50
    assert loaded.replay_buffer.size() == 49
