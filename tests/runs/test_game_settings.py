"""Games are trained with the paper's arguments, or with those that are customary, unless others are given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.deep import PerDQN
from holdfast.policies.algorithms import ALGORITHMS
from holdfast.runs.game_settings import game_settings
from holdfast.runs.options import make_config
from tests.runs.small_runs import trained

pytest.importorskip("ale_py")
pytest.importorskip("minatar")

SMALL_BOARD = {"net_arch": [128], "features_extractor_class": "SmallConvolutions"}


def arguments(environment: str, **options: Any) -> dict[str, Any]:
    return make_config({"environment": environment, "steps": 1000, **options}).arguments


def test_atari_games_have_the_papers_arguments() -> None:
    paper = PerDQN.paper_atari()
    kwargs = paper.pop("policy_kwargs")
    assert paper.pop("k_max") == 4
    found = arguments("atari:Freeway", k_max=8)
    assert {name: found[name] for name in paper} == paper
    assert found["policy_kwargs"] == {**kwargs, "features_extractor_class": "ConvFeatures"}
    assert found["k_max"] == 8


DISCRETE = [name for name, found in ALGORITHMS.items() if found.is_deep and not found.is_continuous]


@pytest.mark.parametrize("algo", DISCRETE)
def test_every_deep_algorithm_takes_them(algo: str) -> None:
    assert arguments("atari:Freeway", algo=algo)["policy"] == "CnnPolicy"
    found = arguments("minatar:Freeway", algo=algo)
    assert (found["policy"], found["policy_kwargs"], found["head_arch"]) == ("CnnPolicy", SMALL_BOARD, [])


def test_what_is_given_counts() -> None:
    found = arguments("minatar:Freeway", set={"head_arch": [5]})
    assert (found["policy"], found["policy_kwargs"], found["head_arch"]) == ("CnnPolicy", SMALL_BOARD, [5])
    found = arguments("minatar:Freeway", set={"policy": "MlpPolicy"})
    assert (found["policy"], found["policy_kwargs"], found["head_arch"]) == ("MlpPolicy", None, [])
    found = arguments("atari:Freeway", set={"policy_kwargs": {"net_arch": [9]}, "gamma": 0.5})
    assert (found["policy"], found["policy_kwargs"], found["head_arch"]) == ("CnnPolicy", {"net_arch": [9]}, [])
    assert (found["gamma"], found["learning_rate"]) == (0.5, 5e-4)


def test_other_environments_have_none() -> None:
    assert game_settings("CartPole-v1", ALGORITHMS["perdqn"], ()) == {}
    assert game_settings("atari:Freeway", ALGORITHMS["perq"], ()) == {}
    assert game_settings(3, ALGORITHMS["perdqn"], ()) == {}


SHORT: dict[str, dict[str, Any]] = {
    "atari": {
        "environment": "atari:Breakout",
        "env_kwargs": {"size": 36, "stack": 2, "max_frames": 160},
        "n_envs": 2,
    },
    "qbert": {"environment": "atari:Qbert", "env_kwargs": {"size": 36, "max_frames": 160}},
    "minatar": {"environment": "minatar:Asterix", "n_envs": 2},
}


@pytest.mark.parametrize("name", [pytest.param("qbert", marks=pytest.mark.slow), "atari", "minatar"])
def test_a_training_that_is_gone_on_with_is_the_same(name: str, tmp_path: Path) -> None:
    rest = {
        "k_max": 2,
        "steps": 120,
        "seed": 1,
        "eval_every": 60,
        "eval_episodes": 1,
        "set": {"batch_size": 4, "learning_starts": 40, "buffer_size": 90, "train_freq": 4, "schedule_steps": 120},
    }
    options = {**SHORT[name], **rest}
    trained(options, tmp_path / "whole")
    trained(options, tmp_path / "parts", steps=70)
    trained(options, tmp_path / "parts")
    for file in ("metrics.csv", "evaluations.csv", "policy/policy.safetensors", "checkpoint/tensors.safetensors"):
        assert (tmp_path / "parts" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    states = [json.loads((tmp_path / run / "checkpoint/state.json").read_text()) for run in ("parts", "whole")]
    for state in states:
        for episode in state["agent"]["episodes"] or []:
            del episode["t"]
        del state["sha256"]["state.json"]
    assert states[0] == states[1]


def test_evaluations_are_of_whole_games(tmp_path: Path) -> None:
    options = {
        "environment": "atari:Breakout",
        "env_kwargs": {"size": 36, "max_frames": 2000},
        "k_max": 2,
        "steps": 300,
        "eval_every": 300,
        "eval_episodes": 2,
        "set": {"learning_starts": 299, "buffer_size": 300, "batch_size": 4},
    }
    trained(options, tmp_path / "run")
    rows = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    evaluation = (tmp_path / "run" / "evaluations.csv").read_text().splitlines()
    length = rows[0].split(",").index("length")
    lives = [int(row.split(",")[length]) for row in rows[1:]]
    whole = float(evaluation[1].split(",")[evaluation[0].split(",").index("length_mean")])
    # A life without a hit lasts a few dozen steps, a game has five.
    assert len(lives) > 3
    assert whole >= 5 * min(lives)
