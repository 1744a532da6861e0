"""Continuous actions: Persistent TD3 beside TD3, on tasks where the frequency of decisions matters and where not.

It is no figure of the paper: ``holdfast reproduce continuous``. MountainCarContinuous is trained with plain
Gaussian noise of three sizes; Pendulum as it is, and with time cut into ten times as many steps. In finer time the
discount of a step is γ^(1/n), updates and warm-up are laid out in physical time, and nobody is told n.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, matrix, select
from holdfast.stats import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "TASKS", "ContinuousTask", "draw_continuous"]

COLUMNS = ("step", "return", "decisions", "length", "training_return")

_AGENTS = ("pertd3", "td3")


@dataclass(frozen=True)
class ContinuousTask:
    """An environment with the noise by which it is explored.

    Attributes:
        name: As it is shown.
        environment: Gymnasium id.
        steps: Of a training.
        noise: Standard deviation of the exploration noise.
        n: Steps that one of the environment's is cut into; 1 where it has no such argument.
        arguments: Of both agents, beside the defaults.
    """

    name: str
    environment: str
    steps: int
    noise: float
    n: int = 1
    arguments: Mapping[str, Any] = field(default_factory=dict)


_TEN_TIMES_FINER = {"gamma": 0.99**0.1, "learning_starts": 10_000, "train_freq": 10, "gradient_steps": 1}

TASKS = (
    *(
        ContinuousTask(f"MountainCarContinuous, σ = {sigma}", "MountainCarContinuous-v0", 50_000, sigma)
        for sigma in (0.1, 0.3, 0.5)
    ),
    ContinuousTask("Pendulum", "Pendulum-v1", 20_000, 0.1),
    ContinuousTask("Pendulum, 10 steps for one", "holdfast/PendulumFine-v0", 200_000, 0.1, 10, _TEN_TIMES_FINER),
)

_SIZES = {"smoke": (1, 1, 4), "laptop": (2, 20, 20), "paper": (5, 50, 20)}
"""Seeds, episodes of an evaluation, and evaluations."""
_FIRST_SEED = 100
"""Smaller seeds are for choosing settings, these for publishing."""
_SMOKE = {"learning_starts": 50, "buffer_size": 500, "batch_size": 8, "policy_kwargs": {"net_arch": [8]}}


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """A job for each task, agent and seed, seed by seed."""
    seeds, episodes, evaluations = _SIZES[scale]
    for number in range(seeds):
        for task in TASKS[-2:-1] if scale == "smoke" else TASKS:
            for agent in _AGENTS:
                yield (
                    {
                        "task": task.name,
                        "agent": agent,
                        "environment": task.environment,
                        "n": task.n,
                        "arguments": _written_out(agent, task, _SMOKE if scale == "smoke" else {}),
                        "steps": 400 if scale == "smoke" else task.steps,
                        "episodes": episodes,
                        "evaluations": evaluations,
                    },
                    _FIRST_SEED + number,
                )


def _written_out(agent: str, task: ContinuousTask, smaller: Mapping[str, Any]) -> dict[str, Any]:
    """Every argument, so that rows of other defaults are those of another job."""
    from holdfast.policies.algorithms import find_algorithm

    return find_algorithm(agent).complete({"action_noise": task.noise, **task.arguments, **smaller})


def run(job: Job, place: Path) -> Mapping[str, Any]:
    """Train from nothing, and evaluate greedily on the way."""
    import gymnasium

    from holdfast.experiments.figures.suite.greedy_evaluation import GreedyEvaluations
    from holdfast.policies.algorithms import find_algorithm
    from holdfast.policies.arguments import as_python

    setting = job.setting
    algorithm = find_algorithm(setting["agent"])
    arguments = {**as_python(setting["arguments"]), **algorithm.stands_for}
    env_kwargs = {} if setting["n"] == 1 else {"n": setting["n"]}
    every = setting["steps"] // setting["evaluations"]
    evaluations = GreedyEvaluations(setting["environment"], every, setting["episodes"], **env_kwargs)
    env = gymnasium.make(setting["environment"], **env_kwargs)
    model = algorithm.load()(arguments.pop("policy"), env, seed=job.seed, device="cpu", **arguments)
    model.learn(setting["steps"], evaluations)
    return {name: [found[index] for found in evaluations.found] for index, name in enumerate(COLUMNS)}


def draw_continuous(rows: Table) -> Figure:
    """Greedy returns over the training, a panel for each task; mean and 95 % interval over seeds."""
    from holdfast.draw import Curve, Panel, draw_curves
    from holdfast.draw.style import algorithm_color

    panels = []
    for name in _tasks(rows):
        curves = []
        for agent in _AGENTS:
            own = select(rows, task=name, agent=agent)
            if len(own["seed"]) == 0:
                continue
            steps, returns = matrix(own, "return", "step")
            mean, low, high = mean_interval(returns)
            curve = Curve(_title(agent), algorithm_color(agent), steps, mean)
            curves.append(replace(curve, low=low, high=high) if len(returns) > 1 else curve)
        panels.append(Panel(name, curves))
    return draw_curves(panels, "steps", "greedy return")


def lines(rows: Table) -> list[str]:
    """Each agent's last evaluation on each task, its seeds one by one, and how often it decides."""
    found = []
    for name in _tasks(rows):
        found.append(f"{name}: last greedy return of each seed; steps per decision")
        for agent in _AGENTS:
            own = select(rows, task=name, agent=agent)
            if len(own["seed"]) == 0:
                continue
            _, returns = matrix(own, "return", "step")
            _, decisions = matrix(own, "decisions", "step")
            _, lengths = matrix(own, "length", "step")
            shown = " ".join(f"{value:.1f}" for value in returns[:, -1])
            hold = float(lengths[:, -1].sum() / decisions[:, -1].sum())
            found.append(f"  {_title(agent):<8}{shown:>52}{hold:>8.1f}")
    return found


def _tasks(rows: Table) -> list[str]:
    return [task.name for task in TASKS if task.name in rows["task"]]


def _title(agent: str) -> str:
    from holdfast.policies.algorithms import find_algorithm

    return find_algorithm(agent).title


EXPERIMENT = Experiment(
    label="fig:continuous",
    title="Continuous actions: Persistent TD3 beside TD3",
    columns=COLUMNS,
    plan=plan,
    run=run,
    draw=draw_continuous,
    summary=lines,
    notes=(
        "It is no figure of the paper, which leaves continuous actions to future work.",
        "Both agents are given the same noise, which PerTD3 holds with its option, and the same defaults.",
    ),
)
