"""From the values a network gives to an option: what a rule answers, on tables of many states at once.

A table has the axes (state, action, ·). The last one is what the agent's network gives: for an ``OptionRule`` the
values of every persistence, for a ``SkipRule`` the action's own value and then those of every skip. Each rule
stands beside the network whose table it reads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Choice", "GreedyRule", "ValueTable"]

ValueTable = NDArray[np.float32]
Choice = tuple[NDArray[np.int64], NDArray[np.int64]]


class GreedyRule(ABC):
    """How a greedy agent reads its table of values."""

    @abstractmethod
    def options(self, table: ValueTable) -> ValueTable:
        """The values of the options, (n, A, K)."""

    @abstractmethod
    def best(self, table: ValueTable) -> Any:
        """What the best there is to do is worth, (n,)."""

    @abstractmethod
    def choose(self, table: ValueTable, tolerance: float | None) -> Choice:
        """Actions, and positions of their persistences counted from 1, each (n,).

        The position is the persistence itself, unless the set of persistences is sparse.

        Args:
            table: (n, A, ·).
            tolerance: What a longer hold may cost; None where nothing is given up for one.
        """

    @abstractmethod
    def hold(self, table: ValueTable, actions: NDArray[np.int64], tolerance: float | None) -> NDArray[np.int64]:
        """How long to hold given ``actions`` (n,): positions of persistences counted from 1, each (n,)."""
