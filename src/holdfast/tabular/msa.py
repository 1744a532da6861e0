"""MSA Q-learning: every sub-transition of a held action updates the value of its own length, and nothing else.

This is PerQ-learning without bootstrapping along the held action. As the paper prints it, lengths beyond the end
of an episode are never learned; ``pad_terminal`` learns them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_integer
from holdfast.tabular.learner import TabularLearner
from holdfast.tabular.learning_rule import LearningRule
from holdfast.tabular.policy import GreedyPolicy, Policy

__all__ = ["MSAQLearning"]


@final
@dataclass(eq=False)
class MSAQLearning(TabularLearner):
    """Q-learning over options with multi-step sub-transitions, the ablation of PerQ-learning.

    Args:
        k_max: Largest persistence.
        pad_terminal: Whether a hold that ends the episode also teaches all longer ones, which end it alike.
    """

    k_max: int = 8
    _: KW_ONLY
    pad_terminal: bool = False

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        self.k_max = check_integer("k_max", self.k_max)
        self.pad_terminal = bool(self.pad_terminal)

    def table_depths(self) -> Mapping[str, int]:
        """One table with all persistences."""
        return {"q": self.k_max}

    def rule(self) -> LearningRule:
        """The all-persistence update without its bootstrap."""
        return self.make_rule(self.k_max, n_valued=self.k_max, pad_terminal=self.pad_terminal)

    def policy_of(self, tables: Mapping[str, NDArray[np.float64]]) -> Policy:
        """Greedy over all options."""
        return GreedyPolicy(tables["q"])
