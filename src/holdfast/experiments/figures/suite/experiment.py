"""The learning suite as an experiment: who trains on what, what is measured, and what is said of it.

It is no figure of the paper: ``holdfast reproduce suite``. Every agent trains on every task and is evaluated
greedily every 2 % of the training, with 20 episodes that are the same at every evaluation. Its score on a task is
the mean of the last fifth of the evaluations, because staying good is the point; the mean of all of them, the area
under the curve, says how soon it was good. On the scale of both, random actions are 0 and the stated best is 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.distribution import install_command
from holdfast.core.errors import InputError
from holdfast.experiments.figures.suite.contestants import CONTESTANTS, Contestant
from holdfast.experiments.figures.suite.measures import RIVAL, agents_of, measure, overall, tasks_of
from holdfast.experiments.figures.suite.tasks import TASKS, Task
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, matrix, select
from holdfast.stats import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "SUITE", "draw_suite", "plan_suite", "run_contestant", "setting_of", "suite_lines"]

COLUMNS = ("step", "return", "decisions", "length", "training_return")

_EVALUATIONS = 50
_SIZES = {"smoke": (200, 1, 2, 5), "laptop": (None, 3, 20, _EVALUATIONS), "paper": (None, 10, 20, _EVALUATIONS)}
"""Steps (None for the task's own), seeds at most, episodes of an evaluation, and evaluations."""
_FIRST_SEED = 100
"""Smaller seeds are for choosing settings, these for publishing."""
_SMOKE: Mapping[str, Mapping[str, Any]] = {
    "holdfast": {"learning_starts": 50, "buffer_size": 500},
    "sb3": {"learning_starts": 50, "buffer_size": 500, "train_freq": 4, "gradient_steps": 1},
}


def plan_suite(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """A job for each contestant, task and seed, seed by seed."""
    steps, seeds, episodes, evaluations = _SIZES[scale]
    for number in range(seeds):
        for task in TASKS[:1] if scale == "smoke" else TASKS:
            for contestant in CONTESTANTS:
                if number >= contestant.seeds:
                    continue
                seed = _FIRST_SEED + number
                smaller = _SMOKE[contestant.library] if scale == "smoke" else {}
                yield setting_of(contestant, task, steps or task.steps, episodes, evaluations, smaller), seed


def setting_of(
    contestant: Contestant, task: Task, steps: int, episodes: int, evaluations: int, smaller: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The setting of a job: who trains on what, with every argument."""
    return {
        "agent": contestant.name,
        "environment": task.environment,
        "library": contestant.library,
        "algorithm": contestant.algorithm,
        "arguments": {**contestant.arguments_for(task.environment), **smaller},
        "steps": steps,
        "episodes": episodes,
        "evaluations": evaluations,
    }


def run_contestant(job: Job, place: Path) -> Mapping[str, Any]:
    """Train from nothing, and evaluate greedily on the way."""
    import stable_baselines3
    from gymnasium.error import DependencyNotInstalled

    import holdfast.deep
    from holdfast.experiments.figures.suite.greedy_evaluation import GreedyEvaluations

    setting = job.setting
    library = {"holdfast": holdfast.deep, "sb3": stable_baselines3}[setting["library"]]
    arguments = dict(setting["arguments"])
    every = setting["steps"] // setting["evaluations"]
    try:
        evaluations = GreedyEvaluations(setting["environment"], every, setting["episodes"])
    except DependencyNotInstalled:
        raise InputError(f"{setting['environment']} needs Box2D: {install_command('box2d')}") from None
    model = getattr(library, setting["algorithm"])(
        arguments.pop("policy"), setting["environment"], seed=job.seed, device="cpu", **arguments
    )
    model.learn(setting["steps"], evaluations)
    return {name: [found[index] for found in evaluations.found] for index, name in enumerate(COLUMNS)}


def draw_suite(rows: Table) -> Figure:
    """Greedy returns over the training, a panel for each task; mean and 95 % interval over seeds."""
    from holdfast.draw import Curve, Panel, draw_curves
    from holdfast.draw.style import PALETTE

    colors = dict(zip((contestant.name for contestant in CONTESTANTS), PALETTE.values(), strict=False))
    panels = []
    for task in tasks_of(rows):
        curves = []
        for name in agents_of(rows):
            own = select(rows, agent=name, environment=task.environment)
            if len(own["seed"]) == 0:
                continue
            steps, returns = matrix(own, "return", "step")
            mean, low, high = mean_interval(returns)
            curve = Curve(f"{name}, {_counted(len(returns))}", colors[name], steps, mean)
            curves.append(replace(curve, low=low, high=high) if len(returns) > 1 else curve)
        panels.append(Panel(task.environment, curves))
    return draw_curves(panels, "steps", "greedy return")


def suite_lines(rows: Table) -> list[str]:
    """Each agent's last fifth on each task, then what is said over all tasks, beside the tuned DQN."""
    lines = []
    for task in tasks_of(rows):
        lines.append(f"{task.environment}: greedy return of the last fifth, worst seed, decisions")
        for name in agents_of(rows):
            found = measure(rows, name, task)
            if found is None:
                continue
            mean, _, high = mean_interval(found.ends)
            error = "" if np.isnan(high) else f" ±{high - mean:.1f}"
            lines.append(
                f"  {name:<22}{f'{mean:.1f}{error}':>16}{found.ends.min():>10.1f}"
                f"{float(found.decisions.mean()):>9.1f}{_counted(len(found.seeds)):>10}"
            )
    return [*lines, *_overall_lines(rows)]


def _overall_lines(rows: Table) -> list[str]:
    """Over all tasks: interquartile mean, and how likely a run is better than one of the tuned DQN's."""
    told = overall(rows)
    if not told:
        return []
    lines = [
        "all tasks, 0 = random and 1 = best: interquartile mean, P(better by area)",
        f"  {'':<20}{'last fifth':>18}{'area':>18}{'than tuned DQN':>18}",
    ]
    for name, one in told.items():
        better = "" if one.better_areas is None else _shown(one.better_areas)
        lines.append(f"  {name:<20}{_shown(one.scores):>18}{_shown(one.areas):>18}{better:>18}")
        if one.compared and one.compared != max(one.runs, told[RIVAL].runs):
            lines.append(f"  {'':<20}{f'compared on the {_seeds(one.compared)} of both':>54}")
    return lines


def _shown(estimate: tuple[float, float, float]) -> str:
    value, low, high = estimate
    return f"{value:.2f}" if np.isnan(low) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _counted(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _seeds(number: int) -> str:
    return "1 seed" if number == 1 else f"{number} seeds"


SUITE = Experiment(
    label="fig:suite",
    title="Does it learn, and stay good? PerDQN beside DQN on four tasks",
    columns=COLUMNS,
    plan=plan_suite,
    run=run_contestant,
    draw=draw_suite,
    summary=suite_lines,
    shared="fig:suite",
    notes=(
        "Evaluations are greedy: 20 episodes every 2 % of the training, with the same reset seeds each time.",
        "The tuned settings of DQN are rl-zoo3's; LunarLander-v3 takes those of LunarLander-v2.",
    ),
)
