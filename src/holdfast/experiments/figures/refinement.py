"""Grids in finer time: whether the number of steps per cell matters to learners.

Each cell of a grid is divided into n × n, so that the same path takes about n times as many steps. The discount of
a step is γ^(1/n), and an episode may have n times as many steps: in physical time, counted here in cells, the
problem stays the same. PerQ-learning chooses from the same set of persistences for every n; no learner is given n.
Beside the learners stands the exact solution: the shortest path, and the fewest decisions on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.array_types import Floats
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, matrix, select
from holdfast.experiments.tabular_curves import GRIDS, GridAgent, plain_q

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from holdfast.envs import GridWorld

__all__ = ["EXPERIMENT", "draw_refinement"]


PERSISTENCES = [1, 2, 4, 8, 16, 32, 64]
"""The same set for all n."""

_EXACT = "exact"
_AGENTS = (plain_q(), GridAgent("PerQ{1..64}", "perq", {"persistences": PERSISTENCES}))
_GAMMA, _ALPHA, _EPSILON_DECAY = 0.99, 0.1, 0.99
_CELLS = 100
"""Path length, in cells, after which an episode is truncated."""
_BLOCKS = 6

_SIZES: Mapping[str, tuple[tuple[str, ...], tuple[int, ...], int, int]] = {
    "smoke": (("cliff",), (1, 2), 3, 60),
    "laptop": (("cliff", "bridge", "zigzag"), (1, 2, 4, 8), 10, 600),
    "paper": (("cliff", "bridge", "zigzag"), (1, 2, 4, 8), 50, 600),
}
"""Grids, n, seeds and episodes."""


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """For each grid and n, one job per learner with all seeds, and one for the exact solution."""
    grids, refinements, runs, episodes = _SIZES[scale]
    for grid in grids:
        for n in refinements:
            where = {"grid": grid, "n": n}
            for agent in _AGENTS:
                yield (
                    {
                        **where,
                        "agent": agent.name,
                        "algorithm": agent.algorithm,
                        "arguments": dict(agent.arguments),
                        "runs": runs,
                        "episodes": episodes,
                    },
                    0,
                )
            yield {**where, "agent": _EXACT, "persistences": PERSISTENCES}, 0


def run(job: Job, place: Path) -> dict[str, Any]:
    """Greedy return, decisions and physical time of each run, as means over blocks of episodes."""
    if job.setting["agent"] == _EXACT:
        return _solved(job)
    from holdfast.core.schedules import Exponential
    from holdfast.policies.algorithms import find_algorithm

    setting, n = job.setting, job.setting["n"]
    learner = find_algorithm(setting["algorithm"]).load()(
        gamma=_GAMMA ** (1.0 / n),
        alpha=_ALPHA,
        epsilon=Exponential(_EPSILON_DECAY),
        greedy_ties="random",
        **setting["arguments"],
    )
    seeds = range(job.seed, job.seed + setting["runs"])
    result = learner.fit(_grid(setting), setting["episodes"], seeds, loop="compiled")
    seed, block = np.meshgrid(seeds, np.arange(1, _BLOCKS + 1), indexing="ij")
    columns = {
        "seed": seed,
        "episode": block * (setting["episodes"] // _BLOCKS),
        "greedy": _block_means(result.greedy_returns),
        "decisions": _block_means(result.greedy_decisions),
        "cells": _block_means(result.greedy_steps) / n,
    }
    return {name: np.asarray(values).ravel() for name, values in columns.items()}


def _solved(job: Job) -> dict[str, Any]:
    """The single row of the exact solution: the shortest of the best paths, with the fewest decisions."""
    from holdfast.mdp import TabularMDP, fewest_decisions, q_star_options

    setting = job.setting
    mdp = TabularMDP.from_gymnasium(_grid(setting), _GAMMA ** (1.0 / setting["n"]))
    assert mdp.initial is not None
    start = int(mdp.initial.argmax())
    q = q_star_options(mdp, persistences=setting["persistences"])
    steps = fewest_decisions(mdp, q[:, :, :1], start)
    decisions = fewest_decisions(mdp, q, start, persistences=setting["persistences"])
    assert steps is not None
    assert decisions is not None
    row = (job.seed, 0, 1.0, decisions, steps / setting["n"])
    return {name: [float(value)] for name, value in zip(EXPERIMENT.columns, row, strict=True)}


def _grid(setting: Mapping[str, Any]) -> GridWorld:
    from holdfast.envs import GridWorld, make_env

    world = make_env(setting["grid"]).unwrapped
    assert isinstance(world, GridWorld)
    return GridWorld(world.map.refined(setting["n"]), step_limit=_CELLS * setting["n"])


def _block_means(values: NDArray[Any]) -> Floats:
    """(run, episode) to (run, block)."""
    return np.asarray(values.reshape(len(values), _BLOCKS, -1).mean(axis=2))


def draw_refinement(rows: Table) -> Figure:
    """Mean greedy return over all episodes above, decisions at the end below, over n; one column per grid."""
    from matplotlib.figure import Figure

    from holdfast.draw import algorithm_color, look
    from holdfast.draw.style import PALETTE
    from holdfast.stats.estimates import mean_interval

    grids = [grid for grid in GRIDS if (rows["grid"] == grid).any()]
    with look():
        figure = Figure(figsize=(3.2 * len(grids) + 0.6, 5.2), layout="constrained")
        panels = figure.subplots(2, len(grids), squeeze=False, sharex=True, sharey="row")
        for column, grid in enumerate(grids):
            for axes, measure in zip(panels[:, column], (_scores, _last_decisions), strict=True):
                for agent in _AGENTS:
                    n, values = measure(rows, grid, agent.name)
                    if len(n) == 0:
                        continue
                    mean, low, high = mean_interval(values)
                    color = algorithm_color(agent.algorithm)
                    axes.plot(n, mean, color=color, marker="o", markersize=4, label=agent.name)
                    axes.fill_between(n, low, high, color=color, alpha=0.18, linewidth=0.0)
                exact = select(rows, grid=grid, agent=_EXACT)
                if len(exact["n"]):
                    name = "greedy" if measure is _scores else "decisions"
                    axes.plot(exact["n"], exact[name], color=PALETTE["grey"], linestyle=":", label="exact")
                axes.set_xscale("log", base=2)
                axes.set_xticks(np.unique(rows["n"]), [f"{n:g}" for n in np.unique(rows["n"])])
            panels[0, column].set_title(GRIDS[grid])
            panels[1, column].set_yscale("log")
            panels[1, column].set_xlabel("n, steps per cell")
        panels[0, 0].set_ylabel("greedy return, all episodes")
        panels[1, 0].set_ylabel("decisions per greedy episode, last")
        panels[0, 0].legend(fontsize=8)
    return figure


def _scores(rows: Table, grid: str, agent: str) -> tuple[Floats, Floats]:
    """N (m,), and the mean greedy return of each run over all episodes, (run, m)."""
    own = select(rows, grid=grid, agent=agent)
    refinements = np.unique(own["n"]).astype(np.float64)
    by_n = [matrix(select(own, n=n), "greedy", "episode")[1].mean(axis=1) for n in refinements]
    return refinements, np.array(by_n).T


def _last_decisions(rows: Table, grid: str, agent: str) -> tuple[Floats, Floats]:
    """N (m,), and the decisions of each run's last greedy episodes, (run, m)."""
    own = select(rows, grid=grid, agent=agent)
    refinements = np.unique(own["n"]).astype(np.float64)
    by_n = [matrix(select(own, n=n), "decisions", "episode")[1][:, -1] for n in refinements]
    return refinements, np.array(by_n).T


def summary(rows: Table) -> list[str]:
    """Returns by n, their change from the coarsest to the finest time, and the decisions at the end."""
    from holdfast.stats.estimates import mean_interval

    refinements = np.unique(rows["n"])
    lines = []
    for title, measure, digits in (("greedy return", _scores, 2), ("decisions, last", _last_decisions, 1)):
        lines += [f"{title:<26}" + "".join(f"{f'n={n:g}':>13}" for n in refinements)]
        for grid in (grid for grid in GRIDS if (rows["grid"] == grid).any()):
            for agent in _AGENTS:
                n, values = measure(rows, grid, agent.name)
                if len(n) == 0:
                    continue
                mean, _, high = mean_interval(values)
                cells = [f"{m:.{digits}f} ±{h - m:.{digits}f}" for m, h in zip(mean, high, strict=True)]
                lines.append(f"{GRIDS[grid]:<12}{agent.name:<14}" + "".join(f"{cell:>13}" for cell in cells))
            exact = select(rows, grid=grid, agent=_EXACT)
            if len(exact["n"]):
                name = "greedy" if measure is _scores else "decisions"
                lines.append(f"{GRIDS[grid]:<12}{_EXACT:<14}" + "".join(f"{v:>13.3g}" for v in exact[name]))
        lines.append("")
    return [*lines, *_verdicts(rows)]


def _verdicts(rows: Table) -> list[str]:
    """The change of the return from the coarsest to the finest time."""
    from holdfast.stats.estimates import mean_interval

    found = []
    for grid in (grid for grid in GRIDS if (rows["grid"] == grid).any()):
        for agent in _AGENTS:
            n, values = _scores(rows, grid, agent.name)
            if len(n) > 1:
                mean, low, high = mean_interval(values[:, -1] - values[:, 0])
                found.append(
                    f"{GRIDS[grid]}, {agent.name}: n={n[0]:g} to {n[-1]:g} changes the return by {mean:+.2f} "
                    f"({low:+.2f} to {high:+.2f})"
                )
    return found


EXPERIMENT = Experiment(
    label="fig:refinement",
    title="grids with each cell cut into n x n: Q-learning, PerQ and the exact solution",
    columns=("seed", "episode", "greedy", "decisions", "cells"),
    plan=plan,
    run=run,
    draw=draw_refinement,
    summary=summary,
    notes=(
        "Not in the paper. Discount .99^(1/n) per step, episodes of n times as many steps, ε = .99^episode, "
        "α = .1; Q-learning makes n times as many updates per cell of the path. Intervals are 95 % (Student's).",
    ),
)
