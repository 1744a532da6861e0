"""εz-greedy Q-learning: plain Q-learning whose exploratory actions are held for a random duration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_choice, check_integer, check_real
from holdfast.core.durations import DURATIONS, duration_distribution
from holdfast.tabular.learner import TabularLearner
from holdfast.tabular.learning_rule import LearningRule
from holdfast.tabular.policy import GreedyPolicy, Policy

__all__ = ["EZGreedyQLearning"]


@final
@dataclass(eq=False)
class EZGreedyQLearning(TabularLearner):
    """Q-learning with temporally extended exploration: a random action is held for a random duration.

    Args:
        k_max: Longest duration.
        durations: ``"uniform"`` over 1..k_max, or ``"zeta"``: proportional to k^−µ up to k_max.
        mu: Exponent µ of ``"zeta"``, above 0.
    """

    k_max: int = 8
    _: KW_ONLY
    durations: str = "uniform"
    mu: float = 2.0

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        self.k_max = check_integer("k_max", self.k_max)
        self.durations = check_choice("durations", self.durations, DURATIONS)
        self.mu = check_real("mu", self.mu, 0.0, open_low=True)

    def table_depths(self) -> Mapping[str, int]:
        """One table of primitive actions."""
        return {"q": 1}

    def rule(self) -> LearningRule:
        """The best action for one step, or a random action for a random duration; one update per step."""
        return self.make_rule(
            range(1, self.k_max + 1),
            updates_per_step=1.0,
            durations=np.cumsum(duration_distribution(self.durations, self.k_max, self.mu)),
        )

    def policy_of(self, tables: Mapping[str, NDArray[np.float64]]) -> Policy:
        """Greedy over actions."""
        return GreedyPolicy(tables["q"])
