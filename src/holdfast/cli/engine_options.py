"""Options of the verbs that run many jobs: where, how many at once, and into which folder."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from holdfast.core.errors import InputError

if TYPE_CHECKING:
    from holdfast.experiments.engines.base import Engine

__all__ = ["add_engine_options", "make_engine"]


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="jobs at the same time (default: as many as there are processors here, or room on the cluster)",
    )
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="where jobs are run: in processes of this machine, or by Ray (default: local)",
    )
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="the Ray cluster, or auto for the one of this machine (default: one is started here, and ends with "
        "the jobs)",
    )
    parser.add_argument(
        "--cpus-per-job", type=float, metavar="C", help="processors that Ray keeps for a job (default: 1)"
    )
    parser.add_argument(
        "--gpus-per-job", type=float, metavar="G", help="graphics processors that Ray keeps for a job (default: 0)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with a campaign that was stopped; done jobs are not run again"
    )


def make_engine(arguments: argparse.Namespace) -> Engine:
    """The engine that the options ask for.

    Raises:
        ValueError: An option will not do.
    """
    from holdfast.core.checks import check_integer, check_real

    jobs = None if arguments.jobs is None else check_integer("jobs", arguments.jobs)
    for name in ("address", "cpus_per_job", "gpus_per_job"):
        if arguments.engine != "ray" and getattr(arguments, name) is not None:
            raise InputError(f"{name} must be given with --engine ray", name)
    if arguments.engine == "local":
        from holdfast.experiments.engines.local import LocalEngine

        return LocalEngine(jobs or _processors())
    from holdfast.experiments.engines.ray import RayEngine

    cpus, gpus = (
        default if given is None else check_real(f"{name}_per_job", given, 0.0, open_low=name == "cpus")
        for name, given, default in (("cpus", arguments.cpus_per_job, 1.0), ("gpus", arguments.gpus_per_job, 0.0))
    )
    if jobs is None and arguments.address is None:
        jobs = _processors()
    return RayEngine(jobs, arguments.address, cpus, gpus)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
