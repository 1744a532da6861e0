"""εz-greedy DQN: plain DQN whose exploratory actions are held for a random time."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.durations import DURATIONS, drawn_durations, duration_distribution
from holdfast.deep.agents.per_dqn import OptionValueDQN
from holdfast.deep.arguments import Argument, choice, integer, real
from holdfast.deep.replay.views import Views

__all__ = ["EZGreedyDQN"]


@final
class EZGreedyDQN(OptionValueDQN):
    """DQN with temporally extended exploration: with probability ε a random action is held for a random duration.

    A greedy action is held for one step. Q(s,a) is learned from single steps as soon as they are made: the update
    is that of PerDQN with ``k_max=1``, with the same replay and trunk and one head. With ``k_max=1`` it *is* that
    agent, draw by draw.
    """

    stands_for: ClassVar[dict[str, Any]] = {
        "bootstrap": True,
        "decision_cost": 0.0,
        "decision_tolerance": 0.0,
        "interrupt_margin": None,
        "persistences": None,
    }
    added_arguments: ClassVar[tuple[Argument, ...]] = (
        Argument("k_max", 8, "int", "Longest duration K of an exploratory action.", integer(), in_replay="k_max"),
        Argument(
            "durations",
            "uniform",
            "str",
            '``"uniform"`` over 1..K, or ``"zeta"``: p(k) ∝ k^−µ up to K.',
            choice(DURATIONS),
        ),
        Argument("mu", 2.0, "float", 'µ above 0, for ``"zeta"``.', real(0.0, open_low=True)),
    )
    durations: str
    mu: float

    @property
    def views(self) -> Views:
        """Single steps."""
        return Views(1, shared_draws=self.shared_draws)

    def _mean_random_hold(self) -> float:
        chances = duration_distribution(self.durations, self.k_max, self.mu)
        return float(chances @ np.arange(1, self.k_max + 1))

    def _random_durations(self, n: int) -> NDArray[np.int64]:
        if self.k_max == 1:
            return np.ones(n, dtype=np.int64)
        cumulative = np.cumsum(duration_distribution(self.durations, self.k_max, self.mu))
        durations: NDArray[np.int64] = drawn_durations(np.random.random_sample(n), cumulative)  # noqa: NPY002
        return durations
