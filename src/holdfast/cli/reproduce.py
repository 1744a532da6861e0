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
    from holdfast.experiments.guests import Guest
    from holdfast.experiments.spec import Experiment, Job

__all__ = ["add_parser", "choose_jobs"]

_DESCRIPTION = """\
Reproduce a figure of the paper: run its jobs, store their rows, draw it and
print its numbers. A job is one setting with one seed (or a block of seeds); it
runs in its own process, and its rows are stored once. If a campaign stops,
continue it with --resume, which also tries failed jobs again.
"""
_EXAMPLES = """\
examples:
  holdfast reproduce list
  holdfast reproduce sync --scale laptop --jobs 2
  holdfast reproduce sync --scale paper --csv sync.csv
  holdfast reproduce all --scale smoke --resume
  holdfast reproduce suite --scale paper --only "agent=DQN, tuned" \\
      --only seed=100-104
  holdfast reproduce suite --keep results/reproduce/suite-paper
  holdfast reproduce tabular_perf --with my_agents:Mine k_max=4
  holdfast reproduce my_experiments:LADDER --engine ray --address head:6379
"""

_HOW_TO_RUN: dict[str, Any] = {
    "scale": "smoke",
    "only": [],
    "csv": None,
    "fresh": False,
    "resume": False,
    "jobs": None,
    "engine": "local",
    "address": None,
    "cpus_per_job": None,
    "gpus_per_job": None,
    "job_timeout": None,
    "retries": 0,
    "step_timeout": None,
}
"""Options that say how to run jobs, with their defaults."""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "reproduce",
        "reproduce figures of the paper, at three scales",
        _DESCRIPTION,
        _EXAMPLES,
    )
    parser.add_argument(
        "label",
        metavar="LABEL",
        help="a figure; `all` for all of them; `list` to list them; or module:attribute, your own Experiment",
    )
    parser.add_argument(
        "--scale",
        choices=("smoke", "laptop", "paper"),
        default="smoke",
        help="how much to compute: smoke takes seconds and shows that it works, laptop takes minutes to an hour "
        "on two cores, paper uses the paper's own numbers (default: smoke)",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="DIR",
        help="the campaign's folder; with `all`, the folder for all of them (default: "
        "results/reproduce/LABEL-SCALE)",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write all rows into one .csv file")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="run only the jobs with this value in their setting, or with these seeds (seed=100, seed=100-104); "
        "if repeated, a job must match one value of each name",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="run all jobs, even if their rows already exist in another figure or among the kept rows",
    )
    parser.add_argument(
        "--keep",
        nargs="+",
        type=Path,
        metavar="DIR",
        help="run nothing: add the rows of these campaigns to the figure's kept rows, in results/LABEL or the "
        "folder named by -o",
    )
    parser.add_argument(
        "--with",
        dest="guests",
        action="append",
        nargs="+",
        default=[],
        metavar=("ALGO", "NAME=VALUE"),
        help="add an algorithm to the figure: a name that train accepts or module:Class, your own agent, with its "
        "arguments; repeat it to add more",
    )
    add_engine_options(parser)
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Run, draw and print; return 1 if a job failed."""
    from holdfast.cli.typed_values import allow_code, code_folder
    from holdfast.experiments.campaign import check_campaign_folder
    from holdfast.experiments.figures import LABELS, find_experiment, is_own_experiment
    from holdfast.experiments.guests import with_guests
    from holdfast.policies.own_algorithms import is_own_algorithm
    from holdfast.runs.stopping import stop_on_signals

    if arguments.label == "list":
        for name, option in (("guests", "--with"), ("keep", "--keep")):
            if getattr(arguments, name):
                raise InputError(f"{option} must not be given with list, which runs nothing")
        _refuse_what_would_be_ignored(arguments, "list")
        results().write(_list(arguments.out))
        return 0
    if arguments.label == "all" and arguments.csv is not None:
        raise InputError("--csv must be given with one label, not with all")
    if arguments.label == "all" and (arguments.only or arguments.keep is not None):
        raise InputError("--only and --keep must be given with one label, not with all")
    check_csv(arguments.csv)
    if is_own_experiment(arguments.label):
        allow_code(arguments.label)
    guests = _guests(arguments)
    names = list(LABELS) if arguments.label == "all" else [arguments.label]
    experiments = [find_experiment(name) for name in names]
    if guests:
        experiments = [with_guests(experiments[0], guests)]
    own = next((guest.algorithm for guest in guests if is_own_algorithm(guest.algorithm)), None)
    if arguments.keep is not None:
        return _keep(experiments[0], arguments)
    chosen = {one.label: choose_jobs(one, one.jobs(arguments.scale), arguments.only) for one in experiments}
    folders = [_folder(experiment, arguments) for experiment in experiments]
    # Check all of them before starting the first.
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
                code_folder(own or arguments.label),
                chosen[experiment.label],
            )
            if stop:
                return found
            code = max(code, found)
    return code


def _refuse_what_would_be_ignored(arguments: argparse.Namespace, beside: str) -> None:
    """Raise InputError for an option that says how to run jobs, where none are run."""
    for name, default in _HOW_TO_RUN.items():
        if getattr(arguments, name) != default:
            raise InputError(f"{name} must not be given with {beside}, which runs nothing", name)


def _guests(arguments: argparse.Namespace) -> list[Guest]:
    """The agents to add to the figure."""
    from holdfast.cli.typed_values import allow_code, keyword_arguments
    from holdfast.experiments.guests import Guest

    if arguments.guests and (arguments.label == "all" or arguments.keep is not None):
        raise InputError("--with must be given with one label, and not with --keep")
    for name, *_ in arguments.guests:
        allow_code(name)
    return [Guest(name, keyword_arguments("--with", pairs)) for name, *pairs in arguments.guests]


def choose_jobs(experiment: Experiment, jobs: Sequence[Job], only: Sequence[str]) -> list[Job]:
    """The jobs that ``--only`` selects: for each name, those with one of the values given for it.

    Raises:
        ValueError: It is not NAME=VALUE, there is no such name, or no job has that value.
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
    """The value of a setting, or the seed, as it is typed; empty if there is no such name."""
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
    """Add rows to the kept ones and print how many."""
    from holdfast.experiments.kept_rows import keep_rows

    _refuse_what_would_be_ignored(arguments, "--keep")
    target = arguments.out or Path("results", picture_name(experiment))
    keeping = keep_rows(experiment, arguments.keep, target)
    told = f"{experiment.label}: {keeping.total} of {keeping.planned} jobs are kept, {keeping.added} of them new"
    if keeping.differing:
        told += f"; {keeping.differing} already have different rows, which stay"
    results().write(f"{told}\n  in {target}\n")
    return 0


def _folder(experiment: Experiment, arguments: argparse.Namespace) -> Path:
    name = f"{picture_name(experiment)}-{arguments.scale}"
    if arguments.out is None:
        return Path("results", "reproduce", name)
    return arguments.out / name if arguments.label == "all" else Path(arguments.out)


def _list(out: Path | None) -> str:
    """The labels with their titles, how many jobs they have, and how many of those are done."""
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
