"""Which action is held, and for how much longer.

``OptionClock`` is the form for many environments at once. The two leaf functions say the same of one environment,
in the subset of Python that compiles, and are what the compiled tabular loops call; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError

__all__ = ["OptionClock", "is_interrupted", "left_after_step"]


def left_after_step(left: Any, episode_ended: Any) -> Any:
    """Steps left in a held option after one more step; an episode's end cuts it to none."""
    if episode_ended:
        return 0
    return left - 1


def is_interrupted(best_value: Any, held_value: Any, margin: Any) -> Any:
    """Whether a held option should be dropped: the best option here beats holding on by over ``margin``.

    Args:
        best_value: max Q(s,·,·) at the state just reached.
        held_value: Q(s,a,m), the value of holding ``a`` for the ``m`` steps that are left.
        margin: How much better the best option must be.
    """
    return best_value - held_value > margin


class OptionClock:
    """The option held in each of ``n_envs`` environments.

    An environment is *idle* when no option is running in it; it must then be given one by ``begin`` before
    the next ``tick``. Arrays have shape (n_envs,) and are read-only views for everybody else.

    Args:
        n_envs: Environments.
        action_size: Numbers of a continuous action; None where an action is one whole number.
        action_dtype: Floating-point type of these numbers.

    Attributes:
        action: The held action (that of the last option where idle); a continuous one is a row of (n_envs, size).
        planned: The k the option was begun with.
        elapsed: Steps executed so far; κ once the option is over.
        left: Steps still to go, 0 where idle.
        exploratory: Whether the option was drawn at random rather than chosen.
    """

    _FIELDS = ("action", "planned", "elapsed", "left", "exploratory")

    def __init__(self, n_envs: int, action_size: int | None = None, action_dtype: DTypeLike = np.float32) -> None:
        n_envs = check_integer("n_envs", n_envs)
        self._action: NDArray[Any] = (
            np.zeros(n_envs, dtype=np.int64)
            if action_size is None
            else np.zeros((n_envs, action_size), dtype=action_dtype)
        )
        self._planned = np.zeros(n_envs, dtype=np.int64)
        self._elapsed = np.zeros(n_envs, dtype=np.int64)
        self._left = np.zeros(n_envs, dtype=np.int64)
        self._exploratory = np.zeros(n_envs, dtype=np.bool_)

    @property
    def n_envs(self) -> int:
        """Number of environments."""
        return len(self._left)

    @property
    def action(self) -> NDArray[Any]:
        """The held action of each environment."""
        return _read_only(self._action)

    @property
    def planned(self) -> NDArray[np.int64]:
        """The persistence each option was begun with."""
        return _read_only(self._planned)

    @property
    def elapsed(self) -> NDArray[np.int64]:
        """Steps of each option executed so far."""
        return _read_only(self._elapsed)

    @property
    def left(self) -> NDArray[np.int64]:
        """Steps each option still has to go."""
        return _read_only(self._left)

    @property
    def exploratory(self) -> NDArray[np.bool_]:
        """Whether each option was drawn at random."""
        return _read_only(self._exploratory)

    @property
    def idle(self) -> NDArray[np.bool_]:
        """Mask of the environments that need a decision."""
        return np.equal(self._left, 0)

    def begin(
        self, mask: ArrayLike, actions: ArrayLike, durations: ArrayLike, exploratory: ArrayLike = False
    ) -> None:
        """Begin an option where ``mask`` holds.

        Args:
            mask: (n_envs,) bool; all of these must be idle.
            actions: (n_envs,) actions, (n_envs, size) continuous ones; read under the mask only.
            durations: (n_envs,) persistences k ≥ 1; read under the mask only.
            exploratory: (n_envs,) or one bool: drawn at random rather than chosen.
        """
        chosen = self._mask(mask)
        if (self._left[chosen] > 0).any():
            raise ValueError("mask must name idle environments only: an option is still held there")
        durations = _whole_numbers("durations", durations, chosen.shape)
        if (durations[chosen] < 1).any():
            raise ValueError("durations must be at least 1 where an option begins")
        if self._action.ndim == 1:
            actions = _whole_numbers("actions", actions, chosen.shape)
        else:
            actions = np.asarray(actions, dtype=self._action.dtype)
            if actions.shape != self._action.shape:
                raise ValueError(f"actions must have shape {self._action.shape}, not {actions.shape}")
        drawn = np.asarray(exploratory, dtype=np.bool_)
        drawn = drawn if drawn.shape == chosen.shape else np.broadcast_to(drawn, chosen.shape)
        self._action[chosen] = actions[chosen]
        self._planned[chosen] = durations[chosen]
        self._left[chosen] = durations[chosen]
        self._elapsed[chosen] = 0
        self._exploratory[chosen] = drawn[chosen]

    def tick(self, episode_ended: ArrayLike) -> NDArray[np.bool_]:
        """Count one executed step in every environment; an episode's end cuts the option there.

        Args:
            episode_ended: (n_envs,) bool, terminated or truncated by this step.

        Returns:
            (n_envs,) bool, the options that are over with this step; ``elapsed`` is then their κ.
        """
        ended = self._mask(episode_ended)
        if self.idle.any():
            raise ValueError("every environment must hold an option before tick")
        self._elapsed += 1
        self._left[:] = np.where(ended, 0, self._left - 1)
        return self.idle

    def cut(self, mask: ArrayLike) -> None:
        """End the options under ``mask`` now: interruption, a reset, another environment."""
        self._left[self._mask(mask)] = 0

    def state(self) -> dict[str, NDArray[Any]]:
        """A copy of everything that ``restore`` needs."""
        return {name: getattr(self, f"_{name}").copy() for name in self._FIELDS}

    def restore(self, state: Mapping[str, ArrayLike]) -> None:
        """Go on from what ``state`` returned."""
        missing = [name for name in self._FIELDS if name not in state]
        if missing:
            raise InputError(f"clock state must have {', '.join(self._FIELDS)}: {missing[0]!r} is missing")
        arrays = {name: np.asarray(state[name]) for name in self._FIELDS}
        kinds = {"b": "bools", "iu": "whole numbers", "f": "floating-point numbers"}
        for name, array in arrays.items():
            own = getattr(self, f"_{name}")
            kind = next(kind for kind in kinds if own.dtype.kind in kind)
            if array.shape != own.shape:
                raise InputError(f"clock state {name!r} must have shape {own.shape}")
            if array.dtype.kind not in kind:
                raise InputError(f"clock state {name!r} must be {kinds[kind]}")
        elapsed, left, planned = arrays["elapsed"], arrays["left"], arrays["planned"]
        if any(np.any(array > 2**31) for array in (elapsed, left, planned)):
            raise InputError("clock state must have durations of 2**31 at most")
        if np.any((elapsed < 0) | (left < 0) | (elapsed + left > planned)):
            raise InputError("clock state must have elapsed and left of at least 0 that add up to planned at most")
        for name, array in arrays.items():
            getattr(self, f"_{name}")[:] = array

    def _mask(self, mask: ArrayLike) -> NDArray[np.bool_]:
        chosen = np.asarray(mask, dtype=np.bool_)
        if chosen.shape != self._left.shape:
            raise ValueError(f"a mask must have shape ({self.n_envs},), not {chosen.shape}")
        return chosen


def _whole_numbers(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be whole numbers, not of type {array.dtype}")
    if array.shape == shape:
        return array.astype(np.int64, copy=False)
    try:
        return np.broadcast_to(array.astype(np.int64), shape)
    except ValueError:
        raise ValueError(f"{name} must have shape {shape}, not {array.shape}") from None


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
