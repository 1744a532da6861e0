"""Runs that are over in a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.policies import ALGORITHMS
from holdfast.runs import Outcome, train

TABLE: dict[str, Any] = {
    "environment": "cliff",
    "algo": "perq",
    "k_max": 3,
    "episodes": 12,
    "eval_every": 5,
    "eval_episodes": 2,
    "seed": 3,
}
NETWORK: dict[str, Any] = {
    "environment": "CartPole-v1",
    "algo": "perdqn",
    "k_max": 3,
    "steps": 80,
    "eval_every": 30,
    "eval_episodes": 2,
    "seed": 3,
    "device": "cpu",
    "set": {
        "policy_kwargs": {"net_arch": [8]},
        "head_arch": [4],
        "batch_size": 4,
        "learning_starts": 10,
        "buffer_size": 60,
        "target_update_interval": 20,
    },
}
ACTOR: dict[str, Any] = {
    **NETWORK,
    "environment": "MountainCarContinuous-v0",
    "env_kwargs": {"max_episode_steps": 25},
    "algo": "pertd3",
    "set": {"policy_kwargs": {"net_arch": [8]}, "batch_size": 4, "learning_starts": 10, "buffer_size": 60},
}
BOTH = {"table": TABLE, "network": NETWORK}


def trained_of_each_kind(top: Path, **of_the_table: Any) -> Path:
    """Folders in ``top`` with a table, a network and TempoRL's two tables."""
    trained(TABLE, top / "table", **of_the_table)
    trained(NETWORK, top / "network")
    trained({**TABLE, "algo": "temporl-q"}, top / "temporl")
    return top


def options_for(algo: str) -> dict[str, Any]:
    """Those of a run of any algorithm."""
    algorithm = ALGORITHMS[algo]
    found = {**(ACTOR if algorithm.is_continuous else NETWORK if algorithm.is_deep else TABLE), "algo": algo}
    if not algorithm.holds:
        del found["k_max"]
    return found


def trained(options: dict[str, Any], path: Path, **changes: Any) -> Outcome:
    return train({**options, **changes}, path)
