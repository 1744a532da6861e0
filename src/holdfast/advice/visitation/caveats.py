"""What a study of random options could not look at, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.advice.visitation.cells import Cells
from holdfast.advice.visitation.results import Visitation
from holdfast.envs import GridMap

__all__ = ["caveats_of"]


def caveats_of(
    cells: Cells, grid: GridMap | None, usual: float | None, results: Sequence[Visitation], longest: int
) -> tuple[str, ...]:
    """Sentences about what could not be looked at, or not well.

    Args:
        cells: What counts as a place.
        grid: The map, where the states are the cells of one.
        usual: The usual reward; None if no reward is that common.
        results: Of all settings.
        longest: Steps after which an episode that does not end was cut off.
    """
    notes = []
    if cells.kind == "places":
        notes.append(f"No heat map: places are the {cells.names[0]}. Coverage counts those that differ.")
    elif cells.kind == "observations":
        notes.append(
            "There is no heat map, for observations are not 2 to 32 numbers; coverage counts those that differ."
        )
    elif cells.kind == "states" and grid is None:
        notes.append("There is no heat map, for the states are not the cells of one map.")
    if usual is None:
        if results[0].success is None:
            notes.append("Success cannot be detected: no reward is the usual one, and no end gives more.")
    elif results[0].success is None:
        notes.append(f"Success cannot be detected: nothing is better than the usual reward, {usual:g}.")
    # A quantile whose upper end is not known may be anything.
    few = [result.episodes for result in results if np.isnan(result.upper_return.high)]
    cut_off, episodes = (sum(getattr(result, name) for result in results) for name in ("cut_off", "episodes"))
    if cut_off:
        notes.append(
            f"{cut_off} of {episodes} episodes did not end and were cut off after {longest:,} steps: the "
            "environment wants a time limit (max_episode_steps where it is registered, or gymnasium's TimeLimit)."
        )
    elif few:
        notes.append(
            f"With {min(few)} episode{'s' if min(few) > 1 else ''} of a k_max there are too few to tell how good "
            "the better ones are: a larger budget tells more."
        )
    return tuple(notes)
