"""Options of the verbs that run many jobs: where, how many at once, and into which folder."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from holdfast.cli.verbs import add_step_timeout
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
        help="jobs at the same time (default: the number of processors, or what fits on the cluster)",
    )
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="where jobs run: in processes on this machine, or on Ray (default: local)",
    )
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="the Ray cluster, or auto for the one running on this machine (default: start one here that ends "
        "with the jobs)",
    )
    parser.add_argument(
        "--cpus-per-job", type=float, metavar="C", help="processors that Ray reserves for each job (default: 1)"
    )
    parser.add_argument(
        "--gpus-per-job", type=float, metavar="G", help="GPUs that Ray reserves for each job (default: 0)"
    )
    parser.add_argument(
        "--job-timeout",
        type=float,
        metavar="SECONDS",
        help="end a job that takes longer and count it as failed (default: no limit)",
    )
    parser.add_argument(
        "--retries", type=int, default=0, metavar="N", help="how often to repeat a failed job (default: 0)"
    )
    add_step_timeout(parser)
    parser.add_argument(
        "--resume", action="store_true", help="continue a stopped campaign; finished jobs are not run again"
    )


def make_engine(arguments: argparse.Namespace) -> Engine:
    """The engine that the options ask for.

    Raises:
        ValueError: An option is invalid.
    """
    from holdfast.core.checks import check_integer, check_real
    from holdfast.experiments.engines.base import Limits

    jobs = None if arguments.jobs is None else check_integer("jobs", arguments.jobs)
    job_seconds, step_seconds = (
        None if given is None else check_real(name, given, 0.0, open_low=True)
        for name, given in (("job_timeout", arguments.job_timeout), ("step_timeout", arguments.step_timeout))
    )
    limits = Limits(job_seconds, step_seconds, check_integer("retries", arguments.retries, at_least=0))
    for name in ("address", "cpus_per_job", "gpus_per_job"):
        if arguments.engine != "ray" and getattr(arguments, name) is not None:
            raise InputError(f"{name} must be given with --engine ray", name)
    if arguments.engine == "local":
        from holdfast.experiments.engines.local import LocalEngine

        return LocalEngine(jobs or _processors(), limits)
    from holdfast.experiments.engines.ray import RayEngine

    cpus, gpus = (
        default if given is None else check_real(f"{name}_per_job", given, 0.0, open_low=name == "cpus")
        for name, given, default in (("cpus", arguments.cpus_per_job, 1.0), ("gpus", arguments.gpus_per_job, 0.0))
    )
    if jobs is None and arguments.address is None:
        jobs = _processors()
    if jobs is None and limits.job_seconds is not None:
        raise InputError(
            "jobs must be given with job_timeout on a cluster, because time spent waiting there counts",
            "jobs",
            "job_timeout",
        )
    return RayEngine(jobs, arguments.address, cpus, gpus, limits)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
