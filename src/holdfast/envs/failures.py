"""Environments that fail in the middle of a training, and how to say so."""

from __future__ import annotations

import math
import operator
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

__all__ = ["EnvironmentFailedError", "NamedFailures"]


class EnvironmentFailedError(RuntimeError):
    """An environment raised an exception, or gave numbers that are none."""


class NamedFailures(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Passes every step through as it is, and turns what goes wrong in it into an ``EnvironmentFailedError``.

    Args:
        env: The environment.

    Attributes:
        n_resets: Episodes begun.
        n_steps: Steps taken, or tried.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self.n_resets = 0
        self.n_steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Begin an episode."""
        # Environments from before there were options have no argument for them.
        given = {} if options is None else {"options": options}
        self.n_resets += 1
        try:
            observation, info = self.env.reset(seed=seed, **given)
        except Exception as error:
            # The error itself comes along, for who wants to see where it was.
            raise _failure("reset", error) from error
        self._check_observation(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step."""
        self.n_steps += 1
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
        except Exception as error:
            raise _failure("step", error) from error
        try:
            is_number = math.isfinite(reward)
        except (TypeError, ValueError, OverflowError):
            is_number = False
        if not is_number:
            raise EnvironmentFailedError(f"it gave {reward!r} as a reward, which must be a finite number")
        self._check_observation(observation)
        return observation, reward, terminated, truncated, info

    def render(self) -> Any:
        """A picture."""
        try:
            return self.env.render()
        except gymnasium.error.DependencyNotInstalled:
            raise
        except Exception as error:
            raise _failure("render", error) from error

    def _check_observation(self, observation: Any) -> None:
        space = self.observation_space
        if isinstance(space, gymnasium.spaces.Discrete) and not _is_one_of(space, observation):
            last = space.start + space.n - 1
            raise EnvironmentFailedError(
                f"it gave {observation!r} as an observation, which must be in {space.start}..{last}"
            )
        if isinstance(space, gymnasium.spaces.Box) and np.shape(observation) != space.shape:
            raise EnvironmentFailedError(
                f"it gave an observation of shape {np.shape(observation)}, which must have {space.shape}"
            )
        for part in _parts(observation):
            if isinstance(part, np.ndarray | np.floating | float) and not _is_finite(part):
                raise EnvironmentFailedError("it gave an observation that is NaN or infinite somewhere")

    def close(self) -> None:
        """Close; what goes wrong then matters to nobody any more."""
        with suppress(Exception):
            self.env.close()


def _is_one_of(space: gymnasium.spaces.Discrete, observation: Any) -> bool:
    try:
        return bool(0 <= operator.index(observation) - space.start < space.n)
    except TypeError:
        return False


def _failure(call: str, error: Exception) -> EnvironmentFailedError:
    said = " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    # The last place is in here where what was returned cannot be taken apart.
    where = frames[-1]
    place = "" if where.filename == __file__ else f" ({Path(where.filename).name}, line {where.lineno})"
    return EnvironmentFailedError(f"its {call} raised {type(error).__name__}{': ' if said else ''}{said}{place}")


def _parts(observation: Any) -> Iterator[Any]:
    if isinstance(observation, Mapping):
        for part in observation.values():
            yield from _parts(part)
    elif isinstance(observation, tuple):
        for part in observation:
            yield from _parts(part)
    else:
        yield observation


def _is_finite(part: Any) -> bool:
    values = np.asarray(part)
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())
