"""Of an environment's info a training sees whether an episode was a success, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from holdfast.envs import make_env
from holdfast.envs.training_info import TrainingInfo


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
    ],
)
def test_what_is_handed_on(info: dict[str, Any], expected: dict[str, Any]) -> None:
    env = make_env("cliff")
    env.unwrapped.step = lambda action: (0, 0.0, False, False, info)  # type: ignore[method-assign]
    seen = TrainingInfo(env)
    assert seen.reset(seed=1)[1] == {}
    assert seen.step(0) == (0, 0.0, False, False, expected)
