"""One ring, K views: the replay buffer of every agent that holds its actions.

Each primitive step is stored once, with the number of steps that were ``left`` in its option when it was taken
(itself included). The tuple that view D_k holds for it follows by index arithmetic: it covers
ℓ = min(k, left) steps. A step of an option that is still running is pending and cannot be drawn; when the option
ends its steps get ``left`` and the largest priority; a slot that is overwritten can no longer be drawn.

The ring has one slot more than it has steps: its head holds the observation that the newest step led to. A next
observation that is not the next slot's (the last of an episode, or one that ``extend`` brought) has a row of its
own in the observation store.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from numba import njit
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from holdfast.core.decomposition import window_length
from holdfast.core.history import discounts, k_step_return
from holdfast.core.options import duration_at
from holdfast.deep.kept_values import KeptValues
from holdfast.deep.memory import check_fits
from holdfast.deep.observation_store import ArrayStore, bytes_needed, make_store
from holdfast.deep.priorities import PriorityTrees

__all__ = ["OptionBatch", "OptionReplayBuffer"]


class OptionBatch(NamedTuple):
    """B tuples from each of the K views.

    Attributes:
        observations: (K·B, ...) first states, view by view.
        actions: (K, B) held actions, as numbers from 0.
        rewards: (K, B) r^ℓ.
        discounts: (K, B) γ^ℓ.
        dones: (K, B) 1 where the last state is terminal.
        rest: (K, B) k − ℓ, the steps of k that were not seen; 0 where the window is complete.
        next_rows: (U,) rows of the last states in the observation store, each distinct one once.
        next_index: (K, B) where each tuple's last state stands among them.
        weights: (K, B) importance weights, or None under plain uniform sampling.
        rows: (K, B) ring rows, for the priorities.
    """

    observations: Any
    actions: th.Tensor
    rewards: th.Tensor
    discounts: th.Tensor
    dones: th.Tensor
    rest: th.Tensor
    next_rows: NDArray[np.int64]
    next_index: th.Tensor
    weights: th.Tensor | None
    rows: NDArray[np.int64]


class OptionReplayBuffer(ReplayBuffer):
    """A ring of primitive steps, drawn from as the K replay buffers of the paper.

    Args:
        buffer_size: Steps kept, over all environments.
        observation_space: Space of the observations.
        action_space: Space of the actions; actions are stored as numbers from 0.
        device: Where batches go.
        n_envs: Environments written side by side.
        optimize_memory_usage: Accepted for SB3's sake; observations are stored once in any case.
        handle_timeout_termination: Bootstrap through a time limit (True) or treat it as an end (False).
        k_max: K, the number of views.
        gamma: Discount factor of the k-step rewards.
        bootstrap: Whether a view D_k also holds tuples shorter than k.
        prioritized: Draw by priority; otherwise uniformly among the steps of finished options.
        alpha: Exponent of the priorities.

    Attributes:
        kept: Target values by row, which live as long as the observations they belong to.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Discrete,
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        k_max: int = 1,
        gamma: float = 0.99,
        bootstrap: bool = True,
        prioritized: bool = True,
        alpha: float = 0.6,
    ) -> None:
        # ReplayBuffer's own constructor allocates two copies of every observation.
        super(ReplayBuffer, self).__init__(buffer_size, observation_space, action_space, device, n_envs=n_envs)
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.n_slots = self.buffer_size + 1
        self.optimize_memory_usage = optimize_memory_usage
        self.handle_timeout_termination = handle_timeout_termination
        self.k_max, self.gamma, self.bootstrap = k_max, gamma, bootstrap
        self.prioritized, self.alpha = prioritized, alpha

        n_rows = self.n_slots * n_envs
        kept_rows = n_rows if k_max > 1 else 0
        tree_bytes = PriorityTrees.bytes_needed(k_max, n_rows) if self._needs_trees else 0
        kept_bytes = kept_rows * (4 * int(action_space.n) * k_max + 1)
        check_fits(
            f"the replay of buffer_size={buffer_size}",
            bytes_needed(n_rows, observation_space, self.obs_shape) + 32 * n_rows + tree_bytes + kept_bytes,
        )
        self.store = make_store(n_rows, observation_space, self.obs_shape)
        shape = (self.n_slots, n_envs)
        self.actions = np.zeros((*shape, 1), dtype=np.int64)
        self.rewards = np.zeros(shape, dtype=np.float32)
        self.dones = np.zeros(shape, dtype=np.float32)
        self.timeouts = np.zeros(shape, dtype=np.float32)
        self.left = np.zeros(shape, dtype=np.int32)
        self.next_row = np.full(shape, -1, dtype=np.int64)
        self.powers = discounts(gamma, k_max)
        self.kept = KeptValues(kept_rows, (int(action_space.n), k_max))
        self.reset()

    @property
    def _needs_trees(self) -> bool:
        """One view drawn uniformly needs none, and then draws exactly as SB3's buffer does."""
        return self.prioritized or self.k_max > 1

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self.n_added = 0
        self.pending = np.zeros(self.n_envs, dtype=np.int64)
        self._announced: NDArray[np.bool_] | None = None
        self.left[:] = 0
        lent = np.unique(self.next_row[self.next_row >= self.n_slots * self.n_envs])
        for row in lent:
            self.store.give_back(int(row))
        self.next_row[:] = -1
        self.kept.drop()
        n_rows = self.n_slots * self.n_envs
        alpha = self.alpha if self.prioritized else 0.0
        self.trees = PriorityTrees(self.k_max, n_rows, alpha) if self._needs_trees else None

    @property
    def observations(self) -> Any:  # type: ignore[override]
        """Views of the ring's observations (slots, n_envs, ...), a dictionary of such for Dict spaces."""
        shape = (self.n_slots, self.n_envs)
        if isinstance(self.store, ArrayStore):
            return self.store.own.reshape(*shape, *self.store.own.shape[1:])
        return {key: part.own.reshape(*shape, *part.own.shape[1:]) for key, part in self.store.parts.items()}

    @property
    def nbytes(self) -> int:
        """Memory of everything the buffer holds."""
        arrays = (self.actions, self.rewards, self.dones, self.timeouts, self.left, self.next_row)
        trees = 0 if self.trees is None else self.trees.sums.nbytes + self.trees.least.nbytes
        return self.store.nbytes + self.kept.nbytes + trees + sum(array.nbytes for array in arrays)

    def __getstate__(self) -> dict[str, Any]:
        # Kept values are those of a network, and a saved replay may meet another one.
        return {**self.__dict__, "kept": KeptValues(len(self.kept.known), self.kept.values.shape[1:])}

    # Writing -----------------------------------------------------------------------------------------------

    def announce(self, option_over: ArrayLike) -> None:
        """Say of the step that is added next, per environment, whether its option is over with it.

        A step that is added unannounced counts as an option of its own.
        """
        self._announced = np.asarray(option_over, dtype=np.bool_)

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Store one primitive step of every environment."""
        announced, self._announced = self._announced, None
        if announced is None:
            # Nobody said that this step goes on with the option that is running.
            self.finish()
        slot = self.n_added % self.n_slots
        rows = self._rows(slot)
        done = np.asarray(done).reshape(self.n_envs).astype(np.bool_)
        self._keep_last_observations_apart(rows, obs)
        self._put(rows, obs)
        head = (slot + 1) % self.n_slots
        self._forget(head)

        self.actions[slot] = np.asarray(action).reshape(self.n_envs, 1)
        self.rewards[slot] = reward
        self.dones[slot] = done
        self.timeouts[slot] = [info.get("TimeLimit.truncated", False) for info in infos]
        self.next_row[slot] = self._rows(head)
        for env in np.flatnonzero(done):
            self.next_row[slot, env] = self.store.lend()
        self._put(self.next_row[slot], next_obs)

        self.n_added += 1
        self.pos = self.n_added % self.buffer_size
        self.full = self.n_added >= self.buffer_size
        self.pending = np.minimum(self.pending + 1, self.buffer_size)
        self.finish(None if announced is None else announced | done)

    def finish(self, mask: ArrayLike | None = None) -> None:
        """The options running under ``mask`` (everywhere by default) are over: their steps can be drawn."""
        envs = np.flatnonzero((self.pending > 0) & (True if mask is None else np.asarray(mask)))
        for env in envs:
            lefts = np.arange(1, self.pending[env] + 1)
            slots = (self.n_added - lefts) % self.n_slots
            self.left[slots, env] = lefts
            if self.trees is not None:
                views = np.full(len(lefts), self.k_max) if self.bootstrap else np.minimum(lefts, self.k_max)
                self.trees.enter(slots * self.n_envs + env, np.zeros_like(views), views)
        self.pending[envs] = 0

    def _put(self, rows: NDArray[np.int64], observations: Any) -> None:
        self.store.put(rows, observations)
        self.kept.drop(rows)

    def _rows(self, slot: int) -> NDArray[np.int64]:
        return slot * self.n_envs + np.arange(self.n_envs)

    def _keep_last_observations_apart(self, rows: NDArray[np.int64], obs: Any) -> None:
        """Where the episode does not go on from the head's observation, save that before it is overwritten."""
        if self.n_added == 0:
            return
        last = (self.n_added - 1) % self.n_slots
        broken = (self.next_row[last] == rows) & ~self.store.same(rows, obs)
        if not broken.any():
            return
        self.finish(broken)
        for env in np.flatnonzero(broken):
            row = self.store.lend()
            self._put(np.array([row]), self.store.get(rows[env : env + 1]))
            self.next_row[last, env] = row

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
        return self.trees.totals > 0.0

    def sample(  # type: ignore[override]
        self, batch_size: int, env: VecNormalize | None = None, beta: float = 0.4
    ) -> OptionBatch:
        """Draw ``batch_size`` tuples from each view.

        Args:
            batch_size: Rows per view.
            env: Normalises observations and rewards.
            beta: Exponent of the importance weights.
        """
        if self.trees is None:
            rows, weights = self._draw_as_sb3(batch_size), None
        else:
            uniforms = np.random.random_sample((self.k_max, batch_size))  # noqa: NPY002 - SB3's generator
            draw = self.trees.sample(uniforms, beta if self.prioritized else 0.0)
            rows = draw.rows
            plain = not self.prioritized and bool(self.drawable.all())
            weights = None if plain else self._tensor(draw.weights.astype(np.float32))
        return self._assemble(rows, weights, env)

    def update_priorities(self, rows: NDArray[np.int64], td_errors: NDArray[np.floating]) -> None:
        """New priorities |td| + 1e-6 of the drawn rows, both (K, B)."""
        if self.trees is not None and self.prioritized:
            self.trees.update(rows, np.abs(td_errors).astype(np.float64) + 1e-6)

    def _draw_as_sb3(self, batch_size: int) -> NDArray[np.int64]:
        """(1, B) rows, by the draws and in the order of SB3's buffer, which has one slot less."""
        positions = np.random.randint(0, self.size(), size=batch_size)  # noqa: NPY002 - SB3's generator
        envs = np.random.randint(0, high=self.n_envs, size=batch_size)  # noqa: NPY002
        newest = self.n_added - 1
        steps = newest - (newest - positions) % self.buffer_size
        return ((steps % self.n_slots) * self.n_envs + envs)[None, :]

    def _assemble(
        self, rows: NDArray[np.int64], weights: th.Tensor | None, env: VecNormalize | None
    ) -> OptionBatch:
        lengths, last_rows = _windows(rows, self.left.ravel(), self.n_envs, self.left.size)
        if env is None:
            rewards = _window_rewards(rows, lengths, self.rewards.ravel(), self.n_envs, self.gamma)
        else:
            rewards = self._normalized_window_rewards(rows, lengths, env)
        dones = self.dones.ravel()[last_rows]
        if self.handle_timeout_termination:
            dones = dones * (1.0 - self.timeouts.ravel()[last_rows])
        ks = duration_at(np.arange(rows.shape[0]))[:, None]
        # An empty view's tuples, which weigh nothing, may point at the head, which has no next row.
        next_rows = np.maximum(self.next_row.ravel()[last_rows], 0)
        if self.k_max == 1:
            distinct, inverse = next_rows.ravel(), np.arange(next_rows.size)
        else:
            distinct, inverse = np.unique(next_rows, return_inverse=True)
        return OptionBatch(
            observations=self.observations_at(rows.ravel(), env),
            actions=self._tensor(self.actions.ravel()[rows]),
            rewards=self._tensor(rewards),
            discounts=self._tensor(self.powers[lengths].astype(np.float32)),
            dones=self._tensor(dones.astype(np.float32)),
            rest=self._tensor(ks - lengths),
            next_rows=distinct,
            next_index=self._tensor(inverse.reshape(rows.shape)),
            weights=weights,
            rows=rows,
        )

    def _normalized_window_rewards(
        self, rows: NDArray[np.int64], lengths: NDArray[np.int64], env: VecNormalize
    ) -> NDArray[np.float32]:
        """r^ℓ of rewards that are normalised one by one, as the environment would have given them."""
        offsets = np.arange(self.k_max) * self.n_envs
        window_rows = (rows[..., None] + offsets) % self.left.size
        normalized = env.normalize_reward(self.rewards.ravel()[window_rows]).astype(np.float64)
        seen = np.arange(self.k_max) < lengths[..., None]
        return np.where(seen, normalized * self.powers[: self.k_max], 0.0).sum(axis=-1).astype(np.float32)

    def observations_at(self, rows: NDArray[np.int64], env: VecNormalize | None = None) -> Any:
        """The observations in ``rows`` of the store, as tensors."""
        found = self._normalize_obs(self.store.get(rows), env)
        if isinstance(found, dict):
            return {key: self._tensor(value) for key, value in found.items()}
        return self._tensor(found)

    def _tensor(self, array: NDArray[Any]) -> th.Tensor:
        return th.as_tensor(array, device=self.device)


_window_length = njit(cache=True)(window_length)
_k_step_return = njit(cache=True)(k_step_return)


@njit(cache=True)
def _windows(
    rows: NDArray[np.int64], left: NDArray[np.int32], n_envs: int, n_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lengths ℓ of the tuples that start at ``rows`` (K, B), and the rows of their last steps."""
    lengths = np.empty(rows.shape, dtype=np.int64)
    last_rows = np.empty(rows.shape, dtype=np.int64)
    for index in range(rows.shape[0]):
        for b in range(rows.shape[1]):
            row = rows[index, b]
            length = max(1, _window_length(index + 1, left[row]))
            lengths[index, b] = length
            last_rows[index, b] = (row + (length - 1) * n_envs) % n_rows
    return lengths, last_rows


@njit(cache=True)
def _window_rewards(
    rows: NDArray[np.int64], lengths: NDArray[np.int64], rewards: NDArray[np.float32], n_envs: int, gamma: float
) -> NDArray[np.float32]:
    """r^ℓ of the tuples that start at ``rows`` (K, B)."""
    result = np.empty(rows.shape, dtype=np.float32)
    window = np.empty(rows.shape[0], dtype=np.float64)
    for index in range(rows.shape[0]):
        for b in range(rows.shape[1]):
            for step in range(lengths[index, b]):
                window[step] = rewards[(rows[index, b] + step * n_envs) % len(rewards)]
            result[index, b] = _k_step_return(window, 0, lengths[index, b], gamma)
    return result
