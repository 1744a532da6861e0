"""Continuous actions: how fast PerTD3 and PerSAC train beside SB3's TD3 and SAC at the same batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch as th
from stable_baselines3 import SAC, TD3

from benchmarks.harness import Settings, Table, compare_trainings, growth
from holdfast import PerSAC, PerTD3
from holdfast.core.targets import STATE_VALUES

__all__ = ["tables"]

BATCH = 256
PERSISTENCES = (2, 4, 8)
ASKED = 0.3
"""Speed of four persistences, as a part of the parent's."""


def tables(settings: Settings) -> Iterator[Table]:
    """One table for each parent."""
    th.set_num_threads(1)
    yield _beside(settings, TD3, PerTD3)
    yield _beside(settings, SAC, PerSAC)


def _beside(settings: Settings, parent: Any, persistent: Any) -> Table:
    """Environment steps per second, one update each, by the number of persistences and the way V̄ is read."""
    steps = 10 if settings.quick else 200
    shared = {"batch_size": BATCH, "buffer_size": 20_000, "learning_starts": 100, "seed": 0, "device": "cpu"}
    plain = f"SB3 {parent.__name__}"
    agents = {plain: parent("MlpPolicy", "Pendulum-v1", **shared)}
    for kind in STATE_VALUES:
        for k_max in PERSISTENCES:
            agents[f"{persistent.__name__}({k_max}), {kind}"] = persistent(
                "MlpPolicy", "Pendulum-v1", k_max=k_max, target_value=kind, **shared
            )
    for agent in agents.values():
        agent.learn(110 if settings.quick else 500, log_interval=10**9)
    rows = compare_trainings(settings, agents, steps)
    timings = {row.case: row.timing for row in rows}
    notes = []
    for kind in STATE_VALUES:
        cases = [f"{persistent.__name__}({k_max}), {kind}" for k_max in PERSISTENCES]
        speeds = [f"{1.0 / timings[case].ratio_to(timings[plain]):.2f}" for case in cases]
        slope = growth(PERSISTENCES, [timings[case].median for case in cases])
        notes.append(
            f"{kind}: {', '.join(speeds)} times SB3's speed for K = 2, 4, 8 (asked {ASKED} at 4); time grows as "
            f"K^{slope:.2f}."
        )
    title = f"Pendulum-v1, {steps} steps with one update each, batch {BATCH}, networks as in SB3"
    return Table(title, rows, tuple(notes))
