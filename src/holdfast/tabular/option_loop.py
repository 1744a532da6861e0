"""What the compiled loops over a table of option values share: carrying an option out, and a greedy episode."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.compiling import compiled
from holdfast.tabular.compiled import (
    best_value,
    greedy_option,
    is_interrupted,
    left_after_step,
    persistence_index,
)
from holdfast.tabular.simulator import FlatModel, draw_outcome, first_state

__all__ = ["greedy_episode", "hold", "is_cut"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled
def is_cut(values: Floats, action: int, left: int, margin: float) -> bool:
    """Whether a greedy option with ``left`` steps to go is dropped, given the values (A, K) of the state reached.

    An infinite margin never interrupts.
    """
    if margin == np.inf:
        return False
    held = values[action, persistence_index(left)]
    return is_interrupted(best_value(values, values.shape[1]), held, margin)  # type: ignore[no-any-return]


@compiled
def hold(
    model: FlatModel,
    q: Floats,
    action: int,
    k: int,
    margin: float,
    steps_left: int,
    states: Integers,
    rewards: Floats,
    environment: np.random.Generator,
) -> tuple[int, bool]:
    """Carry out option (action, k) from ``states[0]`` on, noting the states and rewards on the way.

    Args:
        model: Where.
        q: (S, A, K) values, read where the option might be interrupted.
        action: The action to hold.
        k: How long.
        margin: Interruption margin; infinite for an option that is carried through.
        steps_left: Steps until the episode is truncated.
        states: (K + 1,) filled from 1 on.
        rewards: (K,) filled.
        environment: Random stream.

    Returns:
        κ, the steps really executed, and whether the last state is terminal.
    """
    kappa, left, state = 0, k, states[0]
    terminated = False
    while left > 0:
        outcome = draw_outcome(model, state, action, environment)
        state = model.successors[outcome]
        terminated = model.terminal[state]
        rewards[kappa] = model.rewards[outcome]
        kappa += 1
        states[kappa] = state
        left = left_after_step(left, terminated or kappa >= steps_left)
        if left > 0 and is_cut(q[state], action, left, margin):
            left = 0
    return kappa, terminated


@compiled
def greedy_episode(
    model: FlatModel,
    q: Floats,
    margin: float,
    tolerance: float,
    ties_at_random: bool,
    step_limit: int,
    evaluation: np.random.Generator,
) -> tuple[float, int, int]:
    """Return, steps and decisions of an episode of greedy options."""
    state = first_state(model, evaluation)
    total, steps, decisions = 0.0, 0, 0
    ended = False
    while not ended:
        action, left = greedy_option(q[state], tolerance, ties_at_random, evaluation)
        decisions += 1
        while left > 0:
            outcome = draw_outcome(model, state, action, evaluation)
            state = model.successors[outcome]
            total += model.rewards[outcome]
            steps += 1
            ended = model.terminal[state] or steps >= step_limit
            left = left_after_step(left, ended)
            if left > 0 and is_cut(q[state], action, left, margin):
                left = 0
    return total, steps, decisions
