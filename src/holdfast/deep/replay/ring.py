"""One ring, K views: the replay buffer of every agent that holds its actions.

Each primitive step is stored once, with ``left``, the number of steps that its option really ran from it on,
itself included: κ − i, known when the option is over (``OptionClock.left`` is what was planned). The tuple that
view D_k holds for it follows by index arithmetic: it covers ℓ = min(k, left) steps (of a sparse set of
persistences, as many as leave a rest that is in the set). A step of an option that is still running is pending and
cannot be drawn; when the option ends its steps get ``left`` and the largest priority; a slot that is overwritten
can no longer be drawn. ``ring_arrays.py`` says what is kept where.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch as th
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.vec_env import VecNormalize

from holdfast.core.checks import refuse_actions
from holdfast.core.compiling import compiled
from holdfast.core.history import is_terminal, k_step_return
from holdfast.deep.replay.priorities import mean_errors
from holdfast.deep.replay.ring_arrays import RingArrays
from holdfast.deep.replay.views import OptionBatch

__all__ = ["OptionReplayBuffer", "window_returns"]


class _Steps(NamedTuple):
    """What a ring knows of its rows besides observations and actions, each (rows,)."""

    left: NDArray[np.int32]
    rewards: NDArray[np.float32]
    dones: NDArray[np.float32]
    timeouts: NDArray[np.float32]
    next_row: NDArray[np.int64]


class _Windows(NamedTuple):
    """How views take their tuples from rows.

    Attributes:
        durations: (K,) the persistence k of each view.
        lengths: (K, longest + 1) ℓ by ``left``, as from ``window_lengths``.
        powers: γ^0..γ^longest.
        gamma: γ.
        n_envs: Rows from one step of an environment to its next.
        through_timeouts: Whether a time limit is bootstrapped through.
        bootstrap: Whether tuples shorter than k count.
        pad_terminal: Whether those count that ended the episode, if others do not.
    """

    durations: NDArray[np.int64]
    lengths: NDArray[np.int64]
    powers: NDArray[np.float64]
    gamma: float
    n_envs: int
    through_timeouts: bool
    bootstrap: bool
    pad_terminal: bool


class OptionReplayBuffer(RingArrays):
    """A ring of primitive steps, drawn from as the K replay buffers of the paper.

    ``RingArrays`` explains its arguments.

    Attributes:
        relabels: Whether observations change when they are read (goals in hindsight), so that no value can be kept
            by row.
    """

    relabels: ClassVar[bool] = False

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` returned."""
        super().restore(state)
        self._stamp(np.arange(self.store.n_rows))

    # Writing -----------------------------------------------------------------------------------------------

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
        option_over: ArrayLike | None = None,
    ) -> None:
        """Store one primitive step of every environment.

        Args:
            obs: Observations before the step.
            next_obs: Observations after it; the last one of an episode that ended.
            action: Numbers from 0, or rows of continuous actions.
            reward: Rewards.
            done: Whether the step ended the episode.
            infos: The environments' info dictionaries.
            option_over: (n_envs,) whether the step ended its option; by default each step is one option.
        """
        taken = np.asarray(action).reshape(self.n_envs, self.action_dim)
        refuse_actions("action must be", taken, self.n_actions)
        if option_over is None:
            # Nobody said that this step goes on with the option that is running.
            self.finish()
        slot = self.n_added % self.n_slots
        rows = self._rows(slot)
        done = np.asarray(done).reshape(self.n_envs).astype(np.bool_)
        if not self._goes_on(rows, obs):
            self._put(rows, obs)
        head = (slot + 1) % self.n_slots
        self._forget(head)

        self.actions[slot] = taken
        self.rewards[slot] = reward
        self.reward_low = min(self.reward_low, float(self.rewards[slot].min()))
        self.reward_high = max(self.reward_high, float(self.rewards[slot].max()))
        self.dones[slot] = done
        timeouts = np.asarray([info.get("TimeLimit.truncated", False) for info in infos])
        self.timeouts[slot] = timeouts.reshape(self.n_envs)
        self.next_row[slot] = self._rows(head)
        for env in np.flatnonzero(done):
            self.next_row[slot, env] = self.store.lend()
        self._put(self.next_row[slot], next_obs)

        self.n_added += 1
        self.pos = self.n_added % self.buffer_size
        self.full = self.n_added >= self.buffer_size
        self.pending = np.minimum(self.pending + 1, self.buffer_size)
        self.finish(None if option_over is None else np.asarray(option_over, dtype=np.bool_) | done)
        self._stored(slot, done, infos)

    def _stored(self, slot: int, done: NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        """A step of every environment has been stored in ``slot``; a subclass may keep more of it."""

    def finish(self, mask: ArrayLike | None = None) -> None:
        """End the options running under ``mask`` (default: all): their steps get ``left`` and can be drawn."""
        envs = np.flatnonzero((self.pending > 0) & (True if mask is None else np.asarray(mask)))
        for env in envs:
            lefts = np.arange(1, self.pending[env] + 1)
            slots = (self.n_added - lefts) % self.n_slots
            self.left[slots, env] = lefts
            self._enter(slots, lefts, int(env))
        self.pending[envs] = 0

    def admit_running(self) -> None:
        """While the very first options are running, treat their steps so far as those of finished options."""
        if not self.drawable.any():
            self.finish()

    def cut(self, mask: ArrayLike | None = None) -> None:
        """End the options running under ``mask``, where the environments have been reset or replaced."""
        self.finish(mask)

    def _enter(self, slots: NDArray[np.int64], lefts: NDArray[np.int64], env: int) -> None:
        """Make the steps of a finished option drawable; ``slots`` and ``lefts`` (n,) begin with its last step."""
        if self.trees is not None:
            last = int(slots[0]), env
            ends_episode = is_terminal(self.dones[last], self.timeouts[last], self.handle_timeout_termination)
            self.trees.enter(slots * self.n_envs + env, self._members(lefts, bool(ends_episode)))

    def _members(self, lefts: NDArray[np.int64], ends_episode: bool) -> NDArray[np.bool_]:
        """Which trees hold steps with ``lefts`` (n,) steps of their option to go: (n, trees)."""
        if self.shared_draws:
            return np.ones((len(lefts), 1), dtype=np.bool_)
        if ends_episode and (self.bootstrap or self.pad_terminal):
            # A hold that ended the episode fixes all longer ones.
            return np.ones((len(lefts), len(self.durations)), dtype=np.bool_)
        if not self.bootstrap:
            return self.durations <= lefts[:, None]
        return self._lengths[:, np.minimum(lefts, self.k_max)].T > 0

    def rewards_and_ends(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The reward of every step of finished options, and whether it led to a terminal state, each (n,)."""
        known = self.left > 0
        ends = is_terminal(self.dones[known], self.timeouts[known], self.handle_timeout_termination)
        return self.rewards[known], ends

    def _put(self, rows: NDArray[np.int64], observations: Any) -> None:
        self.store.put(rows, observations)
        self._stamp(rows)

    def _stamp(self, rows: NDArray[np.int64]) -> None:
        """Mark rows as written."""
        more = self.store.n_rows - len(self.written)
        if more > 0:
            self.written = np.concatenate([self.written, np.zeros(more, dtype=np.int64)])
        self._n_writes += 1
        self.written[rows] = self._n_writes

    def _rows(self, slot: int) -> NDArray[np.int64]:
        return slot * self.n_envs + np.arange(self.n_envs)

    def _goes_on(self, rows: NDArray[np.int64], obs: Any) -> bool:
        """Whether the head already holds all of these observations, because the last step led to them.

        If the last step led to a different one there, that is moved elsewhere before it is overwritten.
        """
        if self.n_added == 0:
            return False
        last = (self.n_added - 1) % self.n_slots
        at_head, same = self.next_row[last] == rows, self.store.same(rows, obs)
        broken = at_head & ~same
        if broken.any():
            self.cut(broken)
            for env in np.flatnonzero(broken):
                row = self.store.lend()
                self._put(np.array([row]), self.store.get(rows[env : env + 1]))
                self.next_row[last, env] = row
        return bool(same.all())

    def _forget(self, slot: int) -> None:
        """The step in ``slot`` leaves the ring."""
        rows = self._rows(slot)
        if self.trees is not None:
            self.trees.remove(rows)
        self.left[slot] = 0
        for row in self.next_row[slot]:
            if row >= self.n_slots * self.n_envs:
                self.store.give_back(int(row))
        self.next_row[slot] = -1

    # Reading -----------------------------------------------------------------------------------------------

    @property
    def drawable(self) -> NDArray[np.bool_]:
        """Which views hold anything, (K,)."""
        if self.trees is None:
            return np.array([self.n_added > 0])
        found = self.trees.totals > 0.0
        return np.repeat(found, len(self.durations)) if self.shared_draws else found

    def sample(  # type: ignore[override]
        self, batch_size: int, env: VecNormalize | None = None, beta: float = 0.4
    ) -> OptionBatch:
        """Draw a batch: a tuple of each view for each step that is drawn.

        Args:
            batch_size: Steps to draw: once for all views with ``shared_draws``, otherwise for each view.
            env: Normalises observations and rewards.
            beta: Exponent of the importance weights.
        """
        if self.trees is None:
            rows, weights = self._draw_as_sb3(batch_size), None
        else:
            uniforms = np.random.random_sample((len(self.trees.totals), batch_size))  # noqa: NPY002 - SB3's generator
            draw = self.trees.sample(
                uniforms, beta if self.prioritized else 0.0, over_batch=self.importance == "batch"
            )
            rows = draw.rows
            plain = not self.prioritized and bool(self.drawable.all())
            weights = None if plain else draw.weights.astype(np.float32)
        return self._assemble(rows, weights, env)

    def update_priorities(self, rows: NDArray[np.int64], td_errors: NDArray[np.floating]) -> None:
        """New priorities |td| + 1e-6 of the drawn rows, both (K, B); (1, B) where all views share a draw."""
        if self.trees is not None and self.prioritized:
            self.trees.update(rows, np.abs(td_errors).astype(np.float64) + 1e-6)

    def update_priorities_of(self, batch: OptionBatch, td_errors: NDArray[np.float32]) -> None:
        """New priorities of a whole batch; a step that all views share has one, from its mean |error|."""
        if batch.is_shared:
            self.update_priorities(batch.rows[:1], mean_errors(td_errors, batch.is_there)[None])
        else:
            self.update_priorities(batch.rows, td_errors)

    def _draw_as_sb3(self, batch_size: int) -> NDArray[np.int64]:
        """(1, B) rows, by the draws and in the order of SB3's buffer, which has one slot less."""
        positions = np.random.randint(0, self.size(), size=batch_size)  # noqa: NPY002 - SB3's generator
        envs = np.random.randint(0, high=self.n_envs, size=batch_size)  # noqa: NPY002
        newest = self.n_added - 1
        steps = newest - (newest - positions) % self.buffer_size
        return ((steps % self.n_slots) * self.n_envs + envs)[None, :]

    def _assemble(
        self, drawn: NDArray[np.int64], weights: NDArray[np.float32] | None, env: VecNormalize | None
    ) -> OptionBatch:
        n_views = len(self.durations)
        # Compiled code would read beyond its arrays.
        assert len(drawn) == (1 if self.shared_draws else n_views), drawn.shape
        rows = np.repeat(drawn, n_views, axis=0) if self.shared_draws else drawn
        rewards, discounts, dones, rest, next_rows, is_there = _tuples(
            rows,
            _Steps(
                self.left.ravel(),
                self.rewards.ravel(),
                self.dones.ravel(),
                self.timeouts.ravel(),
                self.next_row.ravel(),
            ),
            _Windows(
                self.durations,
                self._lengths,
                self.powers,
                self.gamma,
                self.n_envs,
                self.handle_timeout_termination,
                self.bootstrap,
                self.pad_terminal,
            ),
        )
        if self.shared_draws and not (weights is None and is_there.all()):
            weights = is_there.astype(np.float32) * (np.float32(1.0) if weights is None else weights)
        if env is not None:
            rewards = self._normalized_window_rewards(rows, rest, env)
        return OptionBatch(
            observations=self.observations_at(drawn.ravel(), env),
            actions=self._held_actions(rows),
            rewards=rewards,
            discounts=discounts,
            dones=dones,
            rest=rest,
            next_rows=next_rows,
            weights=weights,
            rows=rows,
            is_there=is_there,
            is_shared=self.shared_draws,
        )

    def _held_actions(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """(K, B), or (K, B, size) of continuous ones."""
        if self.n_actions is None:
            return self.actions.reshape(-1, self.action_dim)[rows]
        return self.actions.ravel()[rows]

    def _normalized_window_rewards(
        self, rows: NDArray[np.int64], rest: NDArray[np.int64], env: VecNormalize
    ) -> NDArray[np.float32]:
        """r^ℓ of rewards that are normalised one by one, as the environment would have given them."""
        lengths = self.durations[:, None] - rest
        offsets = np.arange(self.k_max) * self.n_envs
        window_rows = (rows[..., None] + offsets) % self.left.size
        normalized = env.normalize_reward(self.rewards.ravel()[window_rows]).astype(np.float64)
        returns = window_returns(normalized.reshape(-1, self.k_max), lengths.ravel(), self.gamma)
        return np.asarray(returns.reshape(lengths.shape))

    def observations_at(self, rows: NDArray[np.int64], env: VecNormalize | None = None) -> Any:
        """The observations in ``rows`` of the store, as tensors."""
        found = self._normalize_obs(self._shown(rows), env)
        if isinstance(found, dict):
            return {key: self._tensor(value) for key, value in found.items()}
        return self._tensor(found)

    def _shown(self, rows: NDArray[np.int64]) -> Any:
        """A copy of the observations in ``rows``, as an update is to see them."""
        return self.store.get(rows)

    def _tensor(self, array: NDArray[Any]) -> th.Tensor:
        tensor = th.from_numpy(array)
        return tensor if self.device.type == "cpu" else tensor.to(self.device)


_is_terminal = compiled(is_terminal)
_k_step_return = compiled(k_step_return)


@compiled
def window_returns(
    rewards: NDArray[np.floating[Any]], lengths: NDArray[np.int64], gamma: float
) -> NDArray[np.float32]:
    """r^ℓ of windows (n, k_max) of which the first ``lengths`` (n,) rewards count."""
    returns = np.empty(len(lengths), dtype=np.float32)
    for index in range(len(lengths)):
        returns[index] = _k_step_return(rewards[index].astype(np.float64), 0, lengths[index], gamma)
    return returns


@compiled
def _tuples(
    rows: NDArray[np.int64], steps: _Steps, windows: _Windows
) -> tuple[
    NDArray[np.float32],
    NDArray[np.float32],
    NDArray[np.float32],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.bool_],
]:
    """The tuples that view k has of ring rows (K, B).

    Returns:
        r^ℓ, γ^ℓ, done, k − ℓ, the last state's row, and whether the view has a tuple there. If it has none, the
        other values are those of a single step.
    """
    left, rewards, dones, timeouts, next_row = steps
    durations, lengths, powers, gamma, n_envs, through_timeouts, bootstrap, pad_terminal = windows
    n_rows, longest = len(left), lengths.shape[1] - 1
    rest, last_states = np.empty_like(rows), np.empty_like(rows)
    returns = np.empty(rows.shape, dtype=np.float32)
    discount = np.empty(rows.shape, dtype=np.float32)
    done = np.empty(rows.shape, dtype=np.float32)
    is_there = np.empty(rows.shape, dtype=np.bool_)
    window = np.empty(longest, dtype=np.float64)
    for index in range(rows.shape[0]):
        for b in range(rows.shape[1]):
            row = rows[index, b]
            k = durations[index]
            to_go = max(1, left[row])
            hold_end = (row + (to_go - 1) * n_envs) % n_rows
            length = lengths[index, min(to_go, longest)]
            ends_episode = _is_terminal(dones[hold_end], timeouts[hold_end], through_timeouts)
            if to_go < k and ends_episode:
                # A hold that ended the episode fixes all longer ones.
                length = to_go
                is_there[index, b] = bootstrap or pad_terminal
            else:
                is_there[index, b] = length > 0 and (bootstrap or length == k)
            length = max(1, length)
            last = (row + (length - 1) * n_envs) % n_rows
            for step in range(length):
                window[step] = rewards[(row + step * n_envs) % n_rows]
            returns[index, b] = _k_step_return(window, 0, length, gamma)
            discount[index, b] = powers[length]
            done[index, b] = 1.0 if _is_terminal(dones[last], timeouts[last], through_timeouts) else 0.0
            rest[index, b] = k - length
            # An empty view's tuples, which weigh nothing, may point at the head, which has no next row.
            last_states[index, b] = max(next_row[last], 0)
    return returns, discount, done, rest, last_states, is_there
