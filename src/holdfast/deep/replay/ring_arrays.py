"""What a ring of primitive steps is made of: its arrays, and how they are saved and restored.

The ring has one slot more than it has steps: its head holds the observation that the newest step led to. A next
observation that is not the next slot's (the last of an episode, or one that ``extend`` brought) has a row of its
own in the observation store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer

from holdfast.core.checks import check_truth, refuse_actions
from holdfast.core.decomposition import window_lengths
from holdfast.core.errors import InputError
from holdfast.core.history import discounts
from holdfast.core.options import persistence_positions, persistence_set
from holdfast.core.saved_fields import take, take_array, take_integer, take_mapping
from holdfast.deep.replay.memory import check_fits
from holdfast.deep.replay.observation_store import DictStore
from holdfast.deep.replay.priorities import PriorityTrees
from holdfast.deep.replay.stores import bytes_needed, make_store
from holdfast.envs.choices import Choices

__all__ = ["RingArrays"]


class RingArrays(ReplayBuffer):
    """The arrays of a replay buffer: what ``OptionReplayBuffer`` writes and draws from.

    Args:
        buffer_size: Steps kept, over all environments.
        observation_space: Space of the observations.
        action_space: A choice among a few, whose actions are stored as numbers from 0 (``Choices``), or a Box,
            whose actions are stored as they are given.
        device: Where batches go.
        n_envs: Environments written side by side.
        optimize_memory_usage: Accepted for SB3's sake; observations are stored once in any case.
        handle_timeout_termination: Bootstrap through a time limit (True) or treat it as an end (False).
        k_max: K, the longest persistence that has a view.
        gamma: Discount factor of the k-step rewards.
        bootstrap: Whether a view D_k also holds tuples shorter than k.
        pad_terminal: Whether, without bootstrap, it holds those shorter tuples that end the episode: a longer hold
            would have ended it alike.
        prioritized: Draw by priority; otherwise uniformly among the steps of finished options.
        alpha: Exponent of the priorities.
        importance: Whether importance weights are divided by the largest of the ``"buffer"`` or the ``"batch"``.
        persistences: Those that have a view; None for all of 1..k_max.
        shared_draws: Whether one draw of steps serves all views.

    Attributes:
        durations: The persistences that have a view, in order.
        n_actions: How many there are; None of continuous ones.
        reward_low: The least reward that was added, or 0.
        reward_high: The largest, or 0.
        written: By row of the observation store, a stamp of the observation that was written there last.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        k_max: int = 1,
        gamma: float = 0.99,
        bootstrap: bool = True,
        pad_terminal: bool = False,
        prioritized: bool = True,
        alpha: float = 0.6,
        importance: str = "buffer",
        persistences: tuple[int, ...] | None = None,
        shared_draws: bool = False,
    ) -> None:
        # ReplayBuffer's own constructor allocates two copies of every observation.
        self.n_actions = None if isinstance(action_space, spaces.Box) else Choices(action_space).n
        stored = action_space if self.n_actions is None else spaces.Discrete(self.n_actions)
        super(ReplayBuffer, self).__init__(buffer_size, observation_space, stored, device, n_envs=n_envs)
        self.action_space = action_space
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.n_slots = self.buffer_size + 1
        self.optimize_memory_usage = optimize_memory_usage
        self.handle_timeout_termination = check_truth("handle_timeout_termination", handle_timeout_termination)
        self.k_max, self.gamma = k_max, gamma
        self.bootstrap, self.pad_terminal = bootstrap, pad_terminal
        self.prioritized, self.alpha, self.importance = prioritized, alpha, importance
        self.persistences, self.shared_draws = persistences, shared_draws
        n_rows, n_views = self.n_slots * n_envs, k_max if persistences is None else len(persistences)
        tree_bytes = PriorityTrees.bytes_needed(self._n_trees, n_rows)
        length_bytes = 8 * n_views * (k_max + 1)
        check_fits(
            f"the replay of buffer_size={buffer_size}",
            bytes_needed(n_rows, observation_space, self.obs_shape)
            + (32 + 8 * self.action_dim) * n_rows
            + tree_bytes
            + length_bytes,
        )
        durations = persistence_set(k_max, persistences)
        self.durations = np.array(durations, dtype=np.int64)
        self.positions, self._lengths = persistence_positions(durations), window_lengths(durations)
        self.store = make_store(n_rows, observation_space, self.obs_shape)
        shape = (self.n_slots, n_envs)
        action_dtype = self._maybe_cast_dtype(action_space.dtype) if self.n_actions is None else np.int64
        self.actions = np.zeros((*shape, self.action_dim), dtype=action_dtype)
        self.rewards = np.zeros(shape, dtype=np.float32)
        self.dones = np.zeros(shape, dtype=np.float32)
        self.timeouts = np.zeros(shape, dtype=np.float32)
        self.left = np.zeros(shape, dtype=np.int32)
        self.next_row = np.full(shape, -1, dtype=np.int64)
        self.powers = discounts(gamma, k_max)
        self.written = np.zeros(n_rows, dtype=np.int64)
        self._n_writes = 0
        self.reset()

    @property
    def _n_trees(self) -> int:
        """One view drawn uniformly needs none, and then draws exactly as SB3's buffer does."""
        if self.k_max == 1 and not self.prioritized:
            return 0
        n_views = self.k_max if self.persistences is None else len(self.persistences)
        return 1 if self.shared_draws else n_views

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self.n_added = 0
        self.reward_low, self.reward_high = 0.0, 0.0
        self.pending = np.zeros(self.n_envs, dtype=np.int64)
        self.left[:] = 0
        lent = np.unique(self.next_row[self.next_row >= self.n_slots * self.n_envs])
        for row in lent:
            self.store.give_back(int(row))
        self.next_row[:] = -1
        n_rows = self.n_slots * self.n_envs
        alpha = self.alpha if self.prioritized else 0.0
        self.trees = PriorityTrees(self._n_trees, n_rows, alpha) if self._n_trees else None

    @property
    def observations(self) -> Any:  # type: ignore[override]
        """The ring's observations (slots, n_envs, ...), a dictionary of such for Dict spaces.

        They are views, but copies where images share their frames: all of them at once may be more than fits.
        """
        shape = (self.n_slots, self.n_envs)
        parts = self.store.parts if isinstance(self.store, DictStore) else {"": self.store}
        found = {key: part.own for key, part in parts.items()}
        found = {key: rows.reshape(*shape, *rows.shape[1:]) for key, rows in found.items()}
        return found if isinstance(self.store, DictStore) else found[""]

    @property
    def nbytes(self) -> int:
        """Memory of everything the buffer holds."""
        steps = (self.actions, self.rewards, self.dones, self.timeouts, self.left, self.next_row, self.written)
        trees = 0 if self.trees is None else self.trees.sums.nbytes + self.trees.least.nbytes
        return self.store.nbytes + trees + self._lengths.nbytes + sum(array.nbytes for array in steps)

    # State -------------------------------------------------------------------------------------------------

    _RING: tuple[str, ...] = ("actions", "rewards", "dones", "timeouts", "left", "next_row")

    def identity(self) -> dict[str, str]:
        """What a saved state must agree with beside the agent's own arguments, as text."""
        return {
            "replay": type(self).__name__,
            "handle_timeout_termination": str(self.handle_timeout_termination),
        }

    def state(self) -> dict[str, Any]:
        """A copy of everything that ``restore`` needs: the slots written so far, and priorities."""
        slots = min(self.n_added + 1, self.n_slots)
        rows = slots * self.n_envs
        return {
            "n_added": self.n_added,
            "pending": self.pending.copy(),
            "reward_range": np.array([self.reward_low, self.reward_high]),
            "ring": {name: getattr(self, name)[:slots].copy() for name in self._RING},
            "store": self.store.state(rows),
            "trees": None if self.trees is None else self.trees.state(rows),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` returned."""
        n_added = take_integer(state, "n_added", at_most=2**62)
        slots = min(n_added + 1, self.n_slots)
        rows = slots * self.n_envs
        pending = take_array(state, "pending", np.int64, (self.n_envs,))
        if np.any((pending < 0) | (pending > min(n_added, self.buffer_size))):
            raise InputError("the saved state must have at most as many pending steps as steps")
        reward_range = take_array(state, "reward_range", np.float64, (2,))
        if not (np.isfinite(reward_range).all() and reward_range[0] <= 0.0 <= reward_range[1]):
            raise InputError("the saved state must have a finite range of rewards around 0")
        ring = take_mapping(state, "ring")
        arrays = {}
        for name in self._RING:
            own = getattr(self, name)
            arrays[name] = take_array(ring, name, own.dtype, (slots, *own.shape[1:]))
        self._check_ring(arrays)
        self.reset()
        self.n_added, self.pending = n_added, pending.copy()
        self.reward_low, self.reward_high = map(float, reward_range)
        self.pos = n_added % self.buffer_size
        self.full = n_added >= self.buffer_size
        for name, array in arrays.items():
            own = getattr(self, name)
            own[:slots] = array
            own[slots:] = -1 if name == "next_row" else 0
        lent = self.next_row[self.next_row >= self.n_slots * self.n_envs]
        self.store.restore(take_mapping(state, "store"), rows, lent)
        self._check_numbered_observations()
        take(state, "trees")
        if self.trees is not None:
            self.trees.restore(take_mapping(state, "trees"), rows)

    def _check_numbered_observations(self) -> None:
        """Of Discrete and MultiDiscrete spaces: networks turn their numbers into places of arrays."""
        whole = self.observation_space
        parts = whole.spaces if isinstance(whole, spaces.Dict) else {"": whole}
        for key, space in parts.items():
            if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
                continue
            store = self.store.parts[key] if isinstance(self.store, DictStore) else self.store
            count = space.n if isinstance(space, spaces.Discrete) else space.nvec
            for rows in (store.own, store.lent):
                above = rows - space.start
                # Rows that were never written are 0.
                if np.any(((above < 0) | (above >= count)) & (rows != 0)):
                    raise InputError("the saved state must have observations that its space has")

    def _check_ring(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        refuse_actions("the saved state must have actions that are", arrays["actions"], self.n_actions)
        if np.any((arrays["left"] < 0) | (arrays["left"] > self.buffer_size)):
            raise InputError("the saved state must have options that fit into its replay")
        if not np.isfinite(arrays["rewards"]).all():
            raise InputError("the saved state must have finite rewards")
        if np.any(arrays["next_row"] < -1):
            raise InputError("the saved state must point at rows that its replay has")
