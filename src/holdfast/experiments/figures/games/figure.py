"""A figure of games as an experiment: its plans for every scale, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from holdfast.experiments.figures.games.pictures import draw_games, game_lines
from holdfast.experiments.figures.games.training import COLUMNS, Plan, games_of, plan_jobs, run_game
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
        study: What its jobs belong to; figures of one study share theirs.
        label: Its label, without ``fig:``.
        title: What it shows, behind the study's name.
        plans: By scale.
        notes: What is to be said of it.
        draw: How; None for all games of the plans.
    """
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
    )
