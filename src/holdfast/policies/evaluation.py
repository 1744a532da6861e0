"""Greedy episodes: what a policy is worth, and how often it decides."""

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
"""Steps after which an evaluation does not wait for an episode's end any longer."""


_LOOK_UP_EVERY = 250


class Player(Protocol):
    """Something that decides, and may change its mind; it counts states and actions as the environment does."""

    def decide(self, observation: Any) -> Decision:
        """What to do, for how long, and the values behind it."""
        ...

    def interrupts(self, observation: Any, action: Any, left: int) -> bool:
        """Whether an action that was to be held for ``left`` more steps is dropped."""
        ...


class Actor(Player, Protocol):
    """A player whose values can be acted upon in several ways."""

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
        lengths: Steps.
        decisions: Options begun.
        holds: (h,) how many of all options were held for 0, 1, 2, ... steps.
    """

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    decisions: NDArray[np.int64]
    holds: NDArray[np.int64]


def evaluation_seeds(run_seed: int, evaluation: int, episodes: int) -> list[int]:
    """The reset seeds of an evaluation: they come from the run's seed and the evaluation's number alone."""
    sequence = np.random.SeedSequence(run_seed, spawn_key=(2**31, evaluation))
    # Box2D wants seeds of 31 bits.
    return [int(word) >> 1 for word in sequence.generate_state(episodes)]


class Moment(NamedTuple):
    """An episode just before one of its steps, or behind the last of them.

    Attributes:
        observation: What is seen.
        steps: Steps taken.
        total: Sum of the rewards so far.
        action: What is done next, or was done last: a number, or a vector of continuous ones.
        planned: For how many steps it was chosen.
        left: For how many it is still to be held; 0 behind the last step.
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
    """One episode, moment by moment.

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
        now_and_then: Called every few hundred steps; may raise to give up.
    """
    outcomes, holds = [], [0]
    for seed in seeds:
        decisions, began = 0, 0
        for moment in play(player, env, seed, longest):
            if moment.steps % _LOOK_UP_EVERY == 0:
                now_and_then()
            # What was held before is over where something is decided, and at the end.
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
