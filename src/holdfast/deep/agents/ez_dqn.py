"""εz-greedy DQN: plain DQN whose exploratory actions are held for a random time."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import GymEnv

from holdfast.core.checks import check_choice, check_integer, check_real
from holdfast.core.durations import DURATIONS, drawn_durations, duration_distribution
from holdfast.deep.agents.arguments import completed_by, with_fixed
from holdfast.deep.agents.option_dqn import OptionDQN
from holdfast.deep.agents.option_value_dqn import OptionValueDQN
from holdfast.deep.networks.policies import OptionPolicy
from holdfast.deep.replay.ring import Views

__all__ = ["EZGreedyDQN"]

_FIXED = {"bootstrap": True, "decision_tolerance": 0.0, "interrupt_margin": None}
"""What it learns are single steps, and a greedy action is held for one."""


@final
class EZGreedyDQN(OptionValueDQN):
    """DQN with temporally extended exploration: with probability ε a random action is held for a random duration.

    A greedy action is held for one step. What is learned is Q(s,a), from single steps, as soon as they are made:
    DQN as PerDQN with ``k_max=1`` is it, in the same replay, with the same trunk and one of its heads. With
    ``k_max=1`` it *is* that, draw by draw.

    Args:
        policy: As in ``OptionDQN``, like all other arguments but those named here.
        env: Environment, VecEnv or registered id.
        k_max: Longest duration K of an exploratory action.
        durations: ``"uniform"`` over 1..K, or ``"zeta"``: p(k) ∝ k^−µ up to K.
        mu: µ above 0, for ``"zeta"``.
    """

    own_arguments: ClassVar[tuple[str, ...]] = ("durations", "mu")

    @completed_by(OptionDQN, _FIXED)
    def __init__(
        self,
        policy: str | type[OptionPolicy],
        env: GymEnv | str,
        *arguments: Any,
        k_max: int = 8,
        durations: str = "uniform",
        mu: float = 2.0,
        **keywords: Any,
    ) -> None:
        self.durations = check_choice("durations", durations, DURATIONS)
        self.mu = check_real("mu", mu, 0.0, open_low=True)
        keywords = with_fixed("EZGreedyDQN", keywords, _FIXED)
        super().__init__(policy, env, *arguments, k_max=check_integer("k_max", k_max), **keywords)

    @property
    def views(self) -> Views:
        """Single steps."""
        return Views(1)

    def _random_durations(self, n: int) -> NDArray[np.int64]:
        if self.k_max == 1:
            return np.ones(n, dtype=np.int64)
        cumulative = np.cumsum(duration_distribution(self.durations, self.k_max, self.mu))
        durations: NDArray[np.int64] = drawn_durations(np.random.random_sample(n), cumulative)  # noqa: NPY002
        return durations
