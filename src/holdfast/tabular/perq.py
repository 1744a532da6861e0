"""PerQ-learning: however long an action was held, learn the values of holding it for every number of steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_choice, check_decision_cost, check_real
from holdfast.core.durations import EXPLORATIONS
from holdfast.core.options import persistence_set
from holdfast.core.targets import STATE_VALUES, check_priced_target
from holdfast.tabular.learner import DEFAULT_K_MAX, TabularLearner, check_holds
from holdfast.tabular.learning_rule import NO_DURATIONS, LearningRule
from holdfast.tabular.policy import GreedyPolicy, Policy, check_margin

__all__ = ["PerQLearning"]


@final
@dataclass(eq=False)
class PerQLearning(TabularLearner):
    """Persistent Q-learning: Q(s,a,k) for every action a and every number of steps k to hold it.

    Paper: Algorithm alg:PerQ

    Args:
        k_max: Largest persistence; with 1 this is Q-learning. If ``persistences`` are given, it must be left at
            its default or be their last.
        target_value: How V(s') is read: over all ``"options"``, or over ``"primitive"`` actions alone.
        interrupt_margin: Cut a greedy option if another option beats holding on by more than this; None never
            cuts. Exploratory options are never cut. Must be at least ``decision_cost``, the margin at which
            cutting begins to pay.
        decision_tolerance: In greedy episodes and in ``act``, hold the best action as long as its value stays this
            close to the best; None takes the best option, the first if there is a tie.
        exploration: What a random decision draws from: all ``"options"``, or ``"primitive"`` actions, which last
            one step. The latter does not change the update; it only removes held exploration.
        persistences: The persistences to choose from, such as (1, 2, 4, 8), instead of all up to ``k_max``.
        decision_cost: Cost of each decision. Values are those of options that are already paid for; reported
            returns do not include the cost.
    """

    k_max: int = DEFAULT_K_MAX
    _: KW_ONLY
    target_value: str = "options"
    interrupt_margin: float | None = None
    decision_tolerance: float | None = None
    exploration: str = "options"
    persistences: tuple[int, ...] | None = None
    decision_cost: float = 0.0

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        self.persistences, self.k_max = check_holds(self.k_max, self.persistences)
        self.decision_cost = check_decision_cost(self.decision_cost)
        self.target_value = check_choice("target_value", self.target_value, STATE_VALUES)
        self.interrupt_margin = _check_allowance("interrupt_margin", self.interrupt_margin)
        self.decision_tolerance = _check_allowance("decision_tolerance", self.decision_tolerance)
        self.exploration = check_choice("exploration", self.exploration, EXPLORATIONS)
        check_margin(self.interrupt_margin, self.decision_tolerance, self.decision_cost)
        check_priced_target(self.target_value, self.decision_cost)

    def table_depths(self) -> Mapping[str, int]:
        """One table with all persistences."""
        return {"q": len(persistence_set(self.k_max, self.persistences))}

    def rule(self) -> LearningRule:
        """ε-greedy options and the all-persistence update."""
        durations = persistence_set(self.k_max, self.persistences)
        return self.make_rule(
            durations,
            n_valued={"options": len(durations), "primitive": 1}[self.target_value],
            bootstraps=True,
            durations=np.ones(1) if self.exploration == "primitive" else NO_DURATIONS,
            decision_cost=self.decision_cost,
            margin=math.inf if self.interrupt_margin is None else self.interrupt_margin,
            tolerance=-1.0 if self.decision_tolerance is None else self.decision_tolerance,
        )

    def policy_of(self, tables: Mapping[str, NDArray[np.float64]]) -> Policy:
        """Greedy over all options."""
        return GreedyPolicy(
            tables["q"], self.decision_tolerance, self.interrupt_margin, self.decision_cost, self.persistences
        )


def _check_allowance(name: str, value: float | None) -> float | None:
    return None if value is None else check_real(name, value, 0.0)
