"""Greedy policies read off value tables: for a state the option, and the values behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_integer
from holdfast.core.choice import Decision, best_option, best_skip, few_decision_option
from holdfast.core.clock import is_interrupted
from holdfast.core.errors import InputError
from holdfast.core.options import Option, persistence_index, persistence_set, position_within

__all__ = ["GreedyPolicy", "Policy", "SkipPolicy", "check_margin"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
States = int | slice | Integers

ALL = slice(None)


def check_margin(
    interrupt_margin: float | None, decision_tolerance: float | None, decision_cost: float = 0.0
) -> None:
    """Say that the margin must not be less than the tolerance, where there are both, nor than the cost."""
    if interrupt_margin is None:
        return
    if decision_tolerance is not None and interrupt_margin < decision_tolerance:
        raise InputError(
            f"interrupt_margin must be at least decision_tolerance, which is {decision_tolerance:g}, not "
            f"{interrupt_margin:g}: a hold would be dropped as soon as it is chosen",
            "interrupt_margin",
            "decision_tolerance",
        )
    if interrupt_margin < decision_cost:
        raise InputError(
            f"interrupt_margin must be at least decision_cost, which is {decision_cost:g}, not "
            f"{interrupt_margin:g}: to drop a hold costs a decision",
            "interrupt_margin",
            "decision_cost",
        )


class Policy(ABC):
    """A deterministic choice of one option per state."""

    @property
    @abstractmethod
    def table(self) -> Floats:
        """(S, A, K) the values of the options."""

    @property
    def durations(self) -> Integers:
        """(K,) the persistences that the values are of."""
        return np.arange(1, self.table.shape[2] + 1)

    @abstractmethod
    def options(self, states: States = ALL) -> tuple[Integers, Integers]:
        """The options of ``states``, of all unless told: actions and persistences, each of their shape."""

    @abstractmethod
    def interrupts(self, state: int, option: Option) -> bool:
        """Whether the policy, having reached ``state`` with ``option`` still to be held, decides anew."""

    def decide(self, state: int) -> Decision:
        """What to do in ``state``, for how long, and the values of all options there."""
        state = self._check(state)
        action, hold = self.options(state)
        return Decision(int(action), int(hold), self.table[state].copy())

    def act(self, state: int) -> Option:
        """The option for ``state``."""
        action, hold, _ = self.decide(state)
        return Option(action, hold)

    def _check(self, state: int) -> int:
        number = check_integer("state", state, at_least=0)
        if number >= len(self.table):
            raise InputError(f"state must be in 0..{len(self.table) - 1}, not {state!r}")
        return number


@final
@dataclass(frozen=True, slots=True, eq=False)
class GreedyPolicy(Policy):
    """The option of largest value, the first of equals.

    Args:
        q: (S, A, K) values.
        decision_tolerance: Hold the best action as long as its value stays this close to the best.
        interrupt_margin: Drop a held option where another is better than holding on by more than this; not less
            than the tolerance, nor than the cost.
        decision_cost: What each decision costs, beside the values.
        persistences: The K durations that the values are of; 1..K by default.
    """

    q: Floats
    decision_tolerance: float | None = None
    interrupt_margin: float | None = None
    decision_cost: float = 0.0
    persistences: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Check that no option is cut for the length it was chosen for."""
        check_margin(self.interrupt_margin, self.decision_tolerance, self.decision_cost)

    @property
    def durations(self) -> Integers:
        """(K,) the persistences that the values are of."""
        return np.array(persistence_set(self.q.shape[2], self.persistences))

    @property
    def table(self) -> Floats:
        """(S, A, K) the values."""
        return self.q

    def options(self, states: States = ALL) -> tuple[Integers, Integers]:
        """The options of ``states``, of all unless told: actions and persistences, each of their shape."""
        if self.decision_tolerance is None:
            actions, counted = best_option(self.q[states])
        else:
            actions, counted = few_decision_option(self.q[states], self.decision_tolerance)
        return actions, self.durations[persistence_index(counted)]

    def interrupts(self, state: int, option: Option) -> bool:
        """Whether some option in ``state`` beats holding on to ``option`` by more than the margin."""
        if self.interrupt_margin is None:
            return False
        values = self.q[self._check(state)]
        # Of a sparse set, what is left goes by the longest of the set that is no longer.
        held = values[option.action, position_within(self.durations, option.k)]
        return bool(is_interrupted(values.max(), held, self.interrupt_margin))


@final
@dataclass(frozen=True, slots=True, eq=False)
class SkipPolicy(Policy):
    """The action of largest value, then its skip of largest value, the longest of equals: TempoRL's choice.

    Args:
        q: (S, A) or (S, A, 1) values of the actions.
        skip_values: (S, A, K) values of holding each action for each number of steps.
    """

    q: Floats
    skip_values: Floats

    @property
    def table(self) -> Floats:
        """(S, A, K) the skip values."""
        return self.skip_values

    def options(self, states: States = ALL) -> tuple[Integers, Integers]:
        """The options of ``states``, of all unless told: actions and persistences, each of their shape."""
        return best_skip(self.q.reshape(self.skip_values.shape[:2])[states], self.skip_values[states])

    def interrupts(self, state: int, option: Option) -> bool:
        """Never: a skip is carried out as it was chosen."""
        return False
