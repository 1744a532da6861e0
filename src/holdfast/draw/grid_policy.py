"""A greedy policy on a grid: its direction in every cell, and how long it holds on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from holdfast.core.choice import best_option, few_decision_option
from holdfast.core.options import persistence_index, persistence_set, position_within
from holdfast.draw.cell_layout import CellLayout, letter_cells, paint_ends, rule_cells
from holdfast.draw.style import CELL_COLORS, INK, LARGEST_CELL, PAGE_SIDE, PALETTE, VALUE_COLORMAP, look
from holdfast.draw.value_scale import READABLE_CELL, print_values, value_colormap, value_norm

__all__ = ["draw_policy"]

MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
"""Row and column offsets of the actions left, down, right, up."""

MOVE_NAMES = ("left", "down", "right", "up")


def draw_policy(
    q: ArrayLike,
    layout: CellLayout,
    decision_tolerance: float | None = None,
    options: tuple[ArrayLike, ArrayLike] | None = None,
    title: str | None = None,
    persistences: Sequence[int] | None = None,
) -> Figure:
    """A greedy policy on a grid: where it goes from every cell, how long it holds on, and what each hold is worth.

    On the left, an arrow in every cell shows the direction of its action; the cell's colour and number show for
    how many steps it is held. If all options have the same value, nothing is known and nothing is drawn. The path
    from the start lies on top, one long arrow per decision with a numbered dot where the decision is made. On the
    right are the values of holding each of these actions for every k: what a longer hold would give up.

    Args:
        q: (S, A, K) values, for the actions left, down, right, up; a last state outside the grid is left out.
        layout: The grid.
        decision_tolerance: Hold the best action as long as its value is this close to the best; None takes the
            best option, the first if there is a tie.
        options: Actions (S,) and persistences (S,), for a policy that is not read off ``q`` this way.
        title: Title above the picture.
        persistences: The K durations that the values belong to (default: 1..K).
    """
    table = np.asarray(q, dtype=np.float64)
    if table.ndim != 3 or table.shape[0] not in (layout.n_cells, layout.n_cells + 1) or table.shape[1] != 4:
        raise ValueError(
            f"q must have shape ({layout.n_cells}, 4, K) to match the layout and four moves, not {table.shape}"
        )
    holds = np.array(persistence_set(table.shape[2], persistences))
    actions, durations = _chosen(table, decision_tolerance, options, holds)
    way = _way_from_start(layout, actions, durations)
    rows, columns = layout.shape
    k_max = table.shape[2]
    cell = min(LARGEST_CELL, PAGE_SIDE / (columns + k_max + 3), PAGE_SIDE / rows)
    with look():
        width = columns * cell + max(k_max, 3) * cell + 2.6
        height = max(rows * cell, (len(way) + 1) * cell, 1.6) + (0.75 if title else 0.45)
        figure = Figure(figsize=(width, height), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(columns, max(k_max, 3)))
        known = np.ptp(table[: layout.n_cells], axis=(1, 2)) > 0.0
        _draw_map(left, layout, known, actions, durations, holds, cell)
        _draw_way(left, layout, way, cell)
        _draw_values(figure, right, table, way, holds, cell)
        if title:
            figure.suptitle(title)
    return figure


def _chosen(
    table: NDArray[np.float64],
    tolerance: float | None,
    options: tuple[ArrayLike, ArrayLike] | None,
    holds: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if options is not None:
        actions, durations = (np.asarray(part) for part in options)
        if actions.shape != (len(table),) or durations.shape != (len(table),):
            raise ValueError(f"options must be actions and persistences of shape ({len(table)},)")
        for part, low, high in ((actions, 0, len(MOVES) - 1), (durations, 1, int(holds[-1]))):
            if part.dtype.kind not in "iu" or part.min() < low or part.max() > high:
                raise ValueError(
                    f"options must be whole numbers: actions in 0..{len(MOVES) - 1} "
                    f"and persistences in 1..{holds[-1]}"
                )
        return actions.astype(np.int64), durations.astype(np.int64)
    actions, counted = best_option(table) if tolerance is None else few_decision_option(table, tolerance)
    return actions, holds[persistence_index(counted)]


class _Decision(NamedTuple):
    """One decision on the path from the start."""

    state: int
    action: int
    k: int
    end: int  # where holding the action leads


def _way_from_start(
    layout: CellLayout, actions: NDArray[np.int64], durations: NDArray[np.int64]
) -> list[_Decision]:
    """The decisions from the start to a hole, a goal, or a cell that was visited before; borders block moves."""
    if layout.start is None:
        return []
    rows, columns = layout.shape
    ends = (layout.goals | layout.holes).ravel()
    way: list[_Decision] = []
    state = layout.start
    while not ends[state] and state not in [decision.state for decision in way]:
        action, k, reached = int(actions[state]), int(durations[state]), state
        down, across = MOVES[action]
        for _ in range(k):
            row, column = divmod(reached, columns)
            reached = min(max(row + down, 0), rows - 1) * columns + min(max(column + across, 0), columns - 1)
            if ends[reached]:
                break
        way.append(_Decision(state, action, k, reached))
        state = reached
    return way


def _draw_map(
    axes: Axes,
    layout: CellLayout,
    known: NDArray[np.bool_],
    actions: NDArray[np.int64],
    durations: NDArray[np.int64],
    holds: NDArray[np.int64],
    cell: float,
) -> None:
    drawn = ~(layout.goals | layout.holes) & known.reshape(layout.shape)
    held = durations[: layout.n_cells].reshape(layout.shape)
    k_max = len(holds)
    shown = np.ma.masked_where(~drawn, position_within(holds, held))
    axes.imshow(shown, cmap=_hold_colors(k_max), norm=BoundaryNorm(np.arange(k_max + 1) - 0.5, k_max))
    paint_ends(axes, layout)
    rule_cells(axes, layout, color="#cdcfcc")
    letter_cells(axes, layout, cell)
    for row, column in np.argwhere(drawn):
        down, across = MOVES[actions[row * layout.shape[1] + column]]
        axes.add_patch(
            FancyArrowPatch(
                (column - 0.1 * across, row - 0.1 * down),
                (column + 0.42 * across, row + 0.42 * down),
                arrowstyle="-|>",
                mutation_scale=13 * cell,
                linewidth=0.9,
                shrinkA=0,
                shrinkB=0,
                color=PALETTE["grey"],
            )
        )
        if cell >= READABLE_CELL and k_max > 1:
            # Beside the arrow, on the side away from its tip.
            axes.text(
                column - 0.27 * across - (0.28 if across == 0 else 0.0),
                row - 0.22 * down + (0.27 if down == 0 else 0.0),
                str(held[row, column]),
                ha="center",
                va="center",
                fontsize=min(6.5, 0.22 * cell * 72),
                color=INK,
            ).set_in_layout(False)
    if layout.start_cell is not None:
        row, column = layout.start_cell
        axes.add_patch(
            Rectangle((column - 0.45, row - 0.45), 0.9, 0.9, fill=False, linewidth=1.3, edgecolor=PALETTE["sky"])
        )
    axes.set_title("action and steps held" if k_max > 1 else "action", pad=4)


def _draw_way(axes: Axes, layout: CellLayout, way: list[_Decision], cell: float) -> None:
    columns = layout.shape[1]
    for number, decision in enumerate(way, start=1):
        (row, column), (end_row, end_column) = divmod(decision.state, columns), divmod(decision.end, columns)
        if decision.state != decision.end:
            arrow = FancyArrowPatch(
                (column, row),
                (end_column, end_row),
                arrowstyle="-|>",
                mutation_scale=26 * cell,
                linewidth=2.2,
                shrinkA=0,
                shrinkB=13 * cell,
                color=PALETTE["blue"],
                zorder=4,
            )
            arrow.set_path_effects([withStroke(linewidth=4.2, foreground="white")])
            axes.add_patch(arrow)
        axes.plot(column, row, "o", color=PALETTE["blue"], markersize=26 * cell, mec="white", mew=0.9, zorder=5)
        axes.text(
            column,
            row,
            str(number),
            ha="center",
            va="center_baseline",
            fontsize=min(7.0, 16 * cell),
            color="white",
            fontweight="bold",
            zorder=6,
        ).set_in_layout(False)


def _draw_values(
    figure: Figure,
    axes: Axes,
    table: NDArray[np.float64],
    way: list[_Decision],
    holds: NDArray[np.int64],
    cell: float,
) -> None:
    """The values of the chosen actions: one row per decision, one column per persistence; the choice is framed."""
    if not way:
        axes.set_axis_off()
        return
    k_max = table.shape[2]
    shown = np.ma.masked_invalid(np.stack([table[decision.state, decision.action] for decision in way]))
    norm = value_norm(np.asarray(shown.data))
    axes.imshow(shown, norm=norm, cmap=value_colormap(), interpolation="nearest")
    if cell >= READABLE_CELL:
        print_values(axes, shown, norm, cell)
    for row, decision in enumerate(way):
        corner = position_within(holds, decision.k) - 0.46, row - 0.46
        axes.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, linewidth=1.6, edgecolor=PALETTE["orange"]))
    axes.set_xticks(range(k_max), [str(k) for k in holds])
    names = [f"{number}  {MOVE_NAMES[decision.action]}" for number, decision in enumerate(way, start=1)]
    axes.set_yticks(range(len(way)), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("steps held, $k$")
    axes.set_title("value by $k$", pad=4)
    width = 0.14 / (cell * k_max)
    beside = axes.inset_axes((1.0 + 0.8 * width, 0.0, width, 1.0))
    bar = figure.colorbar(ScalarMappable(norm, mpl.colormaps[VALUE_COLORMAP]), cax=beside, label="$Q(s, a, k)$")
    bar.outline.set_linewidth(0.5)
    beside.tick_params(length=2)


def _hold_colors(k_max: int) -> Colormap:
    """From nearly white for one step to lilac for k_max; values, holes and goals use other colours."""
    base = mpl.colormaps["Purples"]
    lilac = [base(0.12 + 0.40 * index / max(k_max - 1, 1)) for index in range(1, k_max)]
    shades = [to_rgba(CELL_COLORS["free"]), *lilac]
    return ListedColormap(shades).with_extremes(bad=CELL_COLORS["free"])
