"""Training a run: from its beginning, or from its last checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_mapping
from holdfast.files import Entry
from holdfast.runs.config import RunConfig, make_config
from holdfast.runs.directory import RunFolder
from holdfast.runs.progress import Reporter, Silent
from holdfast.runs.session import Session
from holdfast.runs.stopping import StopRequest, TrainingStopped

__all__ = ["Outcome", "check_agent", "open_run", "train"]


@dataclass(frozen=True)
class Outcome:
    """What a session came to.

    Attributes:
        path: The run's folder.
        status: ``"finished"``, ``"stopped"``, or ``"already finished"``.
        steps: Steps done, in all.
        episodes: Episodes done, in all.
        mean_return: Of the last 20 training episodes.
        best_return: Mean greedy return of the policy that was kept; None without evaluations.
        seconds: Time of this session.
        checkpoint_seconds: Time of these for checkpoints.
        new_steps: Steps of this session.
    """

    path: Path
    status: str
    steps: int
    episodes: int
    mean_return: float | None
    best_return: float | None
    seconds: float
    checkpoint_seconds: float
    new_steps: int


def open_run(options: Mapping[str, Any], path: Path | Entry) -> RunConfig:
    """What is to be trained in ``path``: what the options come to, which must be what is there already.

    Raises:
        ValueError: The options will not do, or a run with others is there.
    """
    folder = RunFolder(path)
    if not folder.is_run:
        return make_config(options)
    stored = folder.read_config()
    config = make_config(options, stored)
    difference = stored.difference(config)
    if difference is not None:
        raise InputError(f"{path} holds a run with {difference}: choose another folder, or remove it")
    return config


def check_agent(config: RunConfig) -> None:
    """Make the agent of a run and let go of it, which tells of values that it does not take before any training.

    It is made on the processor: a run may be trained on a machine that has other devices than this one.

    Raises:
        ValueError: It cannot be made; the message is one sentence.
        TypeError: Likewise.
    """
    if config.algorithm.is_deep:
        from holdfast.runs.deep_training import build_agent, build_vec_env

        with closing(build_vec_env(config)) as env:
            build_agent(replace(config, device="cpu"), env)
    else:
        from holdfast.runs.tabular_training import build_learner

        build_learner(config)


def train(
    options: Mapping[str, Any],
    path: str | os.PathLike[str] | Entry,
    reporter: Reporter | None = None,
    stop: StopRequest | None = None,
) -> Outcome:
    """Train the run that ``options`` describe in the folder ``path``, or go on with it.

    Args:
        options: See ``holdfast.runs.config.OPTIONS``.
        path: The run's folder; see ``RunFolder``.
        reporter: Who is told how far it is.
        stop: Whether to stop.

    Raises:
        ValueError: Bad options, another run in the folder, or a damaged one; nothing was changed.
        EnvironmentFailedError: The environment failed; the last checkpoint is as it was.
    """
    reporter = Silent() if reporter is None else reporter
    stop = StopRequest() if stop is None else stop
    folder = RunFolder(path)
    made = folder.create()
    started = False
    try:
        with folder.locked():
            try:
                config = open_run(options, folder.entry)
                folder.tidy()
                state = folder.read_checkpoint(config.algo)
                saved = None if state is None else take_mapping(state, "run")
                session = Session(folder, config, saved, reporter, stop)
                try:
                    return _train(session, None if state is None else take(state, "agent"))
                finally:
                    started = session.has_started
                    reporter.close()
                    session.close()
            finally:
                if made and not started:
                    folder.remove_lock()
    finally:
        if not started:
            folder.remove(made)


def _train(session: Session, agent: Any) -> Outcome:
    if session.was_finished and session.is_over:
        return _outcome(session, "already finished")
    if session.is_resumed and not isinstance(agent, Mapping):
        raise InputError(f"{session.folder.path} was trained without checkpoints, and cannot be gone on with")
    try:
        _run(session, agent)
    except TrainingStopped:
        return _outcome(session, "stopped")
    return _outcome(session, "finished")


def _run(session: Session, agent: Mapping[str, Any] | None) -> None:
    if session.config.algorithm.is_deep:
        from holdfast.runs.deep_training import train_deep

        train_deep(session, agent)
    else:
        from holdfast.runs.tabular_training import train_tabular

        train_tabular(session, agent)


def _outcome(session: Session, status: str) -> Outcome:
    means = session.recent_means()
    return Outcome(
        path=session.folder.path,
        status=status,
        steps=session.steps,
        episodes=session.episodes,
        mean_return=None if means is None else means[0],
        best_return=session.best,
        seconds=session.seconds,
        checkpoint_seconds=session.checkpoint_seconds,
        new_steps=session.steps_of_its_own,
    )
