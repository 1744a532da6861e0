"""The grids of the paper's experiments, as text."""

from __future__ import annotations

__all__ = ["BRIDGE", "CLIFF", "OPEN", "SYNC_GRID", "ZIGZAG"]

CLIFF = """\
S.######.G
..######..
..######..
..........
..........
.........."""

BRIDGE = """\
S.######.G
..######..
..........
..........
..######..
..######.."""

ZIGZAG = """\
S.##......
..##......
..##..##..
..##..##..
......##..
......##.G"""

OPEN = "\n".join(["S........."] + [".........."] * 8 + [".........G"])

SYNC_GRID = """\
S.....
..#...
..#.#.
......
.#..#.
...#.G"""
"""The paper does not print its 6x6 grid for synchronous updates; this one has six holes and two long corridors."""
