"""Greedy episodes: a policy's return, and how often it decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from holdfast.core.choice import Decision

__all__ = ["LONGEST_EPISODE", "Actor", "Evaluation", "Moment", "Player", "evaluate", "evaluation_seeds", "play"]

LONGEST_EPISODE = 100_000
"""Steps after which an evaluation cuts an episode."""


_LOOK_UP_EVERY = 250


class Player(Protocol):
    """Something that decides and may interrupt a hold; it counts states and actions as the environment does."""

    def decide(self, observation: Any) -> Decision:
        """What to do, for how long, and the values behind it."""
        ...

    def interrupts(self, observation: Any, action: Any, left: int) -> bool:
        """Whether an action that was to be held for ``left`` more steps is dropped."""
        ...


class Actor(Player, Protocol):
    """A player that can act on the same values with another tolerance or margin."""

    def fits(self, observations: gymnasium.Space[Any], actions: gymnasium.Space[Any]) -> bool:
        """Whether it can play where these are seen and done."""
        ...

    @property
    def acting(self) -> tuple[float | None, float | None]:
        """Decision tolerance and interrupt margin."""
        ...

    def acting_with(self, decision_tolerance: float | None, interrupt_margin: float | None) -> Actor:
        """The same values, acted upon in another way."""
        ...


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What happened in n episodes; every array has shape (n,).

    Attributes:
        returns: Sums of the rewards, undiscounted.
        lengths: Steps per episode.
        decisions: Options begun per episode.
        holds: (h,) number of options held for 0, 1, 2, ... steps, over all episodes.
    """

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    decisions: NDArray[np.int64]
    holds: NDArray[np.int64]


def evaluation_seeds(run_seed: int, evaluation: int, episodes: int) -> list[int]:
    """The reset seeds of an evaluation, derived only from the run's seed and the evaluation's number."""
    sequence = np.random.SeedSequence(run_seed, spawn_key=(2**31, evaluation))
    # Box2D requires seeds of at most 31 bits.
    return [int(word) >> 1 for word in sequence.generate_state(episodes)]


class Moment(NamedTuple):
    """An episode just before one of its steps, or after the last.

    Attributes:
        observation: The current observation.
        steps: Steps taken.
        total: Sum of the rewards so far.
        action: The next action, or the last one at the end: a number, or a vector of continuous values.
        planned: Steps for which it was chosen.
        left: Steps for which it will still be held; 0 after the last step.
        is_decided: Whether it was chosen here.
    """

    observation: Any
    steps: int
    total: float
    action: Any
    planned: int
    left: int
    is_decided: bool


def play(
    player: Player, env: gymnasium.Env[Any, Any], seed: int, longest: int = LONGEST_EPISODE
) -> Iterator[Moment]:
    """Play one episode, yielding each moment.

    Args:
        player: Who decides.
        env: Where; it is left open.
        seed: Of the reset.
        longest: Steps after which the episode is cut.
    """
    observation, _ = env.reset(seed=seed)
    action: Any = 0
    total, steps, planned, left = 0.0, 0, 1, 0
    ended = False
    while not ended and steps < longest:
        if left > 0 and player.interrupts(observation, action, left):
            left = 0
        is_decided = left == 0
        if is_decided:
            action, planned, _ = player.decide(observation)
            left = planned
        yield Moment(observation, steps, total, action, planned, left, is_decided)
        observation, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        steps, left = steps + 1, left - 1
        ended = bool(terminated or truncated)
    yield Moment(observation, steps, total, action, planned, 0, is_decided=False)


def evaluate(
    player: Player,
    env: gymnasium.Env[Any, Any],
    seeds: Sequence[int],
    longest: int = LONGEST_EPISODE,
    now_and_then: Callable[[], None] = lambda: None,
) -> Evaluation:
    """One episode per reset seed.

    Args:
        player: Who decides.
        env: Where; it is left open.
        seeds: Of the resets.
        longest: Steps after which an episode is cut.
        now_and_then: Called every few hundred steps; may raise to stop.
    """
    outcomes, holds = [], [0]
    for seed in seeds:
        decisions, began = 0, 0
        for moment in play(player, env, seed, longest):
            if moment.steps % _LOOK_UP_EVERY == 0:
                now_and_then()
            # A hold ends when something is decided, and at the end of the episode.
            if moment.steps > 0 and (moment.is_decided or moment.left == 0):
                _count(holds, moment.steps - began)
                began = moment.steps
            decisions += moment.is_decided
        outcomes.append((moment.total, moment.steps, decisions))
    returns, lengths, all_decisions = zip(*outcomes, strict=True)
    return Evaluation(np.array(returns), np.array(lengths), np.array(all_decisions), np.array(holds))


def _count(holds: list[int], held: int) -> None:
    holds.extend([0] * (held + 1 - len(holds)))
    holds[held] += 1
