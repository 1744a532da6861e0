"""MinAtar: small games that a laptop can learn, played like Atari's in the paper.

Neither is a figure of the paper: ``holdfast reproduce minatar`` and ``minatarK`` are the twins of ``fig:atari``
and ``fig:atariK``. All agents use the defaults, with the customary network of one convolution and 128 units.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.experiments.drivers import Driver, dqn, msa_dqn, per_dqn, temporl_dqn
from holdfast.experiments.figures.games.figure import game_figure
from holdfast.experiments.figures.games.training import Match, Plan, smoke_plan

__all__ = ["MINATAR", "MINATAR_LONGER_HOLDS"]

_STUDY = "MinAtar"
"""The study that the jobs of both figures belong to."""

_DQN, _FOUR, _EIGHT = dqn(), per_dqn(4), per_dqn(8)
_OWN_DRAWS = per_dqn(4, "own draws", shared_draws=False)
_INTERRUPTED = per_dqn(4, "interrupted", interrupt_margin=0.0)
_OTHERS = (temporl_dqn(4), msa_dqn(4, shared_draws=False))

_STEPS, _SEEDS, _EVALUATIONS = 200_000, 3, 25
_PAPER = (2_500_000, 5, 50)
_GAMES = {"minatar:Freeway": 4, "minatar:Asterix": 10, "minatar:Breakout": 10, "minatar:SpaceInvaders": 10}
"""Number of games per evaluation; those of Freeway last for 2,501 steps each and differ little."""
_SEAQUEST = "minatar:Seaquest"


def _matches(*names: str, drivers: tuple[Driver, ...]) -> list[Match]:
    return [Match(name, drivers, games=_GAMES.get(name, 10)) for name in names]


_METHODS: Mapping[str, Plan] = {
    "smoke": smoke_plan(
        Match("minatar:Breakout", (_FOUR, _DQN, _OWN_DRAWS, *_OTHERS)),
        Match(_SEAQUEST, (_INTERRUPTED,)),
    ),
    "laptop": Plan(
        _STEPS,
        _SEEDS,
        _EVALUATIONS,
        (
            *_matches("minatar:Freeway", "minatar:Asterix", "minatar:Breakout", drivers=(_FOUR, _DQN)),
            *_matches(_SEAQUEST, drivers=(_FOUR, _INTERRUPTED, _DQN)),
            *_matches("minatar:Freeway", "minatar:Asterix", drivers=(_OWN_DRAWS,)),
        ),
    ),
    "paper": Plan(
        *_PAPER,
        (
            *_matches(*_GAMES, drivers=(_FOUR, _DQN, *_OTHERS)),
            *_matches(_SEAQUEST, drivers=(_FOUR, _INTERRUPTED, _DQN, _OTHERS[0])),
            *_matches("minatar:Freeway", "minatar:Asterix", drivers=(_OWN_DRAWS,)),
        ),
    ),
}

_LONGER: Mapping[str, Plan] = {
    "smoke": smoke_plan(Match("minatar:Breakout", (_FOUR, _EIGHT, _DQN))),
    "laptop": Plan(
        _STEPS,
        _SEEDS,
        _EVALUATIONS,
        _matches("minatar:Freeway", "minatar:Asterix", "minatar:Breakout", drivers=(_FOUR, _EIGHT, _DQN)),
    ),
    "paper": Plan(*_PAPER, _matches(*_GAMES, drivers=(_FOUR, _EIGHT, _DQN))),
}

_NOTES = (
    "Scores are those of greedy games, 10 per evaluation (4 for Freeway), cut at 5,000 steps.",
    "DQN is PerDQN with k_max=1 and the same arguments; MSA-DQN and own draws learn as many tuples of each k.",
)

MINATAR, MINATAR_LONGER_HOLDS = (
    game_figure(_STUDY, label, title, plans, _NOTES)
    for label, title, plans in (
        ("minatar", "PerDQN beside DQN, with interruption, and with own draws", _METHODS),
        ("minatarK", "PerDQN with K_max 4 and 8, and DQN", _LONGER),
    )
)
