"""Learning curves of the tabular learners, which several figures share: who learns where, and what is stored.

A job is one agent on one grid with a block of seeds. A greedy episode follows each training episode; both returns
are stored, as means over blocks of episodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.array_types import Floats
from holdfast.core.decomposition import equal_updates_per_step
from holdfast.experiments.guests import Guest, check_guests
from holdfast.experiments.spec import Job

if TYPE_CHECKING:
    from holdfast.tabular import FitResult

__all__ = [
    "AS_PRINTED",
    "COLUMNS",
    "GRIDS",
    "NOTES",
    "SIZES",
    "STUDY",
    "GridAgent",
    "Learning",
    "Size",
    "equal_q",
    "ez_q",
    "joining",
    "learn",
    "msa",
    "one_step_per_q",
    "per_q",
    "plain_q",
    "plan_curves",
    "repeated_q",
    "run_curves",
    "temporl",
]


STUDY = "grids"
"""The study that the jobs of all these figures belong to."""

COLUMNS = ("seed", "episode", "return", "greedy")
"""Columns of the rows: ``return`` is that of training episodes, ``greedy`` that of greedy ones."""

GRIDS: Mapping[str, str] = {
    "cliff": "Cliff",
    "bridge": "Bridge",
    "zigzag": "ZigZag",
    "frozen-lake": "FrozenLake 16x16",
}
"""Titles by name; a frozen lake is a different map for each seed, but the same for each agent."""

NOTES = (
    "A score is the mean greedy return over all episodes of a run, ± 95 % interval (Student's) over the runs; "
    "curves are means over blocks of episodes. Greedy episodes break ties at random.",
    "Differs from the paper: α = .1 and zero initial values instead of .01 and N(0, 1), with which nothing is "
    "learned in time; the step limit of 100, where the paper states none (see: holdfast docs errata).",
)
"""Notes for all these figures."""


@dataclass(frozen=True)
class GridAgent:
    """An agent that learns in a study.

    Attributes:
        name: Name in rows, legends and tables.
        algorithm: Algorithm's name in ``holdfast.policies.algorithms``.
        arguments: Learner's arguments, as JSON values; those that all agents share are in ``Learning``.
    """

    name: str
    algorithm: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def plain_q() -> GridAgent:
    """Q-learning."""
    return GridAgent("Q", "q", {"updates_per_step": 1.0})


def repeated_q(k_max: int) -> GridAgent:
    """Q-learning that learns from each step K_max times, as in the paper."""
    return GridAgent(f"Q x{k_max}", "q", {"updates_per_step": float(k_max)})


def equal_q(k_max: int) -> GridAgent:
    """Q-learning with as many updates per step as PerQ-learning makes if κ is uniform."""
    return GridAgent(f"Q equal to PerQ{k_max}", "q", {"updates_per_step": equal_updates_per_step(k_max)})


def per_q(k_max: int) -> GridAgent:
    """PerQ-learning."""
    return GridAgent(f"PerQ{k_max}", "perq", {"k_max": k_max})


def one_step_per_q(k_max: int) -> GridAgent:
    """PerQ-learning whose random actions last one step: its update without its exploration."""
    return GridAgent(f"PerQ{k_max} explore k=1", "perq", {"k_max": k_max, "exploration": "primitive"})


def ez_q(k_max: int) -> GridAgent:
    """Q-learning whose random actions are held: the exploration without the update."""
    return GridAgent(f"εz{k_max}", "ez-q", {"k_max": k_max})


def msa(k_max: int, is_padded: bool = False) -> GridAgent:
    """MSA-Q-learning as in the paper, or padded: durations beyond the end of an episode are updated too."""
    return GridAgent(f"MSA{k_max}{' padded' * is_padded}", "msa-q", {"k_max": k_max, "pad_terminal": is_padded})


def temporl(k_max: int, is_padded: bool = True) -> GridAgent:
    """TempoRL, padded by default."""
    return GridAgent(
        f"TempoRL{k_max}{' padded' * is_padded}", "temporl-q", {"k_max": k_max, "pad_terminal": is_padded}
    )


@dataclass(frozen=True)
class Learning:
    """What all agents have in common.

    Attributes:
        alpha: Learning rate.
        gamma: Discount factor.
        epsilon_decay: ε of episode t is ``epsilon_decay`` to the power of t.
        initial_std: Standard deviation of the initial values, whose mean is zero.
        step_limit: Steps after which an episode is truncated.
        greedy_ties: How greedy episodes break ties; the first action is a harmless one on these grids.
    """

    alpha: float = 0.1
    gamma: float = 0.99
    epsilon_decay: float = 0.99
    initial_std: float = 0.0
    step_limit: int = 100
    greedy_ties: str = "random"


AS_PRINTED = Learning(alpha=0.01, initial_std=1.0)
"""The initial values and the learning rate that the paper prints, with which nothing is learned in time."""


@dataclass(frozen=True)
class Size:
    """How much is learned at a scale.

    Attributes:
        runs: Number of runs per curve, with the seeds 0..runs − 1.
        episodes: Number of episodes per run, by the grid's name; other grids are left out.
        points: Largest number of blocks into which the episodes of a curve are divided.
    """

    runs: int
    episodes: Mapping[str, int]
    points: int = 200


_ALL = {"cliff": 600, "bridge": 600, "zigzag": 600, "frozen-lake": 6000}

SIZES: Mapping[str, Size] = {
    "smoke": Size(3, {"cliff": 60}),
    "laptop": Size(10, _ALL, 30),
    "paper": Size(50, _ALL, 30),
}
"""Sizes by scale. Blocks of 20 and 200 episodes keep the rows of all runs small enough to be committed."""


def joining(guests: Sequence[Guest], beside: Sequence[GridAgent]) -> list[GridAgent]:
    """Agents that join a figure of these curves, beside its own.

    Raises:
        ValueError: One cannot.
    """
    names = [agent.name for agent in beside]
    shared = (*vars(Learning()), "epsilon", *_NOT_OF_THE_LEARNER)
    check_guests(guests, is_deep=False, beside=names, shared=shared)
    return [GridAgent(guest.name, guest.algorithm, guest.arguments) for guest in guests]


def plan_curves(
    agents: Sequence[GridAgent], size: Size, learning: Learning | None = None
) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job for each agent on each grid, slowest grids first."""
    shared = vars(learning or Learning())
    for grid, episodes in sorted(size.episodes.items(), key=lambda item: -item[1]):
        sizes = {"episodes": episodes, "block": _block(episodes, size.points), "runs": size.runs}
        for agent in agents:
            names = {"grid": grid, "agent": agent.name, "algorithm": agent.algorithm}
            yield {**names, **agent.arguments, **sizes, **shared}, 0


def _block(episodes: int, points: int) -> int:
    """Episodes per block: as few as possible, such that all blocks have the same length."""
    return next(length for length in range(-(-episodes // points), episodes + 1) if episodes % length == 0)


_NOT_OF_THE_LEARNER = {"grid", "agent", "algorithm", "episodes", "block", "runs", "epsilon_decay"}


def learn(setting: Mapping[str, Any], seeds: Sequence[int], evaluate: bool = True) -> FitResult:
    """The runs of one setting."""
    from holdfast.core.schedules import Exponential
    from holdfast.envs import FrozenLake16, make_env
    from holdfast.mdp import TabularMDP
    from holdfast.policies.algorithms import find_algorithm
    from holdfast.policies.arguments import as_python

    arguments = {name: value for name, value in setting.items() if name not in _NOT_OF_THE_LEARNER}
    algorithm = find_algorithm(setting["algorithm"])
    learner = algorithm.load()(
        epsilon=Exponential(setting["epsilon_decay"]), **as_python(arguments), **algorithm.stands_for
    )
    # A learner's limit can only shorten the grid's own.
    limit = {"step_limit": setting["step_limit"]}

    def make(seed: int) -> Any:
        env = (
            FrozenLake16(seed, **limit) if setting["grid"] == "frozen-lake" else make_env(setting["grid"], **limit)
        )
        # An update in Python meets the same model, and the same draws.
        return env if learner.is_compiled else TabularMDP.from_gymnasium(env, setting["gamma"])

    loop = "compiled" if learner.is_compiled else "python"
    result: FitResult = learner.fit(make, setting["episodes"], seeds, loop=loop, evaluate=evaluate)
    return result


def run_curves(job: Job, place: Path) -> dict[str, Any]:
    """Returns of all runs of a job; each row is the mean over a block of episodes, named by its last one."""
    setting = job.setting
    seeds = range(job.seed, job.seed + setting["runs"])
    result = learn(setting, seeds)
    seed, block = np.meshgrid(seeds, np.arange(setting["episodes"] // setting["block"]), indexing="ij")
    columns = {
        "seed": seed,
        "episode": (block + 1) * setting["block"],
        "return": _block_means(result.training_returns, setting["block"]),
        "greedy": _block_means(result.greedy_returns, setting["block"]),
    }
    return {name: values.ravel() for name, values in columns.items()}


def _block_means(returns: Floats, block: int) -> Floats:
    """(run, episode) to (run, block)."""
    return np.asarray(returns.reshape(len(returns), -1, block).mean(axis=2))
