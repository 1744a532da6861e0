"""The compiled leaf functions of ``core``, and the choices that the loops make with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.core import choice, clock, history, options, targets
from holdfast.core.array_types import Floats, Integers
from holdfast.core.compiling import compiled

__all__ = [
    "best_value",
    "bootstrapped_return",
    "count_best",
    "draw_held_action",
    "draw_option",
    "duration_at",
    "greedy_option",
    "is_exploratory",
    "is_interrupted",
    "k_step_return",
    "left_after_step",
    "nth_best",
    "persistence_index",
    "scaled_index",
    "toward",
    "undecided_value",
    "window_target",
]


best_value: Any = compiled(targets.best_value)
bootstrapped_return: Any = compiled(targets.bootstrapped_return)
duration_at: Any = compiled(options.duration_at)
count_best: Any = compiled(choice.count_best)
is_exploratory: Any = compiled(choice.is_exploratory)
is_interrupted: Any = compiled(clock.is_interrupted)
k_step_return: Any = compiled(history.k_step_return)
left_after_step: Any = compiled(clock.left_after_step)
longest_within: Any = compiled(choice.longest_within)
nth_best: Any = compiled(choice.nth_best)
persistence_index: Any = compiled(options.persistence_index)
scaled_index: Any = compiled(choice.scaled_index)
toward: Any = compiled(targets.toward)
undecided_value: Any = compiled(targets.undecided_value)
window_target: Any = compiled(targets.window_target)


@compiled
def draw_option(
    values: Floats, epsilon: float, persistences: Integers, agent: np.random.Generator
) -> tuple[int, int, bool]:
    """ε-greedy over the options (A, K) of one state: action, persistence, and whether it was drawn at random.

    Ties are broken at random; without a tie there is no draw. ``persistences`` (K,) are the durations that the
    values belong to; it may be longer than K, and its further entries have no values.
    """
    n_actions, n_durations = values.shape
    exploratory = is_exploratory(agent.random(), epsilon)
    if exploratory:
        index = scaled_index(agent.random(), n_actions * n_durations)
    else:
        equals = count_best(values)
        index = nth_best(values, scaled_index(agent.random(), equals) if equals > 1 else 0)
    return index // n_durations, persistences[index % n_durations], exploratory


@compiled
def draw_held_action(
    values: Floats, epsilon: float, durations: Floats, persistences: Integers, agent: np.random.Generator
) -> tuple[int, int, bool]:
    """The best option of (A, K), or with probability ε a random action for a random number of steps.

    For εz-greedy, values are (A, 1). ``durations`` is the cumulative distribution of the random duration;
    ``persistences`` are as in ``draw_option``.
    """
    exploratory = is_exploratory(agent.random(), epsilon)
    if not exploratory:
        equals = count_best(values)
        index = nth_best(values, scaled_index(agent.random(), equals) if equals > 1 else 0)
        return index // values.shape[1], persistences[index % values.shape[1]], exploratory
    action = scaled_index(agent.random(), values.shape[0])
    draw, position = agent.random(), 0
    while position < len(durations) - 1 and draw >= durations[position]:
        position += 1
    return action, duration_at(position), exploratory


@compiled
def greedy_option(
    values: Floats,
    tolerance: float,
    ties_at_random: bool,
    persistences: Integers,
    evaluation: np.random.Generator,
) -> tuple[int, int]:
    """The greedy option of one state, held as long as ``tolerance`` allows.

    A tie goes to the first option, or to one drawn at random.
    """
    equals = count_best(values) if ties_at_random else 1
    index = nth_best(values, scaled_index(evaluation.random(), equals) if equals > 1 else 0)
    action, position = index // values.shape[1], index % values.shape[1]
    return action, persistences[longest_within(values, action, position, tolerance)]
