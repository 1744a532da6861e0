"""Hindsight: which later state of an episode stands for the goal that was missed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_choice

__all__ = ["GOAL_STRATEGIES", "goal_window"]

GOAL_STRATEGIES = ("future", "final", "episode")
"""Where a goal is taken from: a step from the start on, the episode's last step, any step of the episode."""


def goal_window(
    strategy: str, before: NDArray[np.integer[Any]], after: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The steps among which the one is drawn that achieved the goal, from the first to behind the last.

    They are counted from the step that is replayed, which is one of them, as in Stable-Baselines3.

    Args:
        strategy: One of ``GOAL_STRATEGIES``.
        before: (n,) steps of the episode before the one that is replayed.
        after: (n,) steps of the episode behind it.
    """
    check_choice("goal_selection_strategy", strategy, GOAL_STRATEGIES)
    last = np.asarray(after, dtype=np.int64)
    if strategy == "final":
        return last, last + 1
    first = np.zeros_like(last) if strategy == "future" else -np.asarray(before, dtype=np.int64)
    return first, last + 1
