"""``holdfast explore``: how long should actions be held here, judging by what random options find?"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from holdfast.cli.streams import results
from holdfast.cli.verbs import add_output, add_pairs, add_seed, add_step_timeout, add_verb
from holdfast.core.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from holdfast.advice.exploring import EnvironmentAdvice

__all__ = ["add_parser"]

STUDIES = ("auto", "chain", "visits")
LARGEST_K_MAX = 999_999

_DESCRIPTION = """\
Recommend k_max, the longest that an agent may hold an action, before you train.
With a transition table, compute Kemeny's constant and the entropy of random
options exactly. Without one, play episodes and measure where random options
lead and which rewards they find. With --run, estimate from the replay of a run
what one fixed frame skip is worth.
"""
_EXAMPLES = """\
examples:
  holdfast explore MountainCar-v0
  holdfast explore cliff --k-max 1,2,4,8,16 -o results/cliff
  holdfast explore my_module:make_env --budget 100000 --json
  holdfast explore MountainCar-v0 --fixed --axes position,velocity
  holdfast explore --run runs/MountainCar-v0-perdqn-k16-s0

The advice is about exploration: it says which holds lead further before
anything is learned, not which return an agent will reach in the end.
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    from holdfast.cli.typed_values import whole_number

    parser = add_verb(
        verbs,
        "explore",
        "recommend how long to hold actions, before any training",
        _DESCRIPTION,
        _EXAMPLES,
    )
    parser.add_argument(
        "environment",
        metavar="ENV",
        nargs="?",
        help="a Gymnasium id, a short name (cliff), a game (atari:Freeway, minatar:Freeway), a map file, or "
        "module:callable",
    )
    parser.add_argument(
        "--run",
        type=Path,
        metavar="RUN",
        help="instead of ENV: estimate fixed frame skips from the replay of this run",
    )
    parser.add_argument(
        "--k-max",
        dest="k_values",
        metavar="K,K,...",
        help="values to compare (default: 1,2,4,8,16,32,64; with --run: all up to that of the run)",
    )
    parser.add_argument(
        "--study",
        choices=STUDIES,
        default="auto",
        help="chain: exact, needs a transition table; visits: play episodes; auto: chain where there is a table",
    )
    parser.add_argument(
        "--budget",
        dest="steps",
        type=whole_number,
        metavar="N",
        help="visits: steps to play for each k_max (default: 50000)",
    )
    parser.add_argument(
        "--fixed", action="store_true", help="visits: also play options that are always k_max steps long"
    )
    parser.add_argument(
        "--axes", metavar="I,J", help="visits: which two observations the maps show, by number from 0 or name"
    )
    parser.add_argument("--horizon", type=int, metavar="H", help="chain: steps of random options (default: 30)")
    parser.add_argument(
        "--holes",
        choices=("wall", "restart", "free"),
        help="chain: how to treat the holes of a grid (default: wall; restart if there is no map)",
    )
    parser.add_argument("--gamma", type=float, metavar="G", help="discount of exact frame skips (default: 0.99)")
    add_step_timeout(parser)
    add_seed(parser, "random seed")
    add_pairs(parser, "--env-kwargs", "arguments of the environment", default=[])
    add_output(parser, "output folder (default: results/explore-NAME)")
    parser.add_argument(
        "--json", action="store_true", help="print the numbers alone, as JSON, and write files only with -o"
    )
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the study, print it and write its files."""
    if (arguments.environment is None) == (arguments.run is None):
        too_many = ", not both" if arguments.run is not None else ""
        raise InputError(f"give either ENV or --run{too_many}")
    return _from_run(arguments) if arguments.environment is None else _from_environment(arguments)


def _from_environment(arguments: argparse.Namespace) -> int:
    from gymnasium.spaces import Box

    from holdfast.advice.exploring import check_numbers, explore
    from holdfast.cli.environments import named_environment, output_folder, prints_apart
    from holdfast.cli.explore_text import as_text
    from holdfast.cli.waiting import Waiting
    from holdfast.envs import NamedFailures
    from holdfast.envs.choices import can_be_learned
    from holdfast.runs.environment_checks import unknown_part

    k_values = _k_values("1,2,4,8,16,32,64" if arguments.k_values is None else arguments.k_values)
    check_numbers(arguments.steps, arguments.horizon, arguments.gamma, arguments.seed)
    out = output_folder(arguments)
    with prints_apart(arguments), ExitStack() as stack:
        env = named_environment(arguments)
        stack.callback(NamedFailures(env).close)
        unknown = unknown_part(env.observation_space)
        can_learn = can_be_learned(env.action_space) and unknown is None
        is_continuous = isinstance(env.action_space, Box)
        with Waiting(sys.stderr, "exploring") as waiting:
            found = explore(
                env,
                arguments.environment,
                k_values,
                study=arguments.study,
                steps=arguments.steps,
                fixed=arguments.fixed,
                axes=arguments.axes,
                horizon=arguments.horizon,
                holes=arguments.holes,
                gamma=arguments.gamma,
                seed=arguments.seed,
                progress=lambda progress: waiting.say(
                    f"{100.0 * progress.fraction:3.0f}% · k_max {progress.setting.k_max}"
                ),
            )
    written = [] if out is None else _write(found, out)
    if arguments.json:
        results().write(
            json.dumps({**found.document(), "files": [str(path) for path in written]}, indent=2) + "\n"
        )
    else:
        following = None
        if found.visits is not None and (found.advice.is_undecided or found.advice.is_provisional):
            following = _longer_study(arguments, arguments.steps or found.visits.results[0].steps)
        elif can_learn:
            following = _training(arguments, found.advice.k_max, is_continuous)
        results().write(as_text(found, written, following))
        if unknown is not None:
            results().write(
                f"\nObservations contain {unknown}, which no agent of holdfast accepts: to train, wrap the\n"
                "environment so that it is left out, and name the wrapped one as module:callable.\n"
            )
    return 0


def _from_run(arguments: argparse.Namespace) -> int:
    from holdfast.advice.fixed_skips.skip_verdict import skip_verdict
    from holdfast.advice.fixed_skips.skips import explore_run
    from holdfast.cli.environments import check_output_folder, warnings_as_lines
    from holdfast.cli.explore_text import estimates_text
    from holdfast.cli.policies import listed_folder
    from holdfast.cli.waiting import Waiting
    from holdfast.core.checks import check_integer

    _check_only_of_runs(arguments)
    check_integer("seed", arguments.seed, at_least=0)
    if arguments.out is not None:
        check_output_folder(arguments.out)
    run = listed_folder(arguments.run)
    k_values = None if arguments.k_values is None else _k_values(arguments.k_values)
    with warnings_as_lines(arguments.verb), Waiting(sys.stderr, "fitting the values of every skip"):
        found = explore_run(run, k_values, seed=arguments.seed)
    verdict = skip_verdict(found.estimates)
    document = {
        "run": str(run),
        "gamma": found.gamma,
        "horizon": found.horizon,
        "fixed_skips": [asdict(estimate) for estimate in found.estimates],
        "verdict": asdict(verdict),
    }
    written = [] if arguments.out is None else [_write_numbers(document, arguments.out)]
    if arguments.json:
        results().write(json.dumps({**document, "files": [str(path) for path in written]}, indent=2) + "\n")
    else:
        results().write(estimates_text(run.name, found.estimates, verdict, found.gamma, found.horizon, written))
    return 0


def _check_only_of_runs(arguments: argparse.Namespace) -> None:
    """Raise InputError for options that apply to an environment only."""
    given = {
        "--study": arguments.study != "auto",
        "--budget": arguments.steps is not None,
        "--fixed": arguments.fixed,
        "--axes": arguments.axes is not None,
        "--horizon": arguments.horizon is not None,
        "--holes": arguments.holes is not None,
        "--gamma": arguments.gamma is not None,
        "--env-kwargs": bool(arguments.env_kwargs),
    }
    for option, is_given in given.items():
        if is_given:
            raise InputError(f"{option} must not be given with --run: it is about ENV")


def _training(arguments: argparse.Namespace, k_max: int, is_continuous: bool) -> str:
    """The command that trains with this longest hold."""
    given = ["--env-kwargs", *arguments.env_kwargs] if arguments.env_kwargs else []
    agent = ["--algo", "pertd3"] if is_continuous else []
    return join(["holdfast", "train", arguments.environment, *agent, "--k-max", str(k_max), *given])


def _longer_study(arguments: argparse.Namespace, steps: int) -> str:
    """The same command with ten times as much to play."""
    others = {
        "--k-max": arguments.k_values,
        "--study": None if arguments.study == "auto" else arguments.study,
        "--axes": arguments.axes,
        "--gamma": arguments.gamma,
        "--step-timeout": arguments.step_timeout,
        "--seed": arguments.seed or None,
        "--out": arguments.out,
    }
    given = [word for name, value in others.items() if value is not None for word in (name, str(value))]
    given += ["--fixed"] if arguments.fixed else []
    given += ["--env-kwargs", *arguments.env_kwargs] if arguments.env_kwargs else []
    return join(["holdfast", "explore", arguments.environment, "--budget", str(10 * steps), *given])


def _k_values(text: str) -> list[int]:
    """The numbers in a comma-separated list."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 19 and 1 <= int(part) <= LARGEST_K_MAX for part in parts):
        raise InputError(
            f"--k-max must be whole numbers from 1 to {LARGEST_K_MAX:,}, separated by commas, not {text!r}"
        )
    return [int(part) for part in parts]


def _write(found: EnvironmentAdvice, out: Path) -> list[Path]:
    from holdfast.draw import save_figure

    figure = _figure(found)
    written = [_write_numbers(found.document(), out)]
    if figure is not None:
        written.append(out / "explore.png")
        save_figure(figure, written[-1])
    return written


def _write_numbers(document: dict[str, Any], out: Path) -> Path:
    from holdfast.files import make_folders, replace_json

    make_folders(out)
    path = out / "explore.json"
    replace_json(path, document)
    return path


def _figure(found: EnvironmentAdvice) -> Figure | None:
    from holdfast.advice import draw_visitation
    from holdfast.draw import draw_exploration_curves

    if found.chain is not None:
        return draw_exploration_curves({found.env_name: [found.chain]})
    assert found.visits is not None
    return draw_visitation(found.visits)
