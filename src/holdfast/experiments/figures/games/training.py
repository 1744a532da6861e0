"""Training on games: who learns what for how long at each scale, one such training run, and its rows.

A job does what ``holdfast train`` does with the same game, algorithm and arguments, so it resumes exactly where it
was stopped. Its evaluations are greedy and score whole games.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.experiments.drivers import Driver, means_of_last
from holdfast.experiments.spec import Job

__all__ = ["COLUMNS", "Match", "Plan", "games_of", "joined_plans", "plan_jobs", "run_game", "smoke_plan"]

COLUMNS = ("step", "score", "decisions", "length", "training_return")
"""Means over the games of an evaluation, and over the last 20 training episodes that had ended by then."""

_SMOKE = {"learning_starts": 50, "buffer_size": 400}


@dataclass(frozen=True)
class Match:
    """A game and the drivers that learn it.

    Attributes:
        game: Game's name with its family, such as ``minatar:Freeway``.
        drivers: The drivers.
        arguments: Arguments that all drivers get in this game.
        games: Number of games per evaluation.
    """

    game: str
    drivers: Sequence[Driver]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    games: int = 10


@dataclass(frozen=True)
class Plan:
    """A figure at one scale.

    Attributes:
        steps: Number of training steps.
        seeds: Number of seeds for each driver in each game.
        evaluations: Number of evenly spaced evaluations during training.
        matches: The matches, in the order of training. A game may occur twice.
        arguments: Arguments that all drivers get, if the algorithm has them.
    """

    steps: int
    seeds: int
    evaluations: int
    matches: Sequence[Match]
    arguments: Mapping[str, Any] = field(default_factory=dict)


def smoke_plan(*matches: Match) -> Plan:
    """A plan that takes seconds: two evaluations of one game each, and a replay that is soon full."""
    return Plan(120, 1, 2, matches, _SMOKE)


def joined_plans(plans: Mapping[str, Plan], drivers: Sequence[Driver]) -> dict[str, Plan]:
    """The same plans with others who learn each game, too: in the first match of it."""
    found = {}
    for scale, plan in plans.items():
        games = [match.game for match in plan.matches]
        found[scale] = replace(
            plan,
            matches=[
                replace(match, drivers=(*match.drivers, *drivers)) if match.game not in games[:number] else match
                for number, match in enumerate(plan.matches)
            ],
        )
    return found


def plan_jobs(scale: str, plans: Mapping[str, Plan]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job for each match, seed and driver, in this order.

    All arguments are written out, so that rows made with other defaults belong to another job.
    """
    plan = plans[scale]
    for match in plan.matches:
        for seed in range(plan.seeds):
            for driver in match.drivers:
                yield (
                    {
                        "driver": driver.name,
                        "game": match.game,
                        "algorithm": driver.algorithm,
                        "arguments": _all_arguments(driver, match, plan),
                        "steps": plan.steps,
                        "evaluations": plan.evaluations,
                        "games": 1 if scale == "smoke" else match.games,
                    },
                    seed,
                )


def _all_arguments(driver: Driver, match: Match, plan: Plan) -> dict[str, Any]:
    from holdfast.policies.algorithms import find_algorithm
    from holdfast.runs.game_settings import game_settings

    algorithm = find_algorithm(driver.algorithm)
    known = algorithm.arguments()
    common = {**match.arguments, **plan.arguments}
    given = {**{name: value for name, value in common.items() if name in known}, **driver.arguments}
    return algorithm.complete({**game_settings(match.game, algorithm, given), **given})


def run_game(job: Job, place: Path) -> Mapping[str, Any]:
    """Train, or resume; the results of the evaluations on the way."""
    from holdfast.experiments.training import episode_columns, evaluation_columns, train_job

    setting = job.setting
    run = train_job(
        {
            "environment": setting["game"],
            "algo": setting["algorithm"],
            "set": setting["arguments"],
            "steps": setting["steps"],
            "eval_every": setting["steps"] // setting["evaluations"],
            "eval_episodes": setting["games"],
            "seed": job.seed,
        },
        place,
    )
    found = evaluation_columns(run, ("step", "return_mean", "decisions_mean", "length_mean"))
    episodes = episode_columns(run, ("step", "return"))
    return {
        "step": found["step"],
        "score": found["return_mean"],
        "decisions": found["decisions_mean"],
        "length": found["length_mean"],
        "training_return": means_of_last(episodes["return"], episodes["step"], found["step"]),
    }


def games_of(plans: Mapping[str, Plan]) -> dict[str, tuple[Driver, ...]]:
    """The games of a figure at any scale, each with all its drivers, in the order of the largest scale."""
    found: dict[str, dict[str, Driver]] = {}
    for scale in ("paper", "laptop", "smoke"):
        for match in plans[scale].matches:
            found.setdefault(match.game, {}).update({driver.name: driver for driver in match.drivers})
    return {game: tuple(drivers.values()) for game, drivers in found.items()}
