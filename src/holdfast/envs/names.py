"""Names of the actions and observations of well-known environments, for pictures and films."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium

from holdfast.core.errors import InputError
from holdfast.core.user_code import is_interrupt
from holdfast.envs.choices import Choices

__all__ = ["action_names", "observation_names", "two_axes"]

_ACTIONS = {
    "MountainCar": ("push left", "no push", "push right"),
    "CartPole": ("push left", "push right"),
    "Acrobot": ("torque -1", "no torque", "torque +1"),
    "LunarLander": ("no engine", "left engine", "main engine", "right engine"),
}
_OBSERVATIONS = {
    "MountainCar": ("position", "velocity"),
    "CartPole": ("cart position", "cart velocity", "pole angle", "pole angular velocity"),
    "Acrobot": (
        "cos of angle 1",
        "sin of angle 1",
        "cos of angle 2",
        "sin of angle 2",
        "angular velocity 1",
        "angular velocity 2",
    ),
    "LunarLander": (
        "x",
        "y",
        "velocity in x",
        "velocity in y",
        "angle",
        "angular velocity",
        "left leg touches",
        "right leg touches",
    ),
}
"""By the environment's id without its version, in the order of its documentation."""


def action_names(env: gymnasium.Env[Any, Any]) -> tuple[str, ...]:
    """One name per discrete action: the environment's own, or known ones, or numbers."""
    choices = Choices(env.action_space)
    names = _own_names(env.unwrapped) or _ACTIONS.get(_kind(env), ())
    return names if len(names) == choices.n else choices.names()


def observation_names(env: gymnasium.Env[Any, Any]) -> tuple[str, ...]:
    """One name per number of an observation that is a vector; empty for others."""
    space = env.observation_space
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        return ()
    names = _OBSERVATIONS.get(_kind(env), ())
    if len(names) == space.shape[0]:
        return names
    return tuple(f"observation[{number}]" for number in range(space.shape[0]))


def _own_names(env: Any) -> tuple[str, ...]:
    """The environment's own names of its actions: ``action_names``, or as in Atari games."""
    try:
        own = getattr(env, "action_names", None)
        if own is not None:
            return tuple(map(str, own() if callable(own) else own))
        return tuple(str(meaning).lower() for meaning in env.get_action_meanings())
    except BaseException as error:
        # Names are not worth a failure, whatever the environment raises.
        if is_interrupt(error):
            raise
        return ()


def _kind(env: gymnasium.Env[Any, Any]) -> str:
    spec = env.unwrapped.spec
    return "" if spec is None else spec.name


def two_axes(given: str, names: Sequence[str]) -> tuple[int, int]:
    """Two of the numbers of an observation, given by name or position, separated by a comma.

    Raises:
        ValueError: They are not two different existing ones.
    """
    numbers = [
        names.index(part) if part in names else int(part) if part.isdecimal() and len(part) < 9 else -1
        for part in map(str.strip, given.split(","))
    ]
    if len(numbers) != 2 or len(set(numbers)) != 2 or not all(0 <= number < len(names) for number in numbers):
        raise InputError(
            f"axes must be two different ones of {', '.join(names)}, by name or by number from 0, not {given!r}"
            if len(names) >= 2
            else "axes must not be given if observations are not vectors",
            "axes",
        )
    return numbers[0], numbers[1]
