"""The one place that overrides Stable-Baselines3: DQN whose agent holds its actions.

``collect_rollouts`` stays SB3's own, one primitive step per iteration, so that every callback, VecEnv, wrapper and
logger works as with DQN. What changes is where an action comes from (an ``OptionClock`` that is given a new option
only when the last one is over) and what is stored with it (whether the option is over).

``OptionDQN`` is abstract: an agent supplies what of the replay it learns from, how random durations are drawn, and
the loss of a batch.
"""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, RolloutReturn, Schedule
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, unwrap_vec_normalize

from holdfast.core.checks import check_choice, check_discount, check_integer, check_real
from holdfast.core.clock import OptionClock
from holdfast.core.errors import InputError
from holdfast.deep.agents.arguments import (
    UnsupportedActionsError,
    check_acting,
    check_layers,
    check_mapping,
    check_scaling,
    check_subclass,
    check_timeouts,
    check_window,
)
from holdfast.deep.agents.exploratory_draws import ExploratoryDraws, toss_coins
from holdfast.deep.agents.log_means import HoldStatistics, UpdateStatistics
from holdfast.deep.agents.misuse import LostStates, check_not_of_sb3, check_not_vector, check_spelling
from holdfast.deep.agents.regression import Residuals
from holdfast.deep.agents.targets import TARGET_VALUES
from holdfast.deep.agents.vec_env_steps import check_finite, with_last_observations
from holdfast.deep.exact.agent_state import LogEntry, agent_state, restore_agent, resume_log
from holdfast.deep.networks.option_network import OptionQNetwork
from holdfast.deep.networks.policies import CnnPolicy, MlpPolicy, MultiInputPolicy, OptionPolicy
from holdfast.deep.networks.skip_network import SkipQNetwork
from holdfast.deep.replay.ring import OptionBatch, OptionReplayBuffer, Views
from holdfast.deep.speed.optimizer_step import optimizer_step
from holdfast.envs.episode_log import EpisodeLog
from holdfast.envs.observations import has_numbers

__all__ = ["OptionDQN"]


_POLICY_ARGUMENTS = {
    name: name
    for name in (
        "k_max",
        "head_arch",
        "dueling",
        "normalize_observations",
        "decision_tolerance",
        "interrupt_margin",
    )
}
"""Arguments of the policy that are arguments of the agent."""

_REPLAY_ARGUMENTS = {
    "k_max": "k_max",
    "gamma": "gamma",
    "bootstrap": "bootstrap",
    "pad_terminal": "pad_terminal",
    "prioritized": "prioritized",
    "alpha": "priority_alpha",
}
"""Arguments of the replay that the agent gives it, and what the agent calls them."""


class OptionDQN(DQN):
    """DQN over persistence options: SB3's arguments, plus how long an action may be held.

    Args:
        policy: ``"MlpPolicy"``, ``"CnnPolicy"``, ``"MultiInputPolicy"``, or a subclass of ``OptionPolicy``.
        env: Environment, VecEnv or registered id.
        learning_rate: As in SB3's DQN, like everything down to ``device``.
        buffer_size: Primitive steps kept.
        learning_starts: Primitive steps before learning starts.
        batch_size: Rows per persistence: an update sees k_max times as many.
        tau: Soft update coefficient of the target network.
        gamma: Discount factor of one primitive step.
        train_freq: Primitive steps between updates.
        gradient_steps: Updates each time.
        replay_buffer_class: None, or a subclass of ``OptionReplayBuffer``.
        replay_buffer_kwargs: Further arguments of the replay buffer.
        optimize_memory_usage: Without effect: each observation is stored once in any case.
        n_steps: Must be 1; windows of every length up to k_max are what is learned from.
        target_update_interval: Primitive steps between target updates.
        exploration_fraction: Part of the training over which ε falls.
        exploration_initial_eps: ε at the start.
        exploration_final_eps: ε at the end.
        max_grad_norm: Gradient clip.
        stats_window_size: Episodes that logged means cover.
        tensorboard_log: Directory.
        policy_kwargs: Further arguments of the policy.
        verbose: 0, 1 or 2.
        seed: Seed.
        device: Device.
        k_max: Largest persistence K.
        head_arch: Hidden units of each persistence's own head.
        dueling: Dueling heads.
        normalize_observations: ``"space"`` scales finite Box bounds to [−1, 1] inside the policy.
        target_value: How V(s') is read off the networks: ``"options"`` is the maximum over all options (the
            paper), ``"primitive"`` that over actions held once (the same fixed point, less over-estimation),
            ``"double"`` chooses with the online network and values with the target network.
        bootstrap: Whether tuples shorter than k inform the values of k.
        prioritized: Prioritised replay.
        priority_alpha: Its exponent of the priorities.
        priority_beta0: Its first exponent of the importance weights, which goes to 1 over the training.
        decision_tolerance: Deterministic acting holds the best action as long as that costs at most this.
        interrupt_margin: Drop a greedy option when another is better by more than this; None never does.
        timeout_is_terminal: Treat a time limit as an end instead of bootstrapping through it.
        schedule_steps: Steps over which ε, β and a learning rate's schedule go; None for those that ``learn`` is
            asked for. Behind them they stay where they are.
        _init_setup_model: SB3's.

    Attributes:
        valued: What the policy's network values, one of ``VALUED``.
        n_coins: Exploration coins where an option begins: 1 for the whole of it, or 2, one for its action and one
            for its duration.
        own_arguments: Names of the arguments that the agent adds to these.
    """

    valued: ClassVar[str] = "options"
    n_coins: ClassVar[int] = 1
    own_arguments: ClassVar[tuple[str, ...]] = ()

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

    def __init_subclass__(cls, **keywords: Any) -> None:
        """The arguments of a class are those of its ``__init__``, whatever ``__new__`` looks at."""
        super().__init_subclass__(**keywords)
        own = inspect.signature(cls.__init__)
        cls.__signature__ = own.replace(parameters=list(own.parameters.values())[1:])  # type: ignore[attr-defined]

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        """An agent, unless a keyword is misspelt."""
        check_spelling(cls, keywords)
        return super().__new__(cls)

    def __init__(
        self,
        policy: str | type[OptionPolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 5e-4,
        buffer_size: int = 100_000,
        learning_starts: int = 1000,
        batch_size: int = 32,
        tau: float = 1.0,
        gamma: float = 0.99,
        train_freq: int | tuple[int, str] = 1,
        gradient_steps: int = 1,
        replay_buffer_class: type[OptionReplayBuffer] | None = None,
        replay_buffer_kwargs: dict[str, Any] | None = None,
        optimize_memory_usage: bool = False,
        n_steps: int = 1,
        target_update_interval: int = 500,
        exploration_fraction: float = 0.2,
        exploration_initial_eps: float = 1.0,
        exploration_final_eps: float = 0.02,
        max_grad_norm: float = 10,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        *,
        k_max: int = 8,
        head_arch: list[int] | tuple[int, ...] = (64,),
        dueling: bool = False,
        normalize_observations: str | None = None,
        target_value: str = "options",
        bootstrap: bool = True,
        prioritized: bool = True,
        priority_alpha: float = 0.6,
        priority_beta0: float = 0.4,
        decision_tolerance: float = 0.0,
        interrupt_margin: float | None = None,
        timeout_is_terminal: bool = False,
        schedule_steps: int | None = None,
        _init_setup_model: bool = True,
    ) -> None:
        self.k_max = check_integer("k_max", k_max)
        self.schedule_steps = None if schedule_steps is None else check_integer("schedule_steps", schedule_steps)
        self.target_value = check_choice("target_value", target_value, TARGET_VALUES)
        self.bootstrap = bool(bootstrap)
        self.prioritized = bool(prioritized)
        self.priority_alpha = check_real("priority_alpha", priority_alpha, 0.0)
        self.priority_beta0 = check_real("priority_beta0", priority_beta0, 0.0, 1.0)
        self.timeout_is_terminal = bool(timeout_is_terminal)
        self.head_arch = check_layers("head_arch", head_arch)
        self.dueling = bool(dueling)
        self.normalize_observations = check_scaling(normalize_observations)
        self.decision_tolerance, self.interrupt_margin = check_acting(decision_tolerance, interrupt_margin)
        check_integer("buffer_size", buffer_size)
        check_integer("batch_size", batch_size)
        check_discount(gamma)
        check_real("max_grad_norm", max_grad_norm, 0.0, open_low=True)
        check_real("tau", tau, 0.0, 1.0)
        check_integer("learning_starts", learning_starts, 0)
        check_integer("gradient_steps", gradient_steps, -1)
        check_integer("target_update_interval", target_update_interval)
        check_integer("stats_window_size", stats_window_size)
        check_real("exploration_fraction", exploration_fraction, 0.0, 1.0)
        check_real("exploration_initial_eps", exploration_initial_eps, 0.0, 1.0)
        check_real("exploration_final_eps", exploration_final_eps, 0.0, 1.0)
        check_window(n_steps)
        check_not_of_sb3(policy, type(self))
        check_subclass("policy", policy, OptionPolicy, tuple(self.policy_aliases))
        check_subclass("replay_buffer_class", replay_buffer_class, OptionReplayBuffer, (None,))
        replay_buffer_kwargs = check_mapping("replay_buffer_kwargs", replay_buffer_kwargs, _REPLAY_ARGUMENTS)
        policy_kwargs = check_mapping("policy_kwargs", policy_kwargs, _POLICY_ARGUMENTS)
        if policy_kwargs.get("net_arch") is not None:
            check_layers("net_arch in policy_kwargs", policy_kwargs["net_arch"])
        check_timeouts(timeout_is_terminal, replay_buffer_kwargs)
        check_not_vector(env)
        env = maybe_make_env(env, verbose)
        if env is not None and not isinstance(env.action_space, spaces.Discrete):
            raise UnsupportedActionsError(f"env must have discrete actions, not {env.action_space}", "env")
        if env is not None and isinstance(env.observation_space, spaces.Box) and env.observation_space.shape == ():
            raise InputError(
                "env must show arrays of at least one axis, such as shape (1,), not a single number", "env"
            )
        if env is not None and not has_numbers(env.observation_space):
            raise InputError(
                f"env must show at least one number in every observation, not {env.observation_space}", "env"
            )
        super().__init__(
            policy,
            env,
            learning_rate,
            buffer_size=buffer_size,
            learning_starts=learning_starts,
            batch_size=batch_size,
            tau=tau,
            gamma=gamma,
            train_freq=train_freq,
            gradient_steps=gradient_steps,
            replay_buffer_class=replay_buffer_class or OptionReplayBuffer,
            replay_buffer_kwargs=replay_buffer_kwargs,
            optimize_memory_usage=False,
            n_steps=1,
            target_update_interval=target_update_interval,
            exploration_fraction=exploration_fraction,
            exploration_initial_eps=exploration_initial_eps,
            exploration_final_eps=exploration_final_eps,
            max_grad_norm=max_grad_norm,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            seed=seed,
            device=device,
            _init_setup_model=_init_setup_model,
        )

    @property
    @abstractmethod
    def views(self) -> Views:
        """What of the replay is learned from; its ``k_max`` is the largest persistence that has values."""

    def _replay_arguments(self) -> dict[str, Any]:
        return {
            **self.views._asdict(),
            "gamma": self.gamma,
            "prioritized": self.prioritized,
            "alpha": self.priority_alpha,
        }

    def _setup_model(self) -> None:
        given_policy_kwargs, given_replay_kwargs = self.policy_kwargs, self.replay_buffer_kwargs
        # SB3 builds policy and replay from these two; what it saves and compares are the user's own.
        self.policy_kwargs = {
            **{name: getattr(self, name) for name in _POLICY_ARGUMENTS},
            "valued": self.valued,
            "k_max": self.views.k_max,
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
        self.update_statistics = UpdateStatistics(self.views.k_max)

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
        explore = None if deterministic else self._toss_coins
        found = self.policy.predict_holding(observation, state, episode_start, deterministic, explore)
        self._lost_states.note(state, self.policy.steps_left(found[1]))
        return found

    @property
    def _lost_states(self) -> LostStates:
        # Made when it is needed: an agent that was loaded or copied has none yet.
        return self.__dict__.setdefault("_noted_states", LostStates())

    def _toss_coins(self, n: int) -> ExploratoryDraws:
        """Coins for each of ``n`` environments that need an option, and what is random by them."""
        return self._explore(*toss_coins(n, self.exploration_rate, self.n_coins))

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
            interrupted = self.policy.begin_options(self.clock, observation, None, self._toss_coins)
            if interrupted.any():
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
        self.hold_statistics.step(began, over, self.clock.elapsed, np.asarray(dones, dtype=np.bool_))
        # Who learns from single steps need not wait until an option is over.
        replay_buffer.announce(over | (self.views.k_max == 1))
        normalizer = self._vec_normalize_env
        if normalizer is None:
            self._last_original_obs, original_obs = self._last_obs, new_obs
        else:
            original_obs, reward = normalizer.get_original_obs(), normalizer.get_original_reward()
        # The buffer copies what it stores, so that only the last observations of episodes need a copy here.
        next_obs = with_last_observations(original_obs, dones, infos, normalizer) if dones.any() else original_obs
        replay_buffer.add(self._last_original_obs, next_obs, buffer_action, reward, dones, infos)
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

    def _on_step(self) -> None:
        super()._on_step()
        if self._n_calls % max(self.target_update_interval // self.n_envs, 1) == 0:
            assert self.replay_buffer is not None
            self.replay_buffer.kept.belong_to(None)

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
    def _learn_from(self, batch: OptionBatch) -> tuple[Residuals, NDArray[np.float32]]:
        """Set the gradients for a batch; how far off the values were, and the targets (K, B)."""

    def train(self, gradient_steps: int, batch_size: int = 32) -> None:
        """Update the networks ``gradient_steps`` times, each with ``batch_size`` rows per persistence."""
        buffer = self.replay_buffer
        assert buffer is not None
        if not buffer.drawable.any():
            # The very first options are still running: what there is of them counts as options of their own.
            buffer.finish()
        drawable = buffer.drawable
        if not drawable.any():
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        done = 1.0 - self._current_progress_remaining
        beta = self.priority_beta0 + (1.0 - self.priority_beta0) * done
        losses = []
        for _ in range(gradient_steps):
            batch = buffer.sample(batch_size, env=self._vec_normalize_env, beta=beta)
            residuals, targets = self._learn_from(batch)
            if not math.isfinite(residuals.loss):
                raise InputError(
                    f"the loss became {residuals.loss} at step {self.num_timesteps}: "
                    "choose a smaller learning_rate or scale the rewards"
                )
            losses.append(residuals.loss)
            optimizer_step(self.policy.optimizer, self.max_grad_norm)
            buffer.update_priorities(batch.rows, residuals.td_errors)
            self.update_statistics.add(residuals.row_losses, targets, drawable)
        self._n_updates += gradient_steps
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
        made_anew = ["clock", "hold_statistics", "update_statistics", "_noted_states"]
        return [*super()._excluded_save_params(), *made_anew]

    def dump_logs(self) -> None:
        """Write log data: SB3's, how actions were held, and the losses by persistence."""
        for name, value in (*self.hold_statistics.means().items(), *self.update_statistics.means().items()):
            self.logger.record(name, value)
        super().dump_logs()
