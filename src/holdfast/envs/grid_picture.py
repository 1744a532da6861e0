"""Pictures of a grid world: as pixels, drawn with NumPy alone, and as text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.envs.grid_map import GridMap
from holdfast.envs.grid_rules import ACTION_NAMES

__all__ = ["cell_pixels", "grid_pixels", "grid_text", "margin_pixels"]

# Colours that colour-blind readers can tell apart (Okabe and Ito), with free cells nearly white. Those of cells
# repeat holdfast.draw: envs and draw may not import each other, and colours do not belong in core.
_FREE = (247, 247, 244)
_LINE = (205, 207, 204)
_START = (86, 180, 233)
_GOAL = (0, 158, 115)
_HOLE = (213, 94, 0)
_AGENT = (20, 30, 60)
_AGENT_RIM = (255, 255, 255)
_WALL = (110, 114, 118)

_LARGEST_SIDE = 2048


def cell_pixels(grid: GridMap) -> int:
    """Side of one cell in pixels: 32, or less if the picture would get too large."""
    return max(1, min(32, _LARGEST_SIDE // max(grid.shape)))


def margin_pixels(grid: GridMap) -> int:
    """Width of the frame around the cells in pixels."""
    return cell_pixels(grid) // 4


def grid_pixels(grid: GridMap, agent: int, *, deadly_border: bool) -> NDArray[np.uint8]:
    """The map with the agent on it, as a new (height, width, 3) array.

    The frame shows the border: grey if it blocks, the colour of holes if it is deadly, the agent's colour once the
    agent has left the map.

    Args:
        grid: The map.
        agent: The agent's state; ``grid.n_cells`` means outside.
        deadly_border: Whether leaving the map ends the episode.
    """
    side, margin = cell_pixels(grid), margin_pixels(grid)
    rows, columns = grid.shape
    outside = agent >= grid.n_cells

    colours = np.empty((rows, columns, 3), dtype=np.uint8)
    colours[:] = _FREE
    colours[grid.holes] = _HOLE
    colours[grid.goals] = _GOAL
    colours.reshape(-1, 3)[grid.start] = _START
    cells = colours.repeat(side, axis=0).repeat(side, axis=1)
    if side >= 8:
        cells[::side] = _LINE
        cells[:, ::side] = _LINE
    if not outside:
        row, column = divmod(agent, columns)
        _draw_agent(cells[row * side : (row + 1) * side, column * side : (column + 1) * side])

    picture = np.empty((rows * side + 2 * margin, columns * side + 2 * margin, 3), dtype=np.uint8)
    picture[:] = _AGENT if outside else _HOLE if deadly_border else _WALL
    picture[margin : margin + rows * side, margin : margin + columns * side] = cells
    return picture


def grid_text(grid: GridMap, agent: int, last_action: int | None) -> str:
    """The map with the agent's cell in brackets, below a line that names the last action."""
    columns = grid.shape[1]
    heading = "at the start" if last_action is None else f"last action: {ACTION_NAMES[last_action]}"
    if agent >= grid.n_cells:
        heading += ", outside the map"
    lines = [heading]
    for row, letters in enumerate(grid.rows):
        cells = [
            f"[{letter}]" if row * columns + column == agent else f" {letter} "
            for column, letter in enumerate(letters)
        ]
        lines.append("".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _draw_agent(cell: NDArray[np.uint8]) -> None:
    """Draw a disc with a light rim into a square view of the picture."""
    side = len(cell)
    if side < 4:
        cell[:] = _AGENT
        return
    offsets = np.arange(side) - (side - 1) / 2
    distance = np.hypot(offsets[:, None], offsets[None, :])[..., None]
    for radius, colour in ((0.40 * side, _AGENT_RIM), (0.32 * side, _AGENT)):
        # One pixel of soft edge.
        cover = np.clip(radius - distance + 0.5, 0.0, 1.0)
        cell[:] = np.round(cover * np.array(colour) + (1.0 - cover) * cell).astype(np.uint8)
