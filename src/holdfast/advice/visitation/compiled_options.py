"""Random options, compiled: how one is drawn, and episodes of them in a deterministic model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.compiling import compiled
from holdfast.tabular.compiled import left_after_step, scaled_index
from holdfast.tabular.simulator import FlatModel, draw_outcome, first_state

__all__ = ["Records", "draw_random_option", "roll_model"]


class Records(NamedTuple):
    """The records of n episodes; every array has shape (n,).

    Attributes:
        lengths: Number of steps.
        decisions: Number of options begun.
        terminated: Whether the episode ended by itself.
    """

    lengths: NDArray[np.int64]
    decisions: NDArray[np.int64]
    terminated: NDArray[np.bool_]

    @classmethod
    def empty(cls, n: int) -> Records:
        """Empty records for ``n`` episodes."""
        return cls(np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_))


@compiled
def draw_random_option(
    n_actions: int, k_max: int, draws_duration: bool, draws: np.random.Generator
) -> tuple[int, int]:
    """An action and its duration: k drawn from 1..K, or always K."""
    action = scaled_index(draws.random(), n_actions)
    if draws_duration:
        return action, 1 + scaled_index(draws.random(), k_max)
    return action, k_max


@compiled
def roll_model(
    model: FlatModel,
    n_episodes: int,
    k_max: int,
    draws_duration: bool,
    step_limit: int,
    draws: np.random.Generator,
    observations: NDArray[np.int64],
    rewards: NDArray[np.float64],
    records: Records,
) -> None:
    """Play n episodes of random options.

    Args:
        model: A deterministic model with a single initial state.
        n_episodes: n.
        k_max: K, the longest hold.
        draws_duration: Whether k is drawn from 1..K; otherwise it is K.
        step_limit: Steps after which an episode is truncated.
        draws: Stream of the options; the model draws nothing from it.
        observations: (n·(step_limit + 1),) states; filled from the front.
        rewards: (n·step_limit,) rewards; filled from the front.
        records: Records; filled.
    """
    seen, taken = 0, 0
    for episode in range(n_episodes):
        state = first_state(model, draws)
        observations[seen] = state
        seen += 1
        steps, options = 0, 0
        ended = False
        while not ended:
            action, left = draw_random_option(model.n_actions, k_max, draws_duration, draws)
            options += 1
            while left > 0:
                outcome = draw_outcome(model, state, action, draws)
                state = model.successors[outcome]
                observations[seen] = state
                rewards[taken + steps] = model.rewards[outcome]
                seen += 1
                steps += 1
                ended = model.terminal[state] or steps >= step_limit
                left = left_after_step(left, ended)
        records.lengths[episode], records.decisions[episode] = steps, options
        records.terminated[episode] = model.terminal[state]
        taken += steps
