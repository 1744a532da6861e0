"""What an agent that holds its actions does at every step: it acts, stores, and learns.

``collect_rollouts`` stays Stable-Baselines3's own, one primitive step per iteration, so that every callback,
VecEnv, wrapper and logger works as before. What changes is where an action comes from (an ``OptionClock`` that is
given a new option only when the last one is over) and what is stored with it (whether the option is over).

Nothing here depends on which off-policy algorithm of SB3 is the parent: ``option_dqn.py`` has what is DQN's.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, SupportsFloat

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.noise import VectorizedActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import RolloutReturn
from stable_baselines3.common.vec_env import VecNormalize

from holdfast.core.clock import OptionClock
from holdfast.core.durations import option_epsilon
from holdfast.core.errors import InputError
from holdfast.core.targets import constant_value, value_bounds
from holdfast.core.user_code import shown
from holdfast.deep.agents.log_means import HoldStatistics, UpdateStatistics
from holdfast.deep.agents.regression import Residuals
from holdfast.deep.networks.holding_policy import ExploratoryDraws, HoldingPolicy
from holdfast.deep.replay.ring import OptionReplayBuffer
from holdfast.deep.replay.views import OptionBatch, Views
from holdfast.envs.failures import refuse_nonfinite

__all__ = ["OptionSteps", "toss_coins", "uniform_durations", "with_last_observations"]

_HOLD_RATE = 0.01
"""Rate of the running mean of greedy holds."""


class OptionSteps(OffPolicyAlgorithm):
    """The steps of an off-policy agent that holds its actions.

    Abstract: an agent supplies its views of the replay, how random durations are drawn, and one update of the
    networks.

    Attributes:
        loss_name: Name under which the loss is logged.
        tosses_for_actions: Whether a coin decides if an action is random; if not, noise explores, and the coin
            only decides about the duration.
        n_coins: Exploration coins per new option: 1 for action and duration together, or 1 for each.
        exploration_rate: The current ε; DQN has it, other parents must be given one.
        greedy_hold: Running mean of the steps that greedy options last.
        values_have_begun: Whether ``initial_values`` has been applied, or no longer applies because weights were
            learned or given.
    """

    loss_name: ClassVar[str] = "train/loss"
    tosses_for_actions: ClassVar[bool] = True
    n_coins: ClassVar[int] = 1

    policy: HoldingPolicy
    replay_buffer: OptionReplayBuffer | None
    exploration_rate: float

    clock: OptionClock
    hold_statistics: HoldStatistics
    update_statistics: UpdateStatistics
    greedy_hold: float
    values_have_begun: bool
    explore_by: str
    clip_targets: bool
    initial_values: str
    decision_cost: float
    k_max: int
    persistences: tuple[int, ...] | None
    priority_beta0: float
    schedule_steps: int | None
    _is_between_rollouts: bool
    _random_hold: float

    @property
    @abstractmethod
    def views(self) -> Views:
        """The views of the replay to learn from; their ``k_max`` is the largest persistence that has values."""

    @property
    def optimizers(self) -> dict[str, th.optim.Optimizer]:
        """Those of the networks, by the names that a saved state has for them."""
        return self.policy.optimizers

    # Acting ------------------------------------------------------------------------------------------------

    @abstractmethod
    def _random_durations(self, n: int) -> NDArray[np.int64]:
        """Draw the durations of ``n`` exploratory actions, each in 1..k_max."""

    def _toss_coins(self, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which actions and which durations of ``n`` new options are random, each (n,)."""
        if self.tosses_for_actions:
            return toss_coins(n, self._option_epsilon(), self.n_coins)
        nowhere = np.zeros(n, dtype=np.bool_)
        # If there is no duration to choose, no coin is tossed.
        return nowhere, nowhere if self.k_max == 1 else toss_coins(n, self._option_epsilon(), 1)[0]

    def _explore(
        self, begins: NDArray[np.bool_], draws_action: NDArray[np.bool_], draws_hold: NDArray[np.bool_]
    ) -> ExploratoryDraws:
        """Draw the random parts of new options; all arguments (n_envs,)."""
        held = self.clock.action
        actions = np.zeros((len(draws_action), *held.shape[1:]), dtype=held.dtype)
        if draws_action.any():
            sampled = np.array([self.action_space.sample() for _ in range(int(draws_action.sum()))])
            actions[draws_action] = self.policy.as_held(sampled)
        durations = np.ones(len(draws_hold), dtype=np.int64)
        durations[draws_hold] = self._drawn_durations(int(draws_hold.sum()))
        return ExploratoryDraws(draws_action, draws_hold, actions, durations, self._noise(begins))

    def _drawn_durations(self, n: int) -> NDArray[np.int64]:
        """What the agent draws, checked, since it may be a user's."""
        drawn = np.asarray(self._random_durations(n))
        fits = drawn.shape == (n,) and (n == 0 or np.issubdtype(drawn.dtype, np.integer))
        if not fits or (n and not 1 <= drawn.min() <= drawn.max() <= self.k_max):
            raise InputError(
                f"_random_durations({n}) must return {n} whole numbers in 1..k_max, not {shown(drawn)}"
            )
        return drawn.astype(np.int64, copy=False)

    def _noise(self, begins: NDArray[np.bool_]) -> NDArray[np.floating] | None:
        """Noise for new options, (n_envs, size), each from its own environment's process."""
        if self.action_noise is None:
            return None
        found = self.action_noise
        processes = found.noises if isinstance(found, VectorizedActionNoise) else [found]
        noise = np.zeros(self.clock.action.shape, dtype=self.clock.action.dtype)
        for env in np.flatnonzero(begins):
            noise[env] = processes[env]().ravel()
        return noise

    def _begin_options(self, clock: OptionClock, observation: Any) -> NDArray[np.bool_]:
        """Interrupt holds, then begin new options, random ones by coin; return where a hold was interrupted."""
        interrupted, values = self.policy.interrupt(clock, observation)
        idle = clock.idle
        if idle.any():
            draws_action, draws_hold = np.zeros((2, clock.n_envs), dtype=np.bool_)
            draws_action[idle], draws_hold[idle] = self._toss_coins(int(idle.sum()))
            draws = self._explore(idle, draws_action, draws_hold)
            self.policy.begin_options(clock, observation, None, values, draws)
        return interrupted

    def _option_epsilon(self) -> float:
        """The probability that a new option is random."""
        if self.explore_by == "options":
            return self.exploration_rate
        return option_epsilon(self.exploration_rate, self._random_hold, self.greedy_hold)

    def _note_greedy_holds(self, steps: NDArray[np.int64]) -> None:
        """Update the mean of greedy holds with those that ended after so many steps."""
        for lasted in steps.tolist():
            self.greedy_hold += _HOLD_RATE * (lasted - self.greedy_hold)

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The held action of each environment, as the environment takes it and as the replay stores it."""
        self._is_between_rollouts = False
        warming_up = self.num_timesteps < learning_starts
        if warming_up:
            idle = self.clock.idle
            if idle.any():
                self.policy.begin_options(self.clock, None, None, draws=self._explore(idle, idle, idle))
        elif self.policy.interrupt_margin is not None or self.clock.idle.any():
            observation, _ = self.policy.obs_to_tensor(self._last_obs)  # type: ignore[arg-type]
            elapsed = self.clock.elapsed.copy()
            interrupted = self._begin_options(self.clock, observation)
            if interrupted.any():
                self._note_greedy_holds(elapsed[interrupted])
                assert self.replay_buffer is not None
                self.replay_buffer.finish(interrupted)
                self.hold_statistics.interrupted(interrupted)
        actions = self.clock.action.copy()
        return self.policy.as_taken(actions), actions

    # Storing -----------------------------------------------------------------------------------------------

    def _store_transition(  # type: ignore[override]
        self,
        replay_buffer: OptionReplayBuffer,
        buffer_action: NDArray[Any],
        new_obs: Any,
        reward: NDArray[Any],
        dones: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Count the step that was just taken, which may end options, and store it with whether it did."""
        refuse_nonfinite("reward", reward, self.num_timesteps)
        refuse_nonfinite("observation", new_obs, self.num_timesteps)
        for env in np.flatnonzero(dones):
            if infos[env].get("terminal_observation") is not None:
                refuse_nonfinite("observation", infos[env]["terminal_observation"], self.num_timesteps, int(env))
        began = np.equal(self.clock.elapsed, 0)
        over = self.clock.tick(dones)
        self._note_greedy_holds(self.clock.elapsed[over & ~self.clock.exploratory])
        self.hold_statistics.step(began, over, self.clock.elapsed, np.asarray(dones, dtype=np.bool_))
        # An agent that learns from single steps need not wait for the option to end.
        over = over | (self.views.k_max == 1)
        normalizer = self._vec_normalize_env
        if normalizer is None:
            self._last_original_obs, original_obs = self._last_obs, new_obs
        else:
            original_obs, reward = normalizer.get_original_obs(), normalizer.get_original_reward()
        # The buffer copies what it stores, so only the last observations of episodes need a copy here.
        next_obs = with_last_observations(original_obs, dones, infos, normalizer) if dones.any() else original_obs
        replay_buffer.add(self._last_original_obs, next_obs, buffer_action, reward, dones, infos, over)
        self._last_obs = new_obs
        if normalizer is not None:
            self._last_original_obs = original_obs

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        steps = total_timesteps if self.schedule_steps is None else self.schedule_steps
        super()._update_current_progress_remaining(min(num_timesteps, steps), steps)

    def collect_rollouts(self, *arguments: Any, **keywords: Any) -> RolloutReturn:
        """SB3's own; also records whether the agent is between two rollouts, where it can be saved."""
        self._is_between_rollouts = True
        return super().collect_rollouts(*arguments, **keywords)

    # Learning ----------------------------------------------------------------------------------------------

    def train(self, gradient_steps: int, batch_size: int = 32) -> None:
        """Update the networks ``gradient_steps`` times; ``_sample`` says what ``batch_size`` counts."""
        buffer = self.replay_buffer
        assert buffer is not None
        buffer.admit_running()
        if not buffer.drawable.any():
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(list(self.optimizers.values()))
        done = 1.0 - self._current_progress_remaining
        beta = self.priority_beta0 + (1.0 - self.priority_beta0) * done
        losses = []
        for _ in range(gradient_steps):
            if not self.values_have_begun:
                self._begin_values()
            loss = self._update(batch_size, beta)
            # The usual answer first: asking for a protocol takes longer.
            if not isinstance(loss, float | SupportsFloat):
                raise InputError(f"_update must return its loss, a number, as _learned does, not {shown(loss)}")
            losses.append(loss)
            self._n_updates += 1
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if losses:
            self.logger.record(self.loss_name, sum(losses) / len(losses))

    def _begin_values(self) -> None:
        """Before the first update, shift all values to where they start."""
        self.values_have_begun = True
        if self.initial_values == "zero":
            return
        assert self.replay_buffer is not None
        rewards, ends = self.replay_buffer.rewards_and_ends()
        if self._vec_normalize_env is not None:
            rewards = self._vec_normalize_env.normalize_reward(rewards)
        # If the rewards overflow their sum, the check of the loss reports it.
        with np.errstate(over="ignore"):
            mean_reward = float(np.mean(rewards))
        value = constant_value(mean_reward, float(np.mean(ends)), self.gamma)
        self._raise_values(value)

    @abstractmethod
    def _raise_values(self, by: float) -> None:
        """Raise the values of all networks by the same number."""

    def _sample(self, batch_size: int, beta: float) -> OptionBatch:
        """Draw a batch: ``batch_size`` steps with ``shared_draws``, otherwise ``batch_size`` steps per view.

        Either way each view contributes a tuple for each of its steps, (K, B) in all.
        """
        assert self.replay_buffer is not None
        return self.replay_buffer.sample(batch_size, env=self._vec_normalize_env, beta=beta)

    @abstractmethod
    def _update(self, batch_size: int, beta: float) -> float:
        """One update of the networks: sample, targets, loss, step. Returns the loss.

        Args:
            batch_size: Passed on to ``_sample``.
            beta: Exponent of the importance weights.
        """

    def _check_loss(self, loss: float) -> None:
        """Raise InputError for NaN and infinity."""
        if not math.isfinite(loss):
            raise InputError(
                f"the loss became {loss} at step {self.num_timesteps}: "
                "choose a smaller learning_rate or scale the rewards"
            )

    def _learned(self, batch: OptionBatch, targets: NDArray[np.float32], residuals: Residuals) -> float:
        """After a gradient step, update the priorities and the statistics. Returns the loss.

        Args:
            batch: The batch of the update.
            targets: (K, B).
            residuals: The values' distances from them.
        """
        assert self.replay_buffer is not None
        self.replay_buffer.update_priorities_of(batch, residuals.td_errors)
        self.update_statistics.add(residuals.row_losses, targets, batch.is_there)
        return residuals.loss

    def _target_bounds(self) -> tuple[float, float]:
        """The bounds that the rewards seen so far put on targets, if clipping is on; otherwise infinite."""
        if not self.clip_targets:
            return -math.inf, math.inf
        assert self.replay_buffer is not None
        rewards = np.array([self.replay_buffer.reward_low, self.replay_buffer.reward_high])
        if self._vec_normalize_env is not None:
            rewards = self._vec_normalize_env.normalize_reward(rewards)
        # A target includes the costs of later decisions, at most one per step, but not of its own.
        low = float(rewards[0]) - self.gamma * self.decision_cost
        return value_bounds(low, float(rewards[1]), self.gamma)

    def _clipped(self, targets: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.clip(targets, *self._target_bounds()) if self.clip_targets else targets


def toss_coins(n: int, epsilon: float, n_coins: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of ``n`` actions and which of ``n`` holds are random, each (n,): one coin for both, or one each."""
    coins = np.array([np.random.rand() < epsilon for _ in range(n * n_coins)])  # noqa: NPY002 - SB3's generator
    coins = coins.reshape(n, n_coins)
    return coins[:, 0], coins[:, -1]


def uniform_durations(n: int, k_max: int, persistences: Sequence[int] | None = None) -> NDArray[np.int64]:
    """``n`` durations from 1..k_max or a sparse set; nothing is drawn if there is no choice."""
    if k_max == 1:
        return np.ones(n, dtype=np.int64)
    if persistences is None:
        return np.random.randint(1, k_max + 1, size=n)  # noqa: NPY002 - SB3's generator
    chosen = np.random.randint(0, len(persistences), size=n)  # noqa: NPY002
    return np.asarray(persistences, dtype=np.int64)[chosen]


def with_last_observations(
    observations: Any, dones: NDArray[Any], infos: list[dict[str, Any]], normalizer: VecNormalize | None
) -> Any:
    """A copy of the environments' observations, with the last observation of each episode that ended.

    A VecEnv resets by itself, and then returns the first observation of the next episode.
    """
    observations = copy.deepcopy(observations)
    for env in np.flatnonzero(dones):
        last = infos[env].get("terminal_observation")
        if last is None:
            continue
        if normalizer is not None:
            last = normalizer.unnormalize_obs(last)
        if isinstance(observations, dict):
            for key, values in observations.items():
                values[env] = last[key]
        else:
            observations[env] = last
    return observations
