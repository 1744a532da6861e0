"""A run's replay, as its checkpoint has it, and observations as vectors."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from gymnasium import spaces

from holdfast.advice.fixed_skips.run_replay import as_vectors, read_replay
from holdfast.advice.fixed_skips.skips import estimate_run_skips
from holdfast.cli import main
from holdfast.policies import ALGORITHMS
from holdfast.runs.deep_training import build_agent, build_vec_env
from holdfast.runs.directory import RunFolder
from tests.runs.small_runs import NETWORK, TABLE, trained


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "network"
    trained(NETWORK, path, n_envs=2)
    return path


def test_it_is_the_replay_that_the_run_would_go_on_with(run):
    folder = RunFolder(run)
    config = folder.read_config()
    env = build_vec_env(config)
    agent = build_agent(config, env)
    agent.restore(folder.read_checkpoint(config.algo)["agent"])
    env.close()
    own, found = agent.replay_buffer, read_replay(run)
    assert (found.n_added, found.k_max, found.gamma) == (own.n_added, own.k_max, own.gamma)
    assert found.handle_timeout_termination is own.handle_timeout_termination
    for name in ("left", "actions", "rewards", "dones", "timeouts", "next_row"):
        np.testing.assert_array_equal(getattr(found, name), getattr(own, name))
    rows = np.arange(found.left.size)
    np.testing.assert_array_equal(found.store.get(rows), own.store.get(rows))


@pytest.mark.parametrize("prioritized", [True, False])
@pytest.mark.parametrize(
    "algo", [name for name, one in ALGORITHMS.items() if one.is_deep and not one.is_continuous]
)
def test_the_replay_of_every_agent_with_a_network_is_read(tmp_path, algo, prioritized):
    settings = {**NETWORK["set"], "prioritized": prioritized, "buffer_size": 200}
    changes = {"k_max": None if algo == "dqn" else 3, "set": settings}
    trained(NETWORK, tmp_path / "run", algo=algo, **changes)
    assert read_replay(tmp_path / "run").n_added == NETWORK["steps"]
    skips = [1] if algo == "dqn" else None
    assert [row.k for row in estimate_run_skips(tmp_path / "run", skips)] == (skips or [1, 2, 3])


@pytest.mark.parametrize("prioritized", [True, False])
@pytest.mark.parametrize(
    "levers",
    [{"persistences": [1, 2, 3]}, {"persistences": [1, 3]}, {"shared_draws": True}, {"k_max": 5}],
    ids=str,
)
@pytest.mark.parametrize("shared_draws", [True, False])
def test_the_replay_of_a_sparse_set_or_with_shared_draws_is_read(tmp_path, levers, shared_draws, prioritized):
    own = {**NETWORK["set"], **levers, "shared_draws": shared_draws, "prioritized": prioritized}
    options = {name: value for name, value in NETWORK.items() if name != "k_max"}
    trained({**options, "set": own}, tmp_path / "run")
    found = read_replay(tmp_path / "run")
    assert found.n_added == NETWORK["steps"]
    powers = [1, 2, 4, 8, 16, 32]
    expected = list(range(1, 6)) if "k_max" in levers else levers.get("persistences", powers)
    assert (found.k_max, found.shared_draws) == (expected[-1], shared_draws)
    assert found.durations.tolist() == expected
    assert [row.k for row in estimate_run_skips(tmp_path / "run", [1, 2])] == [1, 2]


@pytest.mark.parametrize("skips", [None, [1, 2], [4]])
def test_a_run_that_held_nothing_says_nothing_about_holding(tmp_path, skips):
    # Random episodes are short enough for the replay to hold the beginning of one.
    random = {**NETWORK["set"], "exploration_final_eps": 1.0}
    trained(NETWORK, tmp_path / "run", k_max=1, set=random)
    with pytest.raises(
        ValueError, match=r"^this run never held an action longer than one step; train with a larger"
    ):
        estimate_run_skips(tmp_path / "run", skips)
    assert [row.k for row in estimate_run_skips(tmp_path / "run", [1])] == [1]


def test_few_samples_are_said_to_be_few(run):
    rows = estimate_run_skips(run)
    assert [row.k for row in rows] == [1, 2, 3]
    assert all(row.value is None and row.index is None and row.tuples < 100 for row in rows)
    assert rows[1].note == f"{rows[1].tuples} samples of holding for 2 steps are too few: 100 are needed"


def test_a_run_of_the_command_line_from_end_to_end(tmp_path, capsys):
    path = tmp_path / "cart"
    options = ["--k-max", "4", "--steps", "2000", "--eval-every", "0", "--set", "learning_starts=2000"]
    assert main(["train", "CartPole-v1", *options, "-o", str(path)]) == 0
    capsys.readouterr()
    rows = estimate_run_skips(path, seed=1)
    assert [row.k for row in rows] == [1, 2, 3, 4]
    assert all(one.tuples > other.tuples > 100 for one, other in pairwise(rows))
    assert estimate_run_skips(path, [3], seed=1) == [replace(rows[2], loss=0.0)]
    assert [row.loss for row in rows] == [rows[0].value - row.value for row in rows]
    for row in rows:
        # A step pays 1, and random options drop the pole after some twenty of them.
        assert 15.0 < row.value <= 100.0
        assert row.index < row.value
        assert row.residual > 0.0
        assert row.note is None


def test_runs_without_a_replay_say_so_in_a_sentence(tmp_path, run):
    trained(TABLE, tmp_path / "table")
    with pytest.raises(ValueError, match=r"perq learns a table without one$"):
        read_replay(tmp_path / "table")
    trained(NETWORK, tmp_path / "bare", checkpoint_every=0.0)
    with pytest.raises(ValueError, match=r"keeps no replay: it was trained with checkpoint_every=0$"):
        read_replay(tmp_path / "bare")
    with pytest.raises(
        ValueError, match=r"^run must be the folder of a run of holdfast train, but .* is not one$"
    ):
        read_replay(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(run, copy, symlinks=True)
    shutil.rmtree(copy / "checkpoint")
    with pytest.raises(ValueError, match=r"has no checkpoint yet, which would contain the replay$"):
        read_replay(copy)


@pytest.mark.parametrize(
    "change", [{"buffer_size": "many"}, {"gamma": 3.0}, {"buffer_size": 10**15}, {"k_max": 10**9}]
)
def test_a_doctored_config_is_refused(tmp_path, run, change):
    copy = tmp_path / "copy"
    shutil.copytree(run, copy, symlinks=True)
    document = json.loads((copy / "config.json").read_text())
    document["set"].update(change)
    (copy / "config.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"damaged|memory") as caught:
        read_replay(copy)
    assert "\n" not in str(caught.value)


def test_vectors():
    box, choice = spaces.Box(-1.0, 1.0, (2,), np.float32), spaces.Discrete(3, start=5)
    both = spaces.Dict({"a": box, "b": choice, "c": spaces.MultiDiscrete([2, 2]), "d": spaces.MultiBinary(1)})
    shown = {"a": np.ones((1, 2)), "b": np.array([[6]]), "c": np.array([[1, 0]]), "d": np.array([[1]])}
    assert as_vectors(both, shown).tolist() == [[1, 1, 0, 1, 0, 0, 1, 1, 0, 1]]
    assert as_vectors(choice, np.array([[6], [7]])).tolist() == [[6.0], [7.0]]
    assert as_vectors(box, np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_pictures_are_refused_in_a_sentence():
    picture = spaces.Box(0, 255, (8, 8, 1), np.uint8)
    for space in (picture, spaces.Dict({"seen": picture})):
        shown = np.zeros((2, 8, 8, 1), np.uint8)
        with pytest.raises(ValueError, match=r"^fixed skips can be estimated only from observations"):
            as_vectors(space, {"seen": shown} if isinstance(space, spaces.Dict) else shown)
