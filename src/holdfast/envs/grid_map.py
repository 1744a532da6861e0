"""Maps of grid worlds, written as text.

One letter per cell: ``S`` is the start, ``G`` a goal, ``#`` a hole, ``.`` a free cell. Cell (0, 0) is top left,
and cells are numbered row by row, so that cell (row, column) is state ``row * columns + column``.
"""

from __future__ import annotations

import os
import reprlib
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError, InputTypeError

__all__ = ["FREE", "GOAL", "HOLE", "START", "GridMap", "connected_cells"]

START, GOAL, HOLE, FREE = "S", "G", "#", "."

_LARGEST_FILE = 4 * 2**20
"""Largest size of a map file in bytes: 2048x2048 cells, with a model of about 1 GB without slips, 4 GB with."""


@dataclass(frozen=True)
class GridMap:
    """A rectangular map with one start, at least one goal, and any number of holes.

    A map whose goal cannot be reached is allowed, with a warning.

    Args:
        rows: The rows from top to bottom, each a string of the letters ``S``, ``G``, ``#`` and ``.``.
    """

    rows: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", _as_rows(self.rows))
        _check_letters(self.rows)
        _check_start_and_goal(self.rows)
        stranded = np.argwhere(self.goals & ~self._connected)
        if len(stranded):
            row, column = stranded[0]
            warnings.warn(
                f"the goal in row {row}, column {column} (counted from 0) cannot be reached from the start: "
                "holes block every path",
                UserWarning,
                stacklevel=4,
            )

    @classmethod
    def parse(cls, text: str) -> GridMap:
        """The map that ``text`` draws, one line per row.

        Blank lines around the map, spaces around its lines and the kind of line ending do not matter.

        Raises:
            ValueError: The text is not a map; the message says what is wrong and where.
        """
        if not isinstance(text, str):
            raise InputTypeError(f"a map must be a text of the letters S, G, # and ., not {text!r}")
        lines = [line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
        drawn = [number for number, line in enumerate(lines) if line]
        if not drawn:
            raise InputError("the map is empty: it must have at least one row")
        return cls(tuple(lines[drawn[0] : drawn[-1] + 1]))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> GridMap:
        """The map in a text file.

        Raises:
            ValueError: The file cannot be read, is not text, or does not draw a map; the message names the file.
        """
        text = _read_text(Path(path))
        try:
            return cls.parse(text)
        except InputError as error:
            raise InputError(f"map file {str(path)!r}: {error}") from None

    def refined(self, n: int) -> GridMap:
        """The map with each cell divided into n × n; the top left part of the start is the new start."""
        n = check_integer("n", n)
        rows = ["".join(letter * n for letter in row) for row in self.rows for _ in range(n)]
        first = next(index for index, row in enumerate(rows) if START in row)
        begun = rows[first].index(START)
        rows = [row.replace(START, FREE) for row in rows]
        rows[first] = rows[first][:begun] + START + rows[first][begun + 1 :]
        return GridMap(tuple(rows))

    def __str__(self) -> str:
        return "\n".join(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.rows), len(self.rows[0])

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.rows) * len(self.rows[0])

    @cached_property
    def start(self) -> int:
        """The state of the start cell."""
        return int(np.flatnonzero(self._cells_with(START))[0])

    @cached_property
    def goals(self) -> NDArray[np.bool_]:
        """Mask of the goals, of the map's shape, read-only."""
        return self._cells_with(GOAL)

    @cached_property
    def holes(self) -> NDArray[np.bool_]:
        """Mask of the holes, of the map's shape, read-only."""
        return self._cells_with(HOLE)

    def shortest_path_length(self) -> int | None:
        """Number of steps from the start to the nearest goal around all holes; None if there is no path."""
        # A frame of walls around the map, so that no step has to check for the border.
        open_cells = np.pad(~self.holes, 1)
        width = open_cells.shape[1]
        goals = np.pad(self.goals, 1).ravel()
        unseen = open_cells.ravel()
        row, column = divmod(self.start, self.shape[1])
        frontier = np.array([(row + 1) * width + column + 1])
        unseen[frontier] = False
        moves = np.array([[-1], [width], [1], [-width]])
        length = 0
        while len(frontier):
            if np.any(goals[frontier]):
                return length
            neighbours = (frontier + moves).ravel()
            neighbours = neighbours[unseen[neighbours]]
            unseen[neighbours] = False
            frontier = np.unique(neighbours)
            length += 1
        return None

    def _cells_with(self, letter: str) -> NDArray[np.bool_]:
        letters = np.frombuffer("".join(self.rows).encode("ascii"), dtype=np.uint8).reshape(self.shape)
        mask: NDArray[np.bool_] = np.equal(letters, ord(letter))
        mask.flags.writeable = False
        return mask

    @property
    def _connected(self) -> NDArray[np.bool_]:
        """Mask of the cells that can be reached from the start without crossing holes."""
        return connected_cells(~self.holes, self.start)


def connected_cells(walkable: NDArray[np.bool_], start: int) -> NDArray[np.bool_]:
    """Mask of the cells that can be reached, of the same shape.

    Args:
        walkable: Mask of the cells that may be entered, (rows, columns).
        start: Number of the first cell, counted row by row; it must be walkable.
    """
    region, _ = ndimage.label(walkable)
    connected: NDArray[np.bool_] = np.equal(region, region.ravel()[start])
    return connected


def _as_rows(rows: Any) -> tuple[str, ...]:
    if isinstance(rows, str):
        raise InputTypeError(
            f"rows must be one text for each row, not the single text {reprlib.repr(rows)}: use GridMap.parse"
        )
    try:
        texts = tuple(rows)
    except TypeError:
        raise InputTypeError(f"rows must be one text for each row, not {reprlib.repr(rows)}") from None
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputTypeError(
                f"rows must be one text for each row, but row {number} (counted from 0) is {reprlib.repr(text)}"
            )
    return texts


def _check_letters(rows: tuple[str, ...]) -> None:
    if not rows or not rows[0]:
        raise InputError("the map is empty: it must have at least one row")
    for row, line in enumerate(rows):
        if len(line) != len(rows[0]):
            raise InputError(
                f"every row of the map must be as long as row 0 ({len(rows[0])} cells), "
                f"but row {row} (counted from 0) has {len(line)}"
            )
    known = {START, GOAL, HOLE, FREE}
    for row, line in enumerate(rows):
        if set(line) - known:
            column = next(column for column, letter in enumerate(line) if letter not in known)
            raise InputError(
                f"a map may have the letters S, G, # and . only, "
                f"not {line[column]!r} as in row {row}, column {column} (counted from 0)"
            )


def _check_start_and_goal(rows: tuple[str, ...]) -> None:
    starts = [
        (row, column)
        for row, line in enumerate(rows)
        if START in line
        for column, letter in enumerate(line)
        if letter == START
    ]
    if not starts:
        raise InputError("the map has no start: exactly one cell must be S")
    if len(starts) > 1:
        (row, column), (other_row, other_column) = starts[:2]
        raise InputError(
            f"the map has {len(starts)} starts, but exactly one cell must be S: there is one in "
            f"row {row}, column {column} and one in row {other_row}, column {other_column} (counted from 0)"
        )
    if not any(GOAL in line for line in rows):
        raise InputError("the map has no goal: at least one cell must be G")


def _read_text(path: Path) -> str:
    try:
        if path.is_fifo() or path.is_char_device() or path.is_socket():
            raise InputError("it is not a file")
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        raise InputError(f"map file {str(path)!r} does not exist") from None
    except IsADirectoryError:
        raise InputError(f"map file {str(path)!r} is a directory, not a text file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"map file {str(path)!r} cannot be read: {reason}") from None
    if len(content) > _LARGEST_FILE:
        raise InputError(f"map file {str(path)!r} is too large: a map may have at most {_LARGEST_FILE} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"map file {str(path)!r} is not a text file") from None
    if "\0" in text:
        raise InputError(f"map file {str(path)!r} is not a text file")
    return text
