"""How campaigns stand, as a table that changes in place on a terminal."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from typing import IO

from holdfast.experiments.campaign import Standing
from holdfast.runs.progress import duration

__all__ = ["CampaignTable", "table_lines"]

_EVERY = 0.2
_MOST_RUNNING = 8
_CELL = 10
_COLUMNS = ("jobs", "done", "running", "failed", "time", "left")


class CampaignTable:
    """Shows how campaigns stand; nothing where the stream is no terminal.

    Args:
        stream: Where to.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._is_shown = stream.isatty()
        self._height = 0
        self._not_before = 0.0

    def show(self, standings: Mapping[str, Standing]) -> None:
        """Draw the table anew, over the one before."""
        now = time.monotonic()
        if not self._is_shown or now < self._not_before:
            return
        self._not_before = now + _EVERY
        size = shutil.get_terminal_size()
        lines = table_lines(standings, size.columns - 1, max(size.lines - 2, 3))
        up = f"\x1b[{self._height}A" if self._height else ""
        self._stream.write(f"\r{up}\x1b[J" + "\n".join(lines) + "\n")
        self._stream.flush()
        self._height = len(lines)

    def close(self, standings: Mapping[str, Standing]) -> None:
        """Draw the table a last time, and leave it there."""
        self._not_before = 0.0
        self.show(standings)
        self._height = 0


def table_lines(standings: Mapping[str, Standing], columns: int, height: int) -> list[str]:
    """The table: a line for each campaign, and one for each job that is running.

    Args:
        standings: By the campaigns' names.
        columns: Width that there is.
        height: Lines that there are.
    """
    width = max([5, *map(len, standings)])
    lines = [f"{'':<{width}}" + "".join(f"{name:>{_CELL}}" for name in _COLUMNS)]
    running: dict[str, float] = {}
    for name, standing in standings.items():
        left = standing.seconds_left
        over = standing.ended is not None
        cells = (
            str(standing.total),
            str(standing.done),
            str(len(standing.running)),
            str(len(standing.failures)),
            duration(standing.seconds),
            "" if over else "?" if left is None else duration(left),
        )
        lines.append(f"{name:<{width}}" + "".join(f"{cell:>{_CELL}}" for cell in cells))
        running |= standing.running
    now = time.monotonic()
    shown = [f"  {duration(now - began):>9}  {title}" for title, began in list(running.items())[:_MOST_RUNNING]]
    if len(running) > _MOST_RUNNING:
        shown.append(f"  and {len(running) - _MOST_RUNNING} more")
    return [line[:columns].rstrip() for line in [*lines[-height:], *shown][:height]]
