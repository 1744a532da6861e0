"""Frozen lakes: square grids with holes at random places, a different lake for each seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_integer, check_probability
from holdfast.core.errors import InputError
from holdfast.envs.grid_map import FREE, GOAL, HOLE, START, GridMap, connected_cells
from holdfast.envs.grids import GridWorld

__all__ = ["FrozenLake16", "random_map"]

_TRIES = 1000


def random_map(size: int = 16, frozen: float = 0.85, seed: int = 0) -> GridMap:
    """A random square map with the start top left, the goal bottom right, and a path between them.

    Maps are drawn until one can be solved, so the share of holes is slightly below 1 − ``frozen``.

    Args:
        size: Number of rows and of columns, at least 2.
        frozen: Probability that a cell is not a hole.
        seed: Random seed; the same seed gives the same map.

    Raises:
        ValueError: An argument is out of range, or no solvable map was found.
    """
    size = check_integer("size", size, at_least=2)
    frozen = check_probability("frozen", frozen)
    random = np.random.default_rng(check_integer("seed", seed, at_least=0))
    for _ in range(_TRIES):
        ice = random.random((size, size)) < frozen
        ice[0, 0] = ice[-1, -1] = True
        if connected_cells(ice, start=0)[-1, -1]:
            return _as_map(ice)
    raise InputError(
        f"frozen must be larger for maps of size {size}: with {frozen:g} none of {_TRIES} maps could be solved",
        "frozen",
    )


class FrozenLake16(GridWorld):
    """A 16x16 frozen lake: +1 at the goal, −1 in a hole; borders block; no slips by default.

    Args:
        seed: Seed of the map: each seed gives a different lake. The seed of ``reset`` does not change the map.
        frozen: Probability that a cell is not a hole.
        options: The other arguments of ``GridWorld``.
    """

    def __init__(self, seed: int = 0, *, frozen: float = 0.85, **options: Any) -> None:
        super().__init__(random_map(16, frozen, seed), **options)


def _as_map(ice: NDArray[np.bool_]) -> GridMap:
    letters = np.where(ice, FREE, HOLE)
    letters[0, 0], letters[-1, -1] = START, GOAL
    return GridMap(tuple("".join(row) for row in letters))
