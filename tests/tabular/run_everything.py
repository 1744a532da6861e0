"""Run every learner a little and write all numbers to a file: ``python run_everything.py FILE``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from holdfast.envs import make_env
from tests.tabular.conftest import random_mdp
from tests.tabular.learners import LEARNERS


def numbers() -> dict[str, np.ndarray]:
    """Tables and episodes of every learner on a grid and on a random model."""
    found = {}
    worlds = {
        "grid": make_env("cliff", step_limit=30),
        "random": random_mdp(),
        "slippery": make_env("zigzag", slip=0.2),
    }
    for name, make in LEARNERS.items():
        for place, world in worlds.items():
            result = make(initial_std=0.5 if place == "random" else 0.0).fit(world, 25, seeds=(2,))
            for field in ("q", "training_returns", "steps", "decisions", "greedy_returns", "greedy_decisions"):
                found[f"{name}/{place}/{field}"] = getattr(result, field)
            if result.skip_values is not None:
                found[f"{name}/{place}/skip_values"] = result.skip_values
    return found


if __name__ == "__main__":
    np.savez(Path(sys.argv[1]), **numbers())
