"""Actions that are one choice among many, counted from 0: plain numbers, or several dials and switches at once.

A MultiDiscrete or MultiBinary space is one choice among all its combinations, the last dial turning fastest.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.core.errors import InputError

__all__ = ["MOST_COMBINATIONS", "Choices", "NumberedActions", "are_choices", "can_be_learned"]

MOST_COMBINATIONS = 1024
"""Combinations of dials and switches that are taken as one choice: every one has values of its own."""


def are_choices(space: spaces.Space[Any]) -> bool:
    """Whether actions of a space are one choice among a few."""
    return isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary)


def can_be_learned(space: spaces.Space[Any]) -> bool:
    """Whether some agent of holdfast takes actions of a space."""
    if isinstance(space, spaces.Box):
        return True
    try:
        Choices(space)
    except InputError:
        return False
    return True


class Choices:
    """The actions of a space as numbers from 0, and back.

    Args:
        space: Discrete, MultiDiscrete or MultiBinary.

    Attributes:
        n: How many there are.

    Raises:
        ValueError: The space has more combinations than ``MOST_COMBINATIONS``, or is another one.
    """

    def __init__(self, space: spaces.Space[Any]) -> None:
        self._space = space
        if isinstance(space, spaces.Discrete):
            self.n = int(space.n)
            return
        if isinstance(space, spaces.MultiDiscrete):
            self._shape, self._first = tuple(map(int, space.nvec.ravel())), space.start
        elif isinstance(space, spaces.MultiBinary):
            self._shape, self._first = (2,) * int(np.prod(space.shape)), np.zeros(space.shape, dtype=space.dtype)
        else:
            raise InputError(f"env must have actions that are a choice among a few, not {space}", "env")
        # As Python's numbers, which do not overflow.
        self.n = 1
        for count in self._shape:
            self.n *= count
        if self.n > MOST_COMBINATIONS:
            raise InputError(
                f"env must have at most {MOST_COMBINATIONS} combinations of actions, and {space} has {self.n}: "
                "wrap it so that it offers fewer",
                "env",
            )

    @property
    def are_numbers(self) -> bool:
        """Whether an action is a single number."""
        return isinstance(self._space, spaces.Discrete)

    def taken(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Choices (n,) counted from 0 as the environment takes them: (n,), or (n, ...) in the space's shape."""
        if isinstance(self._space, spaces.Discrete):
            return np.asarray(numbers + self._space.start)
        parts = np.stack(np.unravel_index(np.asarray(numbers), self._shape), axis=-1)
        return (parts.reshape(-1, *self._first.shape) + self._first).astype(self._space.dtype)

    def numbers(self, taken: Any) -> NDArray[Any]:
        """What ``taken`` was given, of what it returned."""
        if isinstance(self._space, spaces.Discrete):
            return np.asarray(np.asarray(taken) - self._space.start)
        parts = (np.asarray(taken) - self._first).reshape(-1, len(self._shape)).astype(np.int64)
        return np.asarray(np.ravel_multi_index(tuple(parts.T), self._shape))

    def number(self, taken: Any) -> int:
        """The number of one action, as the environment takes it."""
        return int(self.numbers(np.asarray(taken)[None])[0])

    def all_taken(self) -> NDArray[Any]:
        """Every action as the environment takes it."""
        return self.taken(np.arange(self.n))

    def names(self) -> tuple[str, ...]:
        """What they are called where nobody has better names: "action 2", or "(1, 0, 2)"."""
        if self.are_numbers:
            return tuple(f"action {number}" for number in self.all_taken())
        return tuple(f"({', '.join(str(part) for part in np.ravel(action))})" for action in self.all_taken())


class NumberedActions(gymnasium.ActionWrapper[Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment whose combinations of actions are numbers from 0, for tables.

    Args:
        env: Has MultiDiscrete or MultiBinary actions.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._choices = Choices(env.action_space)
        self.action_space = spaces.Discrete(self._choices.n)

    def action(self, action: Any) -> Any:
        """The combination that a number stands for."""
        return self._choices.taken(np.array([action]))[0]
