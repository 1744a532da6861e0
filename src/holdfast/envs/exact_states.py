"""Environments that can report their own state, so that restoring them needs no repetition.

An environment, or a wrapper, offers two methods for this. ``exact_state()`` returns everything that it needs to
continue, as a mapping of arrays and JSON values, without what it wraps. ``restore_exact_state(state)`` brings
another one, made in the same way, to that point, or raises a ``ValueError``. The state of a wrapped environment is
the list of the states of all layers. Known wrappers of Gymnasium, Stable-Baselines3 and holdfast need neither
method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_array, take_integer, take_list

__all__ = ["exact_state_of", "first_without_state", "restore_exact_state_of", "spans_episodes"]

Layer = gymnasium.Env[Any, Any]


def first_without_state(env: Layer) -> str | None:
    """Class of the outermost wrapper, or of the environment, that cannot report its state; None if all can."""
    return next((type(layer).__name__ for layer in _layers(env) if _access(layer) is None), None)


def spans_episodes(env: Layer) -> bool:
    """Whether an episode may continue the game of the one before, so that no seed restores its beginning."""
    return bool(getattr(env.unwrapped, "spans_episodes", False))


def exact_state_of(env: Layer) -> list[dict[str, Any]]:
    """The states of an environment and its wrappers, outermost first; all of them must be able to report theirs.

    Raises:
        ValueError: One of them cannot report its state at this moment.
    """
    return [{"kind": type(layer).__name__, **_known(layer).read(layer)} for layer in _layers(env)]


def restore_exact_state_of(env: Layer, states: list[Any]) -> None:
    """Bring an environment that was made in the same way to the point at which ``exact_state_of`` was called.

    Raises:
        ValueError: The states are damaged or belong to another environment.
    """
    layers = list(_layers(env))
    kinds = [type(layer).__name__ for layer in layers]
    saved = [take(state, "kind") for state in states]
    if kinds != saved:
        raise InputError(f"the saved state must be that of {' in '.join(kinds[::-1])}, not of {saved[::-1]}")
    for layer, state in zip(layers, states, strict=True):
        _known(layer).write(layer, state)


def _layers(env: Layer) -> Iterator[Layer]:
    yield env
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
        yield env


class _Access(NamedTuple):
    """How to read and write the state of a layer."""

    read: Callable[[Any], dict[str, Any]]
    write: Callable[[Any, Mapping[str, Any]], None]


def _access(layer: Layer) -> _Access | None:
    kind = type(layer)
    if hasattr(kind, "exact_state") and hasattr(kind, "restore_exact_state"):
        return _Access(kind.exact_state, kind.restore_exact_state)
    return _KNOWN.get(f"{kind.__module__}.{kind.__qualname__}")


def _known(layer: Layer) -> _Access:
    access = _access(layer)
    assert access is not None
    return access


# Known wrappers -------------------------------------------------------------------------------------------------


def _nothing(wrapper: Any) -> dict[str, Any]:
    return {}


def _nothing_to_do(wrapper: Any, state: Mapping[str, Any]) -> None:
    pass


def _read_order(wrapper: Any) -> dict[str, Any]:
    return {"has_reset": bool(wrapper._has_reset)}


def _write_order(wrapper: Any, state: Mapping[str, Any]) -> None:
    wrapper._has_reset = _take_flag(state, "has_reset")


def _write_checker(wrapper: Any, state: Mapping[str, Any]) -> None:
    # It checks and compares the first reset and step; here the first step may come before any reset.
    for name in ("checked_reset", "checked_step", "checked_data_reuse"):
        if hasattr(wrapper, name):
            setattr(wrapper, name, True)


def _read_time_limit(wrapper: Any) -> dict[str, Any]:
    # None before the first reset.
    return {"elapsed": None if wrapper._elapsed_steps is None else int(wrapper._elapsed_steps)}


def _write_time_limit(wrapper: Any, state: Mapping[str, Any]) -> None:
    wrapper._elapsed_steps = None if take(state, "elapsed") is None else take_integer(state, "elapsed")


def _read_failures(wrapper: Any) -> dict[str, Any]:
    return {"counts": [wrapper.n_resets, wrapper.n_steps, wrapper._steps_before]}


def _write_failures(wrapper: Any, state: Mapping[str, Any]) -> None:
    counts = take_list(state, "counts", int)
    if len(counts) != 3:
        raise InputError("the saved state must have three whole numbers as 'counts'")
    wrapper.n_resets, wrapper.n_steps, wrapper._steps_before = counts


def _read_monitor(wrapper: Any) -> dict[str, Any]:
    # Its records of finished episodes are no longer needed.
    return {"rewards": np.array(wrapper.rewards, np.float64), "needs_reset": bool(wrapper.needs_reset)}


def _write_monitor(wrapper: Any, state: Mapping[str, Any]) -> None:
    wrapper.needs_reset = _take_flag(state, "needs_reset")
    wrapper.rewards = take_array(state, "rewards", np.float64, (None,)).tolist()


def _take_flag(state: Mapping[str, Any], name: str) -> bool:
    flag = take(state, name)
    if not isinstance(flag, bool):
        raise InputError(f"the saved state must have true or false as {name!r}")
    return flag


_STATELESS = _Access(_nothing, _nothing_to_do)

_KNOWN = {
    "gymnasium.wrappers.transform_action.ClipAction": _STATELESS,
    "gymnasium.wrappers.transform_action.RescaleAction": _STATELESS,
    "gymnasium.wrappers.transform_observation.DtypeObservation": _STATELESS,
    "gymnasium.wrappers.transform_observation.FlattenObservation": _STATELESS,
    "gymnasium.wrappers.transform_observation.RescaleObservation": _STATELESS,
    "gymnasium.wrappers.transform_observation.ReshapeObservation": _STATELESS,
    "gymnasium.wrappers.transform_observation.ResizeObservation": _STATELESS,
    "gymnasium.wrappers.transform_reward.ClipReward": _STATELESS,
    "holdfast.envs.hold_action.HoldAction": _STATELESS,
    "holdfast.envs.training_info.TrainingInfo": _STATELESS,
    "stable_baselines3.common.atari_wrappers.ClipRewardEnv": _STATELESS,
    "gymnasium.wrappers.common.OrderEnforcing": _Access(_read_order, _write_order),
    "gymnasium.wrappers.common.PassiveEnvChecker": _Access(_nothing, _write_checker),
    "gymnasium.wrappers.common.TimeLimit": _Access(_read_time_limit, _write_time_limit),
    "holdfast.envs.failures.NamedFailures": _Access(_read_failures, _write_failures),
    "stable_baselines3.common.monitor.Monitor": _Access(_read_monitor, _write_monitor),
}
"""By full name, because a user's subclass may remember more."""
