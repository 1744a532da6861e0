"""Q-learning, with one or more updates per step: the baseline for the other learners of this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_real
from holdfast.tabular.learner import TabularLearner
from holdfast.tabular.learning_rule import LearningRule
from holdfast.tabular.policy import GreedyPolicy, Policy

__all__ = ["QLearning"]

MOST_UPDATES = 1e6
"""Largest number of updates per step; more must be a mistake, because the loop would seem to hang."""


@final
@dataclass(kw_only=True, eq=False)
class QLearning(TabularLearner):
    """Q-learning: Q(s,a), with a decision at every step.

    Args:
        updates_per_step: Number of updates from each step, 1 to a million; fractions are carried over.
            ``equal_updates_per_step`` gives the number that PerQ-learning would make if κ were uniform.
    """

    updates_per_step: float = 1.0

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        self.updates_per_step = check_real("updates_per_step", self.updates_per_step, 1.0, MOST_UPDATES)

    def table_depths(self) -> Mapping[str, int]:
        """One table of primitive actions."""
        return {"q": 1}

    def rule(self) -> LearningRule:
        """ε-greedy actions of one step each, with ``updates_per_step`` updates."""
        return self.make_rule((1,), updates_per_step=self.updates_per_step)

    def policy_of(self, tables: Mapping[str, NDArray[np.float64]]) -> Policy:
        """Greedy over actions."""
        return GreedyPolicy(tables["q"])
