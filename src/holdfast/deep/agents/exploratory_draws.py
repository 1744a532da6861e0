"""What is drawn at random where an option begins: the action, how long to hold it, or both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["option_epsilon", "toss_coins", "uniform_durations"]


def toss_coins(n: int, epsilon: float, n_coins: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of ``n`` actions and which of ``n`` holds are random, each (n,): one coin for both, or one each."""
    coins = np.array([np.random.rand() < epsilon for _ in range(n * n_coins)])  # noqa: NPY002 - SB3's generator
    coins = coins.reshape(n, n_coins)
    return coins[:, 0], coins[:, -1]


def uniform_durations(n: int, k_max: int, persistences: Sequence[int] | None = None) -> NDArray[np.int64]:
    """``n`` of 1..k_max, or of a sparse set; where there is nothing to choose nothing is drawn."""
    if k_max == 1:
        return np.ones(n, dtype=np.int64)
    if persistences is None:
        return np.random.randint(1, k_max + 1, size=n)  # noqa: NPY002 - SB3's generator
    chosen = np.random.randint(0, len(persistences), size=n)  # noqa: NPY002
    return np.asarray(persistences, dtype=np.int64)[chosen]


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
