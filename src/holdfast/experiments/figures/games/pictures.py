"""Pictures and tables of training on games: scores, decisions, and who is ahead of DQN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from holdfast.experiments.drivers import Driver, driver_curves
from holdfast.experiments.figures.suite.tasks import last_fifth
from holdfast.experiments.tables import Table, matrix, select
from holdfast.stats.estimates import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RIVAL", "draw_games", "game_lines", "score_lines"]

RIVAL = "DQN"
"""The agent that all others are compared with."""

_COLUMNS = {"score": "score of a game", "decisions": "decisions in a game"}


def draw_games(rows: Table, games: Mapping[str, Sequence[Driver]]) -> Figure:
    """Two panels for each game that has rows: scores over steps, and the number of decisions.

    Args:
        rows: Rows of all games.
        games: The drivers to draw for each game.
    """
    from holdfast.draw import Panel, draw_curves

    panels = []
    for column, title in _COLUMNS.items():
        for game, drivers in games.items():
            curves = driver_curves(select(rows, game=game), drivers, column)
            if curves:
                panels.append(Panel(f"{game}: {title}", curves))
    return draw_curves(panels, "steps", "mean of greedy games")


def game_lines(rows: Table) -> list[str]:
    """For each game and driver the last fifth of training, then a sentence on who is ahead of DQN."""
    lines: list[str] = []
    for game in dict.fromkeys(rows["game"].tolist()):
        own = select(rows, game=str(game))
        lines += score_lines(str(game), own, list(dict.fromkeys(own["driver"].tolist())))
    return lines


def score_lines(game: str, rows: Table, names: Sequence[str]) -> list[str]:
    """One game: score, worst seed, decisions and steps per decision in the last fifth of training."""
    lines = [f"{game}, last fifth:", f"  {'':<24}{'score':>14}{'worst':>8}{'decisions':>11}{'held':>6}{'runs':>5}"]
    ends = {}
    for name in names:
        own = select(rows, driver=name)
        score, decisions, length = (last_fifth(matrix(own, column, "step")[1]) for column in _MEASURED)
        ends[name] = dict(zip(np.unique(own["seed"]).tolist(), score.tolist(), strict=True))
        mean, _, high = mean_interval(score)
        error = "" if np.isnan(high) else f" ±{high - mean:.1f}"
        held = length.mean() / decisions.mean()
        lines.append(
            f"  {name:<24}{f'{mean:.1f}{error}':>14}{score.min():>8.1f}{decisions.mean():>11.1f}"
            f"{held:>6.2f}{len(score):>5}"
        )
    return [*lines, *_ahead_lines(ends)]


_MEASURED = ("score", "decisions", "length")


def _ahead_lines(ends: Mapping[str, Mapping[float, float]]) -> list[str]:
    """Who has the better last fifth, and on how many of the shared seeds."""
    lines = []
    for name, own in ends.items():
        shared = sorted(set(own) & set(ends.get(RIVAL, {}))) if name != RIVAL else []
        if not shared:
            continue
        ahead = sum(own[seed] > ends[RIVAL][seed] for seed in shared)
        ties = sum(own[seed] == ends[RIVAL][seed] for seed in shared)
        level = f", level with {ties}" if ties else ""
        lines.append(f"  {name} is ahead of {RIVAL} with {ahead} of {len(shared)} seeds{level}.")
    return lines
