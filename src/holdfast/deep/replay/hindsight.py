"""Hindsight experience replay over the one ring: steps are replayed with goals that their episode did achieve.

Each drawn step keeps its goal, or is given one that a step of the same episode achieved. That one goal serves all
views of a shared draw: rewards are computed anew for each of the ℓ steps of a tuple, and its last state is shown
with the same goal. What ended an episode stays what the environment said: a hold is not cut where it passes the
new goal. As in Stable-Baselines3, steps can be drawn once their episode is over, and an episode leaves the ring as
a whole when its first step is overwritten.

A state with a goal of its own has a number of its own: the row of the state, and the row of the goal above it
(``with_goals``). So whoever reads observations by row sees the right goal; nothing can be kept by such numbers.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.vec_env import VecEnv, VecNormalize
from stable_baselines3.her.goal_selection_strategy import GoalSelectionStrategy

from holdfast.core.checks import check_choice, check_integer, check_truth
from holdfast.core.errors import InputError
from holdfast.core.goals import GOAL_STRATEGIES, goal_window
from holdfast.core.saved_fields import take_array
from holdfast.core.user_code import described, is_interrupt
from holdfast.deep.replay.observation_store import DictStore, ObservationStore
from holdfast.deep.replay.ring import OptionReplayBuffer, window_returns
from holdfast.deep.replay.views import OptionBatch
from holdfast.envs.failures import EnvironmentFailedError

__all__ = ["HindsightReplayBuffer", "check_strategy", "with_goals", "without_goals"]

_GOAL_KEYS = ("observation", "achieved_goal", "desired_goal")
_STRIDE = 2**31


class HindsightReplayBuffer(OptionReplayBuffer):
    """A ring of primitive steps whose goals are chosen in hindsight.

    Args:
        buffer_size: As in ``RingArrays``, like everything that is not named here.
        observation_space: A Dict with ``observation``, ``achieved_goal`` and ``desired_goal``.
        *arguments: Further ones of ``RingArrays``.
        n_sampled_goal: New goals for each one that is kept: the share of a batch that has new ones is
            n / (n + 1).
        goal_selection_strategy: Where they are taken from, one of ``GOAL_STRATEGIES``.
        copy_info_dict: Whether ``compute_reward`` is given the info dictionaries, which are then kept; such a
            replay has no ``state``.
        env: The environments, whose first one computes the rewards.
        **settings: Further ones of ``RingArrays``.

    Attributes:
        before: (slots, n_envs) steps of its episode before each one.
        to_end: (slots, n_envs) steps of its episode from each one on, itself included; 0 where the episode is not
            over, or no longer whole.
        running: (n_envs,) steps of the episodes that are running.
    """

    relabels: ClassVar[bool] = True
    _RING = (*OptionReplayBuffer._RING, "before", "to_end")

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Dict,
        *arguments: Any,
        n_sampled_goal: int = 4,
        goal_selection_strategy: GoalSelectionStrategy | str = "future",
        copy_info_dict: bool = False,
        env: VecEnv | None = None,
        **settings: Any,
    ) -> None:
        _check_goals(observation_space)
        self.n_sampled_goal = check_integer("n_sampled_goal", n_sampled_goal, 0)
        self.goal_selection_strategy = check_strategy(goal_selection_strategy)
        self.copy_info_dict = check_truth("copy_info_dict", copy_info_dict)
        self.env: VecEnv | None = None
        super().__init__(buffer_size, observation_space, *arguments, **settings)
        if env is not None:
            self.set_env(env)

    def set_env(self, env: VecEnv) -> None:
        """Compute rewards with the first of these environments."""
        if not env.has_attr("compute_reward"):
            raise InputError("env must have a method compute_reward for HerReplayBuffer", "env")
        self.env = env

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        shape = (self.n_slots, self.n_envs)
        self.before = np.zeros(shape, dtype=np.int32)
        self.to_end = np.zeros(shape, dtype=np.int32)
        self.running = np.zeros(self.n_envs, dtype=np.int64)
        self.infos = np.full(shape, None, dtype=object) if self.copy_info_dict else None

    @property
    def nbytes(self) -> int:
        """Memory of everything the buffer holds, without the info dictionaries."""
        return super().nbytes + self.before.nbytes + self.to_end.nbytes

    # Writing -----------------------------------------------------------------------------------------------

    def _stored(self, slot: int, done: NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        if self.infos is not None:
            self.infos[slot] = infos
        self.running = np.minimum(self.running + 1, self.buffer_size)
        self._end_episodes(done)
        if self.full and (self.running == self.buffer_size).all() and not self.drawable.any():
            raise InputError(
                f"HerReplayBuffer learns from finished episodes, and none finished within "
                f"buffer_size={self.buffer_size} steps: choose a larger one, or give the environment a time limit",
                "buffer_size",
            )

    def cut(self, mask: ArrayLike | None = None) -> None:
        """The environments under ``mask`` are elsewhere: options and episodes that were running are over."""
        super().cut(mask)
        self._end_episodes(np.ones(self.n_envs, dtype=np.bool_) if mask is None else np.asarray(mask))

    def admit_running(self) -> None:
        """Not before an episode is over: until then, options that are finished early could not be drawn either."""

    def truncate_last_trajectory(self) -> None:
        """Treat running episodes as ended, with a warning; otherwise they continue."""
        if self.running.any():
            warnings.warn(
                "The last trajectory in the replay buffer will be truncated. To go on with the same episode, call "
                "load_replay_buffer with truncate_last_traj=False.",
                UserWarning,
                stacklevel=3,
            )
        self.cut()

    def _enter(self, slots: NDArray[np.int64], lefts: NDArray[np.int64], env: int) -> None:
        """Not before the episode is over."""

    def _end_episodes(self, over: NDArray[np.bool_]) -> None:
        """The steps of these environments' episodes that the ring still has can be drawn from now on."""
        for env in np.flatnonzero(over & (self.running > 0)):
            behind = np.arange(self.running[env])
            slots = (self.n_added - 1 - behind) % self.n_slots
            self.to_end[slots, env] = behind + 1
            self.before[slots, env] = behind[::-1]
            lefts = self.left[slots, env]
            # Newest first, as within an option: each begins where its last step has one to go.
            for part in np.split(np.arange(len(slots)), np.flatnonzero(lefts == 1)[1:]):
                super()._enter(slots[part], lefts[part].astype(np.int64), int(env))
            self.running[env] = 0

    def _forget(self, slot: int) -> None:
        """The step in ``slot`` leaves the ring; with it, what is left of its episode can no longer be drawn."""
        for env in np.flatnonzero(self.to_end[slot]):
            gone = (slot + np.arange(self.to_end[slot, env])) % self.n_slots
            self.to_end[gone, env] = 0
            if self.trees is not None:
                self.trees.remove(gone * self.n_envs + env)
        super()._forget(slot)

    # Reading -----------------------------------------------------------------------------------------------

    @property
    def drawable(self) -> NDArray[np.bool_]:
        """Which views hold anything, (K,)."""
        return np.array([self.to_end.any()]) if self.trees is None else super().drawable

    def _draw_as_sb3(self, batch_size: int) -> NDArray[np.int64]:
        """(1, B) rows, by the draws of SB3's buffer; those that are to have new goals are the last."""
        newest = self.n_added - 1
        slots = (newest - (newest - np.arange(self.size())) % self.buffer_size) % self.n_slots
        whole = np.flatnonzero(self.to_end[slots])
        if not len(whole):
            raise InputError("HerReplayBuffer can be drawn from once an episode is over")
        drawn = np.random.choice(whole, size=batch_size, replace=True)  # noqa: NPY002 - SB3's generator
        rows = slots[drawn // self.n_envs] * self.n_envs + drawn % self.n_envs
        return np.roll(rows, -self._n_relabelled(batch_size))[None, :]

    def _n_relabelled(self, batch_size: int) -> int:
        """How many of a batch are given new goals, as SB3 rounds it."""
        return int((1 - 1.0 / (self.n_sampled_goal + 1)) * batch_size)

    def _assemble(
        self, drawn: NDArray[np.int64], weights: NDArray[np.float32] | None, env: VecNormalize | None
    ) -> OptionBatch:
        batch = super()._assemble(drawn, weights, env)
        goals = self._drawn_goals(drawn)
        if (goals < 0).all():
            return batch
        return batch._replace(
            observations=self.observations_at(with_goals(drawn, goals).ravel(), env),
            rewards=self._computed_returns(batch, drawn, goals, env),
            next_rows=with_goals(batch.next_rows, goals),
        )

    def _drawn_goals(self, drawn: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each drawn row, the row of the store whose achieved goal it is given; −1 where it keeps its own."""
        count = self._n_relabelled(drawn.shape[1])
        if self.trees is None:
            chosen = np.broadcast_to(np.arange(drawn.shape[1]) >= drawn.shape[1] - count, drawn.shape)
        else:
            # Draws are in the ring's order, so that a fixed part of the batch would be one of the ring.
            chosen = np.argsort(np.random.random_sample(drawn.shape), axis=1) < count  # noqa: NPY002 - SB3's
        goals = np.full(drawn.shape, -1, dtype=np.int64)
        slots, envs = np.divmod(drawn[chosen], self.n_envs)
        # The rows of an empty view, which weigh nothing, may be of an episode that is not over.
        after = np.maximum(self.to_end[slots, envs] - 1, 0)
        first, behind = goal_window(self.goal_selection_strategy, self.before[slots, envs], after)
        steps = first if self.goal_selection_strategy == "final" else np.random.randint(first, behind)  # noqa: NPY002
        goals[chosen] = np.maximum(self.next_row[(slots + steps) % self.n_slots, envs], 0)
        return goals

    def _computed_returns(
        self,
        batch: OptionBatch,
        drawn: NDArray[np.int64],
        goals: NDArray[np.int64],
        normalizer: VecNormalize | None,
    ) -> NDArray[np.float32]:
        """(K, B) r^ℓ, with rewards that are computed anew where there are goals (as ``drawn``) to compute them by.

        Views that share a draw are parts of one window, each of whose rewards is computed once.
        """
        lengths = self.durations[:, None] - batch.rest
        longest = lengths.max(axis=0, keepdims=True) if batch.is_shared else lengths
        asked = (goals[..., None] >= 0) & (np.arange(self.k_max) < longest[..., None])
        view, column, step = np.nonzero(asked)
        rows = (drawn[view, column] + step * self.n_envs) % self.left.size
        rewards = self._computed_rewards(rows, goals[view, column])
        if normalizer is not None:
            rewards = normalizer.normalize_reward(rewards).astype(np.float32)
        windows = np.zeros(asked.shape, dtype=np.float32)
        windows[asked] = rewards
        windows = np.broadcast_to(windows, (*lengths.shape, self.k_max))
        returns = window_returns(windows.reshape(-1, self.k_max), lengths.ravel(), self.gamma)
        return np.where(goals >= 0, returns.reshape(lengths.shape), batch.rewards)

    def _computed_rewards(self, rows: NDArray[np.int64], goals: NDArray[np.int64]) -> NDArray[np.float32]:
        """What the environment gives for the steps in ring rows (n,) under the goals in rows (n,) of the store."""
        if self.env is None:
            raise InputError("env must be given for HerReplayBuffer: it computes the rewards of new goals", "env")
        infos = [{} for _ in rows] if self.infos is None else copy.deepcopy(list(self.infos.ravel()[rows]))
        achieved = self._achieved.get(np.maximum(self.next_row.ravel()[rows], 0))
        try:
            found = self.env.env_method("compute_reward", achieved, self._achieved.get(goals), infos, indices=[0])
            rewards = np.asarray(found[0]).astype(np.float32)
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise EnvironmentFailedError(f"its compute_reward raised {described(error)}") from error
        if rewards.shape != (len(rows),) or not np.isfinite(rewards).all():
            raise InputError(
                f"env.compute_reward must return a finite reward for each of the {len(rows)} goals, not "
                f"{int(np.isfinite(rewards).sum())} in an array of shape {rewards.shape}",
                "env",
            )
        self.reward_low = min(self.reward_low, float(rewards.min(initial=0.0)))
        self.reward_high = max(self.reward_high, float(rewards.max(initial=0.0)))
        return rewards

    def _shown(self, rows: NDArray[np.int64]) -> Any:
        stored, goals = without_goals(rows)
        found = self.store.get(stored)
        is_given = goals >= 0
        if is_given.any():
            found["desired_goal"][is_given] = self._achieved.get(goals[is_given])
        return found

    @property
    def _achieved(self) -> ObservationStore:
        assert isinstance(self.store, DictStore)
        return self.store.parts["achieved_goal"]

    # State -------------------------------------------------------------------------------------------------

    def identity(self) -> dict[str, str]:
        """What a saved state must agree with, as text."""
        own = {"n_sampled_goal": self.n_sampled_goal, "goal_selection_strategy": self.goal_selection_strategy}
        return {**super().identity(), **{name: str(value) for name, value in own.items()}}

    def state(self) -> dict[str, Any]:
        """A copy of everything that ``restore`` needs."""
        if self.copy_info_dict:
            raise InputError(
                "copy_info_dict in replay_buffer_kwargs must be False where a state is saved: what an environment "
                "says in its info dictionaries cannot be",
                "replay_buffer_kwargs",
            )
        return {**super().state(), "running": self.running.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` returned."""
        running = take_array(state, "running", np.int64, (self.n_envs,))
        super().restore(state)
        if np.any((running < 0) | (running > min(self.n_added, self.buffer_size))):
            raise InputError("the saved state must have at most as many steps of running episodes as steps")
        self.running = running.copy()

    def _check_ring(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._check_ring(arrays)
        before, to_end = arrays["before"], arrays["to_end"]
        if np.any((before < 0) | (to_end < 0) | (before.astype(np.int64) + to_end > self.buffer_size)):
            raise InputError("the saved state must have episodes that fit into its replay")

    def __getstate__(self) -> dict[str, Any]:
        # Environments are not saved with what was seen in them.
        return {**self.__dict__, "env": None}


def check_strategy(value: Any) -> str:
    """One of ``GOAL_STRATEGIES``, of which SB3 has names in capitals too, and an enumeration."""
    name = value.name if isinstance(value, GoalSelectionStrategy) else value
    return check_choice(
        "goal_selection_strategy", name.lower() if isinstance(name, str) else name, GOAL_STRATEGIES
    )


def with_goals(rows: NDArray[np.int64], goals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers for states with goals of their own: rows of both, where −1 is the goal that was stored."""
    return rows + (goals + 1) * _STRIDE


def without_goals(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of states, and those of their goals or −1, that ``with_goals`` put together."""
    return numbers % _STRIDE, numbers // _STRIDE - 1


def _check_goals(space: spaces.Space[Any]) -> None:
    if not isinstance(space, spaces.Dict) or not set(_GOAL_KEYS) <= set(space.spaces):
        raise InputError(
            f"env must have Dict observations with {', '.join(_GOAL_KEYS)} for HerReplayBuffer, not {space}", "env"
        )
    achieved, desired = space["achieved_goal"], space["desired_goal"]
    if achieved.shape != desired.shape or achieved.dtype != desired.dtype:
        raise InputError(
            f"env must have goals of one shape and type for HerReplayBuffer, not {achieved} and {desired}", "env"
        )
