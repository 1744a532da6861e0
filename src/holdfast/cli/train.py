"""``holdfast train``: train any agent in its own folder, and continue where it stopped."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.cli.streams import results
from holdfast.cli.typed_values import counted, whole_number
from holdfast.cli.verbs import (
    add_device,
    add_eval_every,
    add_holds,
    add_lengths,
    add_output,
    add_pairs,
    add_step_timeout,
    add_verb,
)
from holdfast.core.errors import InputError

if TYPE_CHECKING:
    from holdfast.runs.training import Outcome

__all__ = ["add_parser", "whole_number"]

_DESCRIPTION = """\
Train an agent. Everything goes into the run's folder: config.json, metrics.csv
(a row per episode), evaluations.csv, TensorBoard's events, the last checkpoints
and the best policy. If the run stops, type the same command again: it continues
from the last checkpoint and ends with identical results.
"""
_EXAMPLES = """\
examples:
  holdfast train MountainCar-v0 --algo perdqn --k-max 16 --steps 150000
  holdfast train MountainCar-v0 --persistences 1,2,4,8,16 --set layer_norm=true
  holdfast train cliff --algo perq --episodes 300 --seed 1
  holdfast train my_envs:make_robot --set learning_rate=1e-3 batch_size=64
  holdfast train cliff --algo my_agents:Mine
  holdfast train --config runs/cliff-perq-k8-s1/config.json --out runs/again
  holdfast train --resume runs/cliff-perq-k8-s1 --episodes 600

To extend a finished run, give it more --steps or --episodes. The exploration
rate, the learning rate and the priorities' exponent then keep their last values
(those after the argument schedule_steps; by default, after the first --steps).

A --config file uses the same names: environment, algo, k_max, steps, ..., and
the tables [set] and [env_kwargs].
"""

_APART = ("env_kwargs", "label", "set")
"""Options of a run that the command line spells differently."""

_HABITS = {
    "--env": "the environment stands alone, before the options",
    "--env-id": "the environment stands alone, before the options",
    "-n": "use --steps",
    "--n-timesteps": "use --steps",
    "--total-timesteps": "use --steps",
    "--num-envs": "use --n-envs",
    "-f": "use --out",
    "--log-folder": "use --out",
    "--exp-name": "use --name",
    "-tb": "events for TensorBoard are always written into the run's folder",
    "--tensorboard-log": "events for TensorBoard are always written into the run's folder",
    "--eval-freq": "use --eval-every",
    "--n-eval-envs": "evaluations use one environment",
    "--save-freq": "use --checkpoint-every, in seconds",
    "--save-replay-buffer": "every checkpoint has the replay in it",
    "-params": "use --set name=value",
    "--hyperparams": "use --set name=value",
    "-conf": "use --config",
    "--conf-file": "use --config",
    "--num-threads": "use --threads",
    "-i": "use --resume RUN",
    "--trained-agent": "use --resume RUN",
    "-P": "progress is shown unless --quiet is given",
    "--progress": "progress is shown unless --quiet is given",
    "--verbose": "progress is shown unless --quiet is given",
    "--track": "no tracking service is used; events for TensorBoard are in the run's folder",
    "--cuda": "use --device cuda",
    "--learning-rate": "use --set learning_rate=",
    "--buffer-size": "use --set buffer_size=",
    "--batch-size": "use --set batch_size=",
    "--gamma": "use --set gamma=",
    "--tau": "use --set tau=",
    "--learning-starts": "use --set learning_starts=",
    "--train-frequency": "use --set train_freq=",
    "--target-network-frequency": "use --set target_update_interval=",
    "--start-e": "use --set exploration_initial_eps=",
    "--end-e": "use --set exploration_final_eps=",
    "--exploration-fraction": "use --set exploration_fraction=",
}
"""Options that users of rl-zoo and CleanRL type by habit, and what to type instead."""


class _Habit(argparse.Action):
    """An option of another tool; the error names ours."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> NoReturn:
        parser.error(f"there is no {option_string} here: {_HABITS[option_string or '']}")


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "train",
        "train an agent; type the command again to continue exactly",
        _DESCRIPTION,
        _EXAMPLES,
        allow_abbrev=False,
    )
    parser.add_argument(
        "environment",
        metavar="ENV",
        nargs="?",
        help="a Gymnasium id, a grid (cliff, bridge, zigzag, open, goal-grid, sync-grid, frozen-lake), a game "
        "(atari:Freeway, minatar:Freeway), a map file, or module:callable, your own function that returns an "
        "environment",
    )
    parser.add_argument("--algo", metavar="NAME", help=_algorithms())
    add_holds(parser, "largest persistence K (default: 8; perdqn, msa-dqn, pertd3 and persac: a sparse set)")
    parser.add_argument(
        "--decision-cost",
        type=float,
        metavar="C",
        help="cost of each decision, so that actions are held where that pays (default: 0)",
    )
    add_lengths(
        parser,
        "steps to train (default with a network: 100000)",
        "episodes to train (default with a table: 600)",
    )
    parser.add_argument("--seed", type=int, metavar="S", help="random seed (default: 0)")
    parser.add_argument(
        "--n-envs", type=int, metavar="M", help="number of parallel environments, with a network (default: 1)"
    )
    add_pairs(
        parser,
        "--set",
        "arguments of the algorithm, such as learning_rate=1e-3, policy_kwargs=\"{'net_arch': [128, 128]}\" "
        "or, with a table, epsilon='exponential(0.99, 0.05)'",
    )
    add_pairs(parser, "--env-kwargs", "arguments of the environment")
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="read options from a .toml or .json file; command-line options take precedence",
    )
    add_output(parser, "the run's folder (default: runs/NAME)")
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="name of the run's folder in runs/ (default: from ENV, algorithm, K and seed)",
    )
    parser.add_argument(
        "--resume", type=Path, metavar="RUN", help="continue the run in this folder with its own options"
    )
    add_eval_every(
        parser,
        "steps (with a table: episodes) between evaluations; 0 for none (default: a twentieth of the run)",
    )
    parser.add_argument(
        "--eval-episodes", type=int, metavar="N", help="greedy episodes of each evaluation (default: 10)"
    )
    parser.add_argument(
        "--checkpoint-every",
        type=float,
        metavar="SECONDS",
        help="time between checkpoints, longer if they would take over 4 %% of it; 0 for none (default: 60)",
    )
    parser.add_argument(
        "--keep-checkpoints",
        type=int,
        metavar="N",
        help="number of checkpoints to keep, in case the newest is damaged (default: 2)",
    )
    parser.add_argument("--threads", type=int, metavar="T", help="PyTorch threads (default: 1)")
    add_device(parser)
    add_step_timeout(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--quiet", action="store_true", help="show no progress and print nothing")
    shown.add_argument(
        "--json", action="store_true", help="print progress and result as JSON, one object per line"
    )
    # For programs that start a training which must not outlive them.
    parser.add_argument("--stop-with", type=int, metavar="PID", help=argparse.SUPPRESS)
    for flag in _HABITS:
        parser.add_argument(flag, action=_Habit, nargs="?", help=argparse.SUPPRESS)
    parser.set_defaults(execute=run)


def _algorithms() -> str:
    """The list of algorithms, for the help."""
    from holdfast.policies.algorithms import ALGORITHMS, DEFAULT_ALGORITHM
    from holdfast.policies.own_algorithms import installed_algorithms

    deep = ", ".join(name for name, algorithm in ALGORITHMS.items() if algorithm.is_deep)
    tabular = ", ".join(name for name, algorithm in ALGORITHMS.items() if not algorithm.is_deep)
    added = ", ".join(name for name in installed_algorithms() if name not in ALGORITHMS)
    own = f"also installed: {added}; " if added else ""
    return (
        f"with a network: {deep}; with a table: {tabular}; {own}or module:Class, your own agent "
        f"(default: {DEFAULT_ALGORITHM})"
    )


def run(arguments: argparse.Namespace) -> int:
    """Train and print."""
    from holdfast.envs import is_own_environment
    from holdfast.policies.own_algorithms import is_own_algorithm
    from holdfast.runs.options import run_name
    from holdfast.runs.progress import pick_reporter
    from holdfast.runs.stopping import stop_on_signals
    from holdfast.runs.training import train

    with stop_on_signals(arguments.stop_with) as stop:
        options = _options(arguments)
        _allow_code(arguments, options)
        _prepare_torch()
        path = _run_folder(arguments) or Path("runs", run_name(options))
        reporter = pick_reporter(sys.stderr, sys.stdout, arguments.quiet, arguments.json)
        outcome = train(options, path, reporter, stop)
        _print_outcome(outcome, arguments)
        if outcome.status != "stopped":
            return 0
        kept = _is_kept(options)
        code = f"{options['environment']} " if is_own_environment(str(options["environment"])) else ""
        code += f"--algo {options['algo']} " if is_own_algorithm(options.get("algo")) else ""
        how = f"to continue, type holdfast train {code}--resume {path}" if kept else "nothing was saved"
        sys.stderr.write(f"holdfast train: stopped at step {outcome.steps:,}; {how}\n")
        return stop.exit_code


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options given by the run to resume, then by the file, then by the command line."""
    from holdfast.cli.typed_values import keyword_arguments
    from holdfast.runs.directory import RunFolder
    from holdfast.runs.options import OPTIONS, read_options

    options: dict[str, Any] = {}
    if arguments.resume is not None:
        if not RunFolder(arguments.resume).is_run and RunFolder(Path("runs") / arguments.resume).is_run:
            arguments.resume = Path("runs") / arguments.resume
        folder = RunFolder(arguments.resume)
        if arguments.out is not None or arguments.name is not None:
            raise InputError("--resume must not be given with --out or --name: it names the run's folder")
        if not folder.is_run:
            raise InputError(f"--resume must name the folder of a run, and {arguments.resume} is not one")
        options |= folder.read_config().options()
    if arguments.config is not None:
        # The user named it, so following a link is fine.
        is_link = arguments.config.is_symlink()
        options |= read_options(Path(os.path.realpath(arguments.config)) if is_link else arguments.config)
    plain = [name for name in OPTIONS if name not in _APART]
    given = {name: getattr(arguments, name) for name in plain if getattr(arguments, name) is not None}
    if "environment" in given and given["environment"] != options.get("environment"):
        options.pop("label", None)
    for name, option in (("set", "--set"), ("env_kwargs", "--env-kwargs")):
        pairs: Sequence[str] | None = getattr(arguments, name)
        if pairs:
            before = options.get(name)
            options[name] = {**(before if isinstance(before, dict) else {}), **keyword_arguments(option, pairs)}
    if "algo" in given and given["algo"] != options.get("algo", given["algo"]) and arguments.resume is not None:
        raise InputError(f"--algo must be that of the run, {options['algo']}, not {given['algo']}")
    for name, other in (("k_max", "persistences"), ("persistences", "k_max")):
        if name in given:
            # They mean the same thing, and the command line takes precedence over a file.
            options.pop(other, None)
    return options | given


def _allow_code(arguments: argparse.Namespace, options: dict[str, Any]) -> None:
    """Allow the user's modules to be imported, but none that only a file names."""
    from holdfast.cli.typed_values import allow_code
    from holdfast.envs import is_own_environment
    from holdfast.policies.own_algorithms import is_own_algorithm

    environment, algo = options.get("environment"), options.get("algo")
    named = [("ENV", arguments.environment, environment)] if isinstance(environment, str) else []
    named = [one for one in named if is_own_environment(one[2])]
    if isinstance(algo, str) and is_own_algorithm(algo):
        named.append((f"--algo {algo}", arguments.algo, algo))
    for option, typed, name in named:
        if typed != name:
            raise InputError(
                f"{option} must be given to run {name}: for safety, code named in a file is never run"
            )
        allow_code(name)


def _prepare_torch() -> None:
    """Process-wide settings, which only a program may change, never a library."""
    # Waiting threads must not keep a core busy; this must be set before PyTorch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _run_folder(arguments: argparse.Namespace) -> Path | None:
    from holdfast.runs.options import file_name

    if arguments.resume is not None:
        return Path(arguments.resume)
    if arguments.out is not None:
        if arguments.name is not None:
            raise InputError("--name must not be given with --out, which names the run's folder")
        return Path(arguments.out)
    if arguments.name is not None:
        if file_name(arguments.name) != arguments.name:
            raise InputError(f"--name must be made of letters, digits, - _ and ., not {arguments.name!r}")
        return Path("runs", arguments.name)
    return None


def _is_kept(options: dict[str, Any]) -> bool:
    return float(options.get("checkpoint_every", 1.0)) > 0.0


def _print_outcome(outcome: Outcome, arguments: argparse.Namespace) -> None:
    from holdfast.runs.progress import duration

    if arguments.json:
        found = {"event": "result", **asdict(outcome), "path": str(outcome.path)}
        results().write(json.dumps(found) + "\n")
        return
    if arguments.quiet:
        return
    lines = [f"{outcome.status}: {counted(outcome.steps, 'step')}, {counted(outcome.episodes, 'episode')}"]
    if outcome.status != "already finished":
        pace = outcome.new_steps / outcome.seconds if outcome.seconds > 0 else 0.0
        lines[0] += f", {duration(outcome.seconds)} at {pace:,.0f} steps/s"
    if outcome.mean_return is not None:
        told = f"return, last {counted(min(20, outcome.episodes), 'episode').removeprefix('1 ')}"
        lines.append(f"  {told:<25} {outcome.mean_return:.6g}")
    if outcome.best_return is not None:
        lines.append(f"  return, best evaluation   {outcome.best_return:.6g}")
    lines.append(f"  folder                    {outcome.path}")
    if outcome.status == "already finished":
        lines.append("  to extend it, give larger --steps or --episodes")
        lines.append("  to train another run, give another --name or --out")
    results().write("\n".join(lines) + "\n")
