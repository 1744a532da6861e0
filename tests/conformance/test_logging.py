"""Logs: the names SB3's users know, at its intervals, in all its formats."""

from __future__ import annotations

import csv
import json
from unittest import mock

import numpy as np
import pytest
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import HParam, KVWriter, Logger, configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from tests.conformance.agents import make_dqn
from tests.conformance.worlds import Samples, singles, vector


class Rows(KVWriter):
    """Keeps every row that is written."""

    def __init__(self):
        self.rows, self.excluded, self.steps = [], {}, []

    def write(self, key_values, key_excluded, step=0):
        self.rows.append(dict(key_values))
        self.excluded.update(key_excluded)
        self.steps.append(step)


def logged(model, *arguments, **keywords):
    writer = Rows()
    model.set_logger(Logger(folder=None, output_formats=[writer]))
    model.learn(*arguments, **keywords)
    return writer


@pytest.mark.parametrize(("n_envs", "log_interval"), [(1, 4), (1, None), (3, 1)])
def test_rows_come_when_those_of_dqn_do_and_have_its_names(make, n_envs, log_interval):
    ours = logged(make(vector(n_envs)), 60, log_interval=log_interval)
    theirs = logged(make_dqn(vector(n_envs)), 60, log_interval=log_interval)
    assert ours.steps == theirs.steps
    assert (len(ours.rows) > 1) == (log_interval is not None)
    for mine, other in zip(ours.rows, theirs.rows, strict=True):
        assert other.keys() <= mine.keys()
        known = {"time/total_timesteps", "time/episodes", "rollout/ep_len_mean", "rollout/exploration_rate"}
        for name in known & other.keys():
            assert mine[name] == pytest.approx(other[name])
    assert {name: ours.excluded[name] for name in theirs.excluded} == theirs.excluded


def test_the_numbers_are_right(make):
    model = make(vector())
    rows = logged(model, 36, log_interval=2).rows
    actions = singles(model.env)[0].done
    assert [row["time/total_timesteps"] for row in rows] == [12, 24, 36]
    assert [row["time/episodes"] for row in rows] == [2, 4, 6]
    rewards = [actions[start : start + 6].count(1) for start in range(0, 36, 6)]
    assert [row["rollout/ep_rew_mean"] for row in rows] == pytest.approx([np.mean(rewards[:n]) for n in (2, 4, 6)])
    assert all(row["rollout/ep_len_mean"] == 6.0 for row in rows)
    assert all(np.isfinite(row["train/loss"]) for row in rows[1:])
    # 10 steps of warm-up, and the update of a step follows its row.
    assert [row.get("train/n_updates") for row in rows] == [1, 13, 25]
    assert all(row["train/learning_rate"] == 1e-2 for row in rows)
    assert all(1.0 <= row["rollout/hold_mean"] <= model.k_max for row in rows)
    assert all(1.0 <= row["rollout/decisions_mean"] <= 6.0 for row in rows)
    if model.k_max == 1:
        assert all(row["rollout/decisions_mean"] == 6.0 and row["rollout/hold_mean"] == 1.0 for row in rows)


@pytest.mark.parametrize("n_envs", [1, 4])
def test_decisions_are_counted(make, n_envs):
    model = make(vector(n_envs, length=9))
    begun, begin = [0] * n_envs, model.clock.begin
    per_episode = []

    def spy(mask, *arguments, **keywords):
        for env in np.flatnonzero(mask):
            begun[env] += 1
        begin(mask, *arguments, **keywords)

    class Ends(BaseCallback):
        def _on_step(self):
            for env in np.flatnonzero(self.locals["dones"]):
                per_episode.append(begun[env])
                begun[env] = 0
            return True

    model.clock.begin = spy
    model.learn(36 * n_envs, callback=Ends())
    assert len(per_episode) == 4 * n_envs
    assert list(model.hold_statistics.episode_decisions) == per_episode
    assert (set(per_episode) == {9}) == (model.k_max == 1)
    holds = model.hold_statistics.holds
    assert sum(holds) == 36 * n_envs
    assert 1 <= min(holds) <= max(holds) <= model.k_max


@pytest.mark.parametrize("name", ["csv", "json", "log"])
def test_formats(make, tmp_path, name):
    model = make(vector())
    model.set_logger(configure(str(tmp_path), [name]))
    model.learn(36, log_interval=2)
    model.logger.close()
    if name == "csv":
        with (tmp_path / "progress.csv").open() as file:
            rows = list(csv.DictReader(file))
    elif name == "json":
        rows = [json.loads(line) for line in (tmp_path / "progress.json").read_text().splitlines()]
    else:
        text = (tmp_path / "log.txt").read_text()
        assert text.count("ep_rew_mean") == 3
        assert text.count("hold_mean") == 3
        return
    assert [int(row["time/total_timesteps"]) for row in rows] == [12, 24, 36]
    assert [float(row["rollout/ep_len_mean"]) for row in rows] == [6.0] * 3
    assert float(rows[-1]["train/loss"]) >= 0.0
    assert float(rows[-1]["rollout/hold_mean"]) >= 1.0


def test_a_logger_that_was_set_stays_and_one_that_was_not_is_made_anew(make, tmp_path):
    own = configure(str(tmp_path), ["csv"])
    model = make(vector())
    model.set_logger(own)
    model.learn(10)
    model.learn(10)
    assert model.logger is own
    own.close()
    other = make(vector()).learn(10)
    first = other.logger
    assert other.learn(10).logger is not first
    assert other.learn(10, reset_num_timesteps=False).logger is not first


@pytest.mark.parametrize("verbose", [0, 1])
def test_what_is_printed(make, capsys, verbose):
    make(vector(), verbose=verbose).learn(30, log_interval=2)
    out = capsys.readouterr().out
    assert ("ep_rew_mean" in out) == (verbose == 1)
    assert ("Using cpu device" in out) == (verbose == 1)
    assert (out == "") == (verbose == 0)


def test_a_clock_that_stands_still(make):
    with mock.patch("time.time", return_value=42.0), mock.patch("time.time_ns", return_value=42):
        rows = logged(make(vector()), 30, log_interval=1).rows
    assert len(rows) == 5
    assert all(row["time/fps"] > 0 for row in rows)


def test_success_is_logged(make):
    class Lucky(Samples):
        def step(self, action):
            *found, _ = super().step(action)
            return *found, {"is_success": self.resets % 2 == 0}

    env = DummyVecEnv([lambda: Monitor(Lucky())])
    rows = logged(make(env), 24, log_interval=4).rows
    assert rows[-1]["rollout/success_rate"] == 0.5


def test_monitors_write_their_files(make, tmp_path):
    env = DummyVecEnv([lambda: Monitor(Samples(), str(tmp_path / "one"))])
    make(env).learn(30)
    env.close()
    rows = (tmp_path / "one.monitor.csv").read_text().splitlines()
    assert len(rows) == 2 + 5
    assert all(row.split(",")[1] == "6" for row in rows[2:])
    all_of_them = VecMonitor(vector(2, monitored=False), str(tmp_path / "all"))
    make(all_of_them).learn(24)
    all_of_them.close()
    assert len((tmp_path / "all.monitor.csv").read_text().splitlines()) == 2 + 4


def test_results_can_be_loaded_by_sb3(make, tmp_path):
    pytest.importorskip("pandas")
    from stable_baselines3.common.monitor import load_results
    from stable_baselines3.common.results_plotter import X_TIMESTEPS, ts2xy

    env = DummyVecEnv([lambda: Monitor(Samples(), str(tmp_path / "one"))])
    make(env).learn(30)
    env.close()
    steps, _ = ts2xy(load_results(str(tmp_path)), X_TIMESTEPS)
    assert steps.tolist() == [6, 12, 18, 24, 30]


# TensorBoard ------------------------------------------------------------------------------------------------


class Settings(BaseCallback):
    """Logs the settings of a run beside its numbers."""

    def _on_training_start(self):
        settings = HParam({"algorithm": type(self.model).__name__, "gamma": self.model.gamma}, {"train/loss": 0.0})
        self.logger.record("hparams", settings, exclude=("stdout", "log", "json", "csv"))

    def _on_step(self):
        return True


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_reads_what_was_written(make, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model = make(vector(), tensorboard_log=str(tmp_path))
    name = type(model).__name__
    model.learn(36, log_interval=2, callback=Settings())
    model.learn(36, log_interval=2, reset_num_timesteps=False)
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}_1"]
    model.learn(12, tb_log_name="other [1]")
    model.learn(12, tb_log_name="other [1]")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"{name}_1", "other [1]_1", "other [1]_2"])
    events = EventAccumulator(str(tmp_path / f"{name}_1"))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    assert {
        "rollout/ep_rew_mean",
        "rollout/ep_len_mean",
        "rollout/exploration_rate",
        "rollout/hold_mean",
        "rollout/decisions_mean",
        "train/loss",
        "train/learning_rate",
        "time/fps",
    } <= tags
    assert not tags & {"train/n_updates", "time/total_timesteps", "time/episodes"}
    points = events.Scalars("rollout/ep_len_mean")
    assert [point.step for point in points] == [12, 24, 36, 48, 60, 72]
    assert all(point.value == 6.0 for point in points)
