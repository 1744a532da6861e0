"""Games: Persistent DQN compared with DQN and others, on Atari as in the paper, and on MinAtar for a laptop."""

from holdfast.experiments.figures.games.atari import FREEWAY, FREEWAY_BATCHES, GAMES, LONGER_HOLDS
from holdfast.experiments.figures.games.minatar import MINATAR, MINATAR_LONGER_HOLDS

__all__ = ["FREEWAY", "FREEWAY_BATCHES", "GAMES", "LONGER_HOLDS", "MINATAR", "MINATAR_LONGER_HOLDS"]
