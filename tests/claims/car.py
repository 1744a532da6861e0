"""What trainings on MountainCar say of the paper's claims; nothing as long as no rows are kept."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.car_results import published_rows
from holdfast.experiments.figures.suite import SUITE
from holdfast.experiments.figures.suite.measures import agents_of, measure
from holdfast.experiments.figures.suite.tasks import TASKS
from holdfast.experiments.tables import Table, matrix, select
from holdfast.stats.estimates import mean_estimate
from tests.claims.findings import Evidence, Finding, Findings, told
from tests.claims.kept import Kept

Floats = NDArray[np.float64]

LABELS = ("mtcar", "mt_car_2", "mtcar_comp")
OPTIMAL = -110.0
"""A greedy return above this counts as the optimal solution: Gymnasium's own threshold of a solved MountainCar."""

TRAINED = "mean greedy return of the last fifth of the training"


def driver_scores(kept: Kept, driver: str) -> Mapping[int, float]:
    """Mean greedy return of the last fifth of each run, by seed; of the largest scale that has rows."""
    for scale in ("paper", "laptop"):
        for label in LABELS:
            table = kept.figure(label, scale)
            own: Table | None = None if table is None else select(published_rows(table), driver=driver)
            if own is not None and len(own["seed"]) > 0:
                returns = matrix(own, "greedy", "step")[1]
                last = returns[:, -(-returns.shape[1] // 5) * -1 :].mean(axis=1)
                return dict(zip(np.unique(own["seed"]).astype(int).tolist(), last.tolist(), strict=True))
    return {}


def reaches_optimum(driver: str, is_claimed: bool) -> Evidence:
    """Whether the mean over seeds is near the optimum."""

    def find(kept: Kept) -> Findings:
        scores = np.array(list(driver_scores(kept, driver).values()))
        if len(scores) == 0:
            return {"": []}
        mean = mean_estimate(scores)
        return {
            "": [Finding(f"{driver} {told(mean, 1)}, {len(scores)} seeds", (mean.value > OPTIMAL) == is_claimed)]
        }

    return find


def car_gap(ours: str, theirs: str, expected: str = "above") -> Evidence:
    """Scores of one agent minus those of another, on the seeds that both have."""

    def find(kept: Kept) -> Findings:
        mine, other = driver_scores(kept, ours), driver_scores(kept, theirs)
        seeds = sorted(set(mine) & set(other))
        if not seeds:
            return {"": []}
        gap = mean_estimate(np.array([mine[seed] - other[seed] for seed in seeds]))
        is_so = {"above": gap.low > 0.0, "below": gap.high < 0.0, "not above": not gap.low > 0.0}[expected]
        return {"": [Finding(f"{ours} minus {theirs} {told(gap, 1)}, {len(seeds)} seeds", is_so)]}

    return find


def several(*parts: Evidence) -> Evidence:
    """Findings one after the other."""
    return lambda kept: {"": [one for part in parts for one in part(kept)[""]]}


def larger_spread(ours: str, theirs: str) -> Evidence:
    """Standard deviation over seeds of one agent beside that of another."""

    def find(kept: Kept) -> Findings:
        spreads = [np.array(list(driver_scores(kept, driver).values())) for driver in (ours, theirs)]
        if min(map(len, spreads)) < 2:
            return {"": []}
        mine, other = (float(scores.std(ddof=1)) for scores in spreads)
        return {"": [Finding(f"deviation over seeds: {ours} {mine:.1f}, {theirs} {other:.1f}", mine > other)]}

    return find


def known_from_suite(kept: Kept) -> str:
    """What the learning suite has on MountainCar, which is trained with other settings than the paper's."""
    rows = kept.table(SUITE)
    task = next(task for task in TASKS if task.environment == "MountainCar-v0")
    told_of = []
    for agent in agents_of(rows) if rows is not None else ():
        assert rows is not None
        found = measure(rows, agent, task)
        if found is not None:
            mean = told(mean_estimate(found.ends), 1).replace("+", "")
            told_of.append(f"{agent} {mean} ({len(found.seeds)} seeds)")
    settings = f"known with other settings, {task.steps:,} steps ([results.md](results.md)): "
    return settings + ", ".join(told_of) if told_of else ""
