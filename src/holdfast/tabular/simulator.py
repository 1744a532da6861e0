"""A tabular model in flat arrays, so that a compiled loop can step through it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from holdfast.core.array_types import Floats, Integers
from holdfast.core.compiling import compiled
from holdfast.core.errors import InputError
from holdfast.mdp import TabularMDP
from holdfast.mdp.kernels import DeterministicKernel, SparseKernel

__all__ = ["FlatModel", "ModelSteps", "draw_outcome", "first_state", "flat_model"]


class FlatModel(NamedTuple):
    """The possible outcomes of every (s,a), row by row; row s·A + a begins at ``offsets[s·A + a]``.

    Attributes:
        n_actions: A.
        offsets: (S·A + 1,) the beginning of each row, and the end of the last.
        successors: (N,) next state of each outcome.
        cumulative: (N,) probability of this outcome or an earlier one in its row.
        rewards: (N,) reward of each outcome.
        terminal: (S,) mask.
        initial_states: (n,) states in which an episode may start.
        initial_cumulative: (n,) probability of this state or an earlier one.
    """

    n_actions: int
    offsets: Integers
    successors: Integers
    cumulative: Floats
    rewards: Floats
    terminal: NDArray[np.bool_]
    initial_states: Integers
    initial_cumulative: Floats

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.terminal)

    @property
    def is_deterministic(self) -> bool:
        """Whether every (s,a) has only one outcome."""
        return len(self.successors) == len(self.offsets) - 1


def flat_model(mdp: TabularMDP, *, needs_start: bool = True) -> FlatModel:
    """Make the flat arrays of a model.

    Args:
        mdp: The model.
        needs_start: Whether it must have an initial distribution.

    Raises:
        ValueError: The initial distribution is missing, or includes terminal states.
    """
    if mdp.initial is None and needs_start:
        raise InputError("env must say where episodes start: give the TabularMDP an initial state or distribution")
    initial = np.zeros(mdp.n_states) if mdp.initial is None else mdp.initial
    starts = np.flatnonzero(initial)
    if mdp.terminal[starts].any():
        raise InputError("env must not start an episode in a terminal state")
    offsets, successors, chances, rewards = _rows(mdp)
    return FlatModel(
        mdp.n_actions,
        offsets,
        successors,
        _cumulative_by_row(chances, offsets),
        rewards,
        np.array(mdp.terminal),
        starts.astype(np.int64),
        np.cumsum(initial[starts]),
    )


@compiled
def first_state(model: FlatModel, environment: np.random.Generator) -> int:
    """The state in which an episode starts; nothing is drawn if only one is possible."""
    number = _draw(model.initial_cumulative, 0, len(model.initial_states) - 1, environment)
    return model.initial_states[number]  # type: ignore[no-any-return]


@compiled
def draw_outcome(model: FlatModel, state: int, action: int, environment: np.random.Generator) -> int:
    """Number of the outcome of (s,a); nothing is drawn if only one is possible."""
    row = state * model.n_actions + action
    return _draw(model.cumulative, model.offsets[row], model.offsets[row + 1] - 1, environment)


@compiled
def _draw(cumulative: Floats, first: int, last: int, random: np.random.Generator) -> int:
    if first == last:
        return first
    draw = random.random()
    while first < last:
        middle = (first + last) // 2
        if draw < cumulative[middle]:
            last = middle
        else:
            first = middle + 1
    return first


class ModelSteps:
    """A flat model that is stepped from Python and draws exactly what the compiled loops draw.

    Args:
        model: The model.
        environment: Stream of the training episodes.
        evaluation: Stream of the evaluation episodes.
    """

    def __init__(
        self, model: FlatModel, environment: np.random.Generator, evaluation: np.random.Generator
    ) -> None:
        self._model = model
        self._streams = {"training": environment, "evaluation": evaluation}
        self._random = environment
        self._state = 0

    def begin(self, episode: int, purpose: str) -> int:
        """Start an episode for ``"training"`` or ``"evaluation"``; return its first state."""
        self._random = self._streams[purpose]
        self._state = int(first_state(self._model, self._random))
        return self._state

    def step(self, action: int) -> tuple[int, float, bool, bool]:
        """Next state, reward, terminated, truncated (always false: a model has no time limit)."""
        outcome = draw_outcome(self._model, self._state, action, self._random)
        self._state = int(self._model.successors[outcome])
        return self._state, float(self._model.rewards[outcome]), bool(self._model.terminal[self._state]), False


def _cumulative_by_row(chances: Floats, offsets: Integers) -> Floats:
    cumulative = chances.copy()
    lengths = np.diff(offsets)
    for position in range(1, int(lengths.max())):
        there = offsets[:-1][lengths > position] + position
        cumulative[there] += cumulative[there - 1]
    return cumulative


def _rows(mdp: TabularMDP) -> tuple[Integers, Integers, Floats, Floats]:
    """Offsets, successors, probabilities and rewards of all rows."""
    n_states, n_actions = mdp.n_states, mdp.n_actions
    n_rows = n_states * n_actions
    if isinstance(mdp.kernel, DeterministicKernel):
        one_each = np.arange(n_rows + 1, dtype=np.int64)
        return one_each, mdp.P.ravel().astype(np.int64), np.ones(n_rows), mdp.reward.ravel().copy()
    if isinstance(mdp.kernel, SparseKernel):
        states, actions, successors, chances = _sparse_outcomes(mdp.P)
        worth = None if mdp.outcome_reward is None else _sparse_rewards(mdp, states, actions, successors)
    else:
        states, actions, successors = np.nonzero(mdp.P > 0.0)
        chances = mdp.P[states, actions, successors]
        worth = None if mdp.outcome_reward is None else mdp.outcome_reward[states, actions, successors]
    rewards = mdp.reward[states, actions] if worth is None else worth
    counts = np.bincount(states * n_actions + actions, minlength=n_rows)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return offsets, successors.astype(np.int64), chances.astype(np.float64), rewards.astype(np.float64)


def _sparse_outcomes(matrices: tuple[sp.csr_array, ...]) -> tuple[Integers, Integers, Integers, Floats]:
    """States, actions, successors and probabilities of the outcomes, ordered by state, then action."""
    parts = []
    for action, matrix in enumerate(matrices):
        entries = sp.coo_array(matrix)
        parts.append((entries.row, np.full(entries.nnz, action), entries.col, entries.data))
    states, actions, successors, chances = (np.concatenate(column) for column in zip(*parts, strict=True))
    possible = np.flatnonzero(chances > 0.0)
    order = possible[np.lexsort((successors[possible], actions[possible], states[possible]))]
    return states[order], actions[order], successors[order], chances[order]


def _sparse_rewards(mdp: TabularMDP, states: Integers, actions: Integers, successors: Integers) -> Floats:
    if isinstance(mdp.outcome_reward, np.ndarray):
        return np.asarray(mdp.outcome_reward[states, actions, successors])
    rewards = np.zeros(len(states))
    for action, matrix in enumerate(mdp.outcome_reward):
        own = actions == action
        rewards[own] = np.asarray(sp.csr_array(matrix)[states[own], successors[own]]).ravel()
    return rewards
