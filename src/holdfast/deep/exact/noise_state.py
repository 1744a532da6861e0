"""What SB3's exploration noise remembers from one draw to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.noise import (
    ActionNoise,
    NormalActionNoise,
    OrnsteinUhlenbeckActionNoise,
    VectorizedActionNoise,
)

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take_array, take_mapping

__all__ = ["noise_state", "restore_noise"]


def noise_state(noise: ActionNoise | None) -> dict[str, Any]:
    """The noise's memory as arrays, by environment number; empty for noise without memory.

    Raises:
        ValueError: It is noise of a class whose memory is unknown.
    """
    return {
        str(number): np.array(single.noise_prev, dtype=np.float64)
        for number, single in enumerate(_singles(noise))
        if isinstance(single, OrnsteinUhlenbeckActionNoise)
    }


def restore_noise(noise: ActionNoise | None, state: Mapping[str, Any], name: str) -> None:
    """Restore what ``noise_state`` returned under ``name``.

    Raises:
        ValueError: The state is damaged or of other noise.
    """
    saved = take_mapping(state, name)
    for number, single in enumerate(_singles(noise)):
        if isinstance(single, OrnsteinUhlenbeckActionNoise):
            single.noise_prev = take_array(saved, str(number), np.float64, single._mu.shape).copy()


def _singles(noise: ActionNoise | None) -> list[ActionNoise]:
    if noise is None:
        return []
    singles = list(noise.noises) if isinstance(noise, VectorizedActionNoise) else [noise]
    for single in singles:
        if type(single) not in (NormalActionNoise, OrnsteinUhlenbeckActionNoise):
            raise InputError(
                "action_noise must be Gaussian or Ornstein-Uhlenbeck noise for a state that can be saved, not "
                f"{type(single).__name__}",
                "action_noise",
            )
    return singles
