"""Greedy policies read off value tables: the option for each state, and the values behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from holdfast.core.array_types import Floats, Integers
from holdfast.core.checks import check_integer
from holdfast.core.choice import Decision, best_option, best_skip, few_decision_option
from holdfast.core.clock import is_interrupted
from holdfast.core.errors import InputError
from holdfast.core.options import Option, persistence_index, persistence_set, position_within

__all__ = ["GreedyPolicy", "Policy", "SkipPolicy", "check_margin"]

States = int | slice | Integers

ALL = slice(None)


def check_margin(
    interrupt_margin: float | None, decision_tolerance: float | None, decision_cost: float = 0.0
) -> None:
    """Check that the margin is at least the tolerance, if there is one, and at least the cost."""
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
            f"{interrupt_margin:g}: dropping a hold costs a decision",
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
        """(K,) the persistences that the values belong to."""
        return np.arange(1, self.table.shape[2] + 1)

    @abstractmethod
    def options(self, states: States = ALL) -> tuple[Integers, Integers]:
        """The options of ``states`` (default: all): actions and persistences, each of the shape of ``states``."""

    @abstractmethod
    def interrupts(self, state: int, option: Option) -> bool:
        """Whether the policy decides anew in ``state``, with ``option`` still to be held."""

    def decide(self, state: int) -> Decision:
        """The action for ``state``, how long to hold it, and the values of all options there."""
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
    """The option with the largest value; ties go to the first.

    Args:
        q: (S, A, K) values.
        decision_tolerance: Hold the best action as long as its value stays this close to the best.
        interrupt_margin: Drop a held option if another beats holding on by more than this; at least the tolerance
            and at least the cost.
        decision_cost: Cost of each decision, not included in the values.
        persistences: The K durations that the values belong to (default: 1..K).
    """

    q: Floats
    decision_tolerance: float | None = None
    interrupt_margin: float | None = None
    decision_cost: float = 0.0
    persistences: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Check that no option is cut because of the length it was chosen for."""
        check_margin(self.interrupt_margin, self.decision_tolerance, self.decision_cost)

    @property
    def durations(self) -> Integers:
        """(K,) the persistences that the values belong to."""
        return np.array(persistence_set(self.q.shape[2], self.persistences))

    @property
    def table(self) -> Floats:
        """(S, A, K) the values."""
        return self.q

    def options(self, states: States = ALL) -> tuple[Integers, Integers]:
        """The options of ``states`` (default: all): actions and persistences, each of the shape of ``states``."""
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
        # With a sparse set, the value of the rest is that of the longest persistence that is not longer.
        held = values[option.action, position_within(self.durations, option.k)]
        return bool(is_interrupted(values.max(), held, self.interrupt_margin))


@final
@dataclass(frozen=True, slots=True, eq=False)
class SkipPolicy(Policy):
    """TempoRL's choice: the action with the largest value, then its best skip; ties go to the longest skip.

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
        """The options of ``states`` (default: all): actions and persistences, each of the shape of ``states``."""
        return best_skip(self.q.reshape(self.skip_values.shape[:2])[states], self.skip_values[states])

    def interrupts(self, state: int, option: Option) -> bool:
        """Never: a skip is always completed."""
        return False
