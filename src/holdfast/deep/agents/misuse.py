"""Common mistakes with agents, each explained in one sentence: vector environments, lost states."""

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
"""Calls in a row that may drop a held action before the warning; looking at a few observations is legitimate."""


def check_not_vector(env: Any) -> None:
    """Raise TypeError for a vector environment of Gymnasium, which Stable-Baselines3 does not accept."""
    if isinstance(env, gymnasium.vector.VectorEnv):
        raise InputTypeError(
            "env must be an id, an environment or a VecEnv of Stable-Baselines3, not one made by "
            "gymnasium.make_vec: holdfast.make_vec_env(id, n_envs) makes several",
            "env",
        )


def check_not_of_sb3(policy: Any, agent: type) -> None:
    """Raise ValueError for one of Stable-Baselines3's own policies, as found in its files."""
    if (
        isinstance(policy, type)
        and issubclass(policy, BasePolicy)
        and policy.__module__.startswith("stable_baselines")
    ):
        family = policy.__module__.split(".")[1]
        # Policies in SB3's common modules belong to several of its algorithms.
        loader = "the class that saved it" if family == "common" else f"{family.upper()}.load"
        raise InputError(
            f"policy must be one of {agent.__name__}, not Stable-Baselines3's {policy.__name__}: give its name, "
            f"such as 'MlpPolicy', or load a file that holds such a policy with {loader}",
            "policy",
        )


class LostStates:
    """Notices a loop that calls ``predict`` without the state that the call before returned, and warns once."""

    def __init__(self) -> None:
        self._in_a_row = 0
        self._is_holding = False
        self._has_warned = False

    def note(self, given: Any, left: NDArray[np.int64]) -> None:
        """Note a call of ``predict``.

        Args:
            given: The state that it was given.
            left: (n,) steps for which the returned actions should still be held.
        """
        is_lost = given is None and self._is_holding
        self._in_a_row = self._in_a_row + 1 if is_lost else 0
        self._is_holding = bool(np.any(left > 0))
        if self._in_a_row > _FORGIVEN and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "predict is called repeatedly without the state that it returned, so no action is held for longer "
                "than one step. Pass it back: action, state = model.predict(observation, state, episode_start)",
                UserWarning,
                stacklevel=4,
            )
