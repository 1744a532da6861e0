"""Random options in MountainCar, compiled: Gymnasium's dynamics to the last bit.

Every operation is Gymnasium's, in the same order, in 64-bit floats; observations are rounded to 32 bits, as there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from numpy.typing import NDArray

from holdfast.advice.visitation.compiled_options import Records, draw_random_option
from holdfast.core.compiling import compiled
from holdfast.tabular.compiled import left_after_step

__all__ = ["Car", "car_of", "car_step", "roll_cars"]

N_ACTIONS = 3


class Car(NamedTuple):
    """The parameters of Gymnasium's MountainCar, under their Gymnasium names."""

    min_position: float
    max_position: float
    max_speed: float
    goal_position: float
    goal_velocity: float
    force: float
    gravity: float


def car_of(env: gymnasium.Env[Any, Any]) -> Car | None:
    """The car of an environment that is exactly Gymnasium's MountainCar, without a window; else None."""
    if type(env) is not MountainCarEnv or env.render_mode == "human":
        return None
    return Car(*(float(getattr(env, name)) for name in Car._fields))


@compiled
def car_step(car: Car, position: float, velocity: float, action: int) -> tuple[float, float, bool]:
    """Position and velocity after one step, and whether it reached the flag."""
    velocity += (action - 1) * car.force + math.cos(3 * position) * (-car.gravity)
    velocity = min(max(velocity, -car.max_speed), car.max_speed)
    position += velocity
    position = min(max(position, car.min_position), car.max_position)
    if position == car.min_position and velocity < 0.0:
        velocity = 0.0
    return position, velocity, position >= car.goal_position and velocity >= car.goal_velocity


@compiled
def roll_cars(
    car: Car,
    starts: NDArray[np.float64],
    k_max: int,
    draws_duration: bool,
    step_limit: int,
    draws: np.random.Generator,
    observations: NDArray[np.float32],
    records: Records,
) -> None:
    """Play n episodes of random options.

    Args:
        car: The dynamics.
        starts: (n,) positions in which the episodes begin, at rest.
        k_max: K, the longest hold.
        draws_duration: Whether k is drawn from 1..K; otherwise it is K.
        step_limit: Steps after which an episode is truncated.
        draws: Stream of the options.
        observations: (n·(step_limit + 1), 2) observations; filled from the top.
        records: Records; filled.
    """
    seen = 0
    for episode in range(len(starts)):
        position, velocity = starts[episode], 0.0
        observations[seen, 0], observations[seen, 1] = position, velocity
        seen += 1
        steps, options = 0, 0
        ended, at_flag = False, False
        while not ended:
            action, left = draw_random_option(N_ACTIONS, k_max, draws_duration, draws)
            options += 1
            while left > 0:
                position, velocity, at_flag = car_step(car, position, velocity, action)
                observations[seen, 0], observations[seen, 1] = position, velocity
                seen += 1
                steps += 1
                ended = at_flag or steps >= step_limit
                left = left_after_step(left, ended)
        records.lengths[episode], records.decisions[episode] = steps, options
        records.terminated[episode] = at_flag
