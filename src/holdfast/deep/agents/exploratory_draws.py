"""What is drawn at random where an option begins: the action, how long to hold it, or both."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["toss_coins", "uniform_durations"]


def toss_coins(n: int, epsilon: float, n_coins: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of ``n`` actions and which of ``n`` holds are random, each (n,): one coin for both, or one each."""
    coins = np.array([np.random.rand() < epsilon for _ in range(n * n_coins)])  # noqa: NPY002 - SB3's generator
    coins = coins.reshape(n, n_coins)
    return coins[:, 0], coins[:, -1]


def uniform_durations(n: int, k_max: int) -> NDArray[np.int64]:
    """``n`` of 1..k_max; where there is nothing to choose nothing is drawn."""
    if k_max == 1:
        return np.ones(n, dtype=np.int64)
    return np.random.randint(1, k_max + 1, size=n)  # noqa: NPY002 - SB3's generator
