"""Environments that an agent does not take as they are: another network, or a sentence that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.runs import train
from holdfast.runs.options import make_config
from holdfast.runs.training import check_agent

SMALL = """
import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import NormalizeReward


class Small(gymnasium.Env):
    action_space = spaces.Discrete(2)

    def __init__(self, text=False):
        self.observation_space = spaces.Box(0, 255, (7, 7, 3), np.uint8)
        if text:
            self.observation_space = spaces.Dict(image=self.observation_space, mission=spaces.Text(9))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros((7, 7, 3), np.uint8), {}

    def step(self, action):
        return np.zeros((7, 7, 3), np.uint8), 1.0, True, False, {}


def normalized():
    return NormalizeReward(gymnasium.make("CartPole-v1"))
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small_world.py").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("small")
def test_images_too_small_for_the_cnn_get_a_network_that_fits() -> None:
    options = {"environment": "small_world:Small", "steps": 50}
    assert make_config(options).arguments["policy"] == "MlpPolicy"
    check_agent(make_config(options))
    with pytest.raises(
        ValueError, match=r"^policy must be MlpPolicy .* at least 36 × 36 pixels, and these have 7 × 7"
    ):
        make_config({**options, "set": {"policy": "CnnPolicy"}})


@pytest.mark.usefixtures("small")
def test_observations_that_are_texts_are_to_be_left_out() -> None:
    options = {"environment": "small_world:Small", "env_kwargs": {"text": True}, "steps": 50}
    with pytest.raises(ValueError, match=r"have Text: a callable of your own \(module:callable\) can wrap"):
        make_config(options)


@pytest.mark.usefixtures("small")
def test_a_wrapper_that_cannot_be_repeated_names_the_way_out_and_what_it_costs() -> None:
    options = {"environment": "small_world:normalized", "steps": 50, "eval_every": 0}
    with pytest.raises(ValueError, match=r"NormalizeReward .* checkpoint_every=0: the run then cannot be"):
        train(options, "runs/one")
    assert train({**options, "checkpoint_every": 0.0}, "runs/two").status == "finished"
