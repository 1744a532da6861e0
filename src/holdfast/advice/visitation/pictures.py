"""A study of random options as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from holdfast.advice.visitation.results import Visitation, VisitationStudy
from holdfast.draw import CellLayout
from holdfast.draw.heat_maps import PANELS_ACROSS, draw_heat_maps, draw_visit_maps

__all__ = ["draw_visitation"]


def draw_visitation(study: VisitationStudy, title: str | None = None) -> Figure | None:
    """One heat map per setting, all on one logarithmic scale; each mode begins a new row.

    Args:
        study: The study to draw.
        title: Title above the picture (default: the environment's name).

    Returns:
        None if no heat map is possible: the study's notes say why.
    """
    places, across = _arrangement(study.results)
    several = len({result.mode for result in study.results}) > 1
    titles = [None if result is None else _title(result, several) for result in places]
    empty = np.zeros_like(study.results[0].counts)
    counts = np.stack([empty if result is None else result.counts for result in places])
    heading = study.env_name if title is None else title
    if study.cells.kind == "plane":
        (first, second), names = study.cells.edges, study.cells.names
        return draw_heat_maps(counts, (first, second), (names[0], names[1]), titles, heading, study.goal, across)
    if study.grid is None:
        return None
    layout = CellLayout(study.grid.shape, study.grid.start, study.grid.goals, study.grid.holes)
    return draw_visit_maps(counts, layout, titles, heading, across)


def _arrangement(results: Sequence[Visitation]) -> tuple[list[Visitation | None], int]:
    """The results panel by panel, with None where a mode does not fill its last row; and the panels per row."""
    modes = list(dict.fromkeys(result.mode for result in results))
    per_mode = len(results) // len(modes)
    # As few rows as possible, as even as possible.
    across = math.ceil(per_mode / math.ceil(per_mode / PANELS_ACROSS))
    places: list[Visitation | None] = []
    for mode in modes:
        places += [result for result in results if result.mode == mode]
        places += [None] * (-per_mode % across)
    return places, across


def _title(result: Visitation, several: bool) -> str:
    """K, how k was drawn if there are several modes, and the share of successes or else of places visited."""
    told = (
        f"{100.0 * result.coverage:.3g} % covered"
        if result.success is None
        else f"{100.0 * result.success.value:.3g} % succeed"
    )
    sign = "=" if result.mode == "fixed" else "≤"
    return f"{f'k {sign}' if several else 'K ='} {result.k_max}\n{told}"
