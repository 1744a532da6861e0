"""Environments that are broken, one kind each: a user's module, which tests copy to where it is typed."""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class LeaveError(BaseException):
    """Is no Exception."""


class UnspeakableError(Exception):
    """Cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Secretive(dict):  # type: ignore[type-arg]
    """A dictionary that nobody can read."""

    def __iter__(self) -> Any:
        raise RuntimeError("no names")

    def __getitem__(self, name: Any) -> Any:
        raise RuntimeError("no values")


def _recurse(depth: int) -> int:
    return _recurse(depth + 1) + 1


def _raise(error: BaseException) -> Any:
    raise error


SEEN = np.zeros(2, np.float32)

RETURNED: dict[str, Any] = {
    "step returns None": None,
    "step returns four values": (SEEN, 0.0, False, {}),
    "step returns six values": (SEEN, 0.0, False, False, {}, 1),
    "step returns a text": "12345",
    "step returns a dictionary": dict.fromkeys("abcde"),
    "step returns a number": 3,
    "reward is NaN": (SEEN, float("nan"), False, False, {}),
    "reward is infinite": (SEEN, float("inf"), False, False, {}),
    "reward is 1e308": (SEEN, 1e308, False, False, {}),
    "reward is None": (SEEN, None, False, False, {}),
    "reward is a text": (SEEN, "1", False, False, {}),
    "reward is complex": (SEEN, 1j, False, False, {}),
    "reward is two numbers": (SEEN, np.zeros(2), False, False, {}),
    "reward is an object": (SEEN, object(), False, False, {}),
    "observation has NaN": (np.array([0, np.nan], np.float32), 0.0, False, False, {}),
    "observation is infinite": (np.array([0, np.inf], np.float32), 0.0, False, False, {}),
    "observation has another shape": (np.zeros(3, np.float32), 0.0, False, False, {}),
    "observation has another axis": (np.zeros((1, 2), np.float32), 0.0, False, False, {}),
    "observation is of objects": (np.array([None, 1]), 0.0, False, False, {}),
    "observation is complex": (np.array([1j, 1]), 0.0, False, False, {}),
    "observation is None": (None, 0.0, False, False, {}),
    "observation is a text": ("ab", 0.0, False, False, {}),
    "observation is a number": (1.0, 0.0, False, False, {}),
    "observation is a dictionary": ({"a": 1}, 0.0, False, False, {}),
    "observation is ragged": ([[1.0], [1.0, 2.0]], 0.0, False, False, {}),
    "observation is empty": (np.zeros(0, np.float32), 0.0, False, False, {}),
    "terminated is None": (SEEN, 0.0, None, False, {}),
    "terminated is a text": (SEEN, 0.0, "yes", False, {}),
    "terminated is 2": (SEEN, 0.0, 2, False, {}),
    "terminated is two flags": (SEEN, 0.0, np.array([True, False]), False, {}),
    "truncated is None": (SEEN, 0.0, False, None, {}),
    "truncated is NaN": (SEEN, 0.0, False, float("nan"), {}),
    "info is None": (SEEN, 0.0, False, False, None),
    "info is a list": (SEEN, 0.0, False, False, []),
    "info cannot be read": (SEEN, 0.0, False, False, Secretive(a=1)),
}
"""What the fifth step returns."""

RAISED: dict[str, Any] = {
    "step raises KeyError": lambda: _raise(KeyError("arm")),
    "step raises two lines": lambda: _raise(ValueError("one\ntwo")),
    "step raises AssertionError": lambda: _raise(AssertionError()),
    "step raises StopIteration": lambda: _raise(StopIteration()),
    "step raises GeneratorExit": lambda: _raise(GeneratorExit()),
    "step raises MemoryError": lambda: _raise(MemoryError()),
    "step raises OSError": lambda: _raise(OSError(5, "Input/output error", "/dev/arm")),
    "step raises what is no Exception": lambda: _raise(LeaveError("the room")),
    "step raises what cannot be printed": lambda: _raise(UnspeakableError()),
    "step raises a warning as an error": lambda: _raise(UserWarning("hot")),
    "step recurses for ever": lambda: _recurse(0),
    "step exits with 0": lambda: sys.exit(0),
    "step exits with 3": lambda: sys.exit(3),
    "step asks for a terabyte": lambda: np.zeros(2**40),
    "step divides by zero": lambda: 1 // 0,
    "step hangs": lambda: time.sleep(1000),
    "step loops for ever": lambda: _loop(),
    "step aborts the process": os.abort,
}
"""What the fifth step does."""

RESETS: dict[str, Any] = {
    "reset returns None": lambda: None,
    "reset returns the observation alone": lambda: SEEN,
    "reset returns three values": lambda: (SEEN, {}, 1),
    "reset's observation has NaN": lambda: (np.array([np.nan, 0], np.float32), {}),
    "reset's observation has another shape": lambda: (np.zeros(5, np.float32), {}),
    "reset's info is None": lambda: (SEEN, None),
    "reset raises": lambda: _raise(RuntimeError("no power")),
    "reset exits with 0": lambda: sys.exit(0),
    "reset hangs": lambda: time.sleep(1000),
}
"""What the third reset does."""

SPACES: dict[str, Any] = {
    "no observation space": {"observation_space": None},
    "no action space": {"action_space": None},
    "observations are a text": {"observation_space": spaces.Text(5)},
    "observations have no numbers": {"observation_space": spaces.Box(-1, 1, (0,), np.float32)},
    "observations are a sequence": {"observation_space": spaces.Sequence(spaces.Discrete(2))},
    "actions are a dictionary": {"action_space": spaces.Dict({"a": spaces.Discrete(2)})},
    "actions are several numbers": {"action_space": spaces.MultiDiscrete([2, 2])},
    "the observation space is a class": {"observation_space": spaces.Box},
}
"""What an environment has instead of its spaces."""

MAKERS = (
    *("making raises", "making exits with 0", "making gives None", "making gives a class"),
    "making needs an argument",
)
HARMLESS = (
    *("closing raises", "prints lines", "warns at every step", "rewards are arrays of one", "flags are of NumPy"),
    *("info has a file in it", "observations are of float64", "every episode has one step", "changes the folder"),
)
KINDS = (*RETURNED, *RAISED, *RESETS, *SPACES, *MAKERS, *HARMLESS)


def _loop() -> None:
    while True:
        pass


class Broken(gymnasium.Env[Any, Any]):
    """Five steps an episode; broken in the way that its name says."""

    def __init__(self, how: str = "good") -> None:
        self.how, self._resets, self._steps, self._life = how, 0, 0, 0
        self.observation_space = spaces.Box(-2.0, 2.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        for name, space in SPACES.get(how, {}).items():
            setattr(self, name, space)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._resets, self._steps = self._resets + 1, 0
        if self._resets == 3 and self.how in RESETS:
            return RESETS[self.how]()
        return SEEN, {}

    def step(self, action: Any) -> Any:
        self._steps, self._life = self._steps + 1, self._life + 1
        if self._life == 12:
            if self.how in RETURNED:
                return RETURNED[self.how]
            if self.how in RAISED:
                RAISED[self.how]()
        if self.how == "prints lines":
            sys.stdout.write("a step\n")
        if self.how == "warns at every step":
            warnings.warn("hot", UserWarning, stacklevel=1)
        if self.how == "changes the folder":
            os.chdir("/")
        reward = np.array([0.5]) if self.how == "rewards are arrays of one" else 0.5
        is_over = self._steps == (1 if self.how == "every episode has one step" else 5)
        flag = np.bool_(is_over) if self.how == "flags are of NumPy" else is_over
        info = {"log": sys.stderr} if self.how == "info has a file in it" else {}
        seen = SEEN.astype(np.float64) if self.how == "observations are of float64" else SEEN
        return seen, reward, flag, False, info

    def close(self) -> None:
        if self.how == "closing raises":
            raise RuntimeError("stuck")


def make(how: str = "good") -> Any:
    """An environment of a kind."""
    match how:
        case "making raises":
            raise RuntimeError("no such robot")
        case "making exits with 0":
            sys.exit(0)
        case "making gives None":
            return None
        case "making gives a class":
            return Broken
        case "making needs an argument":
            return Broken(where=1)  # type: ignore[call-arg]
    return Broken(how)
