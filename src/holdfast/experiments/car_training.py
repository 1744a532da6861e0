"""Training on MountainCar with the paper's settings, which several figures share.

Where the paper's text is silent there are two readings of it (``PerDQN.paper_mountain_car``). The published
reading was to be chosen before the published seeds were run, separately for PerDQN with its ablation and for all
others, by the area under the greedy returns of seeds 0 to 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.experiments.drivers import Driver, means_of_last
from holdfast.experiments.spec import Job

__all__ = [
    "CHOICE_SEEDS",
    "COLUMNS",
    "FIRST_PUBLISHED",
    "NOTES",
    "PUBLISHED",
    "STUDY",
    "WORST",
    "family",
    "is_main",
    "plan_choice",
    "plan_training",
    "run_training",
    "setting_of",
    "training_options",
]

STUDY = "MountainCar"
"""The study that the jobs of all these figures belong to."""

COLUMNS = ("step", "return", "decisions", "greedy", "greedy_decisions")
"""Return and decisions of an episode: means over the last 20 training episodes that had ended by then, and over
the greedy episodes of an evaluation."""

PUBLISHED: Mapping[str, str] = {"PerDQN": "baselines", "others": "baselines"}
"""The published reading of the paper, by family. Until there are rows to choose by, it is the reading that is
closer to what the authors ran."""

CHOICE_SEEDS = range(3)
FIRST_PUBLISHED = 100
"""First of the published seeds; none of them was used to choose a setting."""

NOTES = (
    "Above, training episodes, and -200 before the first has ended; below, 10 greedy episodes at each point.",
    "Which K are shown is not in the paper's text (see: holdfast docs errata).",
    "There are two readings of the paper: text bootstraps through time limits and scales observations to [-1, 1]; "
    "baselines does what OpenAI Baselines did where the text is silent.",
)
"""Notes for all these figures."""

_SCHEDULE = 600_000
"""Number of steps that the paper's schedules are made for; shorter runs follow only the first part of them."""
_SIZES = {"smoke": (400, 4, 2), "laptop": (300_000, 60, 10), "paper": (600_000, 120, 10)}
"""Steps, points of a curve, and greedy episodes at each point."""
_SMOKE = {"learning_starts": 200, "buffer_size": 1000}
_FEWER = 3
"""Number of seeds at scale laptop for drivers other than the main rivals."""
_SCALED = {"text": "space", "baselines": None}
"""``normalize_observations``, by reading."""

WORST = -200.0
"""The return of an episode that does not reach the flag; it also stands for episodes not played yet."""


def family(algorithm: str) -> str:
    """The family that shares a reading: PerDQN with its ablation MSA-DQN, or all others."""
    return "PerDQN" if algorithm in ("perdqn", "msa-dqn") else "others"


def is_main(driver: Driver) -> bool:
    """Whether a driver has all seeds at scale ``laptop``: larger batches and εz-greedy beyond K = 8 do not."""
    is_wide = driver.algorithm == "ez-dqn" and driver.arguments["k_max"] > 8
    return not is_wide and "batch_size" not in driver.arguments


def plan_training(
    scale: str,
    drivers: Sequence[Driver],
    runs: int,
    readings: Mapping[str, str] = PUBLISHED,
    scaled: str | None = "as read",
) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job for each driver and published seed, seed by seed.

    Args:
        scale: Scale; ``laptop`` has five seeds of the main rivals and three of the others.
        drivers: The drivers to train.
        runs: Number of seeds at the paper's scale.
        readings: Readings of the paper, by family.
        scaled: ``normalize_observations``; ``"as read"`` follows the reading.
    """
    seeds = {"smoke": 1, "laptop": 5, "paper": runs}[scale]
    for seed in range(FIRST_PUBLISHED, FIRST_PUBLISHED + seeds):
        for driver in drivers:
            if scale == "laptop" and not is_main(driver) and seed >= FIRST_PUBLISHED + _FEWER:
                continue
            yield setting_of(driver, scale, readings[family(driver.algorithm)], scaled), seed


def plan_choice(scale: str, drivers: Sequence[Driver]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job for each driver, reading and seed by which the reading is chosen; only at scale ``laptop``."""
    for seed in CHOICE_SEEDS if scale == "laptop" else ():
        for driver in drivers:
            for reading in _SCALED:
                yield setting_of(driver, scale, reading), seed


def setting_of(
    driver: Driver, scale: str, reading: str, scaled: str | None = "as read", steps: int | None = None
) -> dict[str, Any]:
    """The setting of a job.

    Args:
        driver: The driver.
        scale: The scale.
        reading: The reading of the paper.
        scaled: ``normalize_observations``; ``"as read"`` follows the reading.
        steps: Number of training steps (default: the scale's).
    """
    length, points, episodes = _SIZES[scale]
    return {
        "driver": driver.name,
        "algorithm": driver.algorithm,
        "reading": reading,
        "arguments": {**driver.arguments, **(_SMOKE if scale == "smoke" else {})},
        "steps": length if steps is None else steps,
        "points": points,
        "episodes": episodes,
        "normalize_observations": _SCALED[reading] if scaled == "as read" else scaled,
    }


def run_training(job: Job, place: Path) -> Mapping[str, Any]:
    """Train, or resume; the returns of the last episodes and of greedy ones at evenly spaced steps."""
    from holdfast.experiments.training import episode_columns, evaluation_columns, train_job

    setting = job.setting
    at = np.linspace(0, setting["steps"], setting["points"] + 1)[1:]
    run = train_job({**training_options(setting), "eval_every": int(at[0]), "seed": job.seed}, place)
    episodes = episode_columns(run, ("step", "return", "decisions"))
    evaluations = evaluation_columns(run, ("step", "return_mean", "decisions_mean"))
    if evaluations["step"].tolist() != at.tolist():
        raise RuntimeError(f"evaluations must be at every point, but were at {evaluations['step'].tolist()}")
    return {
        "step": at,
        "return": means_of_last(episodes["return"], episodes["step"], at, WORST),
        "decisions": means_of_last(episodes["decisions"], episodes["step"], at),
        "greedy": evaluations["return_mean"],
        "greedy_decisions": evaluations["decisions_mean"],
    }


def training_options(setting: Mapping[str, Any]) -> dict[str, Any]:
    """A setting as options for ``holdfast.runs.train``, without the seed."""
    from holdfast.deep import PerDQN
    from holdfast.policies.algorithms import find_algorithm

    known = find_algorithm(setting["algorithm"]).arguments()
    paper = PerDQN.paper_mountain_car(setting["reading"])
    arguments = {
        # Without the arguments that the algorithm fixes.
        **{name: value for name, value in paper.items() if name in known},
        "schedule_steps": _SCHEDULE,
        "normalize_observations": setting["normalize_observations"],
        **setting["arguments"],
    }
    return {
        "environment": "MountainCar-v0",
        "algo": setting["algorithm"],
        "set": arguments,
        "steps": setting["steps"],
        "eval_episodes": setting["episodes"],
    }
