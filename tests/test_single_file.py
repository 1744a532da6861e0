"""``examples/perdqn_single_file.py`` is PerDQN: the same choices, and the same weights.

It shares no line with the package, so that a mistake would have to be made twice. The package is asked for its
plain path: compiled passes round differently, and after some hundred updates a difference in the last digit has
changed which steps are drawn.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3.common.vec_env import DummyVecEnv

from holdfast import PerDQN
from holdfast.deep.speed.shortcuts import plain_path
from tests.architecture import ROOT, imports_of

SCRIPT = ROOT / "examples/perdqn_single_file.py"
STEPS = 2000


@pytest.fixture(scope="module")
def single_file():
    spec = importlib.util.spec_from_file_location("perdqn_single_file", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Recorded(gymnasium.Wrapper):
    """Notes the actions."""

    def __init__(self, env):
        super().__init__(env)
        self.actions = []

    def step(self, action):
        self.actions.append(int(action))
        return self.env.step(action)


def trained_by_the_package(env_id, seed):
    env = Recorded(gymnasium.make(env_id))
    model = PerDQN("MlpPolicy", DummyVecEnv([lambda: env]), seed=seed)
    model.learn(STEPS)
    return env.actions, model


def trained_by_the_file(single_file, env_id, seed):
    env = Recorded(gymnasium.make(env_id))
    return env.actions, single_file.train(env, STEPS, seed, report=lambda line: None)


def weights(network):
    return torch.cat([part.detach().flatten() for part in network.parameters()]).numpy()


def assert_same_weights(agent, model):
    networks = (
        (agent.online, model.q_net),
        (agent.target, model.q_net_target),
        (agent.average, model.policy.averaged_net),
    )
    for own, expected in networks:
        np.testing.assert_array_equal(weights(own), weights(expected))


@pytest.mark.parametrize("env_id", ["CartPole-v1", pytest.param("MountainCar-v0", marks=pytest.mark.slow)])
def test_it_is_perdqn_bit_for_bit(single_file, env_id):
    actions, agent = trained_by_the_file(single_file, env_id, seed=3)
    with plain_path():
        expected_actions, model = trained_by_the_package(env_id, seed=3)
    assert len(actions) == STEPS
    assert actions == expected_actions
    assert agent.n_updates == model._n_updates == STEPS - 1000
    assert agent.mean_greedy_hold == model.greedy_hold
    assert_same_weights(agent, model)
    # Powers may be rounded differently by compiled code.
    leaves = agent.replay.sums[agent.replay.n_leaves :][:STEPS]
    np.testing.assert_allclose(leaves, model.replay_buffer.trees.priorities(0)[:STEPS], rtol=1e-12)


def test_a_full_ring_forgets_the_oldest_steps(single_file, monkeypatch):
    monkeypatch.setattr(single_file, "BUFFER_SIZE", 300)
    _, agent = trained_by_the_file(single_file, "CartPole-v1", seed=0)
    replay = agent.replay
    drawable = replay.sums[replay.n_leaves :][:300] > 0
    assert replay.n_added == STEPS
    assert (drawable == (replay.left > 0)).all()
    assert drawable.sum() == 300 - agent.held
    assert replay.sums[1] == pytest.approx(replay.sums[replay.n_leaves :].sum())


def test_window_lengths_leave_rests_that_have_values(single_file):
    lengths = dict(zip(single_file.PERSISTENCES.tolist(), single_file.window_lengths().tolist(), strict=True))
    assert lengths[1][:4] == [0, 1, 1, 1]
    assert lengths[4][:6] == [0, 0, 2, 3, 4, 4]
    assert lengths[8][:9] == [0, 0, 0, 0, 4, 4, 6, 7, 8]


def test_the_script_is_short_and_stands_alone(tmp_path):
    source = SCRIPT.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 250
    imported = {found.module.partition(".")[0] for found in imports_of(source, "examples/perdqn_single_file.py")}
    assert imported == {"argparse", "gymnasium", "numpy", "torch"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--total-steps", "1050"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^step \d+: return [\d.]+, greedy hold 1.0$", done.stdout, re.MULTILINE)
