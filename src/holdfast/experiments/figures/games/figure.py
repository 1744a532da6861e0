"""A figure of games as an experiment: its plans for every scale, and its picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.experiments.drivers import joining
from holdfast.experiments.figures.games.pictures import draw_games, game_lines
from holdfast.experiments.figures.games.training import COLUMNS, Plan, games_of, joined_plans, plan_jobs, run_game
from holdfast.experiments.guests import Guest
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["game_figure"]


def game_figure(
    study: str,
    label: str,
    title: str,
    plans: Mapping[str, Plan],
    notes: tuple[str, ...],
    draw: Callable[[Table], Figure] | None = None,
) -> Experiment:
    """The experiment of a figure.

    Args:
        study: The study that its jobs belong to; figures of one study share their jobs.
        label: The label without ``fig:``.
        title: What it shows, after the study's name.
        plans: The plans by scale.
        notes: Notes below the figure.
        draw: Drawing function (default: all games of the plans).
    """

    def join(guests: Sequence[Guest]) -> Experiment:
        own = (driver for drivers in games_of(plans).values() for driver in drivers)
        return game_figure(study, label, title, joined_plans(plans, joining(guests, own)), notes)

    return Experiment(
        label=f"fig:{label}",
        title=f"{study}: {title}",
        columns=COLUMNS,
        plan=partial(plan_jobs, plans=plans),
        run=run_game,
        draw=partial(draw_games, games=games_of(plans)) if draw is None else draw,
        summary=game_lines,
        notes=notes,
        shared=study,
        join=join,
    )
