"""What the arguments of each algorithm are drawn from, unless a user says otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core.errors import InputError, InputTypeError
from holdfast.policies.algorithms import Algorithm, nearest_names

__all__ = ["Range", "check_ranges", "ranges_for"]


_LARGEST = 2**53
"""Up to here, floats count whole numbers one by one."""


@dataclass(frozen=True)
class Range:
    """What an argument is drawn from: the numbers between two, or a list of values.

    Attributes:
        low: The least number.
        high: The greatest.
        is_log: Whether the logarithm is what is drawn evenly.
        choices: Values instead, as JSON has them.
    """

    low: float | int | None = None
    high: float | int | None = None
    is_log: bool = False
    choices: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.choices, str) or not isinstance(self.choices, Sequence):
            raise InputTypeError(f"choices must be a list such as [16, 32], not {self.choices!r}", "choices")
        object.__setattr__(self, "choices", tuple(self.choices))
        if self.choices:
            return
        for end in (self.low, self.high):
            if end is not None and (isinstance(end, bool) or not isinstance(end, int | float)):
                raise InputTypeError(
                    f"a range must go from a number to a greater one, and {end!r} is not a number"
                )
        if self.low is None or self.high is None or not self.low < self.high:
            raise InputError(f"a range must go from a number to a greater one, not from {self.low} to {self.high}")
        if max(abs(self.low), abs(self.high)) > _LARGEST:
            raise InputError(f"a range must have ends of at most 2**53, not {self.low} and {self.high}")
        if self.is_log and self.low <= 0:
            raise InputError(f"a range of logarithms must begin above 0, not at {self.low}")

    @property
    def is_whole(self) -> bool:
        """Whether it is one of whole numbers."""
        return type(self.low) is int and type(self.high) is int

    def has(self, value: Any) -> bool:
        """Whether ``value`` can be drawn."""
        if self.choices:
            return any(type(one) is type(value) and one == value for one in self.choices)
        if type(value) not in (int, float) or self.low is None or self.high is None:
            return False
        return self.low <= value <= self.high and (not self.is_whole or type(value) is int)

    @property
    def ends(self) -> tuple[Any, ...]:
        """Values that it must be possible to give: all choices, or both ends."""
        return self.choices or (self.low, self.high)

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        if self.choices:
            return {"choices": list(self.choices)}
        return {"low": self.low, "high": self.high, "log": self.is_log}

    def __str__(self) -> str:
        if self.choices:
            return ", ".join(one if isinstance(one, str) else json.dumps(one) for one in self.choices)
        return f"{self.low:g}..{self.high:g}{' (logarithm)' if self.is_log else ''}"


_DISCOUNTS = Range(choices=(0.9, 0.95, 0.98, 0.99, 0.995, 0.999))
_HOLDS = Range(choices=(1, 2, 4, 8, 16, 32))

_ALIKE = {"k_max", "persistences"}
"""They say the same thing."""

_SETS = tuple([2**power for power in range(longest + 1)] for longest in range(6))
"""Powers of two up to 1, 2, 4, 8, 16 and 32."""

_WITH_A_NETWORK: Mapping[str, Range] = {
    "learning_rate": Range(3e-5, 3e-3, is_log=True),
    "batch_size": Range(choices=(16, 32, 64, 128, 256)),
    "gamma": _DISCOUNTS,
    "train_freq": Range(choices=(1, 2, 4, 8)),
    "target_update_interval": Range(50, 5000, is_log=True),
    "exploration_fraction": Range(0.05, 0.5),
    "exploration_final_eps": Range(0.005, 0.2, is_log=True),
    "policy_kwargs": Range(choices=(None, {"net_arch": [64, 64]}, {"net_arch": [256, 256]})),
    "persistences": Range(choices=_SETS),
    "k_max": _HOLDS,
}
_WITH_AN_ACTOR: Mapping[str, Range] = {
    "learning_rate": Range(1e-4, 3e-3, is_log=True),
    "batch_size": Range(choices=(64, 128, 256, 512)),
    "gamma": _DISCOUNTS,
    "tau": Range(0.001, 0.08, is_log=True),
    "action_noise": Range(0.01, 0.5),
    "exploration_fraction": Range(0.05, 0.5),
    "exploration_final_eps": Range(0.01, 0.3, is_log=True),
    "persistences": Range(choices=_SETS),
    "k_max": _HOLDS,
}
_WITH_A_TABLE: Mapping[str, Range] = {
    "alpha": Range(0.01, 1.0, is_log=True),
    "gamma": _DISCOUNTS,
    "epsilon": Range(choices=tuple(f"exponential({decay}, 0.0)" for decay in (0.9, 0.95, 0.98, 0.99, 0.995))),
    "initial_value": Range(-1.0, 1.0),
    "k_max": _HOLDS,
    "updates_per_step": Range(choices=(1.0, 2.0, 4.0, 8.0)),
}


def ranges_for(algorithm: Algorithm) -> dict[str, Range]:
    """The ranges of an algorithm's arguments, as far as it has them; each holds the default."""
    shared = _WITH_AN_ACTOR if algorithm.is_continuous else _WITH_A_NETWORK if algorithm.is_deep else _WITH_A_TABLE
    known = algorithm.arguments()
    found = {name: one for name, one in shared.items() if name in known and one.has(known[name].default)}
    if "persistences" in found:
        found.pop("k_max", None)
    return found


def check_ranges(algorithm: Algorithm, ranges: Mapping[str, Range], fixed: Mapping[str, Any]) -> None:
    """See that an algorithm can be given what is drawn.

    Args:
        algorithm: The algorithm.
        ranges: By argument.
        fixed: Arguments that all trials share.

    Raises:
        ValueError: There is nothing to draw, an argument is unknown or fixed, or a value is of the wrong kind.
    """
    if not ranges:
        raise InputError(
            "range must name at least one argument that is not fixed: there is nothing to tune", "range"
        )
    for name, one in ranges.items():
        if not isinstance(one, Range):
            raise InputTypeError(
                f"ranges must have Range(0.1, 0.5), Range(choices=[16, 32]) or the like for {name}, not {one!r}",
                "ranges",
            )
    known = algorithm.arguments()
    if ranges.keys() & _ALIKE and {*ranges, *fixed} >= _ALIKE:
        raise InputError(
            "range and set must name one of k_max and persistences, which say the same", "range", "set"
        )
    for name, one in ranges.items():
        if name not in known:
            hint = nearest_names(name, known) or f"choose from {', '.join(known)}"
            raise InputError(f"range names {name!r}, which {algorithm.name} does not have; {hint}", "range")
        if name in fixed:
            raise InputError(f"range and set must not both name {name!r}", "range", "set")
        for value in one.ends:
            known[name].check(value)
