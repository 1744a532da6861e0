"""Training a table: episodes in chunks short enough to check for signals, evaluations and checkpoints."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete, Space

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take_array, take_mapping
from holdfast.core.schedules import tabulate
from holdfast.envs import EnvironmentFailedError, EpisodeLog, NamedFailures, make_env
from holdfast.policies.actors import TableActor
from holdfast.policies.arguments import as_python
from holdfast.policies.table_files import table_state
from holdfast.runs.config import RunConfig
from holdfast.runs.session import Session
from holdfast.runs.stopping import TrainingStopped
from holdfast.tabular import EpisodeOutcomes, RunState, TabularLearner
from holdfast.tabular.world import shortest_limit

__all__ = ["build_learner", "train_tabular"]

_PIECE_SECONDS = 0.2
_LONGEST_PIECE = 10_000


def build_learner(config: RunConfig) -> TabularLearner:
    """The learner of a run before its first episode."""
    algorithm = config.algorithm
    learner: TabularLearner = algorithm.load()(**as_python(config.arguments), **algorithm.stands_for)
    return learner


def train_tabular(session: Session, saved: Mapping[str, Any] | None) -> None:
    """Train until the run is finished, from the learner's state at the last checkpoint, as ``train_deep`` does."""
    config = session.config
    learner = build_learner(config)
    env = EpisodeLog(NamedFailures(make_env(config.environment, **config.env_kwargs)))
    try:
        fresh = learner.start(env, config.seed)
        state = fresh if saved is None else _restored(saved, fresh, session, env)
        # If the policy cannot be saved, fail before training anything.
        _policy_state(session, learner, fresh, env)
        session.longest = shortest_limit(env, learner.step_limit)
        session.start()
        _train(session, learner, env, state)
    finally:
        env.close()


def _train(session: Session, learner: TabularLearner, env: EpisodeLog, state: RunState) -> None:
    piece = 1
    while True:
        if session.stop:
            _save(session, state, env)
            raise TrainingStopped
        _evaluate_if_due(session, learner, state, env)
        if session.is_over:
            break
        if session.checkpoint_is_due():
            _save(session, state, env)
        began = time.monotonic()
        state = _advance(session, learner, env, state, _until_something_happens(session, piece))
        piece = _next_piece(piece, time.monotonic() - began)
        session.report(session.steps, session.epsilon)
    if session.best is None:
        session.keep_policy(_policy_state(session, learner, state, env))
    _save(session, state, env, finished=True)


def _advance(
    session: Session, learner: TabularLearner, env: EpisodeLog, before: RunState, episodes: int
) -> RunState:
    """Train one chunk and record it."""
    named = env.env
    assert isinstance(named, NamedFailures)
    resets, steps, played = named.n_resets, named.n_steps, env.earlier_state()
    try:
        state, outcomes = learner.advance(env, before, episodes, evaluate=False)
        env.end_episode()
        within = _episodes_within_the_steps(session, outcomes)
        if within < episodes:
            # Repeat the same episodes, without those beyond the limit.
            env.forget_after(played)
            state, outcomes = learner.advance(env, before, within, evaluate=False)
            env.end_episode()
    except EnvironmentFailedError as error:
        when = (
            f"in episode {session.episodes + named.n_resets - resets}, "
            f"at step {session.steps + named.n_steps - steps}"
        )
        raise EnvironmentFailedError(error.what, when) from error
    _write_down(session, outcomes, tabulate(learner.epsilon, len(outcomes.steps), before.episode))
    return state


def _evaluate_if_due(session: Session, learner: TabularLearner, state: RunState, env: EpisodeLog) -> None:
    if not session.evaluation_is_due(session.episodes):
        return
    try:
        actor = TableActor(learner.policy_of(state.tables), *_firsts(env))
        session.evaluate(actor, session.episodes, lambda: _policy_state(session, learner, state, env))
    except TrainingStopped:
        _save(session, state, env)
        raise


def _firsts(env: EpisodeLog) -> tuple[int, int, Space[Any] | None]:
    """Numbers of the first state and of the first action, and the space of actions that are combinations."""
    seen, actions = env.observation_space, env.action_space
    assert isinstance(seen, Discrete)
    if isinstance(actions, Discrete):
        return int(seen.start), int(actions.start), None
    return int(seen.start), 0, actions


def _policy_state(session: Session, learner: TabularLearner, state: RunState, env: EpisodeLog) -> dict[str, Any]:
    return table_state(session.config.algo, learner.policy_of(state.tables), *_firsts(env))


def _until_something_happens(session: Session, piece: int) -> int:
    """Episodes of the next chunk: at most up to the next evaluation or the end."""
    config = session.config
    ends = [session.episodes + piece]
    to_evaluation = session.episodes_to_evaluation()
    if to_evaluation is not None:
        ends.append(session.episodes + to_evaluation)
    if config.episodes is not None:
        ends.append(config.episodes)
    return max(1, min(ends) - session.episodes)


def _episodes_within_the_steps(session: Session, outcomes: EpisodeOutcomes) -> int:
    """How many episodes of a chunk the run needs to reach all its steps."""
    if session.config.steps is None:
        return len(outcomes.steps)
    needed = session.config.steps - session.steps
    return min(int(np.searchsorted(np.cumsum(outcomes.steps), needed)) + 1, len(outcomes.steps))


def _next_piece(piece: int, seconds: float) -> int:
    if seconds < _PIECE_SECONDS / 2.0:
        return min(2 * piece, _LONGEST_PIECE)
    return max(1, piece // 2) if seconds > 2.0 * _PIECE_SECONDS else piece


def _write_down(session: Session, outcomes: EpisodeOutcomes, epsilons: Any) -> None:
    step = session.steps
    rows = zip(outcomes.training_returns, outcomes.steps, outcomes.decisions, epsilons, strict=True)
    for total, length, decisions, epsilon in rows:
        step += int(length)
        session.episode_ended(step, 0, float(total), int(length), int(decisions), float(epsilon))
    means = session.recent_means()
    assert means is not None
    session.events.scalars(
        step,
        {
            "rollout/ep_rew_mean": means[0],
            "rollout/decisions_mean": means[1],
            "rollout/hold_mean": means[2],
            "rollout/exploration_rate": session.epsilon,
        },
    )


def _save(session: Session, state: RunState, env: EpisodeLog, finished: bool = False) -> None:
    session.save(
        lambda: {"document": state.document(), "arrays": state.arrays(), "earlier": env.earlier_state()}, finished
    )


def _restored(saved: Mapping[str, Any], fresh: RunState, session: Session, env: EpisodeLog) -> RunState:
    document, arrays = take_mapping(saved, "document"), take_mapping(saved, "arrays")
    if set(arrays) != {*fresh.tables, "carry"}:
        raise InputError("the checkpoint must have the learner's tables, and no others")
    for name, table in fresh.tables.items():
        take_array(arrays, name, np.float64, table.shape)
    state = RunState.restore(document, arrays)
    if (state.learner, state.seed, state.episode) != (fresh.learner, fresh.seed, session.episodes):
        raise InputError("the checkpoint must be one of this run's learner, seed and number of episodes")
    refused = env.repeat_earlier(take_mapping(saved, "earlier")) if "earlier" in saved else None
    if refused is not None:
        raise InputError(f"env must be one that can be restored: {refused}")
    return state
