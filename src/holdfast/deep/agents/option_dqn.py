"""The one place that changes how Stable-Baselines3's DQN runs: its agent holds its actions.

``collect_rollouts`` stays SB3's own, one primitive step per iteration, so that every callback, VecEnv, wrapper and
logger works as with DQN. What changes is where an action comes from (an ``OptionClock`` that is given a new option
only when the last one is over) and what is stored with it (whether the option is over).

``OptionDQN`` is abstract: an agent supplies what of the replay it learns from, how random durations are drawn, and
one update of the networks.
"""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, RolloutReturn
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, unwrap_vec_normalize

from holdfast.core.clock import OptionClock
from holdfast.core.errors import InputError
from holdfast.core.targets import check_priced_target, constant_value, value_bounds
from holdfast.deep.agents.exploratory_draws import option_epsilon, toss_coins
from holdfast.deep.agents.log_means import HoldStatistics, UpdateStatistics
from holdfast.deep.agents.misuse import LostStates, check_not_of_sb3, check_not_vector
from holdfast.deep.agents.regression import Residuals, mean_errors
from holdfast.deep.agents.vec_env_steps import check_finite, with_last_observations
from holdfast.deep.argument_checks import (
    check_acting,
    check_layers,
    check_mapping,
    check_spaces,
    check_subclass,
    check_timeouts,
)
from holdfast.deep.arguments import (
    OWN_ARGUMENTS,
    POLICY_ARGUMENTS,
    SB3_ARGUMENTS,
    Argument,
    documentation,
    merged,
    settled,
    signature,
)
from holdfast.deep.exact.agent_state import LogEntry, agent_state, restore_agent, resume_log
from holdfast.deep.networks.option_network import OptionQNetwork
from holdfast.deep.networks.policies import CnnPolicy, ExploratoryDraws, MlpPolicy, MultiInputPolicy, OptionPolicy
from holdfast.deep.networks.skip_network import SkipQNetwork
from holdfast.deep.replay.memory import check_fits
from holdfast.deep.replay.ring import OptionBatch, OptionReplayBuffer, Views
from holdfast.deep.speed.optimizer_step import optimizer_step
from holdfast.deep.speed.target_cache import TargetCache
from holdfast.envs.episode_log import EpisodeLog

__all__ = ["OptionDQN"]

_HOLD_RATE = 0.01
"""How quickly the mean of greedy holds follows them."""


class OptionDQN(DQN):
    """DQN over persistence options: SB3's arguments, plus how long an action may be held.

    Attributes:
        valued: What the policy's network values, one of ``VALUED``.
        n_coins: Exploration coins where an option begins: 1 for the whole of it, or 2, one for its action and one
            for its duration.
        added_arguments: What the agent adds to the arguments of all, or explains anew.
        stands_for: Arguments of all agents that this one fixes, with their values.
        own_arguments: What it has beside SB3's arguments; follows from these two.
        greedy_hold: Running mean of how many steps a greedy option lasts.
        values_have_begun: Whether values are where they begin: learned, given, or moved by ``initial_values``.
    """

    valued: ClassVar[str] = "options"
    n_coins: ClassVar[int] = 1
    added_arguments: ClassVar[tuple[Argument, ...]] = ()
    stands_for: ClassVar[dict[str, Any]] = {}
    own_arguments: ClassVar[tuple[Argument, ...]] = OWN_ARGUMENTS

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": MlpPolicy,
        "CnnPolicy": CnnPolicy,
        "MultiInputPolicy": MultiInputPolicy,
    }
    policy: OptionPolicy
    q_net: OptionQNetwork | SkipQNetwork  # type: ignore[assignment]
    q_net_target: OptionQNetwork | SkipQNetwork  # type: ignore[assignment]
    replay_buffer: OptionReplayBuffer | None
    action_space: spaces.Discrete

    k_max: int
    persistences: tuple[int, ...] | None
    shared_draws: bool
    target_value: str
    clip_targets: bool
    decision_cost: float
    initial_values: str
    bootstrap: bool
    explore_by: str
    learning_rate_falls_to: float
    priority_beta0: float
    normalize_observations: str | None
    timeout_is_terminal: bool
    schedule_steps: int | None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.own_arguments = merged(cls.own_arguments, cls.added_arguments, cls.stands_for)
        _show_arguments(cls)

    def __init__(
        self,
        policy: str | type[OptionPolicy],
        env: GymEnv | str,
        *positional: Any,
        _init_setup_model: bool = True,
        **given: Any,
    ) -> None:
        settings = settled(type(self).__name__, self.own_arguments, self.stands_for, positional, given)
        self.check_together(policy, settings)
        check_not_vector(env)
        env = maybe_make_env(env, settings["verbose"])
        if env is not None:
            check_spaces(env.observation_space, env.action_space)
        of_sb3 = {argument.name: settings.pop(argument.name) for argument in SB3_ARGUMENTS}
        for name, value in settings.items():
            setattr(self, name, value)
        self.greedy_hold = 1.0
        self.values_have_begun = False
        of_sb3["replay_buffer_class"] = of_sb3["replay_buffer_class"] or OptionReplayBuffer
        of_sb3["optimize_memory_usage"] = False
        super().__init__(policy, env, **of_sb3, _init_setup_model=_init_setup_model)

    def check_together(self, policy: Any, settings: dict[str, Any]) -> None:
        """Check what one argument alone cannot tell; mappings are replaced by copies."""
        check_acting(settings["decision_tolerance"], settings["interrupt_margin"], settings["decision_cost"])
        check_priced_target(settings["target_value"], settings["decision_cost"])
        check_not_of_sb3(policy, type(self))
        check_subclass("policy", policy, OptionPolicy, tuple(self.policy_aliases))
        check_subclass("replay_buffer_class", settings["replay_buffer_class"], OptionReplayBuffer, (None,))
        for_replay = {found.in_replay: found.name for found in _all_arguments(self) if found.in_replay}
        # Views are the agent's own: it is what it learns from.
        for_replay |= {name: name for name in Views._fields}
        for_policy = {found.name: found.name for found in POLICY_ARGUMENTS}
        for name, elsewhere in (("replay_buffer_kwargs", for_replay), ("policy_kwargs", for_policy)):
            settings[name] = check_mapping(name, settings[name], elsewhere)
        if settings["policy_kwargs"].get("net_arch") is not None:
            check_layers("net_arch in policy_kwargs", settings["policy_kwargs"]["net_arch"])
        if settings["persistences"] is not None and settings["k_max"] > settings["buffer_size"]:
            raise InputError(
                f"persistences must be at most buffer_size, which is {settings['buffer_size']}, "
                f"not {settings['k_max']}",
                "persistences",
                "buffer_size",
            )
        check_timeouts(settings["timeout_is_terminal"], settings["replay_buffer_kwargs"])

    @property
    @abstractmethod
    def views(self) -> Views:
        """What of the replay is learned from; its ``k_max`` is the largest persistence that has values."""

    def _replay_arguments(self) -> dict[str, Any]:
        own = {found.in_replay: getattr(self, found.name) for found in _all_arguments(self) if found.in_replay}
        return {**own, **self.views._asdict()}

    def _setup_model(self) -> None:
        if self.persistences is not None:
            # A file that SB3 has saved made a list of it.
            self.persistences = tuple(self.persistences)
        given_policy_kwargs, given_replay_kwargs = self.policy_kwargs, self.replay_buffer_kwargs
        # SB3 builds policy and replay from these two; what it saves and compares are the user's own.
        self.policy_kwargs = {
            **{found.name: getattr(self, found.name) for found in POLICY_ARGUMENTS},
            "valued": self.valued,
            "k_max": self.views.k_max,
            "persistences": self.views.persistences,
            **given_policy_kwargs,
        }
        self.replay_buffer_kwargs = {
            **self._replay_arguments(),
            "handle_timeout_termination": not self.timeout_is_terminal,
            **given_replay_kwargs,
        }
        try:
            super()._setup_model()
        finally:
            self.policy_kwargs, self.replay_buffer_kwargs = given_policy_kwargs, given_replay_kwargs
        self._refuse_scaling_twice(self.env)
        self._is_between_rollouts = True
        self._log_to_go_on: dict[str, LogEntry] | None = None
        self.clock = OptionClock(self.n_envs)
        if self.replay_buffer is not None:
            self.replay_buffer.finish()
        self.hold_statistics = HoldStatistics(self.n_envs, window=self._stats_window_size)
        self.update_statistics = UpdateStatistics(self.views.durations)
        self._random_hold = self._mean_random_hold()
        shape = (int(self.action_space.n), self.views.n)
        if self.replay_buffer is not None and self.views.k_max > 1:
            needed = self.replay_buffer.nbytes + TargetCache.bytes_needed(len(self.replay_buffer.written), shape)
            check_fits(f"the replay of buffer_size={self.buffer_size}", needed)
        self.target_cache = TargetCache(shape)

    def _setup_lr_schedule(self) -> None:
        super()._setup_lr_schedule()
        if self.learning_rate_falls_to != 1.0 and not callable(self.learning_rate):
            first = float(self.learning_rate)
            self.lr_schedule = LinearSchedule(first, first * self.learning_rate_falls_to, 1.0)

    def _refuse_scaling_twice(self, env: Any) -> None:
        normalizer = None if env is None else unwrap_vec_normalize(env)
        if self.normalize_observations is not None and normalizer is not None and normalizer.norm_obs:
            raise InputError(
                "normalize_observations must be None in an environment whose VecNormalize scales them",
                "normalize_observations",
            )

    @staticmethod
    def _wrap_env(env: GymEnv, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        wrapped = DQN._wrap_env(env, verbose, monitor_wrapper)
        if isinstance(env, gymnasium.Env):
            # Given a single environment, an agent can go on exactly after a stop.
            single = wrapped.unwrapped
            assert isinstance(single, DummyVecEnv)
            single.envs = [inner if isinstance(inner, EpisodeLog) else EpisodeLog(inner) for inner in single.envs]
        return wrapped

    # Acting ------------------------------------------------------------------------------------------------

    @abstractmethod
    def _random_durations(self, n: int) -> NDArray[np.int64]:
        """Draw for how long ``n`` exploratory actions are held, each in 1..k_max."""

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """The action to take now, and the option that is held on to; see ``OptionPolicy.predict``.

        Unless ``deterministic``, an option that begins is a random one with the current exploration rate.
        """
        if deterministic:
            found = self.policy.predict(observation, state, episode_start, deterministic=True)
        else:
            self.policy.set_training_mode(False)
            clock, tensor, is_batch = self.policy.held_options(observation, state, episode_start)
            self._begin_options(clock, tensor)
            found = self.policy.hold_on(clock, is_batch)
        self._lost_states.note(state, self.policy.steps_left(found[1]))
        return found

    @property
    def _lost_states(self) -> LostStates:
        # Made when it is needed: an agent that was loaded or copied has none yet.
        return self.__dict__.setdefault("_noted_states", LostStates())

    def _begin_options(self, clock: OptionClock, observation: Any) -> NDArray[np.bool_]:
        """Drop what is not to be held on to, then begin options, random ones by coins; where one was dropped."""
        interrupted, values = self.policy.interrupt(clock, observation)
        idle = clock.idle
        if idle.any():
            draws_action, draws_hold = np.zeros((2, clock.n_envs), dtype=np.bool_)
            coins = toss_coins(int(idle.sum()), self._option_epsilon(), self.n_coins)
            draws_action[idle], draws_hold[idle] = coins
            draws = self._explore(draws_action, draws_hold)
            self.policy.begin_options(clock, observation, None, values, draws)
        return interrupted

    def _option_epsilon(self) -> float:
        """The chance that an option which begins is a random one."""
        if self.explore_by == "options":
            return self.exploration_rate
        return option_epsilon(self.exploration_rate, self._random_hold, self.greedy_hold)

    def _note_greedy_holds(self, steps: NDArray[np.int64]) -> None:
        """Move the mean of greedy holds by those that are over after so many steps."""
        for lasted in steps.tolist():
            self.greedy_hold += _HOLD_RATE * (lasted - self.greedy_hold)

    def _mean_random_hold(self) -> float:
        """Mean of what ``_random_durations`` draws."""
        return float(np.mean(self.views.durations))

    def _explore(self, draws_action: NDArray[np.bool_], draws_hold: NDArray[np.bool_]) -> ExploratoryDraws:
        actions = np.zeros(len(draws_action), dtype=np.int64)
        durations = np.ones(len(draws_hold), dtype=np.int64)
        n_actions = int(draws_action.sum())
        actions[draws_action] = [self.action_space.sample() - self.action_space.start for _ in range(n_actions)]
        durations[draws_hold] = self._random_durations(int(draws_hold.sum()))
        return ExploratoryDraws(draws_action, draws_hold, actions, durations)

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The held action of each environment: in its own numbering, and as stored."""
        self._is_between_rollouts = False
        warming_up = self.num_timesteps < learning_starts
        if warming_up:
            idle = self.clock.idle
            if idle.any():
                drawn = self._explore(idle, idle)
                self.clock.begin(idle, drawn.actions, drawn.durations, exploratory=True)
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
        return actions + self.action_space.start, actions

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
        check_finite("reward", reward, self.num_timesteps)
        check_finite("observation", new_obs, self.num_timesteps)
        for env in np.flatnonzero(dones):
            if infos[env].get("terminal_observation") is not None:
                check_finite("observation", infos[env]["terminal_observation"], self.num_timesteps, int(env))
        began = np.equal(self.clock.elapsed, 0)
        over = self.clock.tick(dones)
        self._note_greedy_holds(self.clock.elapsed[over & ~self.clock.exploratory])
        self.hold_statistics.step(began, over, self.clock.elapsed, np.asarray(dones, dtype=np.bool_))
        # Who learns from single steps need not wait until an option is over.
        over = over | (self.views.k_max == 1)
        normalizer = self._vec_normalize_env
        if normalizer is None:
            self._last_original_obs, original_obs = self._last_obs, new_obs
        else:
            original_obs, reward = normalizer.get_original_obs(), normalizer.get_original_reward()
        # The buffer copies what it stores, so that only the last observations of episodes need a copy here.
        next_obs = with_last_observations(original_obs, dones, infos, normalizer) if dones.any() else original_obs
        replay_buffer.add(self._last_original_obs, next_obs, buffer_action, reward, dones, infos, over)
        self._last_obs = new_obs
        if normalizer is not None:
            self._last_original_obs = original_obs

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> Any:
        environments_are_reset = reset_num_timesteps or self._last_obs is None
        result = super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)
        resume_log(self)
        if reset_num_timesteps:
            # As SB3 forgets the episodes before.
            self.hold_statistics = HoldStatistics(self.n_envs, window=self._stats_window_size)
        if environments_are_reset:
            self._drop_held_options()
            check_finite("observation", self._last_obs, self.num_timesteps)
        return result

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        steps = total_timesteps if self.schedule_steps is None else self.schedule_steps
        super()._update_current_progress_remaining(min(num_timesteps, steps), steps)

    def _drop_held_options(self) -> None:
        self.clock.cut(~self.clock.idle)
        self.hold_statistics.drop()
        if self.replay_buffer is not None:
            self.replay_buffer.finish()

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Go on in another environment; what was held is dropped."""
        self._refuse_scaling_twice(self._wrap_env(env, self.verbose))
        super().set_env(env, force_reset)
        if force_reset:
            self._drop_held_options()

    def collect_rollouts(self, *arguments: Any, **keywords: Any) -> RolloutReturn:
        """SB3's own; what is noted is whether the agent is between two rollouts, where it can be saved."""
        self._is_between_rollouts = True
        return super().collect_rollouts(*arguments, **keywords)

    # Learning ----------------------------------------------------------------------------------------------

    def _target_values(self, rows: NDArray[np.int64]) -> th.Tensor:
        """Q⁻ of the observations in rows of the replay, (U, A, ·)."""
        assert self.replay_buffer is not None
        with th.no_grad():
            observations = self.replay_buffer.observations_at(rows, self._vec_normalize_env)
            return self.q_net_target.bootstrap_values(observations).float()

    def _distinct(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Each row once, and which of these each of ``rows`` is; of one view all rows as they are."""
        if self.views.k_max == 1:
            return rows.ravel(), np.arange(rows.size).reshape(rows.shape)
        distinct, index = np.unique(rows, return_inverse=True)
        return distinct, index.reshape(rows.shape)

    def _online_values(self, rows: NDArray[np.int64]) -> th.Tensor:
        """Q of the observations in distinct rows of the replay, (U, A, ·)."""
        assert self.replay_buffer is not None
        # Next states must not move batch-norm statistics.
        self.policy.set_training_mode(False)
        with th.no_grad():
            observations = self.replay_buffer.observations_at(rows, self._vec_normalize_env)
            values = self.q_net.bootstrap_values(observations).float()
        self.policy.set_training_mode(True)
        return values

    def load_replay_buffer(self, *arguments: Any, **keywords: Any) -> None:
        """Load a replay that ``save_replay_buffer`` wrote; what was running in it is over."""
        before = self.replay_buffer
        super().load_replay_buffer(*arguments, **keywords)
        loaded, self.replay_buffer = self.replay_buffer, before
        if not isinstance(loaded, OptionReplayBuffer):
            raise InputError("the replay must be one that an agent of this kind saved")
        expected = {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "n_envs": self.n_envs,
            **self._replay_arguments(),
            **{name: value for name, value in self.replay_buffer_kwargs.items() if hasattr(loaded, name)},
        }
        if before is not None:
            expected["handle_timeout_termination"] = before.handle_timeout_termination
        for name, value in expected.items():
            if getattr(loaded, name) != value:
                raise InputError(
                    f"the replay must be of {name}={value!r}, as this agent's is, not {getattr(loaded, name)!r}"
                )
        loaded.finish()
        self.replay_buffer = loaded

    @abstractmethod
    def _update(self, batch_size: int, beta: float) -> float:
        """One update of the networks: sample, targets, loss, step. Returns the loss.

        Args:
            batch_size: Tuples per view.
            beta: Exponent of the importance weights.
        """

    def _sample(self, batch_size: int, beta: float) -> OptionBatch:
        assert self.replay_buffer is not None
        return self.replay_buffer.sample(batch_size, env=self._vec_normalize_env, beta=beta)

    def _step(
        self,
        batch: OptionBatch,
        targets: NDArray[np.float32],
        residuals: Residuals,
        compiled_parameters: list[th.Tensor] | None = None,
    ) -> float:
        """Move the weights along their gradients, then the priorities by the errors. Returns the loss.

        Args:
            batch: What was learned from.
            targets: (K, B).
            residuals: Their errors.
            compiled_parameters: Those of the network, if compiled code has set their gradients.
        """
        assert self.replay_buffer is not None
        if not math.isfinite(residuals.loss):
            raise InputError(
                f"the loss became {residuals.loss} at step {self.num_timesteps}: "
                "choose a smaller learning_rate or scale the rewards"
            )
        if compiled_parameters is None or not self.policy.step_compiled(
            compiled_parameters, self.max_grad_norm, self._n_updates
        ):
            optimizer_step(self.policy.optimizer, self.max_grad_norm)
            self.policy.move_average(self._n_updates)
        if batch.is_shared:
            errors = mean_errors(residuals.td_errors, batch.is_there)
            self.replay_buffer.update_priorities(batch.rows[:1], errors[None])
        else:
            self.replay_buffer.update_priorities(batch.rows, residuals.td_errors)
        self.update_statistics.add(residuals.row_losses, targets, batch.is_there)
        return residuals.loss

    def _begin_values(self) -> None:
        """Before the first update: move all values to where they begin."""
        self.values_have_begun = True
        if self.initial_values == "zero":
            return
        assert self.replay_buffer is not None
        rewards, ends = self.replay_buffer.rewards_and_ends()
        if self._vec_normalize_env is not None:
            rewards = self._vec_normalize_env.normalize_reward(rewards)
        value = constant_value(float(np.mean(rewards)), float(np.mean(ends)), self.gamma)
        for network in {self.q_net, self.q_net_target, self.policy.averaged_net}:
            network.raise_values(value)

    def set_parameters(self, *arguments: Any, **keywords: Any) -> None:
        """SB3's own; values that are given begin where they are."""
        super().set_parameters(*arguments, **keywords)
        self.values_have_begun = True

    @classmethod
    def load(cls, *arguments: Any, **keywords: Any) -> OptionDQN:
        """SB3's own; an agent that was saved before it learned has its beginning before it."""
        loaded = super().load(*arguments, **keywords)
        loaded.values_have_begun = loaded._n_updates > 0
        return loaded

    def _target_bounds(self) -> tuple[float, float]:
        """What the rewards seen so far allow a target to be, if that is asked for; else anything."""
        if not self.clip_targets:
            return -math.inf, math.inf
        assert self.replay_buffer is not None
        rewards = np.array([self.replay_buffer.reward_low, self.replay_buffer.reward_high])
        if self._vec_normalize_env is not None:
            rewards = self._vec_normalize_env.normalize_reward(rewards)
        # A target contains the decisions behind it, at most one with each step, but not its own.
        low = float(rewards[0]) - self.gamma * self.decision_cost
        return value_bounds(low, float(rewards[1]), self.gamma)

    def _clipped(self, targets: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.clip(targets, *self._target_bounds()) if self.clip_targets else targets

    def train(self, gradient_steps: int, batch_size: int = 32) -> None:
        """Update the networks ``gradient_steps`` times, each with ``batch_size`` rows per persistence."""
        buffer = self.replay_buffer
        assert buffer is not None
        if not buffer.drawable.any():
            # The very first options are still running: what there is of them counts as options of their own.
            buffer.finish()
        if not buffer.drawable.any():
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        done = 1.0 - self._current_progress_remaining
        beta = self.priority_beta0 + (1.0 - self.priority_beta0) * done
        losses = []
        for _ in range(gradient_steps):
            if not self.values_have_begun:
                self._begin_values()
            losses.append(self._update(batch_size, beta))
            self._n_updates += 1
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if losses:
            self.logger.record("train/loss", sum(losses) / len(losses))

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> OptionDQN:
        """Train for ``total_timesteps`` primitive steps; SB3's arguments."""
        super().learn(
            total_timesteps,
            callback,
            log_interval,
            tb_log_name or type(self).__name__,
            reset_num_timesteps,
            progress_bar,
        )
        self._is_between_rollouts = True
        return self

    # State -------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything that is needed to go on exactly from here, as arrays and JSON values.

        To be asked for between two rollouts: before or after ``learn``, or in a callback's ``_on_rollout_start``.

        Raises:
            ValueError: The environment, or a wrapper of it, cannot be brought back.
        """
        if not self._is_between_rollouts:
            raise InputError(
                "state() must be asked for between two rollouts: before or after learn(), or in a callback's "
                "_on_rollout_start"
            )
        return agent_state(self)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on exactly from where ``state`` was asked for; ``learn(..., reset_num_timesteps=False)`` is next.

        The agent must have been made with the same arguments and an environment that was made in the same way. It
        is not to be used after an error.

        Raises:
            ValueError: The state is damaged, or belongs to another agent or environment.
        """
        restore_agent(self, state)
        self._is_between_rollouts = True

    def _excluded_save_params(self) -> list[str]:
        made_anew = ["clock", "hold_statistics", "update_statistics", "target_cache", "_noted_states"]
        return [*super()._excluded_save_params(), *made_anew]

    def dump_logs(self) -> None:
        """Write log data: SB3's, how actions were held, and the losses by persistence."""
        for name, value in (*self.hold_statistics.means().items(), *self.update_statistics.means().items()):
            self.logger.record(name, value)
        super().dump_logs()


def _all_arguments(agent: OptionDQN) -> tuple[Argument, ...]:
    return (*SB3_ARGUMENTS, *merged(OWN_ARGUMENTS, agent.added_arguments, {}))


def _show_arguments(agent: type[OptionDQN]) -> None:
    """Let ``help`` and ``inspect`` see the arguments of an agent, unless it has a constructor of its own."""
    if "__init__" in vars(agent) and agent is not OptionDQN:
        return
    if agent is not OptionDQN:

        def __init__(self: OptionDQN, *arguments: Any, **keywords: Any) -> None:  # noqa: N807 - it is one
            super(agent, self).__init__(*arguments, **keywords)

        agent.__init__ = __init__  # type: ignore[method-assign]
    shown = signature(agent.own_arguments)
    agent.__init__.__signature__ = shown  # type: ignore[attr-defined]
    own_text = inspect.cleandoc(vars(agent).get("__doc__") or "")
    agent.__doc__ = f"{own_text}\n\n{documentation(agent.own_arguments)}\n"


_show_arguments(OptionDQN)  # type: ignore[type-abstract]
