"""``holdfast tune``: tune the arguments of an algorithm by trials that learn from each other."""

from __future__ import annotations

import argparse
import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.engine_options import add_engine_options, make_engine
from holdfast.cli.streams import results
from holdfast.cli.verbs import add_agent_options, add_eval_every, add_lengths, add_output, add_seed, add_verb
from holdfast.core.errors import InputError

if TYPE_CHECKING:
    from holdfast.experiments.campaign import Standing
    from holdfast.experiments.tuning.ranges import Range
    from holdfast.experiments.tuning.study import Study, Trial

__all__ = ["add_parser", "range_of"]

_DESCRIPTION = """\
Find better arguments for an algorithm. Each trial trains from scratch with
arguments drawn by Optuna, and poor trials stop early. The first trial has the
defaults. The best one is written to DIR/best.json; train with it by
`holdfast train --config`. If a study stops, continue it with --resume: with the
same --seed and --jobs it ends with identical results.
"""
_EXAMPLES = """\
examples:
  holdfast tune MountainCar-v0 --trials 50 --steps 60000
  holdfast tune cliff --algo perq --trials 30 --episodes 300 --seeds 3
  holdfast tune CartPole-v1 --range learning_rate gamma=0.9..0.999 \\
      batch_size=32,64,128
  holdfast tune MountainCar-v0 --trials 100 --steps 60000 --engine ray --jobs 2
  holdfast train --config results/tune/MountainCar-v0-perdqn/best.json --seed 7
"""

_SHOWN = 5
_WIDTH = 79


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    from holdfast.cli.train import whole_number

    parser = add_verb(
        verbs, "tune", "tune an algorithm's arguments with Optuna, here or on a cluster", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("environment", metavar="ENV", help="the environment, as in train")
    parser.add_argument("--algo", metavar="NAME", help="the algorithm, as in train (default: perdqn)")
    parser.add_argument(
        "--trials", type=whole_number, default=50, metavar="N", help="number of trials (default: 50)"
    )
    parser.add_argument(
        "--range",
        nargs="+",
        action="extend",
        metavar="NAME[=VALUES]",
        help="tune only these arguments: NAME (over its documented range), NAME=LOW..HIGH, NAME=LOW..HIGH:log, or "
        "NAME=V1,V2,... (default: all with a documented range)",
    )
    parser.add_argument(
        "--seeds", type=int, default=1, metavar="N", help="train each trial with seeds 0 to N-1 (default: 1)"
    )
    add_seed(parser, "random seed of Optuna's draws")
    parser.add_argument("--no-pruning", action="store_true", help="train every trial to its end")
    add_lengths(parser, "steps of a training, as in train", "episodes of a training, as in train")
    add_eval_every(parser, "steps or episodes between evaluations, as in train")
    parser.add_argument("--eval-episodes", type=int, metavar="N", help="episodes of an evaluation, as in train")
    add_agent_options(parser, "arguments of the algorithm that are not tuned")
    add_output(parser, "the study's folder (default: results/tune/ENV-ALGO)")
    add_engine_options(parser)
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Tune and print."""
    from holdfast.cli.campaigns import CampaignTable
    from holdfast.cli.typed_values import allow_code, code_folder
    from holdfast.core.checks import check_integer
    from holdfast.envs import is_own_environment
    from holdfast.experiments.tuning.study import drawn_together, make_study, run_study
    from holdfast.policies.own_algorithms import is_own_algorithm
    from holdfast.runs.options import file_name
    from holdfast.runs.stopping import stop_on_signals

    check_integer("trials", arguments.trials)
    named = [arguments.environment] if is_own_environment(arguments.environment) else []
    code = next(iter([*named, *([arguments.algo] if is_own_algorithm(arguments.algo) else [])]), None)
    allow_code(code)
    ranges = None if arguments.range is None else _ranges(arguments.range)
    study = make_study(
        _options(arguments),
        ranges,
        seeds=arguments.seeds,
        seed=arguments.seed,
        prunes=not arguments.no_pruning,
    )
    label, algo = study.setting["env_label"], study.setting["algo"]
    folder = arguments.out or Path("results", "tune", file_name(f"{label}-{algo}"))
    table, standings = CampaignTable(sys.stderr), {}

    def note(standing: Standing) -> None:
        standings["tune"] = standing
        table.show(standings)

    runner = make_engine(arguments)
    width = drawn_together(runner)
    with stop_on_signals() as stop, runner as engine:
        stop.is_obeyed_later = True
        found = run_study(
            study,
            folder,
            arguments.trials,
            engine,
            at_once=width,
            resume=arguments.resume,
            code=code_folder(code),
            stop=stop,
            told=note,
        )
    if standings:
        table.close(standings)
    if stop:
        over = sum(trial.is_over for trial in found)
        sys.stderr.write(
            f"holdfast tune: stopped after {over} of {arguments.trials} trials; type the command again with "
            "--resume to continue\n"
        )
        return stop.exit_code
    return _show(study, found, folder)


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that all trials share."""
    from holdfast.cli.typed_values import keyword_arguments

    given = {
        **{
            name: getattr(arguments, name)
            for name in ("environment", "algo", "steps", "episodes", "eval_every", "eval_episodes", "device")
        },
        "env_kwargs": keyword_arguments("--env-kwargs", arguments.env_kwargs or ()),
        "set": keyword_arguments("--set", arguments.set or ()),
    }
    return {name: value for name, value in given.items() if value is not None and value != {}}


def _ranges(given: Sequence[str]) -> dict[str, Range | None]:
    """The ranges by argument."""
    found: dict[str, Range | None] = {}
    for name, one in map(range_of, given):
        if name in found:
            raise InputError(f"--range must name {name!r} once")
        found[name] = one
    return found


def range_of(text: str) -> tuple[str, Range | None]:
    """The argument and the range that ``--range`` names; None for the documented range.

    Raises:
        ValueError: The text has another form.
    """
    from holdfast.cli.sweep import parts_of
    from holdfast.cli.typed_values import literal
    from holdfast.experiments.tuning.ranges import Range

    name, equals, values = text.partition("=")
    if not name.isidentifier() or (equals and not values):
        raise InputError(f"--range must be NAME, NAME=LOW..HIGH or NAME=V1,V2,..., not {text!r}")
    if not equals:
        return name, None
    ends, colon, scale = values.partition(":")
    low, dots, high = ends.partition("..")
    if dots and scale in ("", "log"):
        numbers = [literal(low), literal(high)]
        if all(type(number) in (int, float) for number in numbers):
            try:
                return name, Range(numbers[0], numbers[1], is_log=bool(colon))
            except InputError as error:
                raise InputError(f"--range {text}: {error}") from error
    elif not dots:
        return name, Range(choices=tuple(literal(part) for part in parts_of(values)))
    raise InputError(f"--range must have two numbers as LOW..HIGH or LOW..HIGH:log, not {text!r}")


def _show(study: Study, trials: Sequence[Trial], folder: Path) -> int:
    """Print the best trials beside the defaults, and how to train with them."""
    from holdfast.draw import save_figure
    from holdfast.envs import is_own_environment
    from holdfast.experiments.store import read_manifest_and_rows
    from holdfast.experiments.tuning.study import BEST
    from holdfast.experiments.tuning.trials import told_parameters
    from holdfast.policies.own_algorithms import is_own_algorithm

    ended = sorted(
        (trial for trial in trials if trial.score is not None),
        key=lambda trial: (-(trial.score or 0.0), trial.number),
    )
    pruned = sum(trial.is_pruned for trial in trials)
    failed = sum(trial.problem is not None for trial in trials)
    number = "1 trial" if len(trials) == 1 else f"{len(trials)} trials"
    told = f"{number}: {len(ended)} trained to the end, {pruned} stopped early, {failed} failed"
    if not ended:
        problems = [trial.problem for trial in trials if trial.problem is not None]
        why = f"; the last one failed: {problems[-1]}" if problems else ""
        raise InputError(f"no trial was trained to the end, so there is no best one{why}")
    lines = [told, "", f"{'trial':>7}  {'return':>9}  arguments"]
    for trial in [*ended[:_SHOWN], *(trial for trial in ended[_SHOWN:] if trial.number == 0)]:
        arguments = told_parameters(trial.parameters)
        which = "the defaults: " if trial.number == 0 else ""
        first, *more = textwrap.wrap(f"{which}{arguments}", _WIDTH - 20, break_on_hyphens=False)
        lines += [f"{trial.number:>7}  {trial.score:>9.4g}  {first}", *(" " * 20 + line for line in more)]
    code = f"{study.setting['environment']} " if is_own_environment(study.setting["environment"]) else ""
    code += f"--algo {study.setting['algo']} " if is_own_algorithm(study.setting["algo"]) else ""
    _, rows = read_manifest_and_rows(folder)
    picture = save_figure(study.experiment.draw(rows), folder / "tune.png")
    seeds = "seed 0" if study.seeds == 1 else f"seeds 0 to {study.seeds - 1}"
    lines += [
        "",
        *textwrap.wrap(_verdict(ended, seeds), _WIDTH),
        "",
        f"wrote {picture}",
        f"wrote {folder / BEST}",
        "",
        f"to look at it: holdfast report {shlex.quote(str(folder))}",
        f"next: holdfast train {code}--config {shlex.quote(str(folder / BEST))} --seed {study.seeds}",
    ]
    results().write("\n".join(lines) + "\n")
    return 0


def _verdict(ended: Sequence[Trial], seeds: str) -> str:
    """Whether tuning found anything, and how far to believe it.

    Args:
        ended: The trials that were trained to the end, best first.
        seeds: The seeds that they were trained with.
    """
    best, defaults = ended[0], next((trial for trial in ended if trial.number == 0), None)
    if defaults is None:
        compared = (
            f"The defaults were not trained to the end, so there is nothing to compare trial {best.number} with."
        )
    elif best.number == 0:
        compared = (
            "No trial beats the defaults: best.json holds the defaults. More --trials may find better arguments."
        )
        return compared if len(ended) > 1 else "Only the defaults were trained to the end: there is no comparison."
    else:
        compared = f"Trial {best.number} beats the defaults: {best.score:.4g} against {defaults.score:.4g}."
    return f"{compared} It was chosen on {seeds}, so luck may be part of its score: train it with other seeds."
