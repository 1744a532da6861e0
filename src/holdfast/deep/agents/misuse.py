"""What is easily mistaken about agents, said in a sentence: vector environments, states."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy

from holdfast.core.errors import InputError, InputTypeError

__all__ = ["LostStates", "check_not_of_sb3", "check_not_vector"]

_FORGIVEN = 10
"""Calls in a row that may begin anew while an action was to be held: who looks at some observations makes such."""


def check_not_vector(env: Any) -> None:
    """TypeError for a vector environment of Gymnasium, which Stable-Baselines3 does not take."""
    if isinstance(env, gymnasium.vector.VectorEnv):
        raise InputTypeError(
            "env must be an id, an environment or a VecEnv of Stable-Baselines3, not one of gymnasium.make_vec: "
            "holdfast.make_vec_env(id, n_envs) makes several",
            "env",
        )


def check_not_of_sb3(policy: Any, agent: type) -> None:
    """ValueError for a policy of Stable-Baselines3's own, as its files have it."""
    if (
        isinstance(policy, type)
        and issubclass(policy, BasePolicy)
        and policy.__module__.startswith("stable_baselines")
    ):
        parent = policy.__module__.split(".")[1].upper()
        raise InputError(
            f"policy must be one of {agent.__name__}, not Stable-Baselines3's {policy.__name__}: a file that its "
            f"{parent} has saved is loaded with {parent}.load",
            "policy",
        )


class LostStates:
    """Notices a loop that calls ``predict`` without the state that the call before returned, and warns once."""

    def __init__(self) -> None:
        self._in_a_row = 0
        self._is_holding = False
        self._has_warned = False

    def note(self, given: Any, left: NDArray[np.int64]) -> None:
        """A call of ``predict``.

        Args:
            given: The state that it was given.
            left: (n,) steps for which the actions that it returned are to be held on.
        """
        is_lost = given is None and self._is_holding
        self._in_a_row = self._in_a_row + 1 if is_lost else 0
        self._is_holding = bool(np.any(left > 0))
        if self._in_a_row > _FORGIVEN and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "predict is called again and again without the state that it returned, so that no action is held "
                "longer than one step: action, state = model.predict(observation, state, episode_start)",
                UserWarning,
                stacklevel=4,
            )
