"""Reading the transition tables of Gymnasium's toy_text environments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sized
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from holdfast.core.errors import InputError

__all__ = ["TransitionTable", "read_transition_table", "without_harmless_wrappers"]

_HARMLESS = frozenset(
    {
        "Autoreset",
        "EpisodeLog",
        "HumanRendering",
        "Monitor",
        "NamedFailures",
        "OrderEnforcing",
        "PassiveEnvChecker",
        "RecordEpisodeStatistics",
        "RecordVideo",
        "RenderCollection",
        "TimeLimit",
    }
)
"""Wrappers of Gymnasium, SB3 and holdfast that change neither transitions nor rewards."""


def without_harmless_wrappers(env: Any) -> Any:
    """The environment itself; raises ValueError if a wrapper may change what it does."""
    unwrapped = getattr(env, "unwrapped", env)
    while env is not unwrapped:
        name = type(env).__name__
        if name not in _HARMLESS:
            raise InputError(
                f"env must not be wrapped in {name}: a transition table cannot show what it changes; "
                "pass the environment inside it",
                "env",
            )
        env = env.env
    return env


class TransitionTable(NamedTuple):
    """The arguments for ``TabularMDP``.

    P and r are arrays (S,A) of next states and rewards if the table is deterministic, else both are A sparse
    matrices (S,S).
    """

    P: Any
    r: Any
    initial: NDArray[np.float64] | None
    terminal: NDArray[np.bool_]


def read_transition_table(env: Any) -> TransitionTable:
    """Read ``env.P[s][a] = [(probability, s', reward, terminated), ...]`` and ``env.initial_state_distrib``.

    A state is terminal if every transition into it ends the episode. If some state is entered both ways, one more
    terminal state is appended for the transitions that end the episode.
    """
    table = getattr(env, "P", None)
    if not isinstance(table, Mapping) or not table:
        raise InputError(
            f"env must expose its transition table P[s][a], as Gymnasium's toy_text environments do; "
            f"{type(env).__name__} does not",
            "env",
        )
    n_states, n_actions = len(table), _number_of_actions(table)
    states, actions, chances, successors, rewards, ends = _flatten(table, n_actions)
    if np.any((successors < 0) | (successors >= n_states)):
        raise InputError(f"env.P must name next states in 0..{n_states - 1}: some are outside this range")

    initial = getattr(env, "initial_state_distrib", None)
    if initial is not None:
        initial = _numbers(initial, np.float64, "env.initial_state_distrib must be probabilities")
        if initial.shape != (n_states,):
            raise InputError(f"env.initial_state_distrib must have shape ({n_states},), not {initial.shape}")
    terminal = _terminal_states(states, successors, ends, rewards, n_states, initial)
    astray = ends & ~terminal[successors]
    if astray.any():
        successors[astray] = n_states
        terminal = np.append(terminal, True)
    total = len(terminal)

    if initial is not None:
        initial = np.pad(initial, (0, total - n_states))
    P: Any
    r: Any
    certain = np.bincount(states * n_actions + actions, chances, minlength=n_states * n_actions) == 1.0
    if len(states) == n_states * n_actions and certain.all():
        P = np.repeat(np.arange(total)[:, None], n_actions, axis=1)
        r = np.zeros((total, n_actions))
        P[states, actions] = successors
        r[states, actions] = rewards
    else:
        P, r = [], []
        for a in range(n_actions):
            own = actions == a
            where = (states[own], successors[own])
            chance = sp.csr_array((chances[own], where), shape=(total, total))
            # Two outcomes may share a next state but differ in reward: their mean counts.
            worth = sp.csr_array((chances[own] * rewards[own], where), shape=(total, total))
            P.append(sp.csr_array(chance + sp.diags_array((np.arange(total) >= n_states).astype(np.float64))))
            r.append(sp.csr_array(worth.multiply(chance.power(-1))))
    return TransitionTable(P, r, initial, terminal)


def _number_of_actions(table: Mapping[int, Any]) -> int:
    if set(table) != set(range(len(table))):
        raise InputError(f"env.P must have the states 0..{len(table) - 1} as its keys")
    if not all(isinstance(row, Sized) for row in table.values()):
        raise InputError("env.P must have the actions of every state")
    counts = {len(row) for row in table.values()}
    n_actions = counts.pop()
    if counts or any(set(row) != set(range(n_actions)) for row in table.values() if isinstance(row, Mapping)):
        raise InputError("env.P must have the same actions, numbered from 0, in every state")
    return n_actions


def _flatten(table: Mapping[int, Any], n_actions: int) -> tuple[NDArray[Any], ...]:
    """Columns state, action, probability, next state, reward, terminated, with one row per possible transition."""
    message = "env.P must hold lists of (probability, next state, reward, terminated)"
    try:
        rows = [
            (s, a, chance, successor, reward, terminated)
            for s in range(len(table))
            for a in range(n_actions)
            for chance, successor, reward, terminated in table[s][a]
            if chance != 0.0
        ]
        are_positive = all(math.isfinite(row[2]) and row[2] > 0.0 for row in rows)
    except (TypeError, ValueError, LookupError):
        raise InputError(message) from None
    if not are_positive:
        raise InputError("env.P must hold probabilities: it has negative, NaN or infinite ones")
    if len({row[:2] for row in rows}) < len(table) * n_actions:
        raise InputError("env.P must have rows that sum to 1: some state and action have no next state")
    columns = list(zip(*rows, strict=True))
    kinds = (np.int64, np.int64, np.float64, np.int64, np.float64, np.bool_)
    return tuple(_numbers(column, kind, message) for column, kind in zip(columns, kinds, strict=True))


def _numbers(values: Any, kind: Any, message: str) -> NDArray[Any]:
    try:
        return np.array(values, dtype=kind)
    except (TypeError, ValueError, OverflowError):
        raise InputError(message) from None


def _terminal_states(
    states: NDArray[np.int64],
    successors: NDArray[np.int64],
    ends: NDArray[np.bool_],
    rewards: NDArray[np.float64],
    n_states: int,
    initial: NDArray[np.float64] | None,
) -> NDArray[np.bool_]:
    """States that only ending transitions enter; transitions from terminal states do not count.

    A state in which episodes start is live. If the starts are unknown, so is every state from which a transition
    leads to another state or pays a reward.
    """
    terminal = np.zeros(n_states, dtype=np.bool_)
    terminal[successors[ends]] = True
    if initial is not None:
        terminal &= ~(initial > 0.0)
    else:
        terminal[states[(successors != states) | (rewards != 0.0)]] = False
    while True:
        live_entries = successors[~ends & ~terminal[states]]
        wrong = np.zeros(n_states, dtype=np.bool_)
        wrong[live_entries] = True
        if not (wrong & terminal).any():
            return terminal
        terminal &= ~wrong
