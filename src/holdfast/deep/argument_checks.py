"""Checks of a deep agent's arguments, one sentence each."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from holdfast.core.checks import check_integer, check_real
from holdfast.core.errors import InputError, InputTypeError
from holdfast.envs.choices import Choices, are_choices
from holdfast.envs.observations import has_numbers

__all__ = [
    "UnsupportedActionsError",
    "check_acting",
    "check_bounded",
    "check_discrete",
    "check_layers",
    "check_mapping",
    "check_observations",
    "check_scaling",
    "check_state_value",
    "check_subclass",
    "check_timeouts",
    "check_window",
]


class UnsupportedActionsError(InputError, AssertionError):
    """An environment whose actions are of another kind; SB3's own algorithms raise an AssertionError there."""


def check_mapping(name: str, value: Any, elsewhere: dict[str, str]) -> dict[str, Any]:
    """A copy of keyword arguments, after checking that they do not repeat arguments of the agent.

    Args:
        name: The argument's name.
        value: A dictionary or None.
        elsewhere: Keys that it must not have, with the agent's argument to use instead.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputTypeError(f"{name} must be a dictionary of keyword arguments or None, not {value!r}", name)
    for key in value:
        if key in elsewhere:
            raise InputError(f"{name} must not have {key!r}: give {elsewhere[key]} to the agent instead", name)
    return dict(value)


def check_discrete(space: spaces.Space[Any]) -> None:
    """Actions that are one choice among a few."""
    if not are_choices(space):
        raise UnsupportedActionsError(f"env must have discrete actions, not {space}", "env")
    try:
        Choices(space)
    except InputError as error:
        raise UnsupportedActionsError(str(error), "env") from None


def check_bounded(space: spaces.Space[Any]) -> None:
    """Actions that are vectors between finite bounds."""
    if not isinstance(space, spaces.Box):
        raise UnsupportedActionsError(f"env must have continuous actions (a Box), not {space}", "env")
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise UnsupportedActionsError(f"env must have actions with finite bounds, not {space}", "env")
    if not np.issubdtype(space.dtype, np.floating):
        # The replay has the space's type, in which actions between −1 and 1 would all become 0.
        raise UnsupportedActionsError(f"env must have actions of floating-point numbers, not {space}", "env")
    if not (space.low < space.high).all() or not space.shape or 0 in space.shape:
        raise UnsupportedActionsError(
            f"env must have actions whose lower bounds are below their upper bounds, not {space}", "env"
        )


def check_observations(observation_space: spaces.Space[Any]) -> None:
    """Observations that a network can see."""
    if isinstance(observation_space, spaces.Box) and observation_space.shape == ():
        raise InputError(
            "env must have observations of at least one axis, such as shape (1,), not a single number", "env"
        )
    if not has_numbers(observation_space):
        raise InputError(f"env must have at least one number in every observation, not {observation_space}", "env")
    parts = (
        observation_space.spaces.values() if isinstance(observation_space, spaces.Dict) else [observation_space]
    )
    for part in parts:
        if isinstance(part, spaces.Discrete | spaces.MultiDiscrete) and np.any(part.start != 0):
            # SB3 shows networks one-hot vectors, with a place for each number from 0 on.
            kind = type(part).__name__
            raise InputError(f"env must have {kind} observations that start at 0, not {part}", "env")


def check_layers(name: str, value: Any) -> list[int]:
    """A list of layer widths; the name may be that of a part, such as "net_arch in policy_kwargs"."""
    argument = name.split()[-1]
    if not isinstance(value, list | tuple):
        raise InputTypeError(f"{name} must be a list of layer widths such as [64], not {value!r}", argument)
    try:
        return [check_integer(f"a layer width in {name}", width) for width in value]
    except InputError as error:
        raise type(error)(str(error), argument) from None


def check_state_value(name: str, value: Any) -> bool | str:
    """Which state values there are: none (False), one per head, or one for all options."""
    if value is True or value == "heads":
        return "heads"
    if value == "options":
        return "options"
    if value is False or value is None:
        return False
    raise InputError(f"{name} must be False, True, 'heads' or 'options', not {value!r}", name)


def check_scaling(name: str, value: Any) -> str | None:
    """How the policy scales observations: by the bounds of their space, or not at all."""
    if value not in (None, "space"):
        raise InputError(f"{name} must be None or 'space', not {value!r}", name)
    return value


def check_subclass(name: str, value: Any, base: type, or_else: tuple[str | None, ...]) -> None:
    """A subclass of ``base``, or one of a few other values."""
    if value in or_else or (isinstance(value, type) and issubclass(value, base)):
        return
    others = ", ".join(map(repr, or_else))
    given = f"the unknown {value!r}" if isinstance(value, str) else repr(value)
    raise InputError(f"{name} must be {others} or a subclass of {base.__name__}, not {given}", name)


def check_window(name: str, n_steps: Any) -> int:
    """``n_steps``, which SB3's DQN has."""
    if n_steps != 1:
        raise InputError(
            f"{name} must be 1, not {n_steps!r}: agents already learn from windows of every length up to k_max",
            name,
        )
    return 1


def check_timeouts(timeout_is_terminal: Any, replay_buffer_kwargs: dict[str, Any]) -> None:
    """The two ways to say what a time limit means."""
    if timeout_is_terminal and "handle_timeout_termination" in replay_buffer_kwargs:
        raise InputError(
            "timeout_is_terminal and replay_buffer_kwargs['handle_timeout_termination'] say the same thing: "
            "give one of them",
            "timeout_is_terminal",
            "replay_buffer_kwargs",
        )


def check_acting(
    decision_tolerance: Any, interrupt_margin: Any, decision_cost: float = 0.0
) -> tuple[float, float | None]:
    """``decision_tolerance`` and ``interrupt_margin``, which must not be less than it or ``decision_cost``."""
    tolerance = check_real("decision_tolerance", decision_tolerance, 0.0)
    if interrupt_margin is None:
        return tolerance, None
    margin = check_real("interrupt_margin", interrupt_margin, 0.0)
    if margin < tolerance:
        raise InputError(
            f"interrupt_margin must be at least decision_tolerance, which is {tolerance:g}, not {margin:g}: "
            "a hold would be dropped as soon as it is chosen",
            "interrupt_margin",
            "decision_tolerance",
        )
    if margin < decision_cost:
        raise InputError(
            f"interrupt_margin must be at least decision_cost, which is {decision_cost:g}, not {margin:g}: "
            "dropping a hold costs a decision",
            "interrupt_margin",
            "decision_cost",
        )
    return tolerance, margin
