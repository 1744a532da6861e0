"""Training a run: from its beginning, or from its last checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.saved_fields import take, take_mapping
from holdfast.core.user_code import described, is_raised_by_holdfast, where_passed, where_raised
from holdfast.envs import EnvironmentFailedError
from holdfast.files import Entry
from holdfast.policies.algorithms import ALGORITHMS
from holdfast.policies.own_algorithms import agent_files
from holdfast.runs.config import RunConfig
from holdfast.runs.directory import RunFolder
from holdfast.runs.options import make_config
from holdfast.runs.progress import Reporter, Silent
from holdfast.runs.session import OnEvaluation, Session
from holdfast.runs.stopping import StopRequest, TrainingStopped

__all__ = ["Outcome", "check_agent", "open_run", "train"]


@dataclass(frozen=True)
class Outcome:
    """The result of a session.

    Attributes:
        path: The run's folder.
        status: ``"finished"``, ``"stopped"``, or ``"already finished"``.
        steps: Steps done in total.
        episodes: Episodes done in total.
        mean_return: Mean return of the last 20 training episodes.
        best_return: Mean greedy return of the best policy; None without evaluations.
        seconds: Duration of this session.
        checkpoint_seconds: The part of it spent on checkpoints.
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
    """The run to train in ``path``; if there is a run already, the options must match it.

    Raises:
        ValueError: The options are invalid, or the folder contains a different run.
    """
    folder = RunFolder(path)
    if not folder.is_run:
        return make_config(options)
    stored = folder.read_config()
    config = make_config(options, stored)
    difference = stored.difference(config)
    if difference is not None:
        raise InputError(f"{path} contains a run with {difference}: choose another folder, or remove it")
    return config


def check_agent(config: RunConfig) -> None:
    """Make the agent of a run and discard it, to find values that it rejects before any training.

    It is made on the CPU: the run may be trained on a machine with other devices.

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
    on_evaluation: OnEvaluation | None = None,
) -> Outcome:
    """Train the run that ``options`` describe in the folder ``path``, or continue it.

    Args:
        options: See ``holdfast.runs.options.OPTIONS``.
        path: The run's folder; see ``RunFolder``.
        reporter: Shows the progress.
        stop: Set when a signal asks to stop.
        on_evaluation: Called with an ``Evaluated`` after each evaluation; if it returns False, the training stops
            and can be continued later. What it raises is passed on unchanged.

    Raises:
        ValueError: Bad options, another run in the folder, or a damaged one; nothing was changed.
        EnvironmentFailedError: The environment failed; the last checkpoint is as it was.
    """
    if on_evaluation is not None and not callable(on_evaluation):
        raise InputTypeError(f"on_evaluation must be a function, not {on_evaluation!r}", "on_evaluation")
    reporter = Silent() if reporter is None else reporter
    stop = StopRequest() if stop is None else stop
    folder = RunFolder(path)
    made = folder.create()
    started = False
    try:
        with folder.locked():
            try:
                config = open_run(options, folder.entry)
                folder.tidy(config.keep_checkpoints)
                state = folder.read_checkpoint(config.algo, reporter.say)
                saved = None if state is None else take_mapping(state, "run")
                session = Session(folder, config, saved, reporter, stop, on_evaluation)
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
        raise InputError(f"{session.folder.path} was trained without checkpoints and cannot be continued")
    try:
        _run(session, agent)
    except TrainingStopped:
        return _outcome(session, "stopped")
    return _outcome(session, "finished")


def _run(session: Session, agent: Mapping[str, Any] | None) -> None:
    name = session.config.algo
    try:
        _train_agent(session, agent)
    except Exception as error:
        known = (InputError, EnvironmentFailedError, TrainingStopped, OSError, MemoryError)
        if name in ALGORITHMS or isinstance(error, known) or error is session.told_error:
            raise
        # What holdfast raises when the agent calls it is about what the agent gave it.
        place = where_passed(error, agent_files(session.config.algorithm.load()))
        if not place and is_raised_by_holdfast(error):
            raise
        place = place or where_raised(error, but=__file__)
        raise InputError(f"algo {name!r} failed at step {session.steps}: {described(error)}{place}") from error


def _train_agent(session: Session, agent: Mapping[str, Any] | None) -> None:
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
