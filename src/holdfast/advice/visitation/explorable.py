"""What can be explored: a name, environments, or a callable that makes one; and which numbers to examine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias

import gymnasium
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv

from holdfast.advice.visitation.observation_numbers import number_names
from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.user_code import user_code
from holdfast.envs import GridMap, GridWorld, NamedFailures, make_scoring_env
from holdfast.envs.lookup import check_spaces
from holdfast.envs.names import two_axes

__all__ = ["Explorable", "axes_in", "environments", "goal_along", "name_of", "shared_map"]

Explorable: TypeAlias = (
    str
    | os.PathLike[str]
    | gymnasium.Env[Any, Any]
    | Callable[[], gymnasium.Env[Any, Any]]
    | Sequence[gymnasium.Env[Any, Any]]
)
"""A name, an environment, a callable that makes one, or several environments that take turns by episode."""


def environments(given: Any, stack: ExitStack) -> list[NamedFailures]:
    """The environments that ``given`` stands for; those made here are closed with ``stack``.

    Raises:
        TypeError: It does not stand for an environment.
        ValueError: There is no environment of that name, or the spaces differ.
    """
    is_maker = callable(given) and not isinstance(given, gymnasium.Env)
    if is_maker or isinstance(given, str | os.PathLike):
        places = [_made(given) if is_maker else make_scoring_env(given)]
    else:
        places = list(given) if isinstance(given, Sequence) else [given]
    if not places or not all(isinstance(place, gymnasium.Env) for place in places):
        raise InputTypeError(
            "env must be a name, a Gymnasium environment, a callable that makes one, or a list of environments, "
            f"not {given!r}"
        )
    for place in places:
        check_spaces(place, "env")
    named = [NamedFailures(place) for place in places]
    if is_maker or isinstance(given, str | os.PathLike):
        stack.callback(named[0].close)
    for name in ("observation_space", "action_space"):
        if any(getattr(place, name) != getattr(places[0], name) for place in places):
            raise InputError(f"env must be environments with the same {name.replace('_', ' ')}")
    return named


def _made(maker: Callable[[], Any]) -> Any:
    with user_code("env must be a callable that makes an environment, but this one", InputError):
        return maker()


def axes_in(env: gymnasium.Env[Any, Any], given: Any) -> tuple[int, int] | None:
    """Two numbers of an observation, given as numbers or as their names separated by a comma; None for none.

    Raises:
        TypeError: There are not two of them.
        ValueError: No such numbers exist.
    """
    if given is None:
        return None
    if isinstance(given, str):
        return two_axes(given, number_names(env))
    if not isinstance(given, Sequence) or len(given) != 2:
        raise InputTypeError(f"axes must be two numbers, or two names separated by a comma, not {given!r}", "axes")
    return check_integer("axes", given[0], at_least=0), check_integer("axes", given[1], at_least=0)


def name_of(given: Any, env: gymnasium.Env[Any, Any]) -> str:
    """The name to show: as given, or the environment's id, or its class."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    return type(env.unwrapped).__name__ if env.spec is None else env.spec.id


def goal_along(axes: tuple[int, ...], env: gymnasium.Env[Any, Any]) -> float | None:
    """Position of the goal along the first of ``axes``, if known: MountainCar's flag."""
    inner = env.unwrapped
    is_position = axes[:1] == (0,) and env.observation_space == inner.observation_space
    return float(inner.goal_position) if isinstance(inner, MountainCarEnv) and is_position else None


def shared_map(envs: Sequence[gymnasium.Env[Any, Any]]) -> GridMap | None:
    """The map whose cells are the states of all these environments; None if there is none."""
    maps = []
    for env in envs:
        inner = env.unwrapped
        if not isinstance(inner, GridWorld) or env.observation_space != inner.observation_space:
            return None
        maps.append(inner.map)
    return maps[0] if all(str(found) == str(maps[0]) for found in maps) else None
