"""A run: its state between two episodes, the outcome of each episode, and the results of many runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.saved_fields import restore_generator, take, take_array, take_integer, take_mapping

__all__ = ["EpisodeOutcomes", "FitResult", "RunState", "environment_seed", "stream"]

_STREAMS = ("initial", "agent", "environment", "evaluation")


class EpisodeOutcomes(NamedTuple):
    """The outcomes of n episodes; every array has shape (n,), or (0,) if nothing was evaluated.

    Attributes:
        training_returns: Undiscounted sum of the rewards.
        steps: Number of steps.
        decisions: Number of options begun.
        greedy_returns: Undiscounted sum of the rewards of the greedy episode that follows.
        greedy_steps: Its number of steps.
        greedy_decisions: Its number of decisions.
    """

    training_returns: NDArray[np.float64]
    steps: NDArray[np.int64]
    decisions: NDArray[np.int64]
    greedy_returns: NDArray[np.float64]
    greedy_steps: NDArray[np.int64]
    greedy_decisions: NDArray[np.int64]

    @classmethod
    def empty(cls, n: int, evaluate: bool = True) -> EpisodeOutcomes:
        """Empty arrays for ``n`` episodes, and for as many greedy ones if ``evaluate`` is true."""
        n_greedy = n if evaluate else 0
        return cls(
            np.zeros(n),
            np.zeros(n, dtype=np.int64),
            np.zeros(n, dtype=np.int64),
            np.zeros(n_greedy),
            np.zeros(n_greedy, dtype=np.int64),
            np.zeros(n_greedy, dtype=np.int64),
        )


@dataclass(frozen=True, slots=True, eq=False)
class FitResult:
    """The episodes of one or more independent runs, and the tables at their end.

    Arrays of episodes have shape (seed, episode); those of greedy episodes have (seed, 0) if there were none.
    Returns are undiscounted sums of rewards.

    Attributes:
        seeds: The seed of each run.
        training_returns: Return of each training episode.
        greedy_returns: Return of one greedy episode after each training episode.
        steps: Steps of each training episode.
        decisions: Options begun in each training episode.
        greedy_steps: Steps of each greedy episode.
        greedy_decisions: Options begun in each greedy episode.
        q: (seed, S, A, K) final values; K = 1 if the learner values actions only. Terminal states are worth 0 if
            the model is known. If the environment can only be stepped, they keep their initial values, which
            nothing reads.
        skip_values: (seed, S, A, K) final skip values; None for all learners but TempoRL.
        wall_seconds: (seed,) time of each run, without compiling the loop. With ``loop="python"`` there is no loop
            to compile in advance: the first run of a process includes the time to compile the update.
    """

    seeds: tuple[int, ...]
    training_returns: NDArray[np.float64]
    greedy_returns: NDArray[np.float64]
    steps: NDArray[np.int64]
    decisions: NDArray[np.int64]
    greedy_steps: NDArray[np.int64]
    greedy_decisions: NDArray[np.int64]
    q: NDArray[np.float64]
    skip_values: NDArray[np.float64] | None
    wall_seconds: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RunState:
    """A run between two episodes.

    The seed is the root of a tree of random streams: one for the agent, one for the environment's training
    episodes, one for its evaluation episodes, and one for random initial values. The agent therefore draws the
    same numbers in any environment, and evaluation changes nothing. The learner's ``policy_of`` gives the greedy
    policy of the state's ``tables``.

    Attributes:
        learner: Name of the class of the run's learner.
        seed: The run's seed.
        episode: Number of finished episodes.
        tables: Value tables by name, (S, A, K); the first axis is the state.
        carry: (1,) fraction of an update that is still owed.
        agent: Stream of the agent.
        environment: Stream of the training episodes of a model.
        evaluation: Stream of the evaluation episodes of a model.
    """

    learner: str
    seed: int
    episode: int
    tables: dict[str, NDArray[np.float64]]
    carry: NDArray[np.float64]
    agent: np.random.Generator
    environment: np.random.Generator
    evaluation: np.random.Generator

    def copy(self) -> RunState:
        """An independent copy."""
        return RunState.restore(self.document(), self.arrays())

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Copies of the arrays, by name."""
        return {**{name: table.copy() for name, table in self.tables.items()}, "carry": self.carry.copy()}

    def document(self) -> dict[str, Any]:
        """Everything else, as plain types that JSON can hold."""
        streams = {name: getattr(self, name).bit_generator.state for name in _STREAMS[1:]}
        return {"learner": self.learner, "seed": self.seed, "episode": self.episode, "streams": streams}

    @classmethod
    def restore(cls, document: Mapping[str, Any], arrays: Mapping[str, NDArray[np.float64]]) -> RunState:
        """The state that ``document`` and ``arrays`` were made from.

        Raises:
            ValueError: They are damaged or not those of a state.
        """
        saved = take_mapping(document, "streams")
        streams = {}
        for name in _STREAMS[1:]:
            streams[name] = np.random.Generator(np.random.PCG64(0))
            restore_generator(streams[name], saved, name)
        copies = {
            name: take_array(arrays, name, np.float64, (1,) if name == "carry" else (None, None, None)).copy()
            for name in arrays
        }
        take(copies, "carry")
        take(copies, "q")
        carry = copies.pop("carry")
        seed, episode = take_integer(document, "seed", at_most=None), take_integer(document, "episode")
        return cls(str(take(document, "learner")), seed, episode, copies, carry, **streams)

    def after(self, episodes: int) -> RunState:
        """The same state with its episode count advanced by ``episodes``."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return RunState(**{**parts, "episode": self.episode + episodes})


def stream(seed: int, name: str) -> np.random.Generator:
    """One of a run's random streams, by name."""
    return np.random.Generator(np.random.PCG64(_branch(seed, name)))


def environment_seed(seed: int, purpose: str, episode: int) -> int:
    """Seed with which a Gymnasium environment begins an episode for ``"training"`` or ``"evaluation"``."""
    branch = _branch(seed, "environment" if purpose == "training" else "evaluation", episode)
    return int(branch.generate_state(1)[0])


def _branch(seed: int, name: str, *further: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(_STREAMS.index(name), *further))
