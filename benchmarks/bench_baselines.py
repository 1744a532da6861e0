"""The deep agents side by side: how fast each of them trains, compared with PerDQN(8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch as th

from benchmarks.harness import Settings, Table, compare_trainings
from holdfast import PerDQN
from holdfast.policies import ALGORITHMS, Algorithm

__all__ = ["tables"]

K_MAX = 8
OF_NO_AGENT: dict[str, Any] = {"device": "cpu", "seed": 0}
"""Arguments that the algorithms' own lists leave out."""


def tables(settings: Settings) -> Iterator[Table]:
    """Environment steps per second of every deep algorithm."""
    th.set_num_threads(1)
    steps = 20 if settings.quick else 1000
    compared = (found for found in ALGORITHMS.values() if found.is_deep and not found.is_continuous)
    agents = {_name(algorithm): _agent(algorithm) for algorithm in compared}
    agents[f"DQN, batch 32·{K_MAX}"] = _agent(ALGORITHMS["dqn"], batch_size=32 * K_MAX)
    for agent in agents.values():
        agent.learn(1100 if settings.quick else 3000, log_interval=10**9)
    yield Table(
        f"MountainCar-v0, {steps} steps with one update each, K = {K_MAX}, trunk [128, 128], heads [64]",
        compare_trainings(settings, agents, steps),
        (
            f"An update uses 32 rows for each of {K_MAX} persistences or skips; DQN and εz-greedy use 32 in all.",
            "Ratio is of times: below 1 is faster than PerDQN.",
        ),
    )


def _name(algorithm: Algorithm) -> str:
    return f"{algorithm.title}({K_MAX})" if algorithm.holds else algorithm.title


def _agent(algorithm: Algorithm, **overrides: Any) -> Any:
    """An agent with the paper's settings for MountainCar, except for what the algorithm fixes."""
    known = algorithm.arguments()
    paper = {name: value for name, value in PerDQN.paper_mountain_car().items() if name in known}
    held = {"k_max": K_MAX} if algorithm.holds else {}
    arguments = {**OF_NO_AGENT, **paper, **held, **algorithm.stands_for, **overrides}
    return algorithm.load()(env="MountainCar-v0", **arguments)
