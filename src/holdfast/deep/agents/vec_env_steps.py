"""What a VecEnv shows after a step, made ready to be stored."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecNormalize

from holdfast.core.errors import InputError

__all__ = ["check_finite", "with_last_observations"]


def check_finite(name: str, given: Any, step: int, env: int | None = None) -> None:
    """Refuse numbers that are none: of every environment, or of one.

    Args:
        name: What they are.
        given: An array, or a dictionary of arrays.
        step: When it was, for the error.
        env: Whose they are; None if there is a row for each.
    """
    for values in given.values() if isinstance(given, dict) else (given,):
        values = np.asarray(values)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            if env is None:
                env = int(np.argmax(~np.isfinite(values).reshape(len(values), -1).all(axis=1)))
            raise InputError(
                f"env must give finite numbers: environment {env} gave a {name} that is NaN "
                f"or infinite at step {step}"
            )


def with_last_observations(
    observations: Any, dones: NDArray[Any], infos: list[dict[str, Any]], normalizer: VecNormalize | None
) -> Any:
    """A copy of what the environments show, with the last observation of each episode that ended.

    A VecEnv resets by itself: what it shows then is the first observation of the next episode.
    """
    observations = copy.deepcopy(observations)
    for env in np.flatnonzero(dones):
        last = infos[env].get("terminal_observation")
        if last is None:
            continue
        if normalizer is not None:
            last = normalizer.unnormalize_obs(last)
        if isinstance(observations, dict):
            for key, values in observations.items():
                values[env] = last[key]
        else:
            observations[env] = last
    return observations
