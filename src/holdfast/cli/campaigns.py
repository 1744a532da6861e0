"""Run a campaign from the command line: the live table, the closing lines and the picture."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from holdfast.cli.streams import results
from holdfast.core.errors import InputError
from holdfast.core.user_code import user_code

if TYPE_CHECKING:
    from holdfast.experiments.campaign import Standing
    from holdfast.experiments.engines.base import Engine
    from holdfast.experiments.manifest import Manifest
    from holdfast.experiments.spec import Experiment, Job
    from holdfast.experiments.tables import Table
    from holdfast.runs.stopping import StopRequest

__all__ = ["CampaignTable", "check_csv", "picture_name", "run_and_show", "show", "table_lines"]

_COLUMNS = 79
_MOST_FAILURES = 5
_EVERY = 0.2
_MOST_RUNNING = 8
_CELL = 10
_HEADINGS = ("jobs", "done", "running", "failed", "time", "left")

T = TypeVar("T")


def run_and_show(
    experiment: Experiment,
    jobs: Sequence[Job],
    folder: Path,
    engine: Engine,
    arguments: argparse.Namespace,
    stop: StopRequest,
    standings: dict[str, Standing],
    code: str | None,
    chosen: Sequence[Job] | None = None,
) -> int:
    """Run the jobs that are not done yet, draw the stored rows and print the numbers.

    Args:
        experiment: The experiment.
        jobs: All its jobs.
        folder: The campaign's folder.
        engine: Where jobs run.
        arguments: The parsed command line: ``verb``, ``resume`` and ``csv``; optionally ``scale`` and ``fresh``.
        stop: Set when a signal asks to stop.
        standings: How each campaign of this command stands, by name.
        code: Folder with the user's own modules.
        chosen: The jobs to run; None for all.

    Returns:
        The exit code.
    """
    from holdfast.experiments.campaign import run_campaign
    from holdfast.experiments.shared_rows import kept_folders
    from holdfast.experiments.store import read_manifest_and_rows
    from holdfast.experiments.tables import write_csv

    table = CampaignTable(sys.stderr)

    def note(standing: Standing) -> None:
        standings[experiment.name] = standing
        table.show(standings)

    stop.is_obeyed_later = True
    try:
        standing = run_campaign(
            experiment,
            jobs,
            folder,
            engine,
            scale=getattr(arguments, "scale", None),
            chosen=chosen,
            resume=arguments.resume,
            fresh=getattr(arguments, "fresh", False),
            kept=kept_folders(),
            code=code,
            stop=stop,
            told=note,
        )
    finally:
        stop.is_obeyed_later = False
    note(standing)
    table.close(standings)
    results().write("\n".join(_closing_lines(experiment.label, standing, folder)) + "\n")
    if standing.is_stopped:
        sys.stderr.write(f"holdfast {arguments.verb}: stopped; type the command again with --resume to continue\n")
        return stop.exit_code
    if standing.done or standing.others:
        manifest, rows = read_manifest_and_rows(folder, experiment)
        show(experiment, manifest, rows, folder / f"{picture_name(experiment)}.png")
        if arguments.csv is not None:
            results().write(f"wrote {write_csv(rows, arguments.csv)}\n")
        results().write(f"to look at it: holdfast report {shlex.quote(str(folder))}\n")
    results().flush()
    return 0 if standing.done == standing.total else 1


def check_csv(path: Path | None) -> None:
    """Raise InputError if rows cannot be written to ``--csv``."""
    if path is None:
        return
    if path.suffix != ".csv" or path.is_dir():
        raise InputError(f"--csv must name a file that ends in .csv, not {str(path)!r}")
    if path.parent.exists() and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise InputError(f"--csv must name a file in a writable folder, and {path.parent} is not one")


def show(experiment: Experiment, manifest: Manifest, rows: Table, picture: Path) -> None:
    """Print the numbers with their notes, and write the picture."""
    from holdfast.draw import save_figure
    from holdfast.experiments.tables import table_length

    if table_length(rows) == 0:
        raise InputError(f"{experiment.label} has finished jobs but no rows: there is nothing to show")
    lines = _asked(experiment, "summary", lambda: experiment.summary(rows))
    title = textwrap.fill(experiment.title, _COLUMNS)
    results().write(f"\n{title}\n\n" + "\n".join(lines) + "\n\n")
    for note in _notes(experiment, manifest):
        results().write("\n".join(textwrap.wrap(note, _COLUMNS, subsequent_indent="  ")) + "\n")
    results().write("\n" if _notes(experiment, manifest) else "")
    figure = _asked(experiment, "draw", lambda: experiment.draw(rows))
    results().write(f"wrote {save_figure(figure, picture)}\n")


def _notes(experiment: Experiment, manifest: Manifest) -> list[str]:
    notes = list(experiment.notes)
    is_small = manifest.scale == "smoke" and experiment.jobs("smoke") != experiment.jobs("paper")
    if is_small and experiment.label.startswith("fig:"):
        notes.append("Scale smoke only shows that everything runs: do not read anything into these numbers.")
    if not manifest.is_of_one_version:
        notes.append("The rows come from different commits or versions; manifest.json lists them.")
    return [f"- {note}" for note in notes]


def _asked(experiment: Experiment, what: str, ask: Callable[[], T]) -> T:
    """Call an experiment; a user's own may raise anything."""
    if experiment.label.startswith("fig:"):
        return ask()
    try:
        with user_code(f"{what} of {experiment.label}"):
            return ask()
    except InputError as error:
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        raise InputError(f"{error}; the rows are stored") from error.__cause__


def picture_name(experiment: Experiment) -> str:
    """The file name of an experiment."""
    from holdfast.runs.options import file_name

    return file_name(experiment.name)


def _closing_lines(name: str, standing: Standing, folder: Path) -> list[str]:
    from holdfast.cli.typed_values import printable
    from holdfast.runs.progress import duration

    where = f"  in {folder}"
    if standing.planned is not None:
        where += f", with rows of {standing.done + standing.others} of {standing.planned} jobs in all"
    if standing.total == standing.before:
        told = "its only job was" if standing.total == 1 else f"all {standing.total} jobs were"
        return [f"{name}: {told} done already", where]
    told = f"{name}: {standing.done} of {standing.total} jobs done"
    now = standing.done - standing.before - standing.taken
    if standing.taken:
        told += f", {standing.taken} of them taken from {' and '.join(sorted(standing.sources))}"
    if standing.before:
        told += f", {now} of them now"
    if standing.failures:
        told += f", {len(standing.failures)} failed"
    lines = [f"{told}, in {duration(standing.seconds)}", where]
    for failure in standing.failures[:_MOST_FAILURES]:
        lines += [f"  failed: {failure.job.title}", f"    {failure.problem}"]
        if failure.log.is_file:
            lines.append(f"    {failure.log}")
    if len(standing.failures) > _MOST_FAILURES:
        lines.append(f"  and {len(standing.failures) - _MOST_FAILURES} more: manifest.json lists them")
    return list(map(printable, lines))


class CampaignTable:
    """A live table of campaigns; shows nothing if the stream is not a terminal.

    Args:
        stream: Where to print.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._is_shown = stream.isatty()
        self._height = 0
        self._not_before = 0.0

    def show(self, standings: Mapping[str, Standing]) -> None:
        """Redraw the table in place."""
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
        """Draw the table one last time and leave it there."""
        self._not_before = 0.0
        self.show(standings)
        self._height = 0


def table_lines(standings: Mapping[str, Standing], columns: int, height: int) -> list[str]:
    """The table: a line for each campaign, and one for each job that is running.

    Args:
        standings: How each campaign stands, by name.
        columns: Available width.
        height: Available lines.
    """
    from holdfast.runs.progress import duration

    width = max([5, *map(len, standings)])
    lines = [f"{'':<{width}}" + "".join(f"{name:>{_CELL}}" for name in _HEADINGS)]
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
