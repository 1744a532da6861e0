"""How often is the advice from random options right? Constructed environments, with training in each of them.

This is not a figure of the paper: ``holdfast reproduce holdfast.experiments.advice_study:ADVICE --scale laptop``.

For each world of ``advice_worlds``, the study does what a user would do: ``explore`` with 50,000 steps for each
K_max. It finds the truth by training: PerQ-learning with every K_max and ten seeds for 20,000 steps each, judged
by the mean greedy return during training, which is higher if a learner learns sooner. A difference is clear if it
exceeds 5 % of the distance from the return of random actions to the best return, both exact, and if its 95 %
interval over seeds lies on one side of 0. Advice is

- **right** if training with it is clearly better than with K_max = 1; or if it is 1 and no other is clearly
better; - **missed** if it is 1 but another would have been clearly better; - **harmless** if training with it is
neither clearly better nor clearly worse; - **wrong** if training with it is clearly worse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.advice_worlds import GAMMA, HALVES, N_WORLDS, AdviceWorld, advice_world
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ADVICE", "BASES", "VERDICTS", "gains", "verdict"]

K_VALUES = (1, 2, 4, 8, 16, 32, 64)
VERDICTS = ("right", "missed", "harmless", "wrong")
BASES = ("none", "success", "return", "coverage")
COLUMNS = ("k_max", "gain", "gain_low", "gain_high", "skip_value", "advised", "basis")

CLEAR = 0.05
"""Smallest clear difference, as a share of the distance from random to best."""

_SIZES = {"smoke": (2_000, 1_000, 3), "laptop": (50_000, 20_000, 10), "paper": (50_000, 20_000, 50)}
"""Steps explored and steps trained for each K_max, and number of seeds."""
_SMOKE_WORLDS = (4, 20)


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job per world."""
    explored, trained, n_seeds = _SIZES[scale]
    for number in _SMOKE_WORLDS if scale == "smoke" else range(N_WORLDS):
        world = advice_world(number)
        names = ("step", "end", "rewards", "limit", "holding", "half")
        told = {name: getattr(world, name) for name in names}
        yield {"world": number, **told, "explored": explored, "trained": trained, "n_seeds": n_seeds}, 0


def run(job: Job, place: Path) -> Mapping[str, Any]:
    """One row per K_max: the gain from training with it, with its interval, and the value as a fixed skip."""
    from holdfast.advice.advisor import advise_from_visits
    from holdfast.advice.fixed_skips.skips import exact_skips
    from holdfast.advice.visitation.study import study_visitation

    world = advice_world(int(job.setting["world"]))
    seeds = range(int(job.setting["n_seeds"]))
    scores = np.array([[_score(world, k, seed, int(job.setting["trained"])) for seed in seeds] for k in K_VALUES])
    study = study_visitation(world.make(), K_VALUES, steps=int(job.setting["explored"]), seed=job.seed)
    advice = advise_from_visits(study)
    gain, low, high = gains(scores, world.best_return(), world.random_return())
    return {
        "k_max": K_VALUES,
        "gain": gain,
        "gain_low": low,
        "gain_high": high,
        "skip_value": [skip.value for skip in exact_skips(world.mdp, K_VALUES)],
        "advised": [advice.k_max] * len(K_VALUES),
        "basis": [BASES.index(advice.basis)] * len(K_VALUES),
    }


def gains(scores: NDArray[np.float64], best: float, at_random: float) -> tuple[NDArray[np.float64], ...]:
    """How much each K_max beats the first, with its 95 % interval, as shares of the distance from random to best.

    Args:
        scores: (K, seeds); the others are compared with the first row, seed by seed.
        best: The best return.
        at_random: The return of random actions.
    """
    from holdfast.stats.estimates import mean_estimate

    # If random actions do almost as well as any, a tenth of the return counts as the distance.
    way = max(abs(best - at_random), 0.1 * max(abs(best), abs(at_random)), 1e-9)
    estimates = [mean_estimate((row - scores[0]) / way) for row in scores]
    return tuple(np.array([getattr(found, name) for found in estimates]) for name in ("value", "low", "high"))


def verdict(rows: Table) -> str:
    """The verdict on the advice for one world: one of ``VERDICTS``."""
    better = (rows["gain"] > CLEAR) & (rows["gain_low"] > 0.0)
    worse = (rows["gain"] < -CLEAR) & (rows["gain_high"] < 0.0)
    advised = rows["k_max"] == rows["advised"]
    if rows["advised"][0] == min(K_VALUES):
        return "missed" if better.any() else "right"
    return "right" if better[advised].all() else "wrong" if worse[advised].any() else "harmless"


def _score(world: AdviceWorld, k_max: int, seed: int, steps: int) -> float:
    """Mean greedy return of PerQ-learning over this many training steps."""
    from holdfast.tabular import PerQLearning

    learner = PerQLearning(
        k_max, alpha=0.1, gamma=GAMMA, epsilon=0.1, step_limit=world.horizon, greedy_ties="random"
    )
    state, done = learner.start(world.mdp, seed), 0
    lengths, returns = [], []
    while done < steps:
        # Never more episodes than are certain to be needed, however long they get.
        state, log = learner.advance(world.mdp, state, max(1, (steps - done) // world.horizon))
        lengths.append(log.steps)
        returns.append(log.greedy_returns)
        done += int(log.steps.sum())
    length, greedy = np.concatenate(lengths), np.concatenate(returns)
    ends = np.cumsum(length)
    return float(np.average(greedy, weights=np.minimum(ends, steps) - (ends - length)))


def draw(rows: Table) -> Figure:
    """The gain from following the advice, world by world, sorted; one panel per half."""
    from holdfast.draw import Curve, Panel, draw_curves
    from holdfast.draw.style import PALETTE

    color = next(iter(PALETTE.values()))
    panels = []
    for half in HALVES:
        own = [_advised(world) for world in _worlds(rows) if world["half"][0] == half]
        if own:
            followed = sorted((float(gain), float(low), float(high)) for gain, low, high in own)
            y, low, high = (np.array(column) for column in zip(*followed, strict=True))
            curve = Curve("advised k_max", color, np.arange(1.0, len(y) + 1.0), y, low=low, high=high)
            panels.append(Panel(half, [curve]))
    return draw_curves(panels, "worlds, sorted", "gain over k_max = 1")


def _advised(rows: Table) -> tuple[float, float, float]:
    own = select(rows, k_max=rows["advised"][0])
    return own["gain"][0], own["gain_low"][0], own["gain_high"][0]


def summary(rows: Table) -> list[str]:
    """Verdicts by half, by basis and by property."""
    worlds = list(_worlds(rows))
    lines = [f"{'':<22}{'worlds':>7}" + "".join(f"{name:>10}" for name in VERDICTS)]
    lines += [_line(half, [world for world in worlds if world["half"][0] == half]) for half in HALVES]
    lines += ["", *_lines_by(worlds, "advice by", lambda world: BASES[int(world["basis"][0])], BASES)]
    for name in ("step", "end", "rewards", "limit", "holding"):
        values = tuple(dict.fromkeys(str(world[name][0]) for world in worlds))
        lines += _lines_by(worlds, name, lambda world, name=name: str(world[name][0]), values)
    return lines


def _lines_by(worlds: Sequence[Table], title: str, of: Any, values: Sequence[str]) -> list[str]:
    parts = [(value, [world for world in worlds if of(world) == value]) for value in values]
    return [_line(f"{title}: {value}", own) for value, own in parts if own]


def _line(name: str, worlds: Sequence[Table]) -> str:
    counts = Counter(verdict(world) for world in worlds)
    return f"{name:<22}{len(worlds):>7}" + "".join(f"{counts[name]:>10}" for name in VERDICTS)


def _worlds(rows: Table) -> Iterator[Table]:
    for number in np.unique(rows["world"]):
        yield select(rows, world=number)


ADVICE = Experiment(
    label="advice",
    title="how often the advice of random options is right, by training in constructed environments",
    columns=COLUMNS,
    plan=plan,
    run=run,
    draw=draw,
    summary=summary,
    notes=(
        "A gain is how much training with a k_max beats training with k_max = 1, as a share of the distance from "
        "random actions to the best policy.",
    ),
    reference="holdfast.experiments.advice_study:ADVICE",
)
