"""Runs in environments that depend on how many episodes they have played: a resume refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.runs import RunFolder, train
from holdfast.runs.stopping import StopRequest
from tests.runs.kills import contents
from tests.runs.small_runs import NETWORK, TABLE, trained
from tests.runs.test_training import Stopping

MODULE = """
import gymnasium
from gymnasium import spaces

class Counting(gymnasium.Env):
    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(10)
    def __init__(self, counts=True):
        self.counts, self.episodes = counts, 0
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episodes, self.time = self.episodes + 1, 0
        return int(self.np_random.integers(10)), {}
    def step(self, action):
        self.time += 1
        reward = self.episodes if self.counts and self.time == 4 else 0
        return int(self.np_random.integers(10)), reward, self.time == 4, False, {}
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counting_robots.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)


def options_of(kind: str, counts: bool, **changes: Any) -> dict[str, Any]:
    options = {**(TABLE if kind == "table" else NETWORK), "environment": "counting_robots:Counting"}
    return {**options, "env_kwargs": {"counts": counts}, "episodes": 40 if kind == "table" else None, **changes}


@pytest.mark.parametrize("kind", ["table", "network"])
def test_a_run_that_would_go_on_differently_is_refused(kind: str, tmp_path: Path) -> None:
    options = options_of(kind, counts=True)
    stop = StopRequest()
    assert train(options, tmp_path / "run", Stopping(stop, 40), stop).status == "stopped"
    before = contents(tmp_path / "run")
    with pytest.raises(
        ValueError, match="env must be one that can be restored: environment 0 did not repeat its earl"
    ):
        train(options, tmp_path / "run")
    assert contents(tmp_path / "run") == before


@pytest.mark.parametrize(("kind", "n_envs"), [("table", 1), ("network", 1), ("network", 2)])
@pytest.mark.parametrize("at", [3, 41])
def test_one_that_does_not_count_goes_on_as_it_would(kind: str, n_envs: int, at: int, tmp_path: Path) -> None:
    options = options_of(kind, counts=False, **({"n_envs": n_envs} if kind == "network" else {}))
    trained(options, tmp_path / "whole")
    stop = StopRequest()
    assert train(options, tmp_path / "stopped", Stopping(stop, at), stop).status == "stopped"
    trained(options, tmp_path / "stopped")
    # All of the state but the clock's, the sample of earlier episodes included.
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")


def test_episodes_beyond_the_last_step_do_not_count(tmp_path: Path) -> None:
    options = options_of("table", counts=False, episodes=None, steps=90, eval_every=0)
    trained(options, tmp_path / "whole")
    sample = contents(tmp_path / "whole")["state"]["agent"]["earlier"]
    assert sample["played"] == 23  # of four steps each
    stop = StopRequest()
    train(options, tmp_path / "stopped", Stopping(stop, 30), stop)
    trained(options, tmp_path / "stopped")
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")


def test_checkpoints_without_a_sample_go_on(tmp_path: Path) -> None:
    """Those from before there was one."""
    options = options_of("table", counts=False)
    trained(options, tmp_path / "whole")
    stop = StopRequest()
    train(options, tmp_path / "old", Stopping(stop, 0), stop)
    folder = RunFolder(tmp_path / "old")
    saved = folder.read_checkpoint("perq")
    assert saved is not None
    assert saved["agent"].pop("earlier")["kept"]
    folder.write_checkpoint("perq", saved)
    assert trained(options, folder.path).status == "finished"
    assert (folder.path / "metrics.csv").read_bytes() == (tmp_path / "whole/metrics.csv").read_bytes()
