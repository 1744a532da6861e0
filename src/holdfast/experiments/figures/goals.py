"""Goals that are seldom reached: holding, hindsight, and both, on a grid with a new goal in every episode.

It is no figure of the paper: ``holdfast reproduce her``. Three agents learn to walk to any cell of ``GoalGrid``,
with the same settings: PerDQN with hindsight replay, DQN (PerDQN with one persistence) with hindsight replay, and
PerDQN without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.experiments.drivers import Driver, driver_curves
from holdfast.experiments.figures.suite.tasks import last_fifth
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, matrix, select, with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

_ENVIRONMENT = "holdfast/GoalGrid-v0"
COLUMNS = ("step", "return", "decisions", "length", "training_return")

_HINDSIGHT = {
    "replay_buffer_class": "HerReplayBuffer",
    "replay_buffer_kwargs": {"n_sampled_goal": 4, "goal_selection_strategy": "future"},
}
_HOLDS = {"persistences": [1, 2, 4, 8, 16]}
_DRIVERS = (
    Driver("PerDQN + HER", "perdqn", {**_HOLDS, **_HINDSIGHT}),
    Driver("DQN + HER", "dqn", _HINDSIGHT),
    Driver("PerDQN", "perdqn", _HOLDS),
)

_SETTINGS = {
    "policy": "MultiInputPolicy",
    "learning_rate": 1e-3,
    "learning_starts": 500,
    "train_freq": 2,
    "policy_kwargs": {"net_arch": [64, 64]},
    "exploration_fraction": 0.3,
    "exploration_final_eps": 0.1,
    # Before any goal was reached, the value that fits the warm-up is that of never reaching one.
    "initial_values": "zero",
}
_SMOKE = {"learning_starts": 100, "buffer_size": 500, "batch_size": 8, "policy_kwargs": {"net_arch": [8]}}

_SIDE, _STEP_LIMIT = 41, 120
_SIZES = {"smoke": (8, 20, 400, 1, 2, 4), "laptop": (_SIDE, _STEP_LIMIT, 16_000, 5, 40, 20)}
_SIZES["paper"] = (*_SIZES["laptop"][:3], 10, *_SIZES["laptop"][4:])
"""Cells along each side, steps of an episode and of a training, seeds, episodes of an evaluation, evaluations."""
_FIRST_SEED = 100
"""Smaller seeds are for choosing settings, these for publishing."""


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """A job for each agent, seed by seed."""
    size, step_limit, steps, seeds, episodes, evaluations = _SIZES[scale]
    for seed in range(_FIRST_SEED, _FIRST_SEED + seeds):
        for driver in _DRIVERS:
            yield (
                {
                    "driver": driver.name,
                    "algorithm": driver.algorithm,
                    "size": size,
                    "step_limit": step_limit,
                    "arguments": _written_out(driver, _SMOKE if scale == "smoke" else {}),
                    "steps": steps,
                    "episodes": episodes,
                    "evaluations": evaluations,
                },
                seed,
            )


def _written_out(driver: Driver, smaller: Mapping[str, Any]) -> dict[str, Any]:
    """Every argument, so that rows of other defaults are those of another job."""
    from holdfast.policies.algorithms import find_algorithm

    found = find_algorithm(driver.algorithm).complete({**_SETTINGS, **driver.arguments, **smaller})
    return {"replay_buffer_class": None, **found}


def run(job: Job, place: Path) -> Mapping[str, Any]:
    """Train from nothing, and evaluate greedily on the way."""
    import gymnasium

    from holdfast.experiments.figures.suite.greedy_evaluation import GreedyEvaluations
    from holdfast.policies.algorithms import find_algorithm
    from holdfast.policies.arguments import as_python

    setting = job.setting
    algorithm = find_algorithm(setting["algorithm"])
    arguments = {**as_python(setting["arguments"]), **algorithm.stands_for}
    env_kwargs = {"size": setting["size"], "step_limit": setting["step_limit"]}
    every = setting["steps"] // setting["evaluations"]
    evaluations = GreedyEvaluations(_ENVIRONMENT, every, setting["episodes"], **env_kwargs)
    env = gymnasium.make(_ENVIRONMENT, **env_kwargs)
    model = algorithm.load()(arguments.pop("policy"), env, seed=job.seed, device="cpu", **arguments)
    model.learn(setting["steps"], evaluations)
    return {name: [found[index] for found in evaluations.found] for index, name in enumerate(COLUMNS)}


def draw_goals(rows: Table) -> Figure:
    """Greedy returns and decisions per episode over the training; mean and 95 % interval over seeds."""
    from holdfast.draw import Panel, draw_curves

    panels = [
        Panel("greedy return", driver_curves(rows, _DRIVERS, "return")),
        Panel("decisions per episode", driver_curves(rows, _DRIVERS, "decisions")),
    ]
    return draw_curves(panels, "steps", "")


def summary(rows: Table) -> list[str]:
    """The last fifth of the greedy evaluations, the worst seed, all evaluations, and decisions."""
    lines = [f"{'':<16}{'last fifth':>16}{'worst seed':>12}{'all':>16}{'decisions':>11}{'length':>9}"]
    for driver in _DRIVERS:
        own = select(rows, driver=driver.name)
        if len(own["seed"]) == 0:
            continue
        values = {name: matrix(own, name, "step")[1] for name in ("return", "decisions", "length")}
        ends = last_fifth(values["return"])
        lines.append(
            f"{driver.name:<16}{with_interval(ends):>16}{ends.min():>12.1f}"
            f"{with_interval(values['return'].mean(axis=1)):>16}"
            f"{last_fifth(values['decisions']).mean():>11.1f}{last_fifth(values['length']).mean():>9.1f}"
        )
    return lines


EXPERIMENT = Experiment(
    label="fig:her",
    title="Goals chosen in hindsight: PerDQN + HER beside DQN + HER and PerDQN alone",
    columns=COLUMNS,
    plan=plan,
    run=run,
    draw=draw_goals,
    summary=summary,
    notes=(
        "It is no figure of the paper. All three have the same settings; DQN is PerDQN with one persistence.",
        "A return is minus the steps to the goal. Intervals are 95 % (Student's) over seeds.",
    ),
)
