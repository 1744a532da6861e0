"""Checks of a deep agent's arguments, one sentence each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from holdfast.core.checks import check_integer, check_real
from holdfast.core.errors import InputError, InputTypeError

__all__ = [
    "UnsupportedActionsError",
    "check_acting",
    "check_layers",
    "check_mapping",
    "check_scaling",
    "check_subclass",
    "check_timeouts",
    "check_window",
    "completed_by",
    "with_fixed",
]

Init = TypeVar("Init", bound=Callable[..., None])


class UnsupportedActionsError(InputError, AssertionError):
    """An environment whose actions are not discrete; SB3's own algorithms raise an AssertionError there."""


def check_mapping(name: str, value: Any, elsewhere: dict[str, str]) -> dict[str, Any]:
    """A copy of keyword arguments that do not repeat what is said elsewhere.

    Args:
        name: The argument's name.
        value: A dictionary or None.
        elsewhere: Keys that it must not have, with the argument of the agent that takes their place.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputTypeError(f"{name} must be a dictionary of keyword arguments or None, not {value!r}", name)
    for key in value:
        if key in elsewhere:
            raise InputError(f"{name} must not have {key!r}: give the agent itself {elsewhere[key]}", name)
    return dict(value)


def check_layers(name: str, value: Any) -> list[int]:
    """A list of layer widths; the name may be that of a part, such as "net_arch in policy_kwargs"."""
    argument = name.split()[-1]
    if not isinstance(value, list | tuple):
        raise InputTypeError(f"{name} must be a list of layer widths such as [64], not {value!r}", argument)
    try:
        return [check_integer(f"a layer width in {name}", width) for width in value]
    except InputError as error:
        raise type(error)(str(error), argument) from None


def check_scaling(value: Any) -> str | None:
    """``normalize_observations``."""
    if value not in (None, "space"):
        raise InputError(
            f"normalize_observations must be None or 'space', not {value!r}", "normalize_observations"
        )
    return value


def check_subclass(name: str, value: Any, base: type, or_else: tuple[str | None, ...]) -> None:
    """A subclass of ``base``, or one of a few other values."""
    if value in or_else or (isinstance(value, type) and issubclass(value, base)):
        return
    others = ", ".join(map(repr, or_else))
    given = f"the unknown {value!r}" if isinstance(value, str) else repr(value)
    raise InputError(f"{name} must be {others} or a subclass of {base.__name__}, not {given}", name)


def check_window(n_steps: Any) -> None:
    """``n_steps``, which SB3's DQN has."""
    if n_steps != 1:
        raise InputError(
            f"n_steps must be 1, not {n_steps!r}: windows of every length up to k_max are learned from already",
            "n_steps",
        )


def check_timeouts(timeout_is_terminal: Any, replay_buffer_kwargs: dict[str, Any]) -> None:
    """The two ways to say what a time limit means."""
    if timeout_is_terminal and "handle_timeout_termination" in replay_buffer_kwargs:
        raise InputError(
            "timeout_is_terminal and replay_buffer_kwargs['handle_timeout_termination'] say the same thing: "
            "give one of them",
            "timeout_is_terminal",
            "replay_buffer_kwargs",
        )


def check_acting(decision_tolerance: Any, interrupt_margin: Any) -> tuple[float, float | None]:
    """``decision_tolerance`` and ``interrupt_margin``."""
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
    return tolerance, margin


def with_fixed(name: str, given: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments with those that an agent stands for, which nobody may give it.

    Args:
        name: The agent's.
        given: What it was given.
        fixed: What it stands for.

    Raises:
        TypeError: One of these was given.
    """
    for key in given:
        if key in fixed:
            raise InputTypeError(f"{key} must not be given to {name}, which stands for {key}={fixed[key]!r}", key)
    return {**given, **fixed}


def completed_by(base: type, fixed: Mapping[str, Any]) -> Callable[[Init], Init]:
    """Let a constructor that hands its keywords on to ``base`` show all of the arguments that it takes.

    Args:
        base: Whose constructor gets them.
        fixed: Arguments of ``base`` that cannot be given.
    """
    handed_on = inspect.signature(base.__init__).parameters  # type: ignore[misc]

    def complete(constructor: Init) -> Init:
        own = {
            name: parameter
            for name, parameter in inspect.signature(constructor).parameters.items()
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        }
        shown = {name: parameter for name, parameter in handed_on.items() if name not in fixed} | own
        constructor.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            sorted(shown.values(), key=lambda parameter: parameter.kind)
        )
        return constructor

    return complete
