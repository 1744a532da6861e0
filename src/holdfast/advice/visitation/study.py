"""Where random options lead: the places that they visit and what they meet there, for each longest hold K.

Before anything is learned, an agent acts at random. Holding random actions longer carries it further from the
start, up to a point. How far, and up to which K, a study finds out for any environment, at the cost of its steps.
``holdfast.advice.visitation.outcomes`` defines success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.advice.visitation.caveats import caveats_of
from holdfast.advice.visitation.cells import Cells, Visits, coverage, visits_in
from holdfast.advice.visitation.compiled_rollers import find_compiled
from holdfast.advice.visitation.explorable import (
    Explorable,
    axes_in,
    environments,
    goal_along,
    name_of,
    shared_map,
)
from holdfast.advice.visitation.outcomes import (
    ENDS,
    GoingOn,
    ends_of,
    event_rate,
    going_on,
    ratio_estimate,
    steps_to_success,
    successes,
    usual_reward,
)
from holdfast.advice.visitation.random_options import Budget, PythonRoller, Roller, RollOut, Setting
from holdfast.advice.visitation.results import Visitation, VisitationStudy
from holdfast.core.array_types import Floats, Integers
from holdfast.core.checks import check_choice, check_integer
from holdfast.core.errors import InputError, InputTypeError
from holdfast.stats.estimates import mean_estimate
from holdfast.stats.intervals import quantile_estimate, wilson_estimate
from holdfast.tabular.world import LOOPS

__all__ = [
    "STEPS_PER_SETTING",
    "UPPER_QUANTILE",
    "Explorable",
    "StudyProgress",
    "Visitation",
    "VisitationStudy",
    "study_visitation",
]


STEPS_PER_SETTING = 20_000
"""Default number of steps for each setting."""

UPPER_QUANTILE = 0.9
"""The quantile of the returns that shows how good the better episodes are."""


class StudyProgress(NamedTuple):
    """The progress of a study.

    Attributes:
        fraction: Share of the work that is done, in [0, 1].
        setting: The setting being played.
        episodes: Finished episodes of that setting.
        steps: Finished steps of that setting.
    """

    fraction: float
    setting: Setting
    episodes: int
    steps: int


def study_visitation(
    env: Explorable,
    k_values: Sequence[int],
    *,
    modes: Sequence[str] = ("dynamic",),
    episodes: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    axes: tuple[int, int] | str | None = None,
    loop: str = "auto",
    progress: Callable[[StudyProgress], None] | None = None,
) -> VisitationStudy:
    """Play random options and count where they lead.

    At each decision an action is drawn from the action space (uniformly, if the space is bounded) and held until k
    steps are done or the episode ends. Episode i has the same reset seed in every setting.

    Args:
        env: A name for ``make_env``, an environment, a callable that makes one, or several environments with the
            same spaces that take turns. Environments that are made here are also closed here.
        k_values: The K to study, each once.
        modes: ``"dynamic"``, k uniform in 1..K, or ``"fixed"``, always K, or both.
        episodes: Number of episodes of each setting.
        steps: Instead of ``episodes``: play whole episodes of each setting until they have this many steps
            (default: 20,000).
        seed: Random seed; the same seed gives the same study, bit for bit.
        axes: Two numbers of observations that are vectors or dictionaries of vectors, or their names separated by
            a comma (default: the two along which the settings differ most in how evenly they spread, for up to 32
            numbers).
        loop: ``"auto"`` uses compiled code if the result is exactly the same; ``"python"`` never does;
            ``"compiled"`` rejects other environments.
        progress: Called now and then with the study's progress; may raise to stop the study.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.
        EnvironmentFailedError: The environment raised an exception or returned NaN or infinity.
    """
    settings = _settings(k_values, modes)
    budget = _budget(episodes, steps)
    seed = check_integer("seed", seed, at_least=0)
    check_choice("loop", loop, LOOPS)
    with ExitStack() as stack:
        envs = environments(env, stack)
        roller = find_compiled(envs[0], seed) if len(envs) == 1 and loop != "python" else None
        if roller is None and loop == "compiled":
            raise InputError(
                "loop must be 'auto' or 'python' here: only MountainCar and grids without slips can be compiled, "
                "one at a time and in no wrapper that may change them"
            )
        visits = visits_in(envs[0], len(settings), axes_in(envs[0], axes), keep=roller is None)
        player: Roller = PythonRoller(envs, visits.encode, seed) if roller is None else roller
        watched = _Watched(player, settings, 2 if visits.asks_again else 1, budget, progress)
        records = _play_all(watched, settings, visits)
        cells = visits.cells(watched.observations if visits.asks_again else None)
        reference = _reference(settings)
        usual, onward, results = _summary(records, reference, cells)
        grid = shared_map(envs) if cells.kind == "states" else None
        return VisitationStudy(
            env_name=name_of(env, envs[0]),
            seed=seed,
            budget=budget,
            loop="python" if roller is None else "compiled",
            reference=reference,
            usual_reward=usual,
            going_on=onward,
            results=results,
            cells=cells,
            grid=grid,
            goal=goal_along(cells.axes, envs[0]),
            notes=caveats_of(cells, grid, usual, results, budget.longest_episode),
        )


@dataclass(eq=False)
class _Record:
    """The episodes of one setting, collected as they are played."""

    setting: Setting
    parts: list[tuple[Floats, Floats, Floats, NDArray[np.bool_], Integers, Integers, NDArray[np.bool_]]]
    going_on: list[Floats]
    rewards: list[Floats]

    def add(self, played: RollOut, with_rewards: bool) -> None:
        self.parts.append(
            (
                played.returns,
                played.best_rewards,
                played.last_rewards,
                played.terminated,
                played.lengths,
                played.decisions,
                played.cut_off,
            )
        )
        if with_rewards:
            self.rewards.append(played.rewards)
            self.going_on.append(played.rewards_of_going_on)

    def joined(self) -> tuple[NDArray[Any], ...]:
        return tuple(np.concatenate(column) for column in zip(*self.parts, strict=True))


class _Watched:
    """A roller that plays every setting a number of times and reports its progress."""

    def __init__(
        self,
        roller: Roller,
        settings: Sequence[Setting],
        times: int,
        budget: Budget,
        progress: Callable[[StudyProgress], None] | None,
    ) -> None:
        self._roller = roller
        self._settings = settings
        self._budget = budget
        self._progress = progress
        self._done = 0
        self._rounds = len(settings) * times

    def roll(self, setting: Setting) -> Iterator[RollOut]:
        episodes = steps = 0
        for played in self._roller.roll(setting, self._budget):
            episodes, steps = episodes + len(played.lengths), steps + int(played.lengths.sum())
            if self._progress is not None:
                within = self._budget.fraction(episodes, steps)
                self._progress(StudyProgress((self._done + within) / self._rounds, setting, episodes, steps))
            yield played
        self._done += 1

    def observations(self, number: int) -> Iterator[NDArray[Any]]:
        for played in self.roll(self._settings[number]):
            yield played.observations


def _play_all(watched: _Watched, settings: Sequence[Setting], visits: Visits) -> list[_Record]:
    reference, records = _reference(settings), []
    for number, setting in enumerate(settings):
        record = _Record(setting, [], [], [])
        for played in watched.roll(setting):
            record.add(played, with_rewards=setting == reference)
            visits.add(number, played.observations)
        records.append(record)
    return records


def _summary(
    records: Sequence[_Record], reference: Setting, cells: Cells
) -> tuple[float | None, GoingOn, tuple[Visitation, ...]]:
    """The usual reward, what going on gives, and the results of all settings."""
    (compared_with,) = [record for record in records if record.setting == reference]
    usual = usual_reward(np.concatenate(compared_with.rewards))
    onward = going_on(np.concatenate(compared_with.going_on))
    typical = float(np.median(compared_with.joined()[0]))
    columns = [record.joined() for record in records]
    # If going on is rewarded and nothing was ever better, there is nothing to succeed at.
    goal = (
        usual
        if usual is not None and (usual <= 0.0 or any((best > usual).any() for _, best, *_ in columns))
        else None
    )
    visited, share = coverage(cells.counts)
    all_ends = [ends_of(onward, last, terminated) for _, _, last, terminated, *_ in columns]
    better, alike, worse = (ENDS.index(name) for name in ("better", "alike", "worse"))
    # Even if rewards differ at every step, an end may stand out.
    ends_stand_out = usual is None and any((ends == better).any() for ends in all_ends)
    results = []
    for number, (returns, best, last, terminated, lengths, decisions, cut_off) in enumerate(columns):
        n, ends = len(returns), all_ends[number]
        succeeded = successes(goal, best, last, terminated) if goal is not None else ends == better
        is_defined = goal is not None or ends_stand_out
        success = wilson_estimate(int(succeeded.sum()), n) if is_defined else None
        # If going on is rewarded, an end that gives the same as going on is not one to be sought.
        failed = (ends == worse) | ((ends == alike) & (onward.mean > 0.0))
        results.append(
            Visitation(
                *records[number].setting,
                episodes=n,
                steps=int(lengths.sum()),
                decisions=int(decisions.sum()),
                cut_off=int(cut_off.sum()),
                returns=returns,
                lengths=lengths,
                mean_return=mean_estimate(returns),
                upper_return=quantile_estimate(returns, UPPER_QUANTILE),
                mean_length=mean_estimate(lengths.astype(np.float64)),
                reward_per_step=ratio_estimate(returns, lengths),
                ends={name: wilson_estimate(int((ends == place).sum()), n) for place, name in enumerate(ENDS)},
                successes_per_step=event_rate(succeeded, lengths) if is_defined else None,
                failures_per_step=event_rate(failed & ~succeeded, lengths),
                beats_typical=wilson_estimate(int((returns > typical).sum()), n),
                terminated=wilson_estimate(int(terminated.sum()), n),
                success=success,
                steps_to_success=None if success is None else steps_to_success(success, lengths),
                counts=cells.counts[number],
                visited=int(visited[number]),
                coverage=float(share[number]),
            )
        )
    return usual, onward, tuple(results)


def _settings(k_values: Sequence[int], modes: Sequence[str]) -> list[Setting]:
    for name, given in (("k_values", k_values), ("modes", modes)):
        if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or len(given) == 0:
            raise InputTypeError(f"{name} must be a list of at least one, not {given!r}")
    settings = [Setting.checked(k_max, mode) for mode in modes for k_max in k_values]
    if len(set(settings)) < len(settings):
        raise InputError("k_values and modes must have each value once")
    return settings


def _budget(episodes: int | None, steps: int | None) -> Budget:
    if episodes is not None and steps is not None:
        raise InputError("steps must not be given together with episodes: only one of them is the budget")
    if episodes is not None:
        return Budget(check_integer("episodes", episodes), "episodes")
    return Budget(STEPS_PER_SETTING if steps is None else check_integer("steps", steps), "steps")


def _reference(settings: Sequence[Setting]) -> Setting:
    """The setting with the smallest K; ties go to the first."""
    return min(settings, key=lambda setting: setting.k_max)
