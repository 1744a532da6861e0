"""TempoRL: choose an action by its value, then the number of steps to hold it by a second table of skip values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_integer
from holdfast.tabular.learner import TabularLearner
from holdfast.tabular.learning_rule import LearningRule
from holdfast.tabular.policy import Policy, SkipPolicy

__all__ = ["TempoRLQLearning"]


@final
@dataclass(eq=False)
class TempoRLQLearning(TabularLearner):
    """TempoRL's tabular learner: action values Q(s,a) and skip values J(s,k|a).

    The action and the skip each have their own coin. The greedy skip is the longest of the best, whatever
    ``greedy_ties`` says about actions.

    Args:
        k_max: Longest skip.
        pad_terminal: Whether a skip that ends the episode also teaches all longer ones, which would end the same
            way.
    """

    k_max: int = 8
    _: KW_ONLY
    pad_terminal: bool = True

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        self.k_max = check_integer("k_max", self.k_max)
        self.pad_terminal = bool(self.pad_terminal)

    def table_depths(self) -> Mapping[str, int]:
        """Actions for one step, and skips."""
        return {"q": 1, "skip_values": self.k_max}

    def rule(self) -> LearningRule:
        """One update of the action values per step, then one of the skip values per sub-transition."""
        return self.make_rule(range(1, self.k_max + 1), updates_per_step=1.0, pad_terminal=self.pad_terminal)

    def policy_of(self, tables: Mapping[str, NDArray[np.float64]]) -> Policy:
        """Greedy over actions, then over skips."""
        return SkipPolicy(tables["q"], tables["skip_values"])
