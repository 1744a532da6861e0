"""What was done to a game since its seed, to bring it back where the emulator's state is not enough.

A history is limited: a game has a largest number of steps, and where states are saved every new game gets a seed
(``EpisodeLog``). So memory, checkpoints and the time to repeat a history are limited, whoever wrote the file. A
game that outlives the limit because nobody gives it a seed has no history until somebody does.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take_array, take_integer

__all__ = ["NEW_GAME", "GameHistory"]

NEW_GAME = -1
"""In place of an action: a new game was begun."""


class GameHistory:
    """Seed of a game and everything that was done since.

    Args:
        longest: Largest number of actions and new games.
        most_games: Largest number of new games; beginning one costs as much as a hundred steps.

    Attributes:
        seed: The seed; None without a history.
        outgrown: Whether there was a history that became too long.
    """

    def __init__(self, longest: int, most_games: int) -> None:
        self._longest, self._most_games = longest, most_games
        self.outgrown = False
        self._begin(None)

    def _begin(self, seed: int | None) -> None:
        self.seed = seed
        self._done = array("b")
        self._n_games = 0

    def begin(self, seed: int) -> None:
        """A seed was given: what came before no longer matters."""
        self._begin(int(seed))
        self.outgrown = False

    def note(self, done: int) -> None:
        """An action was taken, or a new game begun."""
        if self.seed is None:
            return
        self._done.append(done)
        self._n_games += done == NEW_GAME
        if len(self._done) > self._longest or self._n_games > self._most_games:
            self._begin(None)
            self.outgrown = True

    def state(self) -> dict[str, Any]:
        """The history as an array and JSON values; there must be one."""
        return {"seed": self.seed, "done": np.array(self._done, np.int8)}

    def restore(self, state: Mapping[str, Any], n_actions: int) -> list[int]:
        """Take over what ``state`` returned, and return what is to be done again.

        Args:
            state: The saved state.
            n_actions: Number of actions of the game.

        Raises:
            ValueError: No game can have come to this.
        """
        seed = take_integer(state, "seed", at_most=None)
        done = take_array(state, "done", np.int8, (None,), self._longest)
        if len(done) == 0 or done[0] != NEW_GAME:
            raise InputError("the saved state must have the beginning of a game as the first of 'done'")
        if done.min() < NEW_GAME or done.max() >= n_actions:
            raise InputError("the saved state must have actions of the game as 'done'")
        if (n_games := int((done == NEW_GAME).sum())) > self._most_games:
            raise InputError(
                f"the saved state must have at most {self._most_games} games as 'done', not {n_games}"
            )
        self._begin(seed)
        self._done, self._n_games = array("b", done.tobytes()), n_games
        return list(self._done)
