"""From the values a network gives to an option: the rules of the agents, on tables of many states at once.

A table has the axes (state, action, ·). The last one is what the agent's network gives: for an ``OptionRule`` the
values of every persistence, for a ``SkipRule`` the action's own value and then those of every skip.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.choice import best_option, best_skip, few_decision_option, longest_skip

__all__ = ["GreedyRule", "OptionRule", "SkipRule", "Table"]

Table = NDArray[np.float32]
Choice = tuple[NDArray[np.int64], NDArray[np.int64]]


class GreedyRule(ABC):
    """How a greedy agent reads its table of values."""

    @abstractmethod
    def options(self, table: Table) -> Table:
        """The values of the options, (n, A, K)."""

    @abstractmethod
    def best(self, table: Table) -> Any:
        """What the best there is to do is worth, (n,)."""

    @abstractmethod
    def choose(self, table: Table, tolerance: float | None) -> Choice:
        """Actions and persistences, each (n,).

        Args:
            table: (n, A, ·).
            tolerance: What a longer hold may cost; None where nothing is given up for one.
        """

    @abstractmethod
    def hold(self, table: Table, actions: NDArray[np.int64], tolerance: float | None) -> NDArray[np.int64]:
        """How long to hold given ``actions`` (n,), each (n,)."""


@final
class OptionRule(GreedyRule):
    """Actions and persistences are valued together, and chosen together: argmax Q(s,·,·)."""

    def options(self, table: Table) -> Table:
        """The table."""
        return table

    def best(self, table: Table) -> Any:
        """That of the best option."""
        return table.max(axis=(1, 2))

    def choose(self, table: Table, tolerance: float | None) -> Choice:
        """The best option; with a tolerance its action's longest hold within it."""
        return best_option(table) if tolerance is None else few_decision_option(table, tolerance)

    def hold(self, table: Table, actions: NDArray[np.int64], tolerance: float | None) -> NDArray[np.int64]:
        """The best of each action's persistences, the longest of equals."""
        return longest_skip(table, actions, tolerance or 0.0)


@final
class SkipRule(GreedyRule):
    """First the action, a = argmax Q(s,·), then how long to hold it, j = argmax J(s,·|a), the longest of equals.

    An action that is held is to be dropped where max Q(s,·) is larger than what holding on is worth, J(s,m|a).
    """

    def options(self, table: Table) -> Table:
        """J(s,·|·)."""
        return table[:, :, 1:]

    def best(self, table: Table) -> Any:
        """That of the best action."""
        return table[:, :, 0].max(axis=1)

    def choose(self, table: Table, tolerance: float | None) -> Choice:
        """The best action, and the longest of its skips within the tolerance."""
        return best_skip(table[:, :, 0], self.options(table), tolerance or 0.0)

    def hold(self, table: Table, actions: NDArray[np.int64], tolerance: float | None) -> NDArray[np.int64]:
        """The longest of each action's skips within the tolerance."""
        return longest_skip(self.options(table), actions, tolerance or 0.0)
