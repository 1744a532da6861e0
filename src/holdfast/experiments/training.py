"""Jobs that train a run: into a folder of their own, from which they go on when they were stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.store import place_entry
from holdfast.files import Entry, read_numbers
from holdfast.runs.directory import RunFolder, RunInUseError
from holdfast.runs.session import EVALUATION_COLUMNS, METRIC_COLUMNS
from holdfast.runs.stopping import StopRequest, stop_on_signals
from holdfast.runs.training import Outcome, train

__all__ = ["episode_columns", "evaluation_columns", "train_job"]

_PATIENCE = 30.0
"""Seconds that a process which was killed has to let go of a run."""


def train_job(options: Mapping[str, Any], place: Path) -> RunFolder:
    """Train a run into the folder ``place``, or go on with it from its last checkpoint.

    A job that is told to stop leaves a checkpoint and ends its process.

    Args:
        options: As ``holdfast.runs.train`` takes them, with the seed.
        place: The folder; neither it nor the folder that it is in may be a link.

    Returns:
        The finished run.
    """
    with _stopping() as stop:
        outcome = _train(options, place_entry(place), stop)
        if outcome.status == "stopped":
            raise SystemExit(stop.exit_code)
    return RunFolder(place_entry(place))


def _train(options: Mapping[str, Any], place: Entry, stop: StopRequest) -> Outcome:
    patience = time.monotonic() + _PATIENCE
    while True:
        try:
            return train(options, place, stop=stop)
        except RunInUseError:
            # By the process of a campaign that was killed a moment ago.
            if time.monotonic() > patience:
                raise
            time.sleep(0.2)


@contextmanager
def _stopping() -> Iterator[StopRequest]:
    """Signals are noted where they can be: in the main thread."""
    if threading.current_thread() is threading.main_thread():
        with stop_on_signals() as stop:
            yield stop
    else:
        yield StopRequest()


def episode_columns(run: RunFolder, columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Columns of a run's training episodes, see ``METRIC_COLUMNS``."""
    found = read_numbers(run.metrics, METRIC_COLUMNS)
    return {name: found[name] for name in columns}


def evaluation_columns(run: RunFolder, columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Columns of a run's greedy evaluations, see ``EVALUATION_COLUMNS``."""
    found = read_numbers(run.evaluations, EVALUATION_COLUMNS)
    return {name: found[name] for name in columns}
