"""The cost of the MountainCar campaign: ``python -m benchmarks.campaign_cost [STEPS]``.

Every agent of the three figures trains by itself, one after the other, on one thread. Only processor time is
counted, which hardly depends on other load on the machine.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch as th

from holdfast.experiments.car_training import training_options
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.spec import Job
from holdfast.policies import find_algorithm

LABELS = ("mtcar", "mt_car_2", "mtcar_comp")
STARTS = 1000
"""Number of steps before learning starts, which are not counted."""


def jobs_of(scale: str) -> dict[str, Job]:
    """All jobs of the three figures, each once."""
    return {job.id: job for label in LABELS for job in find_experiment(label).jobs(scale)}


def seconds_per_step(setting: dict[str, Any], steps: int) -> float:
    """Processor time of a step with its update."""
    options = training_options(setting)
    algorithm = find_algorithm(options["algo"])
    arguments = {"policy": "MlpPolicy", **algorithm.stands_for, **options["set"], "seed": 0, "device": "cpu"}
    agent = algorithm.load()(env=options["environment"], **arguments)
    agent.learn(STARTS, log_interval=10**9)
    began = time.process_time()
    agent.learn(steps - STARTS, reset_num_timesteps=False, log_interval=10**9)
    return (time.process_time() - began) / (steps - STARTS)


def main(steps: int = 3000) -> None:
    """Print a table and the sums."""
    th.set_num_threads(1)
    plans = {scale: jobs_of(scale) for scale in ("laptop", "paper")}
    settings = {job.setting["driver"]: job.setting for job in plans["paper"].values()}
    print("| agent | steps/s | jobs, laptop | core hours | jobs, paper | core hours |\n|---|---|---|---|---|---|")
    sums = dict.fromkeys(plans, 0.0)
    for driver, setting in settings.items():
        cost = seconds_per_step(dict(setting), steps)
        cells = []
        for scale, jobs in plans.items():
            own = [job for job in jobs.values() if job.setting["driver"] == driver]
            hours = sum(job.setting["steps"] for job in own) * cost / 3600.0
            sums[scale] += hours
            cells += [str(len(own)), f"{hours:.1f}"]
        print(f"| {driver} | {1.0 / cost:.0f} | {' | '.join(cells)} |", flush=True)
    counts = [str(len(jobs)) for jobs in plans.values()]
    print(f"| all | | {counts[0]} | {sums['laptop']:.0f} | {counts[1]} | {sums['paper']:.0f} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
