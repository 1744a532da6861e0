"""What every training does along the way: rows, evaluations, checkpoints, progress, stopping."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_integer, take_mapping, take_number
from holdfast.envs import EnvironmentFailedError, NamedFailures, make_scoring_env
from holdfast.files import Rows, read_rows
from holdfast.policies.evaluation import LONGEST_EPISODE, Actor, Evaluation, evaluate, evaluation_seeds
from holdfast.runs.config import RunConfig
from holdfast.runs.directory import RunFolder
from holdfast.runs.events import Events
from holdfast.runs.progress import Pace, Reporter, TrainingProgress
from holdfast.runs.stopping import StopRequest, TrainingStopped

__all__ = [
    "EVALUATION_COLUMNS",
    "HOLD_COLUMNS",
    "METRIC_COLUMNS",
    "SHARE_OF_CHECKPOINTS",
    "Evaluated",
    "OnEvaluation",
    "Session",
]

METRIC_COLUMNS = ("episode", "step", "environment", "return", "length", "decisions", "epsilon")
EVALUATION_COLUMNS = (
    "evaluation",
    "step",
    "episode",
    "episodes",
    "return_mean",
    "return_std",
    "return_min",
    "return_max",
    "length_mean",
    "decisions_mean",
)
HOLD_COLUMNS = ("evaluation", "step", "held", "decisions")
"""How many decisions of an evaluation were held for how long; durations that did not occur have no row."""
_TIMING_COLUMNS = ("step", "episode", "seconds", "checkpoint_seconds")

_RECENT = 20
SHARE_OF_CHECKPOINTS = 0.04
"""The largest share of the time that checkpoints may take, however short their interval."""


@dataclass(frozen=True)
class Evaluated:
    """An evaluation during training, as passed to ``on_evaluation``.

    Attributes:
        number: Its number within the run, from 1.
        steps: Steps trained by then.
        episodes: Training episodes ended by then.
        mean_return: Mean return of its greedy episodes.
        mean_length: Their mean number of steps.
        mean_decisions: Their mean number of decisions.
        best_return: The largest mean return of the run so far.
    """

    number: int
    steps: int
    episodes: int
    mean_return: float
    mean_length: float
    mean_decisions: float
    best_return: float


OnEvaluation = Callable[[Evaluated], object]
"""Called after each evaluation; returning False stops the training, which can be continued later."""


class EvaluationFailedError(EnvironmentFailedError):
    """The environment failed during an evaluation; the message says so."""


class Session:
    """The part of a run that one process trains; nothing is written before ``start``.

    Args:
        folder: The run's folder, locked by this process.
        config: The run's configuration.
        saved: What ``state`` returned at the last checkpoint; None at the beginning.
        reporter: Shows the progress.
        stop: Set when a signal asks to stop.
        on_evaluation: Called after each evaluation; may stop the training.
    """

    def __init__(
        self,
        folder: RunFolder,
        config: RunConfig,
        saved: Mapping[str, Any] | None,
        reporter: Reporter,
        stop: StopRequest,
        on_evaluation: OnEvaluation | None = None,
    ) -> None:
        self.folder = folder
        self.config = config
        self.reporter = reporter
        self.stop = stop
        self._on_evaluation = on_evaluation
        self.told_error: BaseException | None = None
        self.is_resumed = saved is not None
        self.was_finished = saved is not None and take(saved, "finished") is True
        self.steps = self.episodes = self.n_evaluations = 0
        self.evaluated_at = 0
        self.has_started = False
        self.longest = LONGEST_EPISODE
        self.best: float | None = None
        self.epsilon = 1.0
        self._has_told_of_endless = False
        lengths: dict[str, int | None] = dict.fromkeys(("metrics", "evaluations", "holds"))
        if saved is not None:
            self.steps, self.episodes, self.n_evaluations, self.evaluated_at = (
                take_integer(saved, name) for name in ("steps", "episodes", "evaluations", "evaluated_at")
            )
            self.best = None if take(saved, "best") is None else take_number(saved, "best")
            self.epsilon = take_number(saved, "epsilon")
            lengths = {name: take_integer(take_mapping(saved, "bytes"), name) for name in lengths}
        self._metrics = Rows(folder.metrics, METRIC_COLUMNS, lengths["metrics"])
        self._evaluations = Rows(folder.evaluations, EVALUATION_COLUMNS, lengths["evaluations"])
        self._holds = Rows(folder.holds, HOLD_COLUMNS, lengths["holds"])
        self._recent: deque[tuple[float, float, float]] = deque(
            self._last_episodes(lengths["metrics"]), maxlen=_RECENT
        )
        self._timing: Rows | None = None
        self._events: Events | None = None
        self._env: Any = None
        self._pace = Pace()
        self._began = self._saved_at = self._next_checkpoint = self._next_report = time.monotonic()
        self._steps_at_start = self.steps
        self._checkpoint_seconds = 0.0

    def _last_episodes(self, length: int | None) -> list[tuple[float, float, float]]:
        if self.episodes == 0:
            return []
        # There may be more rows, written after the checkpoint.
        rows = read_rows(self.folder.metrics, METRIC_COLUMNS, length)
        if len(rows["episode"]) != self.episodes:
            raise InputError(f"{self.folder.metrics} is damaged: it must have {self.episodes} episodes")
        recent = (rows[name][-_RECENT:] for name in ("return", "length", "decisions"))
        return list(zip(*recent, strict=True))

    def start(self) -> None:
        """Begin writing: the run continues from here."""
        self.has_started = True
        self.stop.is_obeyed_later = True
        self._announce()
        stored = self.folder.read_config() if self.folder.is_run else None
        if stored != self.config:
            self.folder.write_config(self.config)
        self._metrics.begin()
        self._evaluations.begin()
        self._holds.begin()
        self._timing = _timing(self.folder)
        self._timing.begin()
        # Their names must be on disk before a checkpoint that relies on their rows.
        self.folder.entry.flush()
        self._events = Events(self.folder.entry, self.steps + 1 if self.is_resumed else 0)
        now = time.monotonic()
        self._began = self._saved_at = now
        # A line that changes is shown at once; permanent lines wait until there is something to say.
        self._next_report = now + (self.reporter.seconds if self.reporter.seconds > 1.0 else 0.0)
        self._plan_checkpoint(0.0)

    def _announce(self) -> None:
        """Announce what is trained, and where."""
        config = self.config
        limits = {"steps": config.steps, "episodes": config.episodes}
        lasting = " or ".join(f"{number:,} {name}" for name, number in limits.items() if number is not None)
        where = f"into {self.folder.path}"
        if self.is_resumed:
            where = f"continuing in {self.folder.path} from step {self.steps:,}, episode {self.episodes:,}"
        elif self.folder.metrics.is_there:
            where = f"starting over in {self.folder.path}, which has no checkpoint"
        held = f", {config.held}" if config.held else ""
        self.reporter.say(f"{config.label}, {config.algo}{held}, seed {config.seed}: {lasting}, {where}")

    @property
    def events(self) -> Events:
        """The event file for TensorBoard."""
        assert self._events is not None
        return self._events

    # What happens ------------------------------------------------------------------------------------------

    def episode_ended(
        self, step: int, environment: int, total: float, length: int, decisions: int, epsilon: float
    ) -> None:
        """Record one training episode."""
        self.episodes += 1
        self.steps, self.epsilon = step, epsilon
        self._metrics.append(self.episodes, step, environment, total, length, decisions, epsilon)
        self._recent.append((total, length, decisions))

    def tell_of_endless_episode(self, length: int) -> None:
        """Say once that an episode has run for so long that it may never end."""
        if length >= LONGEST_EPISODE and not self._has_told_of_endless:
            self._has_told_of_endless = True
            self.reporter.say(
                f"an episode has not ended after {length:,} steps; training continues. If it should have ended, "
                "limit its length in the environment (Gymnasium's max_episode_steps)"
            )

    def recent_means(self) -> tuple[float, float, float] | None:
        """Mean return and decisions of the last episodes, and mean steps per decision; None before the first."""
        if not self._recent:
            return None
        returns, lengths, decisions = np.array(self._recent, dtype=np.float64).T
        return float(returns.mean()), float(decisions.mean()), float(lengths.sum() / max(decisions.sum(), 1.0))

    @property
    def is_over(self) -> bool:
        """Whether the run has all its steps or episodes."""
        return self.config.is_reached(self.steps, self.episodes)

    def evaluation_is_due(self, done: int) -> bool:
        """Whether ``done`` steps or episodes have passed a multiple of the interval since the last evaluation."""
        every = self.config.eval_every
        return every > 0 and done // every > self.evaluated_at // every

    def episodes_to_evaluation(self) -> int | None:
        """Episodes until the next evaluation, if evaluations are counted in episodes; None without evaluations."""
        every = self.config.eval_every
        return (self.evaluated_at // every + 1) * every - self.episodes if every > 0 else None

    def evaluate(
        self,
        actor: Actor,
        done: int,
        policy_state: Callable[[], Mapping[str, Any]],
    ) -> Evaluation:
        """Let ``actor`` play greedy episodes, record them, and keep its policy if none was better.

        Args:
            actor: The player.
            done: Steps or episodes done, as evaluations are counted.
            policy_state: Returns the policy to keep.

        Raises:
            TrainingStopped: A signal asked to stop, and nothing was written; or ``on_evaluation`` stopped the
                training.
            EnvironmentFailedError: The environment failed.
        """
        seeds = evaluation_seeds(self.config.seed, self.n_evaluations, self.config.eval_episodes)
        when = f"in evaluation {self.n_evaluations + 1}, at step {self.steps}"
        if self._env is None:
            try:
                self._env = NamedFailures(make_scoring_env(self.config.environment, **self.config.env_kwargs))
            except InputError as error:
                # It could be made when the run began.
                raise EvaluationFailedError(str(error), when) from error
        try:
            found = evaluate(actor, self._env, seeds, self.longest, self._give_up_if_asked)
        except EnvironmentFailedError as error:
            raise EvaluationFailedError(error.what, f"{when}, {error.place}") from error
        self.n_evaluations += 1
        self.evaluated_at = done
        returns = found.returns
        mean = float(returns.mean())
        self._evaluations.append(
            self.n_evaluations,
            self.steps,
            self.episodes,
            len(returns),
            mean,
            float(returns.std()),
            float(returns.min()),
            float(returns.max()),
            float(found.lengths.mean()),
            float(found.decisions.mean()),
        )
        for held in np.flatnonzero(found.holds):
            self._holds.append(self.n_evaluations, self.steps, int(held), int(found.holds[held]))
        self.events.scalars(
            self.steps,
            {
                "eval/mean_reward": mean,
                "eval/mean_ep_length": float(found.lengths.mean()),
                "eval/decisions_mean": float(found.decisions.mean()),
            },
        )
        # Among equals, keep the later one, which has learned from more experience.
        if self.best is None or mean >= self.best:
            self.best = mean
            self.keep_policy(policy_state())
        self._tell(found, mean)
        return found

    def _tell(self, found: Evaluation, mean: float) -> None:
        if self._on_evaluation is None:
            return
        assert self.best is not None
        lengths, decisions = float(found.lengths.mean()), float(found.decisions.mean())
        told = Evaluated(self.n_evaluations, self.steps, self.episodes, mean, lengths, decisions, self.best)
        try:
            goes_on = self._on_evaluation(told) is not False
        except BaseException as error:
            # An exception here is the caller's own.
            self.told_error = error
            raise
        if not goes_on and not self.is_over:
            raise TrainingStopped

    def keep_policy(self, state: Mapping[str, Any]) -> None:
        """Store a policy as the run's best one."""
        about = {
            "environment": self.config.environment,
            "env_kwargs": self.config.env_kwargs,
            "label": self.config.label,
            "step": self.steps,
            "mean_return": self.best,
            "longest_episode": self.longest,
        }
        self.folder.write_policy({**state, "about": about})

    def _give_up_if_asked(self) -> None:
        if self.stop:
            raise TrainingStopped

    # Checkpoints -------------------------------------------------------------------------------------------

    def checkpoint_is_due(self) -> bool:
        """Whether it is time for the next checkpoint."""
        return self.config.checkpoint_every > 0.0 and time.monotonic() >= self._next_checkpoint

    def save(self, agent_state: Callable[[], Mapping[str, Any]], finished: bool = False) -> None:
        """Write a checkpoint if the run keeps any; otherwise one without the learner, once the run is finished.

        Args:
            agent_state: The learner's own state.
            finished: Whether the run is finished.
        """
        if self.config.checkpoint_every > 0.0:
            self._checkpoint(agent_state(), finished)
        elif finished:
            self._checkpoint(None, finished)

    def _checkpoint(self, agent: Mapping[str, Any] | None, finished: bool) -> None:
        began = time.monotonic()
        lengths = {
            "metrics": self._metrics.flush(),
            "evaluations": self._evaluations.flush(),
            "holds": self._holds.flush(),
        }
        run = {
            "steps": self.steps,
            "episodes": self.episodes,
            "evaluations": self.n_evaluations,
            "evaluated_at": self.evaluated_at,
            "best": self.best,
            "epsilon": self.epsilon,
            "bytes": lengths,
            "finished": finished,
        }
        self.folder.write_checkpoint(self.config.algo, {"run": run, "agent": agent}, self.config.keep_checkpoints)
        now = time.monotonic()
        self._checkpoint_seconds += now - began
        assert self._timing is not None
        self._timing.append(self.steps, self.episodes, now - self._saved_at, now - began)
        self._timing.show()
        self._saved_at = now
        self._plan_checkpoint(now - began)

    def _plan_checkpoint(self, cost: float) -> None:
        wait = max(self.config.checkpoint_every, cost / SHARE_OF_CHECKPOINTS)
        self._next_checkpoint = time.monotonic() + wait

    @property
    def seconds(self) -> float:
        """Time since the session began."""
        return time.monotonic() - self._began

    @property
    def checkpoint_seconds(self) -> float:
        """The part of that time spent on checkpoints."""
        return self._checkpoint_seconds

    @property
    def steps_of_its_own(self) -> int:
        """Steps since the session began."""
        return self.steps - self._steps_at_start

    # Progress ----------------------------------------------------------------------------------------------

    def report(self, steps: int, epsilon: float) -> None:
        """Show the progress if it is due."""
        now = time.monotonic()
        if now < self._next_report:
            return
        self._next_report = now + self.reporter.seconds
        self.reporter.show(self._progress(now, steps, epsilon))
        self._metrics.show()
        self._evaluations.show()
        self._holds.show()

    def _progress(self, now: float, steps: int, epsilon: float) -> TrainingProgress:
        fractions = []
        if self.config.steps is not None:
            fractions.append((steps / self.config.steps, f"{self.config.steps:,} steps"))
        if self.config.episodes is not None:
            fractions.append((self.episodes / self.config.episodes, f"{self.config.episodes:,} episodes"))
        fraction, of = max(fractions)
        rate, seconds_left = self._pace.mark(now, steps, fraction)
        mean_return, decisions, hold = self.recent_means() or (None, None, None)
        return TrainingProgress(
            steps=steps,
            episodes=self.episodes,
            fraction=min(fraction, 1.0),
            of=of,
            seconds_left=seconds_left,
            steps_per_second=rate,
            mean_return=mean_return,
            decisions=decisions,
            hold=hold,
            epsilon=epsilon,
        )

    def close(self) -> None:
        """Flush and close everything."""
        # On a full disk each of them may fail; the others are closed all the same.
        with ExitStack() as stack:
            opened = (self._env, self._events, self._timing, self._holds, self._evaluations, self._metrics)
            for closable in opened:
                if closable is not None:
                    stack.callback(closable.close)


def _timing(folder: RunFolder) -> Rows:
    """The file of times is only appended to: it records what happened, and is not part of the run's result."""
    found = folder.timing.status()
    if found is not None:
        with suppress(InputError, OSError):
            return Rows(folder.timing, _TIMING_COLUMNS, found.st_size)
    return Rows(folder.timing, _TIMING_COLUMNS)
