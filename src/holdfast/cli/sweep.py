"""``holdfast sweep``: an algorithm with every setting of a grid, several seeds each."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from holdfast.cli.engine_options import add_engine_options, make_engine
from holdfast.cli.verbs import add_agent_options, add_eval_every, add_lengths, add_output, add_verb
from holdfast.core.errors import InputError

__all__ = ["add_parser", "parts_of"]

_DESCRIPTION = """\
Train an algorithm with every setting of a grid, with several seeds each, and
compare: a table of the last returns with 95 % intervals over the seeds, and the
learning curves. Each training is a job with its own run folder in DIR/runs.
If a sweep stops, continue it with --resume.
"""
_EXAMPLES = """\
examples:
  holdfast sweep --algo perdqn --env MountainCar-v0 --grid k_max=1,2,4,8 \\
      --seeds 5 --steps 150000
  holdfast sweep --algo perq --env cliff --grid k_max=2,8 --grid alpha=.1,.5 \\
      --seeds 3 --episodes 300
  holdfast sweep --env cliff --grid algo=perq,msa-q,temporl-q --set k_max=8
  holdfast sweep --env held_car:make --grid env.k=1,4,8 --k-max 1 --steps 150000
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    from holdfast.cli.typed_values import whole_numbers

    parser = add_verb(
        verbs,
        "sweep",
        "train every setting of a grid, here or on a cluster",
        _DESCRIPTION,
        _EXAMPLES,
    )
    parser.add_argument("--algo", metavar="NAME", help="the algorithm, as in train (default: perdqn)")
    parser.add_argument(
        "--env", dest="environment", metavar="ENV", required=True, help="the environment, as in train"
    )
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="NAME=V1,V2,...",
        help="values of an argument of the algorithm, of algo itself or, as env.NAME, of an argument of the "
        "environment; repeat it to try every combination",
    )
    parser.add_argument(
        "--k-max",
        metavar="K,K,...",
        help="the values of k_max to compare, as with --grid k_max=K,K,...; or one value for all",
    )
    parser.add_argument(
        "--persistences",
        type=whole_numbers,
        metavar="1,K,...",
        help="the persistences to choose from in all settings, such as 1,2,4,8; to compare several sets, use "
        "--grid 'persistences=[1,2,4],[1,4]'",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=3,
        metavar="N",
        help="train each setting with seeds 0 to N-1 (default: 3)",
    )
    add_lengths(parser, "steps to train, as in train", "episodes to train, as in train")
    add_eval_every(parser, "steps or episodes between evaluations, as in train; 0 for none")
    add_agent_options(parser, "arguments of the algorithm that all settings share")
    add_output(parser, "the sweep's folder (default: results/sweep/NAME)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write all rows into one .csv file")
    add_engine_options(parser)
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Train, draw and print; return 1 if a job failed."""
    from holdfast.cli.campaigns import check_csv, run_and_show
    from holdfast.cli.typed_values import allow_code, code_folder
    from holdfast.core.checks import check_integer
    from holdfast.envs import is_own_environment
    from holdfast.experiments.campaign import check_campaign_folder
    from holdfast.experiments.sweep import grid_jobs
    from holdfast.policies.own_algorithms import is_own_algorithm
    from holdfast.runs.stopping import stop_on_signals

    environments = [arguments.environment] if is_own_environment(arguments.environment) else []
    check_csv(arguments.csv)
    if arguments.k_max is not None and any(pair.partition("=")[0] == "k_max" for pair in arguments.grid):
        raise InputError("give --k-max or --grid k_max, not both")
    grid = _grid([*([f"k_max={arguments.k_max}"] if arguments.k_max is not None else []), *arguments.grid])
    if arguments.persistences is not None:
        for name in ("k_max", "persistences"):
            if name in grid:
                raise InputError(f"give --persistences or values of {name}, not both")
        grid = {"persistences": [arguments.persistences], **grid}
    if not grid:
        raise InputError("give the values to compare with --grid, --k-max or --persistences")
    own = [algo for algo in (arguments.algo, *grid.get("algo", ())) if is_own_algorithm(algo)]
    code = next(iter([*environments, *own]), None)
    allow_code(code)
    sweep, jobs = grid_jobs(_options(arguments), grid, check_integer("seeds", arguments.seeds))
    folder = arguments.out or _folder(jobs[0].setting, grid)
    check_campaign_folder(sweep, jobs, folder, arguments.resume)
    with stop_on_signals() as stop, make_engine(arguments) as engine:
        return run_and_show(sweep, jobs, folder, engine, arguments, stop, {}, code_folder(code))


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that all jobs share."""
    from holdfast.cli.typed_values import keyword_arguments
    from holdfast.policies.algorithms import DEFAULT_ALGORITHM

    given = {
        "environment": arguments.environment,
        "env_kwargs": keyword_arguments("--env-kwargs", arguments.env_kwargs or ()),
        "algo": arguments.algo or DEFAULT_ALGORITHM,
        "set": keyword_arguments("--set", arguments.set or ()),
        "steps": arguments.steps,
        "episodes": arguments.episodes,
        "eval_every": arguments.eval_every,
        "device": arguments.device,
    }
    return {name: value for name, value in given.items() if value is not None and value != {}}


def _grid(given: list[str]) -> dict[str, list[Any]]:
    """Values by name."""
    from holdfast.cli.typed_values import literal

    grid: dict[str, list[Any]] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name.removeprefix("env.").isidentifier() or not text:
            raise InputError(f"--grid must be NAME=V1,V2,... or env.NAME=V1,V2,..., not {pair!r}")
        if name in grid:
            raise InputError(f"--grid must name {name!r} once")
        values = [literal(part) for part in parts_of(text)]
        if any(value in values[:place] for place, value in enumerate(values)):
            raise InputError(f"--grid must give each value of {name!r} once")
        grid[name] = values
    return grid


def parts_of(text: str) -> list[str]:
    """The parts between commas that are outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _folder(setting: Any, grid: dict[str, list[Any]]) -> Path:
    from holdfast.runs.options import file_name

    return Path("results", "sweep", file_name("-".join((setting["env_label"], setting["algo"], *grid))))
