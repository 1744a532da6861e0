"""Running a campaign from the command line: the live table, what is said at its end, the picture."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.experiments.campaign import Standing
    from holdfast.experiments.engines.base import Engine
    from holdfast.experiments.spec import Experiment, Job
    from holdfast.runs.stopping import StopRequest

__all__ = ["picture_name", "run_and_show", "show"]

_MOST_FAILURES = 5


def run_and_show(
    experiment: Experiment,
    jobs: Sequence[Job],
    folder: Path,
    engine: Engine,
    arguments: argparse.Namespace,
    stop: StopRequest,
    standings: dict[str, Standing],
    code: str | None,
) -> int:
    """Run the jobs that are not done, draw what is stored, print.

    Args:
        experiment: Whose jobs they are.
        jobs: All of them.
        folder: The campaign's.
        engine: Where they are run.
        arguments: With ``verb``, ``resume`` and ``csv``.
        stop: Whether to stop.
        standings: Of all campaigns of this command, by name.
        code: Folder with the user's own modules.

    Returns:
        The exit code.
    """
    from holdfast.experiments.board import Board
    from holdfast.experiments.campaign import run_campaign
    from holdfast.experiments.store import read_campaign
    from holdfast.experiments.tables import write_csv

    board = Board(sys.stderr)

    def note(standing: Standing) -> None:
        standings[experiment.name] = standing
        board.show(standings)

    stop.is_obeyed_later = True
    try:
        standing = run_campaign(
            experiment,
            jobs,
            folder,
            engine,
            scale=getattr(arguments, "scale", None),
            resume=arguments.resume,
            code=code,
            stop=stop,
            told=note,
        )
    finally:
        stop.is_obeyed_later = False
    note(standing)
    board.close(standings)
    sys.stdout.write("\n".join(_closing_lines(experiment.label, standing, folder)) + "\n")
    if standing.is_stopped:
        sys.stderr.write(
            f"holdfast {arguments.verb}: stopped; the same command with --resume goes on from there\n"
        )
        return stop.exit_code
    if standing.done:
        _, rows = read_campaign(folder, experiment)
        show(experiment, rows, folder / f"{picture_name(experiment)}.png")
        if arguments.csv is not None:
            sys.stdout.write(f"wrote {write_csv(rows, arguments.csv)}\n")
    sys.stdout.flush()
    return 0 if standing.done == standing.total else 1


def show(experiment: Experiment, rows: Any, picture: Path) -> None:
    """Print the numbers and write the picture."""
    from holdfast.draw import save_figure

    sys.stdout.write(f"\n{experiment.title}\n\n" + "\n".join(experiment.summary(rows)) + "\n\n")
    sys.stdout.write(f"wrote {save_figure(experiment.draw(rows), picture)}\n")


def picture_name(experiment: Experiment) -> str:
    """What the files of an experiment are called."""
    from holdfast.runs.config import file_name

    return file_name(experiment.name)


def _closing_lines(name: str, standing: Standing, folder: Path) -> list[str]:
    from holdfast.cli.values import printable
    from holdfast.runs.progress import duration

    if standing.total == standing.before:
        return [f"{name}: all {standing.total} jobs were done already, in {folder}"]
    told = f"{name}: {standing.done} of {standing.total} jobs done"
    now = standing.done - standing.before - standing.taken
    if standing.taken:
        told += f", {standing.taken} of them taken from other figures"
    if standing.before:
        told += f", {now} of them now"
    if standing.failures:
        told += f", {len(standing.failures)} failed"
    lines = [f"{told}, in {duration(standing.seconds)}, into {folder}"]
    for failure in standing.failures[:_MOST_FAILURES]:
        lines += [f"  failed: {failure.job.title}", f"    {failure.problem}"]
        if failure.log.exists():
            lines.append(f"    {failure.log}")
    if len(standing.failures) > _MOST_FAILURES:
        lines.append(f"  and {len(standing.failures) - _MOST_FAILURES} more: manifest.json lists them")
    return list(map(printable, lines))
