"""The learning suite as an experiment: who trains on what, what is measured, and the summary.

This is not a figure of the paper: ``holdfast reproduce suite``. Every agent trains on every task and is evaluated
greedily after every 2 % of training, on 20 episodes that are the same at every evaluation. Its score on a task is
the mean of the last fifth of the evaluations, because staying good is the point. The mean of all evaluations, the
area under the curve, shows how soon it was good. On the common scale, random actions are 0 and the stated best is
1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.distribution import install_command
from holdfast.core.errors import InputError
from holdfast.experiments.figures.suite.contestants import CONTESTANTS, Contestant
from holdfast.experiments.figures.suite.measures import RIVAL, agents_of, measure, overall, tasks_of
from holdfast.experiments.figures.suite.tasks import TASKS, SuiteTask
from holdfast.experiments.guests import Guest, check_guests
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, matrix, select
from holdfast.policies.algorithms import find_algorithm
from holdfast.stats import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "SUITE", "draw_suite", "plan_suite", "run_contestant", "setting_of", "suite_lines"]

COLUMNS = ("step", "return", "decisions", "length", "training_return")

_EVALUATIONS = 50
_SIZES = {"smoke": (200, 1, 2, 5), "laptop": (None, 3, 20, _EVALUATIONS), "paper": (None, 10, 20, _EVALUATIONS)}
"""Steps (None for the task's own), largest number of seeds, episodes of an evaluation, and evaluations."""
_ALGORITHMS: Mapping[str, str] = {
    "DQN": "dqn",
    "PerDQN": "perdqn",
    "TempoRLDQN": "temporl-dqn",
    "EZGreedyDQN": "ez-dqn",
}
"""What the contestants' classes are called elsewhere."""
_FIRST_SEED = 100
"""First published seed; smaller ones are for choosing settings."""
_SMOKE: Mapping[str, Mapping[str, Any]] = {
    "holdfast": {"learning_starts": 50, "buffer_size": 500},
    "sb3": {"learning_starts": 50, "buffer_size": 500, "train_freq": 4, "gradient_steps": 1},
    "joined": {"learning_starts": 50, "buffer_size": 500},
}


def join_suite(guests: Sequence[Guest]) -> Experiment:
    """The suite with agents that join it, with their defaults on every task."""
    own = [contestant.name for contestant in CONTESTANTS]
    check_guests(guests, is_deep=True, beside=own, shared=("policy",))
    joined = [Contestant(guest.name, "joined", guest.algorithm, guest.arguments, seeds=10) for guest in guests]
    return replace(SUITE, plan=partial(plan_suite, joined=joined))


def plan_suite(scale: str, joined: Sequence[Contestant] = ()) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job for each contestant, task and seed, seed by seed."""
    steps, seeds, episodes, evaluations = _SIZES[scale]
    for number in range(seeds):
        for task in TASKS[:1] if scale == "smoke" else TASKS:
            for contestant in (*CONTESTANTS, *joined):
                if number >= contestant.seeds:
                    continue
                seed = _FIRST_SEED + number
                smaller = _SMOKE[contestant.library] if scale == "smoke" else {}
                yield setting_of(contestant, task, steps or task.steps, episodes, evaluations, smaller), seed


def setting_of(
    contestant: Contestant,
    task: SuiteTask,
    steps: int,
    episodes: int,
    evaluations: int,
    smaller: Mapping[str, Any],
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
    """Train from scratch, with greedy evaluations on the way."""
    import stable_baselines3
    from gymnasium.error import DependencyNotInstalled

    import holdfast.deep
    from holdfast.experiments.figures.suite.greedy_evaluation import GreedyEvaluations
    from holdfast.policies.arguments import as_python

    setting = job.setting
    arguments = dict(setting["arguments"])
    if setting["library"] == "joined":
        algorithm = find_algorithm(setting["algorithm"])
        kind, arguments = algorithm.load(), {**as_python(arguments), **algorithm.stands_for}
    else:
        library = {"holdfast": holdfast.deep, "sb3": stable_baselines3}[setting["library"]]
        kind = getattr(library, setting["algorithm"])
    every = setting["steps"] // setting["evaluations"]
    try:
        evaluations = GreedyEvaluations(setting["environment"], every, setting["episodes"])
    except DependencyNotInstalled:
        raise InputError(f"{setting['environment']} needs Box2D: {install_command('box2d')}") from None
    model = kind(arguments.pop("policy"), setting["environment"], seed=job.seed, device="cpu", **arguments)
    model.learn(setting["steps"], evaluations)
    return {name: [found[index] for found in evaluations.found] for index, name in enumerate(COLUMNS)}


def draw_suite(rows: Table) -> Figure:
    """Greedy returns during training, one panel per task; mean and 95 % interval over seeds."""
    from holdfast.draw import Curve, Panel, draw_curves
    from holdfast.draw.style import ALGORITHM_COLORS, OWN_COLORS

    # Agents of one algorithm share its colour and differ in their dashes.
    colors = {one.name: ALGORITHM_COLORS[_ALGORITHMS[one.algorithm]] for one in CONTESTANTS}
    dashes = {
        name: list(colors.values())[:number].count(color) for number, (name, color) in enumerate(colors.items())
    }
    joined = [name for name in agents_of(rows) if name not in colors]
    colors |= {name: OWN_COLORS[number % len(OWN_COLORS)] for number, name in enumerate(joined)}
    dashes |= dict.fromkeys(joined, 1)
    panels = []
    for task in tasks_of(rows):
        curves = []
        for name in agents_of(rows):
            own = select(rows, agent=name, environment=task.environment)
            if len(own["seed"]) == 0:
                continue
            steps, returns = matrix(own, "return", "step")
            mean, low, high = mean_interval(returns)
            curve = Curve(f"{name}, {_counted(len(returns))}", colors[name], steps, mean, dash=dashes[name])
            curves.append(replace(curve, low=low, high=high) if len(returns) > 1 else curve)
        panels.append(Panel(task.environment, curves))
    return draw_curves(panels, "steps", "greedy return")


def suite_lines(rows: Table) -> list[str]:
    """Each agent's last fifth on each task, then the comparison with the tuned DQN over all tasks."""
    lines = []
    width = _name_width(agents_of(rows))
    for task in tasks_of(rows):
        lines.append(f"{task.environment}: greedy return of the last fifth, worst seed, decisions")
        for name in agents_of(rows):
            found = measure(rows, name, task)
            if found is None:
                continue
            mean, _, high = mean_interval(found.ends)
            error = "" if np.isnan(high) else f" ±{high - mean:.1f}"
            lines.append(
                f"  {name:<{width}}{f'{mean:.1f}{error}':>16}{found.ends.min():>10.1f}"
                f"{float(found.decisions.mean()):>9.1f}{_counted(len(found.seeds)):>10}"
            )
    return [*lines, *_overall_lines(rows)]


def _overall_lines(rows: Table) -> list[str]:
    """Over all tasks: interquartile mean, and the probability that a run beats one of the tuned DQN."""
    told = overall(rows)
    if not told:
        return []
    width = _name_width(list(told))
    lines = [
        "all tasks, 0 = random and 1 = best: interquartile mean, P(better by area)",
        f"  {'':<{width}}{'last fifth':>18}{'area':>18}{'than tuned DQN':>18}",
    ]
    for name, one in told.items():
        better = "" if one.better_areas is None else _shown(one.better_areas)
        lines.append(f"  {name:<{width}}{_shown(one.scores):>18}{_shown(one.areas):>18}{better:>18}")
        if one.compared and one.compared != max(one.runs, told[RIVAL].runs):
            lines.append(f"  {'':<{width}}{f'compared on the {_seeds(one.compared)} of both':>54}")
    return lines


def _name_width(names: Sequence[str]) -> int:
    return max(20, *map(len, names))


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
    join=join_suite,
    notes=(
        "Evaluations are greedy: 20 episodes after every 2 % of training, with the same reset seeds each time.",
        "The tuned settings of DQN are rl-zoo3's; LunarLander-v3 uses those of LunarLander-v2.",
    ),
)
