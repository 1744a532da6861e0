"""Continuous actions: agents that hold beside agents that decide at every step.

These are not figures of the paper. ``holdfast reproduce continuous`` trains Persistent TD3 and TD3 with the same
Gaussian noise; ``holdfast reproduce continuous_sac`` trains Persistent SAC and SAC, which draw their actions and
have no noise. In finer time the discount of a step is γ^(1/n), updates and warm-up follow physical time, and no
agent is given n.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.distribution import install_command
from holdfast.core.errors import InputError
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, matrix, select
from holdfast.stats import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CONTINUOUS_TASKS", "EXPERIMENT", "SOFT", "ContinuousTask", "draw_continuous"]

COLUMNS = ("step", "return", "decisions", "length", "training_return")


@dataclass(frozen=True)
class ContinuousTask:
    """An environment and its exploration noise.

    Attributes:
        name: Name to show.
        environment: Gymnasium id.
        steps: Number of training steps.
        noise: Standard deviation of the exploration noise; None for no noise.
        env_kwargs: Arguments of the environment.
        arguments: Arguments of both agents that differ from the defaults.
        most_seeds: Largest number of seeds at any scale.
        most_episodes: Largest number of episodes of an evaluation at any scale.
    """

    name: str
    environment: str
    steps: int
    noise: float | None
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    most_seeds: int = 5
    most_episodes: int = 50


def _finer(n: int) -> dict[str, Any]:
    """Arguments of an agent for which time is cut into n times as many steps."""
    return {"gamma": 0.99 ** (1 / n), "learning_starts": 1000 * n, "train_freq": n, "gradient_steps": 1}


_CAR = ContinuousTask("MountainCarContinuous", "MountainCarContinuous-v0", 50_000, None)
_OTHERS = (
    ContinuousTask("Pendulum", "Pendulum-v1", 20_000, 0.1),
    ContinuousTask("Pendulum, 10 steps for one", "holdfast/PendulumFine-v0", 200_000, 0.1, {"n": 10}, _finer(10)),
    # Gymnasium's own frame skip is 4.
    ContinuousTask(
        "Hopper, frame skip 1",
        "Hopper-v5",
        100_000,
        0.1,
        {"frame_skip": 1, "max_episode_steps": 4000},
        _finer(4),
        most_seeds=2,
        most_episodes=10,
    ),
)

_TD3 = {"batch_size": 100}
"""What both TD3s get on every task: the batch of TD3's paper (arXiv 1802.09477), whose networks SB3 also has."""

CONTINUOUS_TASKS: Mapping[tuple[str, str], tuple[ContinuousTask, ...]] = {
    ("pertd3", "td3"): tuple(
        replace(task, arguments={**task.arguments, **_TD3})
        for task in (
            *(replace(_CAR, name=f"{_CAR.name}, σ = {sigma}", noise=sigma) for sigma in (0.1, 0.3, 0.5)),
            *_OTHERS,
        )
    ),
    ("persac", "sac"): (_CAR, *(replace(task, noise=None) for task in _OTHERS)),
}
"""By the agents that are trained on them."""

_SIZES = {"smoke": (1, 1, 4), "laptop": (2, 20, 20), "paper": (5, 50, 20)}
"""Seeds, episodes of an evaluation, and evaluations."""
_FIRST_SEED = 100
"""First published seed; smaller ones are for choosing settings."""
_SMOKE = {"learning_starts": 50, "buffer_size": 500, "batch_size": 8, "policy_kwargs": {"net_arch": [8]}}


def plan(agents: tuple[str, str], scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job for each task, agent and seed, seed by seed."""
    seeds, episodes, evaluations = _SIZES[scale]
    for number in range(seeds):
        for task in CONTINUOUS_TASKS[agents]:
            if number >= task.most_seeds or (scale == "smoke" and task.name != "Pendulum"):
                continue
            for agent in agents:
                yield (
                    {
                        "task": task.name,
                        "agent": agent,
                        "environment": task.environment,
                        "env_kwargs": dict(task.env_kwargs),
                        "arguments": _written_out(agent, task, _SMOKE if scale == "smoke" else {}),
                        "steps": 400 if scale == "smoke" else task.steps,
                        "episodes": min(episodes, task.most_episodes),
                        "evaluations": evaluations,
                    },
                    _FIRST_SEED + number,
                )


def _written_out(agent: str, task: ContinuousTask, smaller: Mapping[str, Any]) -> dict[str, Any]:
    """Every argument, so that rows made with other defaults belong to another job."""
    from holdfast.policies.algorithms import find_algorithm

    return find_algorithm(agent).complete({"action_noise": task.noise, **task.arguments, **smaller})


def run(job: Job, place: Path) -> Mapping[str, Any]:
    """Train from scratch, with greedy evaluations on the way."""
    import gymnasium
    from gymnasium.error import DependencyNotInstalled

    from holdfast.experiments.figures.suite.greedy_evaluation import GreedyEvaluations
    from holdfast.policies.algorithms import find_algorithm
    from holdfast.policies.arguments import as_python

    setting = job.setting
    algorithm = find_algorithm(setting["agent"])
    arguments = {**as_python(setting["arguments"]), **algorithm.stands_for}
    every, env_kwargs = setting["steps"] // setting["evaluations"], setting["env_kwargs"]
    try:
        evaluations = GreedyEvaluations(setting["environment"], every, setting["episodes"], **env_kwargs)
    except DependencyNotInstalled:
        raise InputError(f"{setting['environment']} needs MuJoCo: {install_command('mujoco')}") from None
    env = gymnasium.make(setting["environment"], **env_kwargs)
    model = algorithm.load()(arguments.pop("policy"), env, seed=job.seed, device="cpu", **arguments)
    model.learn(setting["steps"], evaluations)
    return {name: [found[index] for found in evaluations.found] for index, name in enumerate(COLUMNS)}


def draw_continuous(rows: Table) -> Figure:
    """Greedy returns during training, one panel per task; mean and 95 % interval over seeds."""
    from holdfast.draw import Curve, Panel, draw_curves
    from holdfast.draw.style import algorithm_color

    panels = []
    for name in _tasks(rows):
        curves = []
        for agent in _agents(rows):
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
    """Each agent's last evaluation on each task, seed by seed, and how often it decides."""
    found = []
    for name in _tasks(rows):
        found.append(f"{name}: last greedy return of each seed; steps per decision")
        for agent in _agents(rows):
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
    known = dict.fromkeys(task.name for tasks in CONTINUOUS_TASKS.values() for task in tasks)
    return [name for name in known if name in rows["task"]]


def _agents(rows: Table) -> Sequence[str]:
    return [agent for agents in CONTINUOUS_TASKS for agent in agents if agent in rows["agent"]]


def _title(agent: str) -> str:
    from holdfast.policies.algorithms import find_algorithm

    return find_algorithm(agent).title


EXPERIMENT = Experiment(
    label="fig:continuous",
    title="Continuous actions: Persistent TD3 beside TD3",
    columns=COLUMNS,
    plan=partial(plan, ("pertd3", "td3")),
    run=run,
    draw=draw_continuous,
    summary=lines,
    notes=(
        "Not a figure of the paper, which leaves continuous actions to future work.",
        "Both agents have the same noise, which PerTD3 holds with its option, a batch of 100, and their "
        "defaults otherwise.",
    ),
)

SOFT = replace(
    EXPERIMENT,
    label="fig:continuous_sac",
    title="Continuous actions: Persistent SAC beside SAC",
    plan=partial(plan, ("persac", "sac")),
    notes=(EXPERIMENT.notes[0], "Both agents are given the same defaults, and no noise beside what they draw."),
)
