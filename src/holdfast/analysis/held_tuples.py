"""What a replay has seen of one fixed frame skip k: samples of the k-persistent decision process.

A step of a finished option with ``left`` ≥ k steps to go is one, (s, a, r^k, s_{t+k}): a was really held for k
steps. So is a step whose option ended sooner because the episode terminated: a terminal state is absorbing and
pays nothing, so that a longer hold would have ended alike. A hold that was over sooner for any other reason, by
choice or by a time limit, does not say what k steps would have brought and is left out.

The second kind is seen more often than it should be. A hold that was meant for ℓ < k steps is a sample if the
episode terminates within them, and none if it does not; where moves are random, counting all of them would make
ends look too likely, and counting none would hide ends altogether. So a terminal sample of length ℓ counts
P(m ≥ k | m ≥ ℓ), with m the steps that a hold was still meant to last: the share that would have been seen to
the end. The ends of episodes censor m, so that ``hold_survival`` is the product-limit estimate. It takes m to be
independent of the state; where moves are certain, all samples of one hold are the same, whatever they count.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_integer
from holdfast.core.decomposition import window_length
from holdfast.core.history import k_step_return
from holdfast.deep.replay import OptionReplayBuffer

__all__ = ["HeldTuples", "episode_starts", "held_tuples", "hold_survival"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


class HeldTuples(NamedTuple):
    """N samples (s, a, r^k, s', done) of the k-persistent decision process; states are rows of the replay's store.

    Attributes:
        rows: (N,) where s is.
        actions: (N,) held actions, as numbers from 0.
        rewards: (N,) r^k.
        next_rows: (N,) where s' is.
        dones: (N,) whether s' is terminal.
        weights: (N,) how much each sample counts, in (0, 1].
        options: (N,) number of the option that it is a part of.
    """

    rows: Integers
    actions: Integers
    rewards: Floats
    next_rows: Integers
    dones: Bools
    weights: Floats
    options: Integers

    def take(self, places: Any) -> HeldTuples:
        """The samples at ``places``."""
        return HeldTuples(*(part[places] for part in self))


def held_tuples(replay: OptionReplayBuffer, k: int) -> HeldTuples:
    """All samples that a replay has of holding an action for ``k`` steps, the oldest first.

    Args:
        replay: A ring of primitive steps.
        k: The frame skip.
    """
    k = check_integer("k", k)
    rows = _rows_in_order(replay)
    left, numbers = replay.left.ravel()[rows].astype(np.int64), _option_numbers(replay, rows)
    lengths = window_length(k, left)
    n_rows, n_envs = replay.left.size, replay.n_envs
    last = (rows + (lengths - 1) * n_envs) % n_rows
    terminal = _terminal_rows(replay)[last]
    kept = (left >= k) | ((left > 0) & terminal)
    survival = hold_survival(left, replay.dones.ravel()[(rows + (left - 1) * n_envs) % n_rows] > 0, k)
    weights = np.where(left >= k, 1.0, survival[k] / np.maximum(survival[lengths], 1e-300))
    # No hold was ever meant for k steps where these are 0.
    kept &= weights > 0.0
    rows, lengths, last = rows[kept], lengths[kept], last[kept]
    steps = (rows[:, None] + np.arange(k) * n_envs) % n_rows
    seen = np.arange(k) < lengths[:, None]
    paid = np.where(seen, replay.rewards.ravel()[steps].astype(np.float64), 0.0)
    return HeldTuples(
        rows=rows,
        actions=replay.actions.ravel()[rows],
        rewards=k_step_return(paid.T, 0, k, replay.gamma),
        next_rows=replay.next_row.ravel()[last],
        dones=terminal[kept],
        weights=weights[kept],
        options=numbers[kept],
    )


def hold_survival(left: Integers, ended_with_episode: Bools, k: int) -> Floats:
    """Ŝ(m) = Π_{j<m} (1 − c_j / n_j) for m = 0..k: the probability that a hold goes on for at least m more steps.

    c_j are the steps after which the hold went on for exactly j more and was then over by choice; n_j are those
    for which that could have been seen, as the episode was not over by then (Kaplan and Meier, 1958).

    Args:
        left: (N,) steps to go in the option, itself included; 0 where it is not over yet.
        ended_with_episode: (N,) whether the option was over because the episode was.
        k: The largest m.

    Returns:
        (k + 1,) with Ŝ(0) = Ŝ(1) = 1.
    """
    survival = np.ones(k + 1)
    for m in range(2, k + 1):
        chosen = np.count_nonzero((left == m - 1) & ~ended_with_episode)
        at_risk = np.count_nonzero(left > m - 1) + chosen
        survival[m] = survival[m - 1] * (1.0 - chosen / at_risk if at_risk else 0.0)
    return survival


def episode_starts(replay: OptionReplayBuffer) -> Integers:
    """Rows of the store that hold first observations of episodes, in the order of the steps."""
    rows = _rows_in_order(replay)
    before = (rows - replay.n_envs) % replay.left.size
    begins = replay.dones.ravel()[before] > 0
    if replay.n_added <= replay.buffer_size:
        begins[: replay.n_envs] = True
    return rows[begins]


def _rows_in_order(replay: OptionReplayBuffer) -> Integers:
    """The rows of all steps that the ring holds, oldest first, environment by environment within a step."""
    steps = np.arange(max(0, replay.n_added - replay.buffer_size), replay.n_added)
    return ((steps % replay.n_slots)[:, None] * replay.n_envs + np.arange(replay.n_envs)).ravel()


def _option_numbers(replay: OptionReplayBuffer, rows: Integers) -> Integers:
    """(N,) a number for each step that it shares with the steps of its option only."""
    ends = (replay.left.ravel()[rows] == 1).reshape(-1, replay.n_envs)
    # Options that are over before this step, in each environment.
    before = np.cumsum(ends, axis=0) - ends
    numbers: Integers = before.astype(np.int64) * replay.n_envs + np.arange(replay.n_envs)
    return numbers.ravel()


def _terminal_rows(replay: OptionReplayBuffer) -> Bools:
    """Which rows are steps into a terminal state; a time limit is none if the run bootstraps through it."""
    done = replay.dones.ravel() > 0
    if replay.handle_timeout_termination:
        done &= ~(replay.timeouts.ravel() > 0)
    return done
