"""Which action is held, and for how many more steps.

``OptionClock`` handles many environments at once. The two leaf functions do the same for one environment, in the
subset of Python that compiles; the compiled tabular loops call them. Tests compare the two forms.
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
    """Steps left in a held option after one more step; 0 if the episode ended."""
    if episode_ended:
        return 0
    return left - 1


def is_interrupted(best_value: Any, held_value: Any, margin: Any) -> Any:
    """Whether to drop a held option: the best option here beats holding on by more than ``margin``.

    Args:
        best_value: max Q(s,·,·) at the state just reached.
        held_value: Q(s,a,m), the value of holding ``a`` for the ``m`` remaining steps.
        margin: How much better the best option must be.
    """
    return best_value - held_value > margin


class OptionClock:
    """The option held in each of ``n_envs`` environments.

    An environment is *idle* when no option is running in it. ``begin`` must then give it one before the next
    ``tick``. Arrays have shape (n_envs,); callers get read-only views.

    Args:
        n_envs: Number of environments.
        action_size: Length of a continuous action's vector; None if an action is one whole number.
        action_dtype: Floating-point type of continuous actions.

    Attributes:
        action: The held action, or the last one held if idle; continuous actions are rows of (n_envs, size).
        planned: The k that the option began with.
        elapsed: Steps executed so far; κ once the option is over.
        left: Steps still to go; 0 if idle.
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
        """The persistence that each option began with."""
        return _read_only(self._planned)

    @property
    def elapsed(self) -> NDArray[np.int64]:
        """Steps of each option executed so far."""
        return _read_only(self._elapsed)

    @property
    def left(self) -> NDArray[np.int64]:
        """Steps that each option still has to go."""
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
        """Begin an option in the environments of ``mask``.

        Args:
            mask: (n_envs,) bool; every environment it selects must be idle.
            actions: (n_envs,) actions, or (n_envs, size) continuous ones; read only where ``mask`` is true.
            durations: (n_envs,) persistences k ≥ 1; read only where ``mask`` is true.
            exploratory: (n_envs,) or one bool: whether the option was drawn at random rather than chosen.
        """
        chosen = self._mask(mask)
        if (self._left[chosen] > 0).any():
            raise ValueError("mask must select idle environments only: an option is still held there")
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
        """Count one executed step in every environment; the end of an episode ends its option.

        Args:
            episode_ended: (n_envs,) bool, whether this step terminated or truncated the episode.

        Returns:
            (n_envs,) bool, whether this step ended the option; ``elapsed`` is then its κ.
        """
        ended = self._mask(episode_ended)
        if self.idle.any():
            raise ValueError("every environment must hold an option before tick")
        self._elapsed += 1
        self._left[:] = np.where(ended, 0, self._left - 1)
        return self.idle

    def cut(self, mask: ArrayLike) -> None:
        """End the options of ``mask`` now, after an interruption, a reset or a change of environment."""
        self._left[self._mask(mask)] = 0

    def state(self) -> dict[str, NDArray[Any]]:
        """A copy of everything that ``restore`` needs."""
        return {name: getattr(self, f"_{name}").copy() for name in self._FIELDS}

    def restore(self, state: Mapping[str, ArrayLike]) -> None:
        """Continue from a dictionary that ``state`` returned."""
        missing = [name for name in self._FIELDS if name not in state]
        if missing:
            raise InputError(f"clock state must have {', '.join(self._FIELDS)}: {missing[0]!r} is missing")
        arrays = {name: np.asarray(state[name]) for name in self._FIELDS}
        kinds = {"b": "bools", "iu": "whole numbers", "f": "floating-point numbers"}
        for name, array in arrays.items():
            own = getattr(self, f"_{name}")
            kind = next(kind for kind in kinds if own.dtype.kind in kind)
            if array.shape != own.shape:
                raise InputError(f"clock state {name!r} must have shape {own.shape}, not {array.shape}")
            if array.dtype.kind not in kind:
                raise InputError(f"clock state {name!r} must be {kinds[kind]}")
        elapsed, left, planned = arrays["elapsed"], arrays["left"], arrays["planned"]
        if any(np.any(array > 2**31) for array in (elapsed, left, planned)):
            raise InputError("clock state must have durations of at most 2**31")
        if np.any((elapsed < 0) | (left < 0) | (elapsed + left > planned)):
            raise InputError("clock state must have elapsed and left of at least 0, and their sum at most planned")
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
