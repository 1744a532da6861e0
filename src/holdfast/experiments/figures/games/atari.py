"""Atari: the paper's games and settings; at the laptop's scale one game, one seed and few steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.experiments.drivers import Driver, dqn, msa_dqn, per_dqn, temporl_dqn
from holdfast.experiments.figures.games.figure import game_figure
from holdfast.experiments.figures.games.pictures import draw_games
from holdfast.experiments.figures.games.training import Match, Plan, games_of, smoke_plan
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FREEWAY",
    "FREEWAY_BATCHES",
    "GAMES",
    "LONGER_HOLDS",
    "draw_atari",
    "draw_freeway",
    "draw_freeway_batches",
    "draw_longer_holds",
]

_STUDY = "Atari"
"""The study that the jobs of all these figures belong to."""

_DQN, _FOUR, _EIGHT, _SKIPPER, _WITHOUT = dqn(), per_dqn(4), per_dqn(8), temporl_dqn(4), msa_dqn(4)
_FREEWAY, _SEAQUEST = "atari:Freeway", "atari:Seaquest"
_OTHER_GAMES = ("atari:Kangaroo", "atari:Alien", "atari:Breakout", "atari:MsPacman")
_STARTS = {_FREEWAY: {"learning_starts": 2000}}


def _plans(
    drivers: tuple[Driver, ...],
    games: tuple[str, ...] = (_FREEWAY,),
    on_laptop: tuple[Driver, ...] | None = None,
    seaquest: tuple[Driver, ...] = (),
) -> Mapping[str, Plan]:
    """The three scales of a figure.

    Args:
        drivers: The drivers.
        games: The games.
        on_laptop: The drivers on Freeway at the laptop's scale (default: all).
        seaquest: The drivers on Seaquest.
    """
    last = (Match(_SEAQUEST, seaquest),) if seaquest else ()
    matches = (*(Match(game, drivers, _STARTS.get(game, {})) for game in games), *last)
    few = Match(_FREEWAY, drivers if on_laptop is None else on_laptop, games=2)
    return {
        "smoke": smoke_plan(Match("atari:Breakout", drivers)),
        "laptop": Plan(60_000, 1, 6, (few,), {"shared_draws": True}),
        "paper": Plan(2_500_000, 5, 50, matches),
    }


_METHODS = _plans(
    (_FOUR, _DQN, _SKIPPER, _WITHOUT),
    (_FREEWAY, *_OTHER_GAMES),
    on_laptop=(_FOUR, _DQN),
    seaquest=(_FOUR, _DQN, _SKIPPER),
)
_LONGER = _plans((_FOUR, _EIGHT, _DQN), (_FREEWAY, *_OTHER_GAMES))
_EXTENDED = _plans((_FOUR, _EIGHT, _SKIPPER, temporl_dqn(8)))
_BATCHES = _plans((_FOUR, _DQN, dqn(4)))


def draw_atari(rows: Table) -> Figure:
    """Scores of Persistent DQN, DQN, TempoRL and MSA-DQN in six games.

    Paper: Figure fig:atari
    """
    return draw_games(rows, games_of(_METHODS))


def draw_longer_holds(rows: Table) -> Figure:
    """Scores of Persistent DQN with K_max 4 and 8, and of DQN.

    Paper: Figure fig:atariK
    """
    return draw_games(rows, games_of(_LONGER))


def draw_freeway(rows: Table) -> Figure:
    """Scores in Freeway of Persistent DQN and TempoRL, with K_max 4 and 8.

    Paper: Figure fig:freeway_extended
    """
    return draw_games(rows, games_of(_EXTENDED))


def draw_freeway_batches(rows: Table) -> Figure:
    """Scores in Freeway of Persistent DQN, DQN, and DQN with the same number of tuples per update.

    Paper: Figure fig:freeway_comp
    """
    return draw_games(rows, games_of(_BATCHES))


_NOTES = (
    "Scores are those of whole greedy games, unclipped, 10 per evaluation (2 at the laptop's scale); training "
    "episodes are lives with clipped rewards.",
    "Schedules span the training steps. At the laptop's scale all persistences share their draws.",
    "The paper's text names Freeway, Kangaroo and Seaquest; Alien, Breakout and Ms. Pac-Man stand for the other "
    "three games.",
)

GAMES, LONGER_HOLDS, FREEWAY, FREEWAY_BATCHES = (
    game_figure(_STUDY, label, title, plans, _NOTES, draw)
    for label, title, plans, draw in (
        ("atari", "PerDQN, DQN, TempoRL and MSA-DQN in six games", _METHODS, draw_atari),
        ("atariK", "PerDQN with K_max 4 and 8, and DQN", _LONGER, draw_longer_holds),
        ("freeway_extended", "PerDQN and TempoRL in Freeway", _EXTENDED, draw_freeway),
        ("freeway_comp", "PerDQN in Freeway beside larger batches", _BATCHES, draw_freeway_batches),
    )
)
