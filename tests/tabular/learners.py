"""One of every learner, and of every setting that takes another way through the loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from holdfast.tabular import (
    EZGreedyQLearning,
    MSAQLearning,
    PerQLearning,
    QLearning,
    TabularLearner,
    TempoRLQLearning,
)

LEARNERS: dict[str, Callable[..., TabularLearner]] = {
    "q": QLearning,
    "q, 2.6 updates": partial(QLearning, updates_per_step=2.6),
    "q, random ties": partial(QLearning, greedy_ties="random"),
    "perq": partial(PerQLearning, 5),
    "perq, primitive": partial(PerQLearning, 5, target_value="primitive"),
    "perq, interrupted": partial(PerQLearning, 5, interrupt_margin=0.01),
    "perq, few decisions": partial(PerQLearning, 5, decision_tolerance=0.02, greedy_ties="random"),
    "perq, one-step exploration": partial(PerQLearning, 5, exploration="primitive"),
    "perq, sparse": partial(PerQLearning, persistences=(1, 2, 5)),
    "perq, cost": partial(PerQLearning, 5, decision_cost=0.02, interrupt_margin=0.02),
    "msa": partial(MSAQLearning, 5),
    "msa, padded": partial(MSAQLearning, 5, pad_terminal=True),
    "msa, sparse and cost": partial(MSAQLearning, persistences=(1, 2, 5), decision_cost=0.02, pad_terminal=True),
    "temporl": partial(TempoRLQLearning, 5, greedy_ties="random"),
    "temporl, unpadded": partial(TempoRLQLearning, 5, pad_terminal=False),
    "ez": partial(EZGreedyQLearning, 5),
    "ez, zeta": partial(EZGreedyQLearning, 5, durations="zeta"),
}
