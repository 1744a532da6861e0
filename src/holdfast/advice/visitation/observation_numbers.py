"""The numbers that make up an observation, and their names.

A vector has one per component. Dictionaries and tuples that contain a vector or number are flattened as by
``gymnasium.spaces.flatten``: part by part, with choices as one 0 or 1 per possibility.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.envs import observation_names

__all__ = ["number_names", "numbers_of"]


def number_names(env: gymnasium.Env[Any, Any]) -> tuple[str, ...]:
    """One name per number of an observation; empty if observations are not vectors and contain none.

    A dictionary's numbers are named by their keys: ``position[0]``, ``goal.height``, ``gear=2``.
    """
    space = env.observation_space
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return observation_names(env)
    leaves = list(_leaves(space, ""))
    known = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)
    # Observations of choices alone are best compared as a whole.
    if not all(isinstance(leaf, known) for _, leaf in leaves) or not any(
        isinstance(leaf, spaces.Box) for _, leaf in leaves
    ):
        return ()
    return tuple(name for path, leaf in leaves for name in _names(path, leaf))


def numbers_of(space: spaces.Space[Any], observation: Any) -> NDArray[Any]:
    """(n,) the numbers of an observation, as named by ``number_names``."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return np.asarray(spaces.flatten(space, observation))
    return np.array(observation)


def _leaves(space: spaces.Space[Any], path: str) -> Iterator[tuple[str, spaces.Space[Any]]]:
    """The parts of a space that have no parts themselves, by path, in the order of flattening."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _leaves(part, f"{path}.{key}" if path else str(key))
    elif isinstance(space, spaces.Tuple):
        for number, part in enumerate(space.spaces):
            yield from _leaves(part, f"{path or 'observation'}[{number}]")
    else:
        yield path, space


def _names(path: str, leaf: Any) -> list[str]:
    match leaf:
        case spaces.Discrete():
            return [f"{path}={leaf.start + number}" for number in range(int(leaf.n))]
        case spaces.MultiDiscrete():
            return [
                f"{path}[{place}]={first + number}"
                for place, (n, first) in enumerate(zip(leaf.nvec.ravel(), leaf.start.ravel(), strict=True))
                for number in range(int(n))
            ]
    return [path] if leaf.shape == () else [f"{path}[{place}]" for place in range(int(np.prod(leaf.shape)))]
