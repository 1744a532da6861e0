"""A sample of an environment's past episodes, by which a resumed run checks whether it repeats them.

The running episode alone does not show whether an environment depends on more than its reset seed and its actions:
one that counts its episodes may show no trace of that before the episode's last reward. Therefore some finished
episodes are kept, limited in number and length: the last ones, and others spread evenly over all before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import json_copy, take, take_integer, take_list, take_mapping

__all__ = ["LONGEST_PART", "EarlierEpisodes", "PlayedEpisode"]

LONGEST_PART = 500
"""Number of steps of an episode that are kept, from its beginning."""

_LAST = 4
"""Number of the last episodes that are kept."""
_SPREAD = 4
"""Number of earlier episodes that are kept."""


@dataclass(frozen=True, eq=False)
class PlayedEpisode:
    """An episode, or its first steps.

    Attributes:
        number: Number of episodes that the environment had played before it.
        seed: Seed of its reset.
        options: Options of its reset.
        actions: Its actions, one row per step.
        digest: Fingerprint of the observations and rewards in these steps.
    """

    number: int
    seed: int
    options: dict[str, Any] | None
    actions: NDArray[Any]
    digest: int

    def state(self) -> dict[str, Any]:
        """The episode as arrays and JSON values."""
        return {
            "number": self.number,
            "seed": self.seed,
            "options": json_copy(self.options),
            "actions": self.actions,
            "digest": self.digest,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> PlayedEpisode:
        """The episode that ``state`` describes.

        Raises:
            ValueError: The state is damaged.
        """
        actions, options = take(state, "actions"), take(state, "options")
        if not isinstance(actions, np.ndarray) or actions.dtype.kind not in "biuf" or actions.ndim == 0:
            raise InputError("the saved state must have an array of numbers as 'actions'")
        if len(actions) > LONGEST_PART:
            raise InputError(f"the saved state must have at most {LONGEST_PART} actions of an earlier episode")
        return cls(
            take_integer(state, "number"),
            take_integer(state, "seed", at_most=None),
            None if options is None else dict(take_mapping(state, "options")),
            actions.copy(),
            take_integer(state, "digest"),
        )


class EarlierEpisodes:
    """The sample, and the number of episodes it was taken from, which determines what the sample contains."""

    def __init__(self) -> None:
        self.n_played = 0
        self.kept: list[PlayedEpisode] = []

    def add(self, episode: PlayedEpisode | None) -> None:
        """Count one more finished episode; None for one that cannot be repeated."""
        self.n_played += 1
        if episode is not None:
            self.kept.append(episode)
        self.kept = [kept for kept in self.kept if self._is_wanted(kept.number)]

    def _is_wanted(self, number: int) -> bool:
        before = self.n_played - _LAST
        if number >= before:
            return True
        # A power of two, so that everything wanted now was also wanted before.
        stride = 1
        while -(-before // stride) > _SPREAD:
            stride *= 2
        return number % stride == 0

    def state(self) -> dict[str, Any]:
        """The sample as arrays and JSON values."""
        return {"played": self.n_played, "kept": [episode.state() for episode in self.kept]}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> EarlierEpisodes:
        """The sample that ``state`` describes.

        Raises:
            ValueError: The state is damaged.
        """
        found = cls()
        found.n_played = take_integer(state, "played")
        found.kept = [PlayedEpisode.restored(episode) for episode in take_list(state, "kept", dict)]
        numbers = [episode.number for episode in found.kept]
        if numbers != sorted(set(numbers)) or not all(
            number < found.n_played and found._is_wanted(number) for number in numbers
        ):
            raise InputError("the saved state must have a sample of the episodes that were played")
        return found
