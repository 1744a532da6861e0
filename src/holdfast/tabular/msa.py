"""MSA Q-learning: every sub-transition of a held action updates only the value of its own length.

This is PerQ-learning without bootstrapping along the held action. As the paper prints it, holds that reach beyond
the end of an episode are never learned; ``pad_terminal`` learns them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_decision_cost
from holdfast.core.options import persistence_set
from holdfast.tabular.learner import DEFAULT_K_MAX, TabularLearner, check_holds
from holdfast.tabular.learning_rule import LearningRule
from holdfast.tabular.policy import GreedyPolicy, Policy

__all__ = ["MSAQLearning"]


@final
@dataclass(eq=False)
class MSAQLearning(TabularLearner):
    """Q-learning over options with multi-step sub-transitions: the ablation of PerQ-learning.

    Args:
        k_max: Largest persistence; if ``persistences`` are given, their last.
        pad_terminal: Whether a hold that ends the episode also teaches all longer ones, which would end the same
            way.
        persistences: The persistences to choose from, such as (1, 2, 4, 8), instead of all up to ``k_max``.
        decision_cost: Cost of each decision. Values are those of options that are already paid for; reported
            returns do not include the cost.
    """

    k_max: int = DEFAULT_K_MAX
    _: KW_ONLY
    pad_terminal: bool = False
    persistences: tuple[int, ...] | None = None
    decision_cost: float = 0.0

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        self.persistences, self.k_max = check_holds(self.k_max, self.persistences)
        self.decision_cost = check_decision_cost(self.decision_cost)
        self.pad_terminal = bool(self.pad_terminal)

    def table_depths(self) -> Mapping[str, int]:
        """One table with all persistences."""
        return {"q": len(persistence_set(self.k_max, self.persistences))}

    def rule(self) -> LearningRule:
        """The all-persistence update without bootstrapping."""
        durations = persistence_set(self.k_max, self.persistences)
        return self.make_rule(
            durations,
            n_valued=len(durations),
            pad_terminal=self.pad_terminal,
            decision_cost=self.decision_cost,
        )

    def policy_of(self, tables: Mapping[str, NDArray[np.float64]]) -> Policy:
        """Greedy over all options."""
        return GreedyPolicy(tables["q"], decision_cost=self.decision_cost, persistences=self.persistences)
