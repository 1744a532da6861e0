"""``holdfast tradeoff``: return against decisions per episode, over the cost of a decision."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.cli.engine_options import add_engine_options, make_engine
from holdfast.cli.typed_values import whole_number
from holdfast.cli.verbs import add_agent_options, add_holds, add_output, add_verb
from holdfast.core.errors import InputError

__all__ = ["add_parser"]

_COSTS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
_PERSISTENCES = (1, 2, 4, 8, 16, 32)
_ALGORITHM = "perdqn"

_DESCRIPTION = """\
Find out how much return is lost by deciding less often: make policies for
several costs of a decision, play each without and with a decision tolerance,
and compare. If the environment exposes its transitions (grids, toy_text), the
policies are exact; otherwise PerDQN is trained with several seeds for each
cost. Prints a table and a sentence to act on, and draws return against
decisions per episode. If it stops, continue with --resume.
"""
_EXAMPLES = """\
examples:
  holdfast tradeoff cliff
  holdfast tradeoff FrozenLake-v1 --costs 0,0.001,0.01 --episodes 200
  holdfast tradeoff MountainCar-v0 --costs 0,0.3,1 --seeds 3 --steps 100000
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "tradeoff",
        "trade return against decisions per episode",
        _DESCRIPTION,
        _EXAMPLES,
    )
    parser.add_argument("environment", metavar="ENV", help="the environment, as in train")
    parser.add_argument(
        "--costs",
        type=_numbers,
        default=list(_COSTS),
        metavar="C,C,...",
        help=f"costs of a decision, in reward (default: {','.join(f'{cost:g}' for cost in _COSTS)})",
    )
    add_holds(
        parser,
        "largest persistence, instead of --persistences",
        f"the persistences to choose from (default: {','.join(map(str, _PERSISTENCES))})",
    )
    parser.add_argument("--gamma", type=float, default=0.99, metavar="G", help="discount factor (default: 0.99)")
    parser.add_argument("--episodes", type=int, default=20, metavar="N", help="episodes per policy (default: 20)")
    parser.add_argument("--seeds", type=int, metavar="N", help="train each cost with seeds 0 to N-1 (default: 3)")
    parser.add_argument("--steps", type=whole_number, metavar="N", help="steps of each training (default: 100000)")
    add_agent_options(parser, "arguments of PerDQN")
    add_output(parser, "output folder (default: results/tradeoff/ENV)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write all rows into one .csv file")
    add_engine_options(parser)
    parser.set_defaults(execute=run)


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


_numbers.__name__ = "list of numbers"


def run(arguments: argparse.Namespace) -> int:
    """Solve or train, draw and print; return 1 if a job failed."""
    from holdfast.cli.campaigns import check_csv, run_and_show
    from holdfast.cli.environments import check_output_folder
    from holdfast.cli.typed_values import allow_code, code_folder
    from holdfast.core.checks import check_integer
    from holdfast.envs import is_own_environment
    from holdfast.experiments.campaign import check_campaign_folder
    from holdfast.runs.options import file_name
    from holdfast.runs.stopping import stop_on_signals

    code = arguments.environment if is_own_environment(arguments.environment) else None
    allow_code(code)
    check_csv(arguments.csv)
    check_integer("episodes", arguments.episodes)
    experiment, jobs = _jobs(arguments)
    folder = arguments.out or Path("results", "tradeoff", file_name(jobs[0].setting["env_label"]))
    check_output_folder(folder)
    check_campaign_folder(experiment, jobs, folder, arguments.resume)
    with stop_on_signals() as stop, make_engine(arguments) as engine:
        return run_and_show(experiment, jobs, folder, engine, arguments, stop, {}, code_folder(code))


def _jobs(arguments: argparse.Namespace) -> Any:
    """The experiment and its jobs, exact ones if there is a transition table."""
    from holdfast.cli.typed_values import keyword_arguments
    from holdfast.core.checks import check_integer
    from holdfast.envs import make_env
    from holdfast.experiments.trade_off import is_solvable, solved_jobs, trained_jobs

    options: dict[str, Any] = {"environment": arguments.environment}
    env_kwargs = keyword_arguments("--env-kwargs", arguments.env_kwargs or ())
    options |= {"env_kwargs": env_kwargs} if env_kwargs else {}
    env = make_env(arguments.environment, **env_kwargs)
    try:
        solvable = is_solvable(env)
    finally:
        env.close()
    if solvable:
        for name in ("seeds", "steps", "set", "device"):
            if getattr(arguments, name) is not None:
                raise InputError(
                    f"{name} must not be given for {arguments.environment}, which is solved, not trained", name
                )
        return solved_jobs(options, arguments.costs, _durations(arguments), arguments.gamma, arguments.episodes)
    given = keyword_arguments("--set", arguments.set or ())
    for name in ("gamma", "persistences", "k_max", "decision_cost"):
        if name in given:
            option = "--costs" if name == "decision_cost" else f"--{name.replace('_', '-')}"
            raise InputError(f"--set must not name {name}: give {option}")
    options |= {
        "algo": _ALGORITHM,
        "set": {**given, "gamma": arguments.gamma, "persistences": list(_durations(arguments))},
    }
    options |= {
        name: getattr(arguments, name) for name in ("steps", "device") if getattr(arguments, name) is not None
    }
    seeds = check_integer("seeds", 3 if arguments.seeds is None else arguments.seeds)
    return trained_jobs(options, arguments.costs, seeds, arguments.episodes)


def _durations(arguments: argparse.Namespace) -> Sequence[int]:
    from holdfast.core.options import chosen_persistences

    is_default = arguments.k_max is None and arguments.persistences is None
    return chosen_persistences(arguments.k_max, _PERSISTENCES if is_default else arguments.persistences)
