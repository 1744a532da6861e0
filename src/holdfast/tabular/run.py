"""A run: where it stands between two episodes, what happened in each, and what is left of many at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.saved_fields import restore_generator, take, take_array, take_integer, take_mapping

__all__ = ["EpisodeOutcomes", "FitResult", "RunState", "episode_seed", "stream"]

_STREAMS = ("initial", "agent", "environment", "evaluation")


class EpisodeOutcomes(NamedTuple):
    """What happened in each of n episodes; every array has shape (n,), or (0,) where nothing was evaluated.

    Attributes:
        training_returns: Sum of the rewards, undiscounted.
        steps: Steps taken.
        decisions: Options begun.
        greedy_returns: Sum of the rewards of one greedy episode after this one.
        greedy_steps: Its steps.
        greedy_decisions: Its decisions.
    """

    training_returns: NDArray[np.float64]
    steps: NDArray[np.int64]
    decisions: NDArray[np.int64]
    greedy_returns: NDArray[np.float64]
    greedy_steps: NDArray[np.int64]
    greedy_decisions: NDArray[np.int64]

    @classmethod
    def empty(cls, n: int, evaluate: bool = True) -> EpisodeOutcomes:
        """Room for ``n`` episodes, and for as many greedy ones if they are to be."""
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
    """The episodes of one or many independent runs, and the tables they ended with.

    Arrays of episodes have shape (seed, episode); those of greedy episodes (seed, 0) if none were asked for.
    Returns are sums of rewards, undiscounted.

    Attributes:
        seeds: The seed of each run.
        training_returns: Return of each training episode.
        greedy_returns: Return of one greedy episode after each training episode.
        steps: Steps of each training episode.
        decisions: Options begun in each training episode.
        greedy_steps: Steps of each greedy episode.
        greedy_decisions: Options begun in each greedy episode.
        q: (seed, S, A, K) final values; K = 1 where the learner values actions alone. Terminal states are worth 0
            where the model is known; in an environment that is only stepped in they keep their initial values,
            which nothing reads.
        skip_values: (seed, S, A, K) final skip values; None but for TempoRL.
        wall_seconds: (seed,) time of each run, without compiling the loop. With ``loop="python"`` there is none to
            compile beforehand: what the first run of a process compiles of its update is in that run's time.
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
    episodes, one for its evaluation episodes, and one for random initial values. So the agent draws the same
    numbers whatever environment it is in, and evaluating changes nothing. The greedy policy of a state is what the
    learner's ``policy_of`` gives for its ``tables``.

    Attributes:
        learner: Name of the class of the learner whose run it is.
        seed: The run's seed.
        episode: Number of episodes done.
        tables: Value tables by name, (S, A, K); the first axis is the state.
        carry: (1,) fraction of an update that is owed.
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
        """A state of its own."""
        return RunState.restore(self.document(), self.arrays())

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Copies of the arrays, by name."""
        return {**{name: table.copy() for name, table in self.tables.items()}, "carry": self.carry.copy()}

    def document(self) -> dict[str, Any]:
        """All the rest, of plain types that JSON can hold."""
        streams = {name: getattr(self, name).bit_generator.state for name in _STREAMS[1:]}
        return {"learner": self.learner, "seed": self.seed, "episode": self.episode, "streams": streams}

    @classmethod
    def restore(cls, document: Mapping[str, Any], arrays: Mapping[str, NDArray[np.float64]]) -> RunState:
        """The state that ``document`` and ``arrays`` were taken from.

        Raises:
            ValueError: They are damaged, or of something else.
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
        """The same, ``episodes`` further on the clock."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return RunState(**{**parts, "episode": self.episode + episodes})


def stream(seed: int, name: str) -> np.random.Generator:
    """One of a run's random streams by name."""
    return np.random.Generator(np.random.PCG64(_branch(seed, name)))


def episode_seed(seed: int, purpose: str, episode: int) -> int:
    """Seed with which a Gymnasium environment begins an episode for ``"training"`` or ``"evaluation"``."""
    branch = _branch(seed, "environment" if purpose == "training" else "evaluation", episode)
    return int(branch.generate_state(1)[0])


def _branch(seed: int, name: str, *further: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(_STREAMS.index(name), *further))
