"""MountainCar in finer time: whether the number of steps per second of physics matters to networks.

This is not a figure of the paper: ``holdfast reproduce refinement_car``. One step of MountainCar-v0 becomes n
steps. Three agents learn at every n: DQN with rl-zoo3's settings for MountainCar; the same DQN with a frame skip
of n, which must know n and restores the original problem; and PerDQN with its defaults and one set of
persistences.

"The same amount of training" has two readings:

- ``physical``: the same number of physical steps, so n times as many environment steps. Warm-up, replay, target
  updates and the steps between updates grow with n, so the number of updates is the same at every n.
- ``steps``: the same number of environment steps and updates, so only 1/n of the physical time.

Under both, a step's discount is γ^(1/n).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.experiments.figures.suite.contestants import CONTESTANTS, Contestant
from holdfast.experiments.figures.suite.tasks import TASKS, last_fifth
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, matrix, select, with_interval
from holdfast.stats import mean_interval

if TYPE_CHECKING:
    import gymnasium
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "in_physical_time"]

COLUMNS = ("time", "return", "decisions", "length", "training_return")
"""``time`` and ``length`` are in physical steps, those of MountainCar-v0."""

PERSISTENCES = [1, 2, 4, 8, 16, 32, 64, 128, 256]
"""One set for every n: the longest hold is 16 physical steps at n = 16."""

_CAR = next(task for task in TASKS if task.environment == "MountainCar-v0")
_COUNTED_IN_STEPS = ("buffer_size", "learning_starts", "target_update_interval", "train_freq")


@dataclass(frozen=True)
class _Agent:
    """An agent of the figure.

    Attributes:
        contestant: The agent in the learning suite.
        arguments: Its further arguments.
        skips: Whether it holds every action for n steps.
    """

    contestant: Contestant
    arguments: Mapping[str, Any]
    skips: bool


def _contestant(name: str) -> Contestant:
    return next(found for found in CONTESTANTS if found.name == name)


_DQN, _SKIPPING, _PER_DQN = "DQN", "DQN, skip n", "PerDQN"
_AGENTS = {
    _DQN: _Agent(_contestant("DQN, tuned"), {}, False),
    _SKIPPING: _Agent(_contestant("DQN, tuned"), {}, True),
    _PER_DQN: _Agent(_contestant("PerDQN"), {"persistences": PERSISTENCES}, False),
}
_PALETTE = {_DQN: "orange", _SKIPPING: "grey", _PER_DQN: "blue"}

_FIRST_SEED = 100
_SIZES: Mapping[str, tuple[tuple[int, ...], int, int, int, int]] = {
    "smoke": ((1, 2), 1, 200, 2, 4),
    "laptop": ((1, 4, 16), 3, _CAR.steps, 10, 40),
    "paper": ((1, 4, 16), 5, _CAR.steps, 20, 40),
}
"""The refinements n, seeds, physical steps, episodes of an evaluation, and evaluations."""
_SMOKE = {"learning_starts": 50, "buffer_size": 500, "train_freq": 4, "gradient_steps": 1}
_FINEST_OF_EQUAL_STEPS = 4
"""The largest n of the reading ``steps``: a finer one leaves too little physical time to learn anything."""


def in_physical_time(arguments: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Arguments of an agent whose steps are n times as short: everything that counts steps is multiplied by n.

    Args:
        arguments: The arguments for n = 1; they must include ``gamma`` and everything that counts steps.
        n: Number of steps that replace one.
    """
    return {**_discounted(arguments, n), **{name: arguments[name] * n for name in _COUNTED_IN_STEPS}}


def _discounted(arguments: Mapping[str, Any], n: int) -> dict[str, Any]:
    return {**arguments, "gamma": arguments["gamma"] ** (1.0 / n)}


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job for each reading, n and agent, seed by seed."""
    refinements, seeds, physical, episodes, evaluations = _SIZES[scale]
    for seed in range(_FIRST_SEED, _FIRST_SEED + seeds):
        for reading in ("physical", "steps"):
            for n in refinements:
                for name, agent in _AGENTS.items():
                    # With n = 1 there is nothing to skip, and the readings agree.
                    if n == 1 and (agent.skips or reading == "steps"):
                        continue
                    if reading == "steps" and (n > _FINEST_OF_EQUAL_STEPS or agent.skips):
                        continue
                    yield (
                        {
                            "reading": reading,
                            "n": n,
                            "agent": name,
                            "library": agent.contestant.library,
                            "algorithm": agent.contestant.algorithm,
                            "hold": n if agent.skips else 1,
                            "arguments": _arguments(agent, reading, n, _SMOKE if scale == "smoke" else {}),
                            "physical_steps": physical if reading == "physical" else physical // n,
                            "episodes": episodes,
                            "evaluations": evaluations,
                        },
                        seed,
                    )


def _arguments(agent: _Agent, reading: str, n: int, smaller: Mapping[str, Any]) -> dict[str, Any]:
    own = replace(agent.contestant, arguments={**agent.contestant.arguments, **agent.arguments})
    arguments = {**own.arguments_for(_CAR.environment), **smaller}
    if agent.skips:
        # Its steps are holds, each as long as a step of the original problem.
        return arguments
    return in_physical_time(arguments, n) if reading == "physical" else _discounted(arguments, n)


def run(job: Job, place: Path) -> Mapping[str, Any]:
    """Train from scratch, with greedy evaluations on the way."""
    import stable_baselines3

    import holdfast.deep
    from holdfast.experiments.figures.suite.greedy_evaluation import GreedyEvaluations

    setting = job.setting
    library = {"holdfast": holdfast.deep, "sb3": stable_baselines3}[setting["library"]]
    arguments = dict(setting["arguments"])
    n, hold = setting["n"], setting["hold"]
    steps_per_physical = n // hold
    steps = setting["physical_steps"] * steps_per_physical
    # Rewards within a hold are discounted in training; reported returns are undiscounted.
    env = _make_car(n, hold, arguments["gamma"] ** (1.0 / hold))
    evaluations = GreedyEvaluations(
        lambda: _make_car(n, hold, 1.0), steps // setting["evaluations"], setting["episodes"]
    )
    model = getattr(library, setting["algorithm"])(
        arguments.pop("policy"), env, seed=job.seed, device="cpu", **arguments
    )
    model.learn(steps, evaluations)
    rows = zip(*evaluations.found, strict=True)
    step, returns, decisions, lengths, training = (np.array(column, dtype=np.float64) for column in rows)
    return {
        "time": step / steps_per_physical,
        "return": returns,
        "decisions": decisions,
        "length": lengths / steps_per_physical,
        "training_return": training,
    }


def _make_car(n: int, hold: int, gamma: float) -> gymnasium.Env[Any, Any]:
    import gymnasium

    from holdfast.envs import HoldAction

    env = gymnasium.make("holdfast/MountainCarFine-v0", n=n)
    return env if hold == 1 else HoldAction(env, hold, gamma)


def draw_refinement_car(rows: Table) -> Figure:
    """Greedy returns over physical time, one panel for each reading and n; mean and 95 % interval over seeds."""
    from holdfast.draw import Curve, Panel, draw_curves
    from holdfast.draw.style import PALETTE

    panels = []
    for reading, n in _cases(rows):
        curves = []
        for agent in _AGENTS:
            own = select(rows, reading=reading, n=n, agent=agent)
            if len(own["seed"]) == 0:
                continue
            times, returns = matrix(own, "return", "time")
            mean, low, high = mean_interval(returns)
            curve = Curve(agent, PALETTE[_PALETTE[agent]], times, mean)
            curves.append(replace(curve, low=low, high=high) if len(returns) > 1 else curve)
        title = f"n = {n}" if reading == "physical" else f"n = {n}, as many steps as n = 1"
        panels.append(Panel(title, curves))
    return draw_curves(panels, "physical steps", "greedy return")


def summary(rows: Table) -> list[str]:
    """The last fifth, the mean of all evaluations and the decisions by n, and the effect of n on each agent."""
    lines = [f"{'':<26}{'last fifth':>20}{'all evaluations':>20}{'decisions':>12}"]
    for reading, n in _cases(rows):
        lines.append(f"n = {n:g}" + ("" if reading == "physical" else ", as many environment steps as n = 1"))
        for agent in _AGENTS:
            own = select(rows, reading=reading, n=n, agent=agent)
            if len(own["seed"]) == 0:
                continue
            _, returns = matrix(own, "return", "time")
            _, decisions = matrix(own, "decisions", "time")
            cells = (with_interval(values) for values in (last_fifth(returns), returns.mean(axis=1)))
            lines.append(
                f"  {agent:<24}"
                + "".join(f"{cell:>20}" for cell in cells)
                + f"{last_fifth(decisions).mean():>12.1f}"
            )
    return [*lines, "", *_verdicts(rows)]


def _verdicts(rows: Table) -> list[str]:
    """How much return each agent loses from the coarsest to the finest time, on the seeds that both have."""
    found = []
    physical = select(rows, reading="physical")
    for agent in _AGENTS:
        # A skip restores DQN itself.
        coarse = _by_seed(select(physical, n=1, agent=_DQN if agent == _SKIPPING else agent))
        for n in np.unique(physical["n"]):
            fine = _by_seed(select(physical, n=n, agent=agent))
            shared = sorted(set(coarse) & set(fine))
            if n == 1 or len(shared) < 2:
                continue
            changes = np.array([fine[seed] - coarse[seed] for seed in shared])
            mean, low, high = map(float, mean_interval(changes))
            found.append(
                f"{agent}: n=1 to {n:g} changes the last fifth by {mean:+.1f} ({low:+.1f} to {high:+.1f})"
            )
    return found


def _by_seed(rows: Table) -> dict[int, float]:
    if len(rows["seed"]) == 0:
        return {}
    _, returns = matrix(rows, "return", "time")
    return dict(zip(np.unique(rows["seed"]).tolist(), last_fifth(returns).tolist(), strict=True))


def _cases(rows: Table) -> list[tuple[str, int]]:
    """The readings and refinements that have rows."""
    cases = [(reading, n) for reading in ("physical", "steps") for n in np.unique(rows["n"]).tolist()]
    return [(reading, int(n)) for reading, n in cases if ((rows["reading"] == reading) & (rows["n"] == n)).any()]


EXPERIMENT = Experiment(
    label="fig:refinement_car",
    title="MountainCar with each step cut into n: DQN, DQN with a skip of n, and PerDQN",
    columns=COLUMNS,
    plan=plan,
    run=run,
    draw=draw_refinement_car,
    summary=summary,
    notes=(
        "Not in the paper. DQN has rl-zoo3's settings for MountainCar, PerDQN its defaults with the "
        "persistences 1, 2, 4, ..., 256 at every n. Intervals are 95 % (Student's).",
    ),
)
