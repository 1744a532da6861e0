"""What a replay has seen of one fixed frame skip k: samples of the k-persistent decision process.

A step of a finished option with ``left`` ≥ k steps to go is a sample (s, a, r^k, s_{t+k}): a was really held for k
steps. So is a step whose option ended sooner because the episode terminated: a terminal state is absorbing and
pays nothing, so a longer hold would have ended the same way. A hold that ended sooner for any other reason, by
choice or by a time limit, does not show what k steps would have brought and is left out.

The second kind is over-represented. A hold with ℓ < k steps to go is a sample if the episode terminates within
them, but not if it does not. If moves are random, counting all such samples would make ends look too likely, and
counting none would hide ends altogether. Therefore a terminal sample of length ℓ, in an option that had lasted
e steps, has the weight P(κ ≥ e + k | κ ≥ e + ℓ), where κ is the planned number of steps of the option: the share
of such samples that would have been seen to the end. Ends of episodes censor κ, so ``hold_survival`` is the
product-limit estimate. It assumes that κ is independent of where the option began, which holds for random options.
If moves are deterministic, all samples of one hold are equal and their weights do not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.array_types import Floats, Integers
from holdfast.core.checks import check_integer
from holdfast.core.decomposition import window_length
from holdfast.core.history import k_step_return
from holdfast.deep.replay.ring import OptionReplayBuffer

__all__ = ["HeldTuples", "episode_starts", "held_tuples", "hold_survival", "longest_episode"]

Bools = NDArray[np.bool_]


class HeldTuples(NamedTuple):
    """N samples (s, a, r^k, s', done) of the k-persistent decision process; states are rows of the replay's store.

    Attributes:
        rows: (N,) row of s.
        actions: (N,) held actions, as numbers from 0.
        rewards: (N,) r^k.
        sums: (N,) the same rewards, undiscounted.
        next_rows: (N,) row of s'.
        dones: (N,) whether s' is terminal.
        weights: (N,) weight of each sample, in (0, 1].
        options: (N,) number of the option that the sample is part of.
    """

    rows: Integers
    actions: Integers
    rewards: Floats
    sums: Floats
    next_rows: Integers
    dones: Bools
    weights: Floats
    options: Integers

    def take(self, places: Any) -> HeldTuples:
        """The samples at ``places``."""
        return HeldTuples(*(part[places] for part in self))


def held_tuples(replay: OptionReplayBuffer, k: int) -> HeldTuples:
    """All samples in a replay of holding an action for ``k`` steps, oldest first.

    Args:
        replay: A ring of primitive steps.
        k: The frame skip.
    """
    k = check_integer("k", k)
    rows = _rows_in_order(replay)
    left, numbers = replay.left.ravel()[rows].astype(np.int64), _option_numbers(replay, rows)
    if not np.any(left >= k):
        # Ends within k steps would have weight 0, because no option was planned to last that long.
        none, no_row = np.zeros(0), rows[:0]
        return HeldTuples(no_row, no_row, none, none, no_row, np.zeros(0, np.bool_), none, no_row)
    lengths = window_length(k, left)
    n_rows, n_envs = replay.left.size, replay.n_envs
    last = (rows + (lengths - 1) * n_envs) % n_rows
    terminal = _terminal_rows(replay)[last]
    kept = (left >= k) | ((left > 0) & terminal)
    weights = np.where(left >= k, 1.0, _shares(replay, rows, left, numbers, k))
    kept &= weights > 0.0
    rows, lengths, last = rows[kept], lengths[kept], last[kept]
    steps = (rows[:, None] + np.arange(k) * n_envs) % n_rows
    seen = np.arange(k) < lengths[:, None]
    paid = np.where(seen, replay.rewards.ravel()[steps].astype(np.float64), 0.0)
    return HeldTuples(
        rows=rows,
        actions=replay.actions.ravel()[rows],
        rewards=k_step_return(paid.T, 0, k, replay.gamma),
        sums=paid.sum(axis=1),
        next_rows=replay.next_row.ravel()[last],
        dones=terminal[kept],
        weights=weights[kept],
        options=numbers[kept],
    )


def hold_survival(durations: Integers, ended_with_episode: Bools, longest: int) -> Floats:
    """Ŝ(m) = Π_{j<m} (1 − c_j / n_j) for m = 0..longest: the probability that an option is planned for ≥ m steps.

    c_j is the number of options that ended by choice after j steps. n_j is the number for which that could have
    been seen: they lasted that long and the episode had not ended by then (Kaplan and Meier, 1958).

    Args:
        durations: (O,) number of steps that options lasted.
        ended_with_episode: (O,) whether an option ended because the episode did.
        longest: The largest m.

    Returns:
        (longest + 1,) with Ŝ(0) = Ŝ(1) = 1.
    """
    chosen = np.bincount(durations[~ended_with_episode], minlength=longest + 1)[: longest + 1]
    lasted = np.bincount(np.minimum(durations, longest + 1), minlength=longest + 2)
    longer = lasted[::-1].cumsum()[::-1][1:]
    at_risk = longer + chosen
    goes_on = np.where(at_risk > 0, longer / np.maximum(at_risk, 1), 0.0)
    goes_on[0] = 1.0
    return np.concatenate([[1.0], np.cumprod(goes_on[:-1])])


def episode_starts(replay: OptionReplayBuffer) -> Integers:
    """Rows of the store with the first observations of episodes, in the order of the steps."""
    rows = _rows_in_order(replay)
    before = (rows - replay.n_envs) % replay.left.size
    begins = replay.dones.ravel()[before] > 0
    if replay.n_added <= replay.buffer_size:
        begins[: replay.n_envs] = True
    return rows[begins]


def longest_episode(replay: OptionReplayBuffer) -> int:
    """Steps of the longest episode that is completely in the ring; if there is none, of the whole ring."""
    rows = _rows_in_order(replay).reshape(-1, replay.n_envs)
    longest = 0
    for column in rows.T:
        ends = np.flatnonzero(replay.dones.ravel()[column] > 0)
        whole = np.diff(ends, prepend=-1)[0 if replay.n_added <= replay.buffer_size else 1 :]
        longest = max(longest, int(whole.max(initial=0)))
    return longest or len(rows)


def _rows_in_order(replay: OptionReplayBuffer) -> Integers:
    """The rows of all steps in the ring, oldest first, environment by environment within a step."""
    steps = np.arange(max(0, replay.n_added - replay.buffer_size), replay.n_added)
    return ((steps % replay.n_slots)[:, None] * replay.n_envs + np.arange(replay.n_envs)).ravel()


def _option_numbers(replay: OptionReplayBuffer, rows: Integers) -> Integers:
    """(N,) a number for each step, shared only by the steps of the same option."""
    ends = (replay.left.ravel()[rows] == 1).reshape(-1, replay.n_envs)
    # Options that ended before this step, in each environment.
    before = np.cumsum(ends, axis=0) - ends
    numbers: Integers = before.astype(np.int64) * replay.n_envs + np.arange(replay.n_envs)
    return numbers.ravel()


def _shares(replay: OptionReplayBuffer, rows: Integers, left: Integers, numbers: Integers, k: int) -> Floats:
    """(N,) P(κ ≥ e + k | κ ≥ e + ℓ) of each step, with ℓ = left and e the steps that its option had lasted."""
    durations = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(durations, numbers, left)
    last = left == 1
    options = numbers[last]
    survival = hold_survival(
        durations[options], replay.dones.ravel()[rows[last]] > 0, int(durations.max(initial=0)) + k
    )
    total = durations[numbers]
    return np.asarray(survival[total - left + k] / np.maximum(survival[total], 1e-300))


def _terminal_rows(replay: OptionReplayBuffer) -> Bools:
    """Which rows are steps into a terminal state; time limits do not count if the run bootstraps through them."""
    done = replay.dones.ravel() > 0
    if replay.handle_timeout_termination:
        done &= ~(replay.timeouts.ravel() > 0)
    return done
