"""What a study of random options could not examine, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.advice.visitation.cells import Cells
from holdfast.advice.visitation.results import Visitation
from holdfast.envs import GridMap

__all__ = ["caveats_of"]


def caveats_of(
    cells: Cells, grid: GridMap | None, usual: float | None, results: Sequence[Visitation], longest: int
) -> tuple[str, ...]:
    """Sentences about what could not be examined, or not well.

    Args:
        cells: What counts as a place.
        grid: The map, if the states are its cells.
        usual: The usual reward; None if no reward is that common.
        results: Results of all settings.
        longest: Steps after which an episode that does not end is cut off.
    """
    notes = []
    if cells.kind == "places":
        notes.append(f"No heat map: places are the {cells.names[0]}. Coverage counts the distinct ones.")
    elif cells.kind == "observations":
        notes.append("No heat map: observations are not 2 to 32 numbers. Coverage counts the distinct ones.")
    elif cells.kind == "states" and grid is None:
        notes.append("No heat map: these states do not lie on a single map.")
    if usual is None:
        if results[0].success is None:
            notes.append(
                "Success cannot be detected: no single reward is the usual one, and no episode's end gives more."
            )
    elif results[0].success is None:
        notes.append(f"Success cannot be detected: nothing is better than the usual reward, {usual:g}.")
    cut_off, episodes = (sum(getattr(result, name) for result in results) for name in ("cut_off", "episodes"))
    if cut_off:
        notes.append(
            f"{cut_off} of {episodes} episodes did not end and were cut off after {longest:,} steps: the "
            "environment needs a time limit (max_episode_steps when registering it, or gymnasium's TimeLimit)."
        )
    return tuple(notes)
