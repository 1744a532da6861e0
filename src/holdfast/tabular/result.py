"""What training gives back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FitResult"]


@dataclass(frozen=True, slots=True, eq=False)
class FitResult:
    """The episodes of one or many independent runs, and the tables they ended with.

    Arrays of episodes have shape (seed, episode); those of greedy episodes (seed, 0) if none were asked for.
    Returns are sums of rewards, undiscounted.

    Attributes:
        seeds: The seed of each run.
        training_returns: Return of each training episode.
        greedy_returns: Return of one greedy episode after each training episode.
        steps: Steps of each training episode.
        decisions: Options begun in each training episode.
        greedy_steps: Steps of each greedy episode.
        greedy_decisions: Options begun in each greedy episode.
        q: (seed, S, A, K) final values; K = 1 where the learner values actions alone. Terminal states are worth 0
            where the model is known; in an environment that is only stepped in they keep their initial values,
            which nothing reads.
        skip_values: (seed, S, A, K) final skip values; None but for TempoRL.
        wall_seconds: (seed,) time of each run, without compiling the loop. With ``loop="python"`` there is none to
            compile beforehand: what the first run of a process compiles of its update is in that run's time.
    """

    seeds: tuple[int, ...]
    training_returns: NDArray[np.float64]
    greedy_returns: NDArray[np.float64]
    steps: NDArray[np.int64]
    decisions: NDArray[np.int64]
    greedy_steps: NDArray[np.int64]
    greedy_decisions: NDArray[np.int64]
    q: NDArray[np.float64]
    skip_values: NDArray[np.float64] | None
    wall_seconds: NDArray[np.float64]
