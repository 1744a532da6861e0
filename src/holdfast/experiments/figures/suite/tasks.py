"""The tasks of the learning suite, and the scale on which their returns are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["TASKS", "SuiteTask", "last_fifth", "normalized"]


@dataclass(frozen=True)
class SuiteTask:
    """An environment, and how long to train on it.

    Attributes:
        environment: Gymnasium id.
        steps: Number of primitive training steps.
        random_return: Mean return of uniformly random actions, measured: 0 on the common scale.
        best_return: A return that counts as best: 1 on the common scale.
        source: Where the best return comes from.
    """

    environment: str
    steps: int
    random_return: float
    best_return: float
    source: str


TASKS = (
    SuiteTask("CartPole-v1", 50_000, 22.0, 500.0, "the most that an episode can return"),
    SuiteTask("Acrobot-v1", 60_000, -495.0, -69.0, "rl-zoo3's benchmark, QR-DQN"),
    SuiteTask("MountainCar-v0", 120_000, -200.0, -97.6, "a near-optimal policy"),
    SuiteTask("LunarLander-v3", 150_000, -185.0, 266.0, "SLM-Lab's benchmark, double DQN with prioritised replay"),
)
"""The tasks, in the order of display."""


def normalized(returns: ArrayLike, task: SuiteTask) -> NDArray[np.float64]:
    """Returns on the common scale: random actions are 0, the stated best is 1."""
    return (np.asarray(returns, dtype=np.float64) - task.random_return) / (task.best_return - task.random_return)


def last_fifth(returns: ArrayLike) -> NDArray[np.float64]:
    """Mean of the last fifth of a run's evaluations, rounded up; (..., evaluations) → (...).

    Staying good is the point: a single evaluation that happened to be good does not count.
    """
    values = np.asarray(returns, dtype=np.float64)
    return np.asarray(values[..., -(-values.shape[-1] // 5) * -1 :].mean(axis=-1))
