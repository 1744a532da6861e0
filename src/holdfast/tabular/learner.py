"""What all tabular learners share: arguments, seeds, results, and runs that can be stopped and continued."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.array_types import Floats
from holdfast.core.checks import check_choice, check_discount, check_integer, check_persistences, check_real
from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.history import PartialHistory, discounts
from holdfast.core.options import Option, position_within
from holdfast.core.schedules import Constant, Exponential, Schedule, tabulate
from holdfast.tabular.learning_rule import (
    HeldOption,
    LearningRule,
    Tables,
    check_depths,
    check_durations,
    check_rule,
    learn_option,
)
from holdfast.tabular.option_loop import Streams, run_episodes, run_in_python
from holdfast.tabular.policy import Policy
from holdfast.tabular.run import EpisodeOutcomes, FitResult, RunState, stream
from holdfast.tabular.simulator import FlatModel
from holdfast.tabular.world import Trainable, World, find_world, steps_in

__all__ = ["ProgressCallback", "TabularLearner", "check_epsilon", "check_holds", "check_seeds"]

ProgressCallback = Callable[[int, int], None]
"""Called with the number of finished episodes and the total number, over all seeds."""

PAPER_EPSILON = Exponential(0.99)

DEFAULT_K_MAX = 8

GREEDY_TIES = ("first", "random")

_SHARED_FIELDS = ("alpha", "powers", "persistences", "places", "ties_at_random")
"""Fields of a rule that come from a learner's arguments and its durations."""

NO_SKIPS: Floats = np.zeros((0, 0, 0))

_PROGRESS_CALLS = 50


@dataclass(kw_only=True, eq=False)
class TabularLearner(ABC):
    """A learner with one or more tables of values.

    A subclass adds its own arguments, the depth of its tables, and its rule in the form that the loops read, or
    ``learn`` if no rule says what it learns. The arguments below become part of every learner's documentation.

    Args:
        alpha: Learning rate α in (0, 1].
        gamma: Discount factor γ in [0, 1]; it takes precedence over a model's own.
        epsilon: Exploration rate: a number, or a schedule over episodes. A coin is tossed at each decision.
        initial_value: Mean of the initial values.
        initial_std: Standard deviation of the initial values; 0 draws nothing.
        step_limit: Steps after which an episode is truncated, if the environment does not do so earlier
            (default: the environment's own limit, or 100 if it has none).
        greedy_ties: How greedy episodes break ties: ``"first"`` or ``"random"``. It matters while much is
            unexplored: the first action may be a harmless one. ``act`` always takes the first.
    """

    alpha: float = 0.1
    gamma: float = 0.99
    epsilon: float | Schedule = PAPER_EPSILON
    initial_value: float = 0.0
    initial_std: float = 0.0
    step_limit: int | None = None
    greedy_ties: str = "first"

    def __init_subclass__(cls) -> None:
        """Append the arguments of all learners to the class's own documentation."""
        _, _, shared = (TabularLearner.__doc__ or "").partition("Args:\n")
        cls.__doc__ = f"{(cls.__doc__ or '').rstrip()}\n{shared}"

    def __post_init__(self) -> None:
        """Check the arguments."""
        self.alpha = check_real("alpha", self.alpha, 0.0, 1.0, open_low=True)
        self.gamma = check_discount(self.gamma)
        self.epsilon = check_epsilon(self.epsilon)
        self.initial_value = check_real("initial_value", self.initial_value)
        self.initial_std = check_real("initial_std", self.initial_std, 0.0)
        self.step_limit = None if self.step_limit is None else check_integer("step_limit", self.step_limit)
        self.greedy_ties = check_choice("greedy_ties", self.greedy_ties, GREEDY_TIES)
        self._states: list[RunState] = []
        self._firsts: list[tuple[int, int]] = []

    @property
    def ties_at_random(self) -> bool:
        """Whether greedy episodes break ties at random."""
        return self.greedy_ties == "random"

    # What a learner supplies.

    @abstractmethod
    def table_depths(self) -> Mapping[str, int]:
        """Number of persistences of each table, by the table's name: ``"q"``, and possibly ``"skip_values"``."""

    @abstractmethod
    def rule(self) -> LearningRule:
        """How the learner decides and learns."""

    @abstractmethod
    def policy_of(self, tables: Mapping[str, Floats]) -> Policy:
        """The greedy policy of ``tables``, each (S, A, K): from a run's state, or from one seed of a result."""

    def learn(self, tables: Mapping[str, Floats], option: HeldOption) -> None:
        """Change ``tables`` in place by what an option teaches that is over.

        The rule says what that is, and compiled code does the same. An agent of a user's own may replace this by
        an update that no rule says; it then learns in the Python loop.

        Args:
            tables: Those of ``table_depths`` by name, and ``"carry"``, (1,).
            option: States and action count from 0.
        """
        q, skips, carry = tables["q"], tables.get("skip_values", NO_SKIPS), tables["carry"]
        depths = {name: table.shape[-1] for name, table in tables.items()}
        learn_option(Tables(q, skips, carry), option, check_rule(self.rule(), depths, learns=True))

    @property
    def is_compiled(self) -> bool:
        """Whether its rule says all that it does, so that the compiled loop can run it."""
        return type(self).learn is TabularLearner.learn

    def make_rule(self, holds: Sequence[int], **own: Any) -> LearningRule:
        """A rule for options that last as long as these ``holds``, with the arguments that all learners share.

        ``own`` are the rule's other fields: ``updates_per_step``, ``n_valued``, ``bootstraps``, ``pad_terminal``,
        ``durations``, ``margin``, ``tolerance`` and ``decision_cost`` of ``LearningRule``.
        """
        known = LearningRule._fields[len(_SHARED_FIELDS) :]
        unknown = [name for name in own if name not in known]
        if unknown:
            raise InputError(f"make_rule has no field {unknown[0]!r}: it may be given {', '.join(known)}")
        longest = check_durations(holds)[-1]
        places = np.maximum(position_within(holds, np.arange(longest + 1)), 0)
        return LearningRule(
            self.alpha,
            discounts(self.gamma, longest),
            np.array(holds, dtype=np.int64),
            places.astype(np.int64),
            self.ties_at_random,
            **own,
        )

    # Training.

    def fit(
        self,
        env: Trainable,
        episodes: int,
        seeds: Sequence[int] = (0,),
        *,
        progress: ProgressCallback | None = None,
        loop: str = "auto",
        evaluate: bool = True,
    ) -> FitResult:
        """Train one independent run per seed; afterwards the learner holds the tables of all runs.

        Args:
            env: A TabularMDP, a Gymnasium environment with Discrete spaces, or a callable that makes one for a
                seed (such as a new map for each run).
            episodes: Number of training episodes of each run.
            seeds: Whole numbers of at least 0; the same seed gives the same run.
            progress: Called from time to time with the progress.
            loop: ``"auto"`` uses the compiled loop if the model is known, ``"compiled"`` requires it, ``"python"``
                never uses it.
            evaluate: Whether a greedy episode follows each training episode.
        """
        episodes = check_integer("episodes", episodes)
        numbers = check_seeds(seeds)
        states: list[RunState] = []
        logs, seconds, firsts = [], [], []
        for run, seed in enumerate(numbers):
            world = self._world(env, seed, loop)
            try:
                state = self._start(world, seed)
                if states and state.tables["q"].shape != states[0].tables["q"].shape:
                    raise InputError("env must have the same numbers of states and actions for every seed")
                self._advance(world, state, 0, evaluate)  # compiles now, so that the time below is the run's alone
                began = time.perf_counter()
                told = None if progress is None else _Told(progress, run * episodes, len(numbers) * episodes)
                state, log = self._advance_in_chunks(world, state, episodes, evaluate, told)
                seconds.append(time.perf_counter() - began)
            finally:
                world.close()
            logs.append(log)
            states.append(state)
            firsts.append((world.first_state, world.first_action))
        self._states, self._firsts = states, firsts
        stacked = {name: np.stack([getattr(log, name) for log in logs]) for name in EpisodeOutcomes._fields}
        tables = {name: np.stack([state.tables[name] for state in states]) for name in states[0].tables}
        return FitResult(
            seeds=numbers,
            **stacked,
            q=tables["q"],
            skip_values=tables.get("skip_values"),
            wall_seconds=np.array(seconds),
        )

    def start(self, env: Trainable, seed: int = 0, *, loop: str = "auto") -> RunState:
        """The state of a run before its first episode."""
        (seed,) = check_seeds((seed,))
        world = self._world(env, seed, loop)
        world.close()
        return self._start(world, seed)

    def advance(
        self, env: Trainable, state: RunState, episodes: int, *, loop: str = "auto", evaluate: bool = True
    ) -> tuple[RunState, EpisodeOutcomes]:
        """Train for ``episodes`` more episodes, without changing ``state`` itself.

        However a run is split into pieces, the result is the same. The learner's own tables are not touched:
        ``policy_of(state.tables)`` is the greedy policy of a state.

        Returns:
            The state afterwards, and the outcomes of the episodes.
        """
        episodes = check_integer("episodes", episodes)
        world = self._world(env, state.seed, loop)
        try:
            self._check_state(world, state)
            return self._advance(world, state.copy(), episodes, evaluate)
        finally:
            world.close()

    def run_compiled(
        self, model: FlatModel, state: RunState, epsilons: Floats, step_limit: int, log: EpisodeOutcomes
    ) -> None:
        """Advance ``state`` in place by one episode per entry of ``epsilons``, in compiled code."""
        streams = Streams(state.agent, state.environment, state.evaluation)
        run_episodes(model, _compiled_tables(state), self._checked_rule(), streams, epsilons, step_limit, log)

    # The learner's own tables, from its last run.

    def reset(self, n_states: int, n_actions: int, seed: int = 0) -> None:
        """Give the learner new tables for ``n_states`` and ``n_actions``, without training."""
        n_states, n_actions = check_integer("n_states", n_states), check_integer("n_actions", n_actions)
        self._states = [self._fresh(n_states, n_actions, None, check_seeds((seed,))[0])]
        self._firsts = [(0, 0)]

    @property
    def q(self) -> Floats:
        """(S, A, K) the learner's own values; writing into the array changes them."""
        return self._own(-1).tables["q"]

    def update(self, history: PartialHistory) -> None:
        """Learn from one history: from its steps in order, then from the option that they form.

        States and the action count from 0, whatever number the environment counts from.
        """
        state = self._own(-1)
        n_states, n_actions, _ = state.tables["q"].shape
        states = np.asarray(history.states)
        if states.ndim != 1 or not np.issubdtype(states.dtype, np.integer):
            raise InputError("history must have whole numbers as states")
        if states.min() < 0 or states.max() >= n_states or history.action >= n_actions:
            raise InputError(f"history must stay in states 0..{n_states - 1} with an action in 0..{n_actions - 1}")
        rule, tables = self._checked_rule(), _compiled_tables(state)
        longest = len(rule.powers) - 1
        learns_windows = rule.updates_per_step == 0.0 or len(tables.skip_values) > 0
        if learns_windows and history.kappa > longest:
            raise InputError(f"history must be of at most k_max = {longest} steps, not {history.kappa}")
        steps = states.astype(np.int64), history.action, np.array(history.rewards)
        self._teacher(state)(HeldOption(*steps, history.kappa, history.terminated))

    def act(self, state: int, seed_index: int = -1) -> Option:
        """The greedy option for ``state``; both are numbered as in the environment that the run was trained in."""
        policy = self.policy(seed_index)
        first_state, first_action = self._firsts[seed_index]
        last = first_state + len(policy.table) - 1
        number = check_integer("state", state, at_least=first_state)
        if number > last:
            raise InputError(f"state must be in {first_state}..{last}, not {state!r}")
        option = policy.act(number - first_state)
        return Option(option.action + first_action, option.k)

    def policy(self, seed_index: int = -1) -> Policy:
        """The greedy policy of a run, given the position of its seed (default: the last).

        Like the tables, it counts states and actions from 0; ``act`` counts as the environment does.
        """
        return self.policy_of(self._own(seed_index).tables)

    # Helpers.

    def _world(self, env: Trainable, seed: int, loop: str) -> World:
        if not self.is_compiled:
            if loop == "compiled":
                raise InputError(
                    f"loop must be 'auto' or 'python' for {type(self).__name__}, whose update is in Python",
                    "loop",
                )
            loop = "python" if loop == "auto" else loop
        return find_world(env, seed, self.gamma, self.step_limit, loop)

    def _checked_rule(self) -> LearningRule:
        """Its rule, which fits its tables."""
        return check_rule(self.rule(), check_depths(self.table_depths()), learns=self.is_compiled)

    def _teacher(self, state: RunState) -> Callable[[HeldOption], None]:
        """What changes the tables of ``state`` by an option."""
        if self.is_compiled:
            return partial(learn_option, _compiled_tables(state), rule=self._checked_rule())
        return partial(self.learn, {**state.tables, "carry": state.carry})

    def _own(self, seed_index: int) -> RunState:
        if not self._states:
            raise InputError("the learner has no values yet: call fit or reset first")
        if not -len(self._states) <= seed_index < len(self._states):
            raise InputError(f"seed_index must name one of {len(self._states)} runs, not {seed_index!r}")
        return self._states[seed_index]

    def _start(self, world: World, seed: int) -> RunState:
        return self._fresh(world.n_states, world.n_actions, world.model, seed)

    def _fresh(self, n_states: int, n_actions: int, model: FlatModel | None, seed: int) -> RunState:
        self._checked_rule()  # before anything is written that it cannot be used with
        initial = stream(seed, "initial")
        tables = {}
        for name, depth in check_depths(self.table_depths()).items():
            table = np.full((n_states, n_actions, depth), self.initial_value)
            if self.initial_std > 0.0:
                table += self.initial_std * initial.standard_normal(table.shape)
            if model is not None:
                table[model.terminal] = 0.0
            tables[name] = table
        return RunState(
            type(self).__name__,
            seed,
            0,
            tables,
            np.zeros(1),
            stream(seed, "agent"),
            stream(seed, "environment"),
            stream(seed, "evaluation"),
        )

    def _advance(
        self, world: World, state: RunState, episodes: int, evaluate: bool
    ) -> tuple[RunState, EpisodeOutcomes]:
        """Advance ``state`` in place."""
        epsilons = tabulate(self.epsilon, episodes, state.episode)
        log = EpisodeOutcomes.empty(episodes, evaluate)
        if world.compiled:
            assert world.model is not None
            self.run_compiled(world.model, state, epsilons, world.step_limit, log)
        else:
            run_in_python(
                steps_in(world, state),
                _compiled_tables(state),
                self._checked_rule(),
                state,
                epsilons,
                world.step_limit,
                log,
                self._teacher(state),
            )
        return state.after(episodes), log

    def _advance_in_chunks(
        self, world: World, state: RunState, episodes: int, evaluate: bool, told: _Told | None
    ) -> tuple[RunState, EpisodeOutcomes]:
        if told is None:
            return self._advance(world, state, episodes, evaluate)
        chunk = -(-told.total // _PROGRESS_CALLS)
        logs = []
        while state.episode < episodes:
            state, log = self._advance(world, state, min(chunk, episodes - state.episode), evaluate)
            logs.append(log)
            told.progress(told.done_before + state.episode, told.total)
        return state, EpisodeOutcomes(*(np.concatenate(parts) for parts in zip(*logs, strict=True)))

    def _check_state(self, world: World, state: RunState) -> None:
        if state.learner != type(self).__name__:
            raise InputError(f"state must be of a {type(self).__name__}, not of a {state.learner}")
        for name, depth in check_depths(self.table_depths()).items():
            needed = (world.n_states, world.n_actions, depth)
            found = state.tables[name].shape if name in state.tables else None
            if found != needed:
                raise InputError(f"state must have a table {name!r} of shape {needed} for this learner and env")


class _Told(NamedTuple):
    """The progress callback, and the numbers that it needs."""

    progress: ProgressCallback
    done_before: int
    total: int


def check_epsilon(epsilon: Any) -> Schedule:
    """Return a schedule of exploration rates; a number becomes a constant schedule."""
    if isinstance(epsilon, Schedule):
        return epsilon
    return Constant(check_real("epsilon", epsilon, 0.0, 1.0))


def check_holds(k_max: Any, persistences: Any) -> tuple[tuple[int, ...] | None, int]:
    """``persistences``, if given, and the longest hold: their last element, or else ``k_max``."""
    chosen = check_persistences("persistences", persistences)
    number = check_integer("k_max", k_max)
    if chosen is not None and number not in (DEFAULT_K_MAX, chosen[-1]):
        raise InputError(
            f"k_max must be {chosen[-1]}, the last of persistences, or be left out, not {number}",
            "k_max",
            "persistences",
        )
    return (None, number) if chosen is None else (chosen, chosen[-1])


def check_seeds(seeds: Any) -> tuple[int, ...]:
    """Return a sequence of at least one seed as a tuple of ints."""
    message = "seeds must be a sequence of at least one whole number"
    if isinstance(seeds, str | bytes):
        raise InputTypeError(f"{message}, not {seeds!r}")
    try:
        numbers = tuple(seeds)
    except TypeError:
        raise InputTypeError(f"{message}, not {seeds!r}") from None
    if not numbers:
        raise InputError(f"{message}, not an empty one")
    return tuple(check_integer("seed", seed, at_least=0) for seed in numbers)


def _compiled_tables(state: RunState) -> Tables:
    return Tables(state.tables["q"], state.tables.get("skip_values", NO_SKIPS), state.carry)
