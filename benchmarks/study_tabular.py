"""How well the tabular learners do, as measured: ``python -m benchmarks.study_tabular [--seeds N] [--jobs N]``.

The score of a run is the mean greedy return over all its episodes, one greedy episode after each training episode:
an agent that learns sooner scores higher. Learning rate .1, zero initial values, ε = .99^episode. FrozenLake has a
new map for every seed, the same map for every agent.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from holdfast.envs import FrozenLake16, make_env
from holdfast.tabular import (
    EZGreedyQLearning,
    MSAQLearning,
    PerQLearning,
    QLearning,
    TabularLearner,
    TempoRLQLearning,
    equal_updates_per_step,
)
from holdfast.tabular.learner import GREEDY_TIES

__all__ = ["AGENTS", "WORLDS", "main", "scores"]

K_VALUES = (4, 8, 16)

WORLDS = {"Cliff": 600, "Bridge": 600, "ZigZag": 600, "FrozenLake": 6000}
"""Episodes of each world."""


def _agents() -> dict[str, Callable[..., TabularLearner]]:
    agents: dict[str, Callable[..., TabularLearner]] = {"Q": QLearning}
    for k in K_VALUES:
        agents[f"PerQ{k}"] = partial(PerQLearning, k)
        agents[f"MSA{k}"] = partial(MSAQLearning, k)
        agents[f"MSA{k} padded"] = partial(MSAQLearning, k, pad_terminal=True)
        agents[f"TempoRL{k}"] = partial(TempoRLQLearning, k, pad_terminal=False)
        agents[f"TempoRL{k} padded"] = partial(TempoRLQLearning, k)
        agents[f"εz{k}"] = partial(EZGreedyQLearning, k)
        agents[f"Q x{k}"] = partial(QLearning, updates_per_step=k)
        agents[f"Q equal to PerQ{k}"] = partial(QLearning, updates_per_step=equal_updates_per_step(k))
    agents["PerQ8 primitive"] = partial(PerQLearning, 8, target_value="primitive")
    agents["PerQ8 interrupted"] = partial(PerQLearning, 8, interrupt_margin=0.0)
    agents["PerQ8 few decisions"] = partial(PerQLearning, 8, decision_tolerance=0.0)
    return agents


AGENTS = _agents()


def scores(
    agent: str, world: str, seeds: Sequence[int], ties: str = "first", episodes: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean greedy return over all episodes, and mean decisions of the last tenth's greedy episodes, per seed."""
    env = FrozenLake16 if world == "FrozenLake" else make_env(world.lower())
    n = WORLDS[world] if episodes is None else episodes
    result = AGENTS[agent](greedy_ties=ties).fit(env, n, seeds)
    return result.greedy_returns.mean(axis=1), result.greedy_decisions[:, -(n // 10) :].mean(axis=1)


def interval(samples: NDArray[np.float64]) -> tuple[float, float]:
    """Mean, and half the width of its 95 % interval (Student's t)."""
    half = stats.t.ppf(0.975, len(samples) - 1) * samples.std(ddof=1) / np.sqrt(len(samples))
    return float(samples.mean()), float(half)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train all agents in all worlds and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study_tabular", description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, metavar="N", help="runs per agent and world")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes")
    parser.add_argument("--ties", default="first", choices=GREEDY_TIES, help="of equals in greedy episodes")
    options = parser.parse_args(arguments)
    if options.seeds < 2 or options.jobs < 1:
        parser.error("--seeds must be at least 2 and --jobs at least 1")
    began = time.perf_counter()
    tasks = [(agent, world, range(options.seeds), options.ties) for world in WORLDS for agent in AGENTS]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        measured = list(pool.map(scores, *zip(*tasks, strict=True)))
    table = {(agent, world): found for (agent, world, *_), found in zip(tasks, measured, strict=True)}

    print(f"Mean greedy return over all episodes, {options.seeds} seeds, ± 95 % interval, greedy ties:")
    print(f"{options.ties}; in brackets the greedy decisions per episode in the last tenth.\n")
    print("| agent | " + " | ".join(WORLDS) + " |\n|---|" + "---|" * len(WORLDS))
    for agent in AGENTS:
        cells = []
        for world in WORLDS:
            returns, decisions = table[agent, world]
            mean, half = interval(returns)
            cells.append(f"{mean:.3f} ± {half:.3f} ({decisions.mean():.1f})")
        print(f"| {agent} | " + " | ".join(cells) + " |")
    print("\nPerQ8 minus the other, seed by seed:\n")
    print("| other | " + " | ".join(WORLDS) + " |\n|---|" + "---|" * len(WORLDS))
    for other in [agent for agent in AGENTS if agent != "PerQ8"]:
        cells = []
        for world in WORLDS:
            mean, half = interval(table["PerQ8", world][0] - table[other, world][0])
            cells.append(f"{mean:+.3f} ± {half:.3f}")
        print(f"| {other} | " + " | ".join(cells) + " |")
    print(f"\n{time.perf_counter() - began:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
