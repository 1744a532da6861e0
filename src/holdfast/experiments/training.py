"""Jobs that train a run in their own folder, and resume from it if they were stopped."""

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
from holdfast.runs.session import EVALUATION_COLUMNS, METRIC_COLUMNS, OnEvaluation
from holdfast.runs.stopping import StopRequest, stop_on_signals
from holdfast.runs.training import Outcome, train

__all__ = ["episode_columns", "evaluation_columns", "train_job"]

_PATIENCE = 30.0
"""Seconds to wait for a killed process to release a run."""


def train_job(options: Mapping[str, Any], place: Path, on_evaluation: OnEvaluation | None = None) -> RunFolder:
    """Train a run in the folder ``place``, or resume it from its last checkpoint.

    A job that is told to stop leaves a checkpoint and ends its process.

    Args:
        options: Options for ``holdfast.runs.train``, with the seed.
        place: The folder; neither it nor its parent may be a link.
        on_evaluation: Called after each evaluation; stops the training by returning False.

    Returns:
        The run, finished unless ``on_evaluation`` stopped it.
    """
    with _stopping() as stop:
        outcome = _train(options, place_entry(place), stop, on_evaluation)
        if outcome.status == "stopped" and stop:
            raise SystemExit(stop.exit_code)
    return RunFolder(place_entry(place))


def _train(
    options: Mapping[str, Any], place: Entry, stop: StopRequest, on_evaluation: OnEvaluation | None
) -> Outcome:
    patience = time.monotonic() + _PATIENCE
    while True:
        try:
            return train(options, place, stop=stop, on_evaluation=on_evaluation)
        except RunInUseError:
            # Used by the process of a campaign that was killed a moment ago.
            if time.monotonic() > patience:
                raise
            time.sleep(0.2)


@contextmanager
def _stopping() -> Iterator[StopRequest]:
    """Catch signals where that is possible: in the main thread."""
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
