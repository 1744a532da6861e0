"""Of an environment's info a training sees whether an episode was a success, and nothing else."""

from __future__ import annotations

import math
from collections import UserDict
from typing import Any

import numpy as np
import pytest

from holdfast.envs import EnvironmentFailedError, make_env
from holdfast.envs.failures import NamedFailures
from holdfast.envs.training_info import TrainingInfo


class Raising(dict[str, Any]):
    """An info whose entries cannot be read."""

    def __getitem__(self, name: str) -> Any:
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        raise KeyError(name)


class Unsure(float):
    """A number that is none when it is asked."""

    def __float__(self) -> float:
        raise RuntimeError("unsure")


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({}, {}),
        ({"episode": 3, "terminal_observation": "a", "lock": object()}, {}),
        ({"is_success": True, "episode": {}}, {"is_success": 1.0}),
        ({"is_success": np.False_}, {"is_success": 0.0}),
        ({"is_success": "yes"}, {}),
        ({"is_success": math.nan}, {}),
        ({"is_success": None}, {}),
        ({"is_success": 10**400}, {}),
        ({"is_success": Unsure(1.0)}, {}),
    ],
)
def test_what_is_handed_on(info: dict[str, Any], expected: dict[str, Any]) -> None:
    env = make_env("cliff")
    env.unwrapped.step = lambda action: (0, 0.0, False, False, info)  # type: ignore[method-assign]
    seen = TrainingInfo(env)
    assert seen.reset(seed=1)[1] == {}
    assert seen.step(0) == (0, 0.0, False, False, expected)


def test_an_info_that_cannot_be_read_is_a_failure_of_the_environment() -> None:
    env = make_env("cliff")
    env.unwrapped.step = lambda action: (0, 0.0, False, False, Raising(is_success=True))  # type: ignore[method-assign]
    seen = TrainingInfo(NamedFailures(env))
    seen.reset(seed=1)
    sentence = r"^the environment failed in episode 1, at its step 1: its info raised KeyError: 'is_success'"
    with pytest.raises(EnvironmentFailedError, match=sentence):
        seen.step(0)


def test_an_info_of_another_kind_is_read_as_a_dictionary() -> None:
    env = make_env("cliff")
    info = UserDict({"is_success": True})
    env.unwrapped.step = lambda action: (0, 0.0, False, False, info)  # type: ignore[method-assign]
    seen = TrainingInfo(NamedFailures(env.unwrapped))
    seen.reset(seed=1)
    assert seen.step(0)[4] == {"is_success": 1.0}
