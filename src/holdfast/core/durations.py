"""How long exploratory actions are held (εz-greedy's distributions over 1..K), and how often they begin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.core.checks import check_choice, check_integer
from holdfast.core.options import duration_at

__all__ = ["DURATIONS", "EXPLORATIONS", "drawn_durations", "duration_distribution", "option_epsilon"]

DURATIONS = ("uniform", "zeta")
"""How εz-greedy draws the duration of a random action."""

EXPLORATIONS = ("options", "primitive")
"""What a random decision draws from: all options, or actions held for one step."""


def duration_distribution(kind: str, k_max: int, mu: float = 2.0) -> NDArray[np.float64]:
    """Probabilities of the durations 1..k_max: all equal, or proportional to k^−µ.

    The zeta distribution of εz-greedy has no longest duration; here it is cut off at k_max.

    Args:
        kind: One of ``DURATIONS``.
        k_max: Longest duration.
        mu: Exponent µ of ``"zeta"``.
    """
    k = np.arange(1, check_integer("k_max", k_max) + 1, dtype=np.float64)
    weights = np.ones_like(k) if check_choice("durations", kind, DURATIONS) == "uniform" else k**-mu
    return np.asarray(weights / weights.sum())


def drawn_durations(draws: ArrayLike, cumulative: NDArray[np.floating]) -> Any:
    """Durations from uniform ``draws`` in [0, 1): the first k whose cumulative probability exceeds the draw.

    Args:
        draws: An array of any shape.
        cumulative: (K,) cumulative probabilities of 1..k; rounding may leave the last slightly below 1.
    """
    return duration_at(np.minimum(np.searchsorted(cumulative, draws, side="right"), len(cumulative) - 1))


def option_epsilon(epsilon: float, random_hold: float, greedy_hold: float) -> float:
    """The probability of a random option that makes a share ``epsilon`` of all *steps* random.

    If each option is random with probability e, and random options last m steps and greedy ones h, the share of
    random steps is e·m / (e·m + (1−e)·h). This function solves for e.

    Args:
        epsilon: Share of random steps.
        random_hold: m.
        greedy_hold: h.
    """
    if random_hold == greedy_hold:
        return epsilon
    return epsilon * greedy_hold / (epsilon * greedy_hold + (1.0 - epsilon) * random_hold)
