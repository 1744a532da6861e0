"""Jobs on a Ray cluster: the same ones, with rows that come back to the process that stores them.

A worker that is lost is replaced by another one that does its job again; since rows are stored only here, nothing
is there twice. Each job has a fresh process there, too.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from holdfast.core.checks import check_integer, check_real
from holdfast.core.distribution import install_command
from holdfast.core.errors import InputError
from holdfast.experiments.engines.base import THREADS, Ended, Event, Limits, Started, Task, perform, print_failure
from holdfast.experiments.manifest import read_manifest
from holdfast.files import remove_tree

__all__ = ["RayEngine"]

_LOOK = 0.2
_REACH = 5.0
"""Seconds in which a cluster must answer."""
_ANSWER = 30.0
"""Seconds in which it must be one."""
_ATTEMPT = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')"
_STARTS = 4
"""How often a cluster of our own is tried to be started."""
_RETRIES = 3
"""How often a job whose worker was lost is tried again."""
_MEMORY = 128 * 2**20
"""Bytes that an embedded cluster keeps for rows on their way."""


class RayEngine:
    """Runs jobs on a Ray cluster.

    Args:
        at_once: Jobs at the same time; None for as many as the cluster has room for.
        address: ``host:port`` of the cluster, or ``"auto"`` for the one that runs on this machine; None starts one
            here that nobody else can reach, and that ends with the jobs.
        cpus: Processors that a job gets.
        gpus: Graphics processors that a job gets.
        limits: How long jobs may take, and how often failed ones are repeated. A job's time begins when it is
            submitted, so waiting for room on the cluster counts.

    Entering it raises a ValueError where Ray is not installed, or the cluster cannot be reached.
    """

    def __init__(
        self,
        at_once: int | None,
        address: str | None = None,
        cpus: float = 1.0,
        gpus: float = 0.0,
        limits: Limits | None = None,
    ) -> None:
        self.limits = Limits() if limits is None else limits
        self.at_once = None if at_once is None else check_integer("at_once", at_once)
        self.address = address
        self.cpus = check_real("cpus", cpus, 0.0, open_low=True)
        self.gpus = check_real("gpus", gpus, 0.0)
        self._ray: Any = None
        self._own: str | None = None

    def __enter__(self) -> Self:
        self._ray = _imported(self.address)
        handler = signal.getsignal(signal.SIGTERM)
        try:
            if self.address is None:
                # Not in the usual folder, which is shared by all who use this machine.
                self._own = tempfile.mkdtemp(prefix="hf-")
                cpus = (self.at_once or 1) * self.cpus
                _start_here(self._ray, self._own, max(1, math.ceil(cpus)))
            else:
                _connect(self._ray, self.address)
        except BaseException:
            self.__exit__()
            raise
        finally:
            # Ray puts one of its own there, which ends the process at once.
            signal.signal(signal.SIGTERM, handler)
        return self

    def __exit__(self, *error: object) -> None:
        self._ray.shutdown()
        if self._own is not None:
            remove_tree(Path(self._own))

    def about(self) -> dict[str, Any]:
        """What the manifest is to say of it."""
        return {
            "name": "ray",
            "address": self.address,
            "at_once": self.at_once,
            "cpus_per_job": self.cpus,
            "gpus_per_job": self.gpus,
        }

    def run(self, tasks: Sequence[Task], alone: bool = False) -> Generator[Event, None, None]:
        """Run all tasks, and tell; closing the iterator stops what is running."""
        ray, at_once = self._ray, 1 if alone else self.at_once or len(tasks)
        needs = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        # One call, and the process ends: the next job has a fresh one.
        remote = ray.remote(max_calls=1, max_retries=_RETRIES, **needs)(_perform_there)
        waiting = [(task, 1) for task in reversed(tasks)]
        running: dict[Any, tuple[Task, float, int]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    task, tries = waiting.pop()
                    document = self.limits.document(task)
                    reference = remote.remote(document, str(task.whole_place), task.campaign)
                    running[reference] = (task, time.monotonic(), tries)
                    if tries == 1:
                        yield Started(task.job)
                over, _ = ray.wait(list(running), timeout=_LOOK)
                late = [
                    reference
                    for reference in running
                    if reference not in over and self._is_late(running[reference][1])
                ]
                for reference in (*over, *late):
                    task, began, tries = running.pop(reference)
                    if reference in late:
                        ray.cancel(reference, force=True)
                        ended = Ended(task.job, time.monotonic() - began, None, self.limits.too_long)
                    else:
                        ended = _outcome(ray, reference, task, began)
                    if ended.data is None and tries <= self.limits.retries:
                        waiting.append((task, tries + 1))
                    else:
                        yield replace(ended, problem=self.limits.problem_after(tries, ended.problem))
                if not over:
                    yield None
        finally:
            for reference in running:
                with contextlib.suppress(Exception):
                    ray.cancel(reference, force=True)

    def _is_late(self, began: float) -> bool:
        return self.limits.job_seconds is not None and time.monotonic() - began > self.limits.job_seconds


def _outcome(ray: Any, reference: Any, task: Task, began: float) -> Ended:
    """What a task came to; what it said goes into its log."""
    try:
        data, seconds, said = ray.get(reference)
    except ray.exceptions.RayError as error:
        problem = " ".join(str(error).split())[:300]
        _write_log(task, f"{error}\n")
        return Ended(task.job, time.monotonic() - began, None, f"its worker was lost: {problem}")
    if said:
        _write_log(task, said)
    if data is None:
        return Ended(task.job, seconds, None, said.strip().splitlines()[-1][:300])
    return Ended(task.job, seconds, data)


def _write_log(task: Task, text: str) -> None:
    with task.log.create() as file:
        file.write(text.encode("utf-8", errors="backslashreplace"))


def _perform_there(document: Mapping[str, Any], place: str, campaign: str) -> tuple[bytes | None, float, str]:
    """In a worker: rows or None, seconds, and what was said, with the traceback of what went wrong."""
    os.environ.update(THREADS)
    said = io.StringIO()
    began = time.monotonic()
    with (
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        _place(Path(place), campaign) as folder,
    ):
        try:
            data = perform(document, folder)
        except (Exception, SystemExit) as error:
            print_failure(error)
            data = None
    return data, time.monotonic() - began, said.getvalue()


@contextlib.contextmanager
def _place(place: Path, campaign: str) -> Iterator[Path]:
    """The job's folder, where this machine has the campaign's; else one for the time being."""
    try:
        manifest = read_manifest(place.parent.parent)
    except (OSError, InputError):
        manifest = None
    if manifest is not None and manifest.campaign == campaign:
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        yield Path(folder) / place.name


# The cluster ----------------------------------------------------------------------------------------------------


def _imported(address: str | None) -> Any:
    """Ray, without its statistics and its messages."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # It would print that a worker was lost; here that is a job that is tried again, or one that has failed.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    if address is None:
        # Without this Ray takes 127.0.0.1 for the machine's own address, and listens to everybody.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        # On a busy machine its helpers take longer than Ray expects.
        os.environ.setdefault("RAY_agent_register_timeout_ms", "120000")
        os.environ.setdefault("RAY_enable_metrics_collection", "0")
    try:
        import ray
    except ImportError:
        raise InputError(f"the Ray engine needs Ray, which is not installed: {install_command('ray')}") from None
    return ray


def _start_here(ray: Any, folder: str, cpus: int) -> None:
    """A cluster of this machine alone, which nobody else can reach."""
    for attempt in range(1, _STARTS + 1):
        try:
            ray.init(
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                object_store_memory=_MEMORY,
                _node_ip_address="127.0.0.1",
                _temp_dir=folder,
                log_to_driver=False,
                logging_level="ERROR",
            )
            break
        except Exception as error:
            # Ray gives itself half a minute, which a busy machine may not keep to.
            ray.shutdown()
            if attempt == _STARTS or "timed out during startup" not in str(error):
                told = " ".join(str(error).split())[:200]
                raise InputError(f"Ray could not be started on this machine: {told}") from error
    found = {node["NodeManagerAddress"] for node in ray.nodes()}
    if found != {"127.0.0.1"}:
        raise InputError(f"address must be given: Ray would listen on {', '.join(found)}", "address")


def _connect(ray: Any, address: str) -> None:
    """A cluster that runs already."""
    if address != "auto":
        _check_address(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        raise _unreachable(address, error) from error


def _check_address(address: str) -> None:
    """See whether a cluster answers: Ray itself would wait for many minutes, and cannot be interrupted."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(
            f"address must be host:port of a Ray cluster, such as 10.0.0.1:6379, or auto, not {address!r}",
            "address",
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH).close()
    except OSError as error:
        raise _unreachable(address, error.strerror or error) from error
    # Somebody listens there. Whether it is Ray is tried out where it can be given up.
    attempt = [sys.executable, "-P", "-c", _ATTEMPT, address]
    try:
        tried = subprocess.run(attempt, capture_output=True, timeout=_ANSWER, check=False)
    except subprocess.TimeoutExpired:
        raise _unreachable(address, f"no cluster answered within {_ANSWER:.0f} s") from None
    if tried.returncode != 0:
        said = tried.stderr.decode(errors="replace").strip()
        if "AuthenticationError" in said:
            raise InputError(
                f"address names a Ray cluster, {address}, that needs a token: "
                "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to the cluster's token",
                "address",
            )
        raise _unreachable(address, said.splitlines()[-1] if said else "it does not answer")


def _unreachable(address: str, error: object) -> InputError:
    told = " ".join(str(error).split())[:200] or type(error).__name__
    return InputError(
        f"address must be that of a running Ray cluster, and {address} cannot be reached: {told}", "address"
    )
