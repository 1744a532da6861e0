"""Greedy episodes: what a policy is worth, and how often it decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from holdfast.core.choice import Decision

__all__ = ["LONGEST_EPISODE", "Actor", "Evaluation", "Player", "evaluate", "evaluation_seeds"]

LONGEST_EPISODE = 100_000
"""Steps after which an evaluation does not wait for an episode's end any longer."""


_LOOK_UP_EVERY = 250


class Player(Protocol):
    """Something that decides, and may change its mind; it counts states and actions as the environment does."""

    def decide(self, observation: Any) -> Decision:
        """What to do, for how long, and the values behind it."""
        ...

    def interrupts(self, observation: Any, action: int, left: int) -> bool:
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


def evaluate(
    actor: Player,
    env: gymnasium.Env[Any, Any],
    seeds: Sequence[int],
    longest: int = LONGEST_EPISODE,
    now_and_then: Callable[[], None] = lambda: None,
) -> Evaluation:
    """One episode per reset seed.

    Args:
        actor: Who decides.
        env: Where; it is left open.
        seeds: Of the resets.
        longest: Steps after which an episode is cut.
        now_and_then: Called every few hundred steps; may raise to give up.
    """
    outcomes, holds = [], [0]
    for seed in seeds:
        observation, _ = env.reset(seed=seed)
        total, steps, decisions, held, left, action = 0.0, 0, 0, 0, 0, 0
        ended = False
        while not ended and steps < longest:
            if steps % _LOOK_UP_EVERY == 0:
                now_and_then()
            if left > 0 and actor.interrupts(observation, action, left):
                _count(holds, held)
                left = 0
            if left == 0:
                action, left, _ = actor.decide(observation)
                decisions, held = decisions + 1, 0
            observation, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            steps, held, left = steps + 1, held + 1, left - 1
            ended = bool(terminated or truncated)
            if ended or left == 0 or steps == longest:
                _count(holds, held)
        outcomes.append((total, steps, decisions))
    returns, lengths, all_decisions = zip(*outcomes, strict=True)
    return Evaluation(np.array(returns), np.array(lengths), np.array(all_decisions), np.array(holds))


def _count(holds: list[int], held: int) -> None:
    holds.extend([0] * (held + 1 - len(holds)))
    holds[held] += 1
