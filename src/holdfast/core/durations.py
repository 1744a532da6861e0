"""How long exploratory actions are held, the distributions of εz-greedy over 1..K, and how often they begin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.core.checks import check_choice, check_integer
from holdfast.core.options import duration_at

__all__ = ["DURATIONS", "drawn_durations", "duration_distribution", "option_epsilon"]

DURATIONS = ("uniform", "zeta")


def duration_distribution(kind: str, k_max: int, mu: float = 2.0) -> NDArray[np.float64]:
    """Probabilities of the durations 1..k_max: all equal, or falling as k^−µ.

    The zeta distribution of εz-greedy has no longest duration; here it ends at k_max.

    Args:
        kind: One of ``DURATIONS``.
        k_max: Longest duration.
        mu: µ of ``"zeta"``.
    """
    k = np.arange(1, check_integer("k_max", k_max) + 1, dtype=np.float64)
    weights = np.ones_like(k) if check_choice("durations", kind, DURATIONS) == "uniform" else k**-mu
    return np.asarray(weights / weights.sum())


def drawn_durations(draws: ArrayLike, cumulative: NDArray[np.floating]) -> Any:
    """Durations from uniform ``draws`` from [0, 1): the first k whose cumulative probability lies above.

    Args:
        draws: Of any shape.
        cumulative: (K,) sums of the probabilities of 1..k; rounding may leave the last a little below 1.
    """
    return duration_at(np.minimum(np.searchsorted(cumulative, draws, side="right"), len(cumulative) - 1))


def option_epsilon(epsilon: float, random_hold: float, greedy_hold: float) -> float:
    """The chance of a random option with which a share ``epsilon`` of all *steps* is random.

    Of options that are random with chance e, the steps are with e·m / (e·m + (1−e)·h), where random options last m
    steps and greedy ones h. Solved for e.

    Args:
        epsilon: Share of steps.
        random_hold: m.
        greedy_hold: h.
    """
    if random_hold == greedy_hold:
        return epsilon
    return epsilon * greedy_hold / (epsilon * greedy_hold + (1.0 - epsilon) * random_hold)
