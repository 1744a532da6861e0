"""Exploration rates over time: ε as a function of the number of an episode or step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_integer, check_probability
from holdfast.core.errors import InputError

__all__ = ["Constant", "Exponential", "Linear", "Schedule", "tabulate"]


@runtime_checkable
class Schedule(Protocol):
    """Anything that gives ε at time t = 0, 1, 2, ..."""

    def __call__(self, t: int) -> float:
        """The rate at time ``t``."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant ``rate``."""

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", check_probability("rate", self.rate))

    def __call__(self, t: int) -> float:
        """The rate, which does not depend on ``t``."""
        return self.rate


@dataclass(frozen=True, slots=True)
class Linear:
    """Linear from ``start`` at t = 0 to ``end`` at t = ``steps``; constant afterwards."""

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", check_probability("start", self.start))
        object.__setattr__(self, "end", check_probability("end", self.end))
        object.__setattr__(self, "steps", check_integer("steps", self.steps))

    def __call__(self, t: int) -> float:
        """The rate at time ``t``."""
        if t >= self.steps:
            return self.end
        return self.start + (self.end - self.start) * (t / self.steps)


@dataclass(frozen=True, slots=True)
class Exponential:
    """``base``^t, but never below ``floor``: the paper's tabular runs use .99^t with t counting episodes."""

    base: float
    floor: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", check_probability("base", self.base))
        object.__setattr__(self, "floor", check_probability("floor", self.floor))

    def __call__(self, t: int) -> float:
        """The rate at time ``t``."""
        return max(self.floor, self.base**t)


def tabulate(schedule: float | Schedule, n: int, start: int = 0) -> NDArray[np.float64]:
    """ε at times start..start+n−1, shape (n,), checked to be probabilities; a number means a constant schedule."""
    rate = schedule if isinstance(schedule, Schedule) else Constant(schedule)
    rates = np.array([rate(t) for t in range(start, start + n)], dtype=np.float64)
    if not np.all((rates >= 0.0) & (rates <= 1.0)):
        raise InputError("epsilon must stay in [0, 1] at every time", "epsilon")
    return rates
