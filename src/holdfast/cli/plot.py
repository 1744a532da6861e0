"""``holdfast plot``: curves of runs, with intervals over seeds, and figures of stored rows."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from holdfast.cli.streams import results
from holdfast.cli.verbs import add_output, add_verb
from holdfast.core.errors import InputError

__all__ = ["add_parser"]

_QUANTITIES = ("return", "evaluation", "decisions", "hold", "length", "holds")

_PICTURES = (".png", ".pdf", ".svg")

_DESCRIPTION = """\
Draw the curves of runs, one panel per environment. Runs that differ only in
their seed become one curve: the mean, with Student's 95 % interval.
--show holds draws how long one run's greedy actions are held as it learns.
fig:LABEL draws a figure of the paper from the rows that `holdfast reproduce`
has stored, and computes nothing; fig:LABEL DIR uses those in another folder;
module:attribute does the same for your own experiment.
"""
_EXAMPLES = """\
examples:
  holdfast plot runs/cliff-perq-k8-s*
  holdfast plot runs --show decisions -o decisions.pdf
  holdfast plot fig:sync -o sync.pdf
  holdfast plot my_experiments:LADDER
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "plot", "draw the curves of runs, with intervals over seeds", _DESCRIPTION, _EXAMPLES)
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        type=Path,
        help="run folders, or folders that contain them; or fig:LABEL, optionally with the folder of its rows",
    )
    parser.add_argument(
        "--show",
        choices=_QUANTITIES,
        default="return",
        help="return: of the training episodes (the default); evaluation: mean return of the greedy evaluations; "
        "decisions: per episode; hold: steps per decision; length: steps per episode; holds: the greedy holds of "
        "one run",
    )
    parser.add_argument(
        "--over", choices=("steps", "episodes"), default="steps", help="horizontal axis (default: steps)"
    )
    parser.add_argument(
        "--window", type=int, default=20, metavar="N", help="number of episodes averaged per point (default: 20)"
    )
    add_output(parser, "picture to write, .png, .pdf or .svg (default: curves.png, or LABEL.png)", metavar="FILE")
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Draw, write the picture and print its path."""
    from holdfast.cli.typed_values import printable
    from holdfast.core.checks import check_integer
    from holdfast.draw import draw_curves, save_figure
    from holdfast.experiments.figures import is_own_experiment
    from holdfast.runs.curves import QUANTITIES, learning_curves
    from holdfast.runs.directory import RunFolder, find_runs

    if arguments.out is not None and arguments.out.suffix.lower() not in _PICTURES:
        raise InputError(f"-o must end in .png, .pdf or .svg, not {str(arguments.out)!r}")
    first = str(arguments.runs[0])
    if first.lower().startswith("fig:") or (is_own_experiment(first) and not arguments.runs[0].exists()):
        return _draw_figure(arguments)
    arguments.out = arguments.out or Path("curves.png")
    window = check_integer("window", arguments.window)
    if arguments.show == "holds":
        return _draw_holds(arguments)
    over = arguments.over.removesuffix("s")
    paths: dict[Path, None] = {}
    for given in arguments.runs:
        if RunFolder(given).is_run:
            paths[given] = None
            continue
        found = find_runs(given) if given.is_dir() else None
        if not found:
            is_what = "contains no runs" if given.is_dir() else "is a file" if given.exists() else "does not exist"
            raise InputError(
                f"RUN must be a run's folder, or a folder that contains runs, and {str(given)!r} {is_what}"
            )
        for status in found:
            problem = status.problem or _problem(status.path, arguments.show, over)
            if problem:
                sys.stderr.write(f"holdfast plot: {status.path} is left out: {printable(problem)}\n")
            else:
                paths[status.path] = None
    if not paths:
        raise InputError("RUN must name at least one run that has something to show")
    panels = learning_curves(list(paths), arguments.show, over, window)
    figure = draw_curves(panels, arguments.over, QUANTITIES[arguments.show].title)
    results().write(f"wrote {save_figure(figure, arguments.out)}\n")
    return 0


def _draw_holds(arguments: argparse.Namespace) -> int:
    from holdfast.draw import draw_holds_over_training, save_figure
    from holdfast.runs.curves import holds_over_training
    from holdfast.runs.directory import RunFolder

    if len(arguments.runs) != 1 or not RunFolder(arguments.runs[0]).is_run:
        raise InputError("RUN must be the folder of one run for --show holds")
    if arguments.over != "steps" or arguments.window != 20:
        raise InputError("--over and --window must not be given with --show holds")
    steps, shares, title = holds_over_training(arguments.runs[0])
    figure = draw_holds_over_training(steps, shares, title)
    results().write(f"wrote {save_figure(figure, arguments.out)}\n")
    return 0


def _draw_figure(arguments: argparse.Namespace) -> int:
    """Draw a figure of the paper from stored rows only."""
    from holdfast.cli.campaigns import picture_name, show
    from holdfast.cli.typed_values import allow_code
    from holdfast.experiments.figures import find_experiment, is_own_experiment
    from holdfast.experiments.shared_rows import kept_folders
    from holdfast.experiments.spec import SCALES
    from holdfast.experiments.store import read_manifest_and_rows, row_folder

    named = str(arguments.runs[0])
    if is_own_experiment(named):
        allow_code(named)
    experiment = find_experiment(named)
    if len(arguments.runs) > 2:
        raise InputError(f"{experiment.label} must be given with at most one folder of rows")
    if (arguments.show, arguments.over, arguments.window) != ("return", "steps", 20):
        raise InputError(f"--show, --over and --window must not be given with {experiment.label}")
    name = picture_name(experiment)
    # The largest scale that has rows, otherwise the kept rows.
    usual = [Path("results", "reproduce", f"{name}-{scale}") for scale in reversed(SCALES)]
    usual += [folder for folder in kept_folders() if folder.name == name]
    found = [folder for folder in arguments.runs[1:] or usual if row_folder(folder).stored()]
    if not found:
        where = str(arguments.runs[1]) if len(arguments.runs) == 2 else "results/reproduce"
        typed = named if is_own_experiment(named) else experiment.name
        raise InputError(f"{experiment.label} has no stored rows yet in {where}: run holdfast reproduce {typed}")
    manifest, rows = read_manifest_and_rows(found[0], experiment)
    done = len(row_folder(found[0]).stored())
    results().write(f"{manifest.what}: rows of {done} of {len(manifest.jobs)} jobs in {found[0]}\n")
    show(experiment, manifest, rows, arguments.out or Path(f"{name}.png"))
    return 0


def _problem(path: Path, quantity: str, over: str) -> str | None:
    """Why a run cannot be shown; None if it can."""
    from holdfast.runs.curves import NothingToShowError, learning_curves

    try:
        learning_curves([path], quantity, over)
    except NothingToShowError:
        return "it has nothing to show yet"
    except InputError as error:
        return str(error)
    return None
