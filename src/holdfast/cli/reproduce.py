"""``holdfast reproduce``: the figures of the paper by name, at three scales."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.campaigns import check_csv, picture_name, run_and_show
from holdfast.cli.engine_options import add_engine_options, make_engine
from holdfast.cli.streams import results
from holdfast.cli.verbs import add_verb
from holdfast.core.errors import InputError

if TYPE_CHECKING:
    from holdfast.experiments.campaign import Standing
    from holdfast.experiments.spec import Experiment, Job

__all__ = ["add_parser", "choose_jobs"]

_DESCRIPTION = """\
Reproduce a figure of the paper: run its jobs, store their rows, draw it and
print its numbers. A job is one setting with one seed (or a block of seeds); it
runs in a process of its own, and its rows are stored once. A campaign that was
stopped or killed goes on with --resume; what failed is then tried again.
"""
_EXAMPLES = """\
examples:
  holdfast reproduce list
  holdfast reproduce sync --scale laptop --jobs 2
  holdfast reproduce sync --scale paper --csv sync.csv
  holdfast reproduce all --scale smoke --resume
  holdfast reproduce suite --scale paper --only "agent=DQN, tuned" --only seed=100-104
  holdfast reproduce suite --keep results/reproduce/suite-paper
  holdfast reproduce my_experiments:LADDER --engine ray --address head:6379
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "reproduce",
        "reproduce figures of the paper, at three scales, here or on a cluster",
        _DESCRIPTION,
        _EXAMPLES,
    )
    parser.add_argument(
        "label",
        metavar="LABEL",
        help="a figure, all of them, list to see which there are, or module:attribute, an Experiment of yours",
    )
    parser.add_argument(
        "--scale",
        choices=("smoke", "laptop", "paper"),
        default="smoke",
        help="how much is computed: seconds to see that it works, minutes to an hour on two cores, or the paper's "
        "own numbers (default: smoke)",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="DIR",
        help="the campaign's folder; with all, where the folders go (default: results/reproduce/LABEL-SCALE)",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write all rows into one .csv file")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="run only jobs whose setting has this value, or whose seed is it (seed=100, seed=100-104); given "
        "again, another value of the same name is allowed too, and another name is required too",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="run all jobs, also those of which another figure or a folder of kept rows has rows",
    )
    parser.add_argument(
        "--keep",
        nargs="+",
        type=Path,
        metavar="DIR",
        help="run nothing: add the rows of these campaigns' folders to the kept ones of the figure, in "
        "results/LABEL or where -o says",
    )
    add_engine_options(parser)
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Run, draw, print; 1 if a job failed."""
    from holdfast.cli.typed_values import allow_code, code_folder
    from holdfast.experiments.campaign import check_campaign_folder
    from holdfast.experiments.figures import LABELS, find_experiment, is_code
    from holdfast.runs.stopping import stop_on_signals

    if arguments.label == "list":
        results().write(_list(arguments.out))
        return 0
    if arguments.label == "all" and arguments.csv is not None:
        raise InputError("--csv must be given with one label, not with all")
    if arguments.label == "all" and (arguments.only or arguments.keep is not None):
        raise InputError("--only and --keep must be given with one label, not with all")
    check_csv(arguments.csv)
    if is_code(arguments.label):
        allow_code(arguments.label)
    names = list(LABELS) if arguments.label == "all" else [arguments.label]
    experiments = [find_experiment(name) for name in names]
    if arguments.keep is not None:
        return _keep(experiments[0], arguments)
    chosen = {one.label: choose_jobs(one, one.jobs(arguments.scale), arguments.only) for one in experiments}
    folders = [_folder(experiment, arguments) for experiment in experiments]
    # All of them are looked at before the first is begun.
    for experiment, folder in zip(experiments, folders, strict=True):
        check_campaign_folder(
            experiment,
            experiment.jobs(arguments.scale),
            folder,
            arguments.resume,
            arguments.scale,
            chosen[experiment.label],
        )
    code = 0
    standings: dict[str, Standing] = {}
    with stop_on_signals() as stop, make_engine(arguments) as engine:
        for experiment, folder in zip(experiments, folders, strict=True):
            jobs = experiment.jobs(arguments.scale)
            found = run_and_show(
                experiment,
                jobs,
                folder,
                engine,
                arguments,
                stop,
                standings,
                code_folder(arguments.label),
                chosen[experiment.label],
            )
            if stop:
                return found
            code = max(code, found)
    return code


def choose_jobs(experiment: Experiment, jobs: Sequence[Job], only: Sequence[str]) -> list[Job]:
    """The jobs that ``--only`` leaves: of each name, one of the values that were given for it.

    Raises:
        ValueError: It is no NAME=VALUE, there is no such name, or no job has that value.
    """
    wanted: dict[str, list[str]] = {}
    for pair in only:
        name, equals, value = pair.partition("=")
        if not equals or not name or not value:
            raise InputError(f"--only must be NAME=VALUE, not {pair!r}")
        wanted.setdefault(name, []).append(value)
    for name, values in wanted.items():
        there = list(dict.fromkeys(text for job in jobs for text in _texts(job, name)))
        if not there:
            names = ", ".join(dict.fromkeys(["seed", *(name for job in jobs for name in job.setting)]))
            raise InputError(f"--only must name one of {names} for {experiment.label}, not {name!r}")
        for value in values:
            if not any(_has(job, name, value) for job in jobs):
                raise InputError(f"--only {name} must be one of {'; '.join(there)}, not {value!r}")
    return [
        job for job in jobs if all(any(_has(job, name, one) for one in values) for name, values in wanted.items())
    ]


def _texts(job: Job, name: str) -> list[str]:
    """A setting's value, or the seed, as it is typed; nothing where there is no such name."""
    if name == "seed":
        return [str(job.seed)]
    if name not in job.setting:
        return []
    value = job.setting[name]
    return [value if isinstance(value, str) else json.dumps(value)]


def _has(job: Job, name: str, value: str) -> bool:
    low, dash, high = value.partition("-")
    if name == "seed" and dash and low.isdecimal() and high.isdecimal():
        return int(low) <= job.seed <= int(high)
    return value in _texts(job, name)


def _keep(experiment: Experiment, arguments: argparse.Namespace) -> int:
    """Add rows to the kept ones, and say how many."""
    from holdfast.experiments.kept_rows import keep_rows

    for name in ("only", "csv", "fresh", "resume", "jobs", "address"):
        if getattr(arguments, name):
            raise InputError(f"--{name} must not be given with --keep, which runs nothing")
    target = arguments.out or Path("results", picture_name(experiment))
    keeping = keep_rows(experiment, arguments.keep, target)
    told = f"{experiment.label}: {keeping.total} of {keeping.planned} jobs are kept, {keeping.added} of them new"
    if keeping.differing:
        told += f"; {keeping.differing} have other rows than were to be added, and these stay"
    results().write(f"{told}\n  in {target}\n")
    return 0


def _folder(experiment: Experiment, arguments: argparse.Namespace) -> Path:
    name = f"{picture_name(experiment)}-{arguments.scale}"
    if arguments.out is None:
        return Path("results", "reproduce", name)
    return arguments.out / name if arguments.label == "all" else Path(arguments.out)


def _list(out: Path | None) -> str:
    """Labels, what they show, how many jobs they have, and how many of these are done."""
    from holdfast.experiments.figures import LABELS, find_experiment
    from holdfast.experiments.spec import SCALES
    from holdfast.experiments.store import Store

    top = Path("results", "reproduce") if out is None else out
    lines = [f"{'LABEL':<20}" + "".join(f"{scale:>11}" for scale in SCALES) + "   jobs, or done of jobs"]
    for label in LABELS:
        experiment = find_experiment(label)
        cells = []
        for scale in SCALES:
            total = len(experiment.jobs(scale))
            done = len(Store(top / f"{picture_name(experiment)}-{scale}").stored())
            cells.append(f"{done} of {total}" if done else str(total))
        lines.append(f"{experiment.name:<20}" + "".join(f"{cell:>11}" for cell in cells))
        lines.append(f"    {experiment.title}")
    return "\n".join(lines) + "\n"
