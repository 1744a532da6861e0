"""What an agent that holds its actions does between its steps: predict, start learning, save, continue exactly.

Like the steps, it is the same for every off-policy parent in Stable-Baselines3.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, unwrap_vec_normalize

from holdfast.core.checks import check_real
from holdfast.core.errors import InputError
from holdfast.deep.agents.log_means import HoldStatistics, UpdateStatistics
from holdfast.deep.agents.misuse import LostStates
from holdfast.deep.agents.option_setup import OptionSetup
from holdfast.deep.exact.agent_state import LogEntry, agent_state, restore_agent, resume_log
from holdfast.deep.replay.hindsight import HindsightReplayBuffer
from holdfast.deep.replay.ring import OptionReplayBuffer
from holdfast.envs.episode_log import EpisodeLog
from holdfast.envs.failures import refuse_nonfinite

__all__ = ["OptionAgent"]


class OptionAgent(OptionSetup):
    """An off-policy agent that holds its actions.

    Abstract: a seam adds the parent in Stable-Baselines3, as in ``class OptionDQN(OptionAgent, DQN)``.

    Attributes:
        own_counters: Counters that only this parent has.
        explores_in_predict: Whether ``predict`` explores unless it is deterministic, as it does in SB3's DQN.
    """

    own_counters: ClassVar[tuple[str, ...]] = ()
    explores_in_predict: ClassVar[bool] = True

    learning_rate_falls_to: float
    normalize_observations: str | None
    _is_learning: bool = False
    _values_had_begun: bool = False

    def _start_holding(self) -> None:
        """Set up holding and counting, once policy and replay exist."""
        self._refuse_scaling_twice(self.env)
        self._is_between_rollouts = True
        self._log_to_go_on: dict[str, LogEntry] | None = None
        self.clock = self.policy.new_clock(self.n_envs)
        if self.replay_buffer is not None:
            self.replay_buffer.finish()
        self._let_replay_compute_rewards()
        self.hold_statistics = HoldStatistics(self.n_envs, window=self._stats_window_size)
        self.update_statistics = UpdateStatistics(self.views.durations)
        self._random_hold = check_real("what _mean_random_hold returns", self._mean_random_hold(), 1.0)

    def _let_replay_compute_rewards(self) -> None:
        """Give the replay the current environment, if it relabels goals and so must compute rewards."""
        if isinstance(self.replay_buffer, HindsightReplayBuffer) and self.env is not None:
            self.replay_buffer.set_env(self.env)

    @abstractmethod
    def kept_values(self) -> dict[str, Any]:
        """The cached values of the target network, for a saved state."""

    @abstractmethod
    def keep_values(self, state: Mapping[str, Any]) -> None:
        """Keep what ``kept_values`` returned."""

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
        wrapped = OffPolicyAlgorithm._wrap_env(env, verbose, monitor_wrapper)
        if isinstance(env, gymnasium.Env):
            # With a single environment, an agent can continue exactly after a stop.
            single = wrapped.unwrapped
            assert isinstance(single, DummyVecEnv)
            single.envs = [inner if isinstance(inner, EpisodeLog) else EpisodeLog(inner) for inner in single.envs]
        return wrapped

    def _mean_random_hold(self) -> float:
        """Mean of what ``_random_durations`` draws."""
        return float(np.mean(self.views.durations))

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """The action to take now, and the state that carries the held option.

        Pass the state back on the next call. Unless ``deterministic``, agents of discrete actions begin random
        options at the current exploration rate, as in SB3's DQN, and PerSAC draws its actions, as in SB3's SAC.

        Args:
            observation: One observation, or a batch.
            state: The state that the last call returned; None makes a new decision.
            episode_start: (n,) where an episode has just begun, so that nothing is held.
            deterministic: Whether to act greedily, with ``decision_tolerance``.

        Returns:
            The action (or a batch of them), and the state.
        """
        if deterministic or not self.explores_in_predict:
            found = self.policy.predict(observation, state, episode_start, deterministic)
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
            refuse_nonfinite("observation", self._last_obs, self.num_timesteps)
        return result

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Train for ``total_timesteps`` primitive steps; SB3's arguments."""
        self._is_learning = True
        try:
            super().learn(
                total_timesteps,
                callback,
                log_interval,
                tb_log_name or type(self).__name__,
                reset_num_timesteps,
                progress_bar,
            )
        finally:
            self._is_learning = False
        self._is_between_rollouts = True
        return self

    def _drop_held_options(self) -> None:
        self.clock.cut(~self.clock.idle)
        self.hold_statistics.drop()
        if self.replay_buffer is not None:
            self.replay_buffer.cut()

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Continue in another environment; held actions are dropped."""
        self._refuse_scaling_twice(self._wrap_env(env, self.verbose))
        super().set_env(env, force_reset)
        self._let_replay_compute_rewards()
        if force_reset:
            self._drop_held_options()

    def set_parameters(self, *arguments: Any, **keywords: Any) -> None:
        """SB3's own; given weights are not shifted by ``initial_values``."""
        super().set_parameters(*arguments, **keywords)
        self._values_had_begun, self.values_have_begun = self.values_have_begun, True

    @classmethod
    def load(cls, *arguments: Any, **keywords: Any) -> Self:
        """SB3's own; an agent saved before it learned or was given weights will still apply ``initial_values``."""
        loaded = super().load(*arguments, **keywords)
        # The saved attribute, before ``load`` gave the saved weights; files from older versions may not have it.
        loaded.values_have_begun = bool(loaded._values_had_begun) or loaded._n_updates > 0
        return loaded

    def load_replay_buffer(self, path: Any, truncate_last_traj: bool = True) -> None:
        """Load a replay that ``save_replay_buffer`` wrote; options that were running in it count as ended.

        Args:
            path: The file.
            truncate_last_traj: For a ``HerReplayBuffer``: whether running episodes count as ended, too.
        """
        before: OptionReplayBuffer | None = vars(self).get("replay_buffer")
        super().load_replay_buffer(path)
        loaded, self.replay_buffer = self.replay_buffer, before
        if type(loaded) is not self.replay_buffer_class:
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
        self._let_replay_compute_rewards()
        if isinstance(loaded, HindsightReplayBuffer) and truncate_last_traj:
            loaded.truncate_last_trajectory()

    def state(self) -> dict[str, Any]:
        """Everything needed to continue exactly from here, as arrays and JSON values.

        Call it between two rollouts: before or after ``learn``, or in a callback's ``_on_rollout_start``.

        Raises:
            ValueError: The environment, or a wrapper of it, cannot be restored.
        """
        if not self._is_between_rollouts:
            raise InputError(
                "state() must be called between two rollouts: before or after learn(), or in a callback's "
                "_on_rollout_start"
            )
        return agent_state(self)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue exactly from where ``state`` was called; next, call ``learn(..., reset_num_timesteps=False)``.

        The agent must have been made with the same arguments, and its environment in the same way. Do not use it
        after an error.

        Raises:
            ValueError: The state is damaged, or belongs to another agent or environment.
        """
        restore_agent(self, state)
        self._is_between_rollouts = True

    def _excluded_save_params(self) -> list[str]:
        made_anew = ["clock", "hold_statistics", "update_statistics", "_noted_states"]
        return [*super()._excluded_save_params(), *made_anew, "_is_learning", "_values_had_begun"]

    def dump_logs(self) -> None:
        """Write log data: SB3's, how actions were held, and the losses by persistence."""
        for name, value in (*self.hold_statistics.means().items(), *self.update_statistics.means().items()):
            self.logger.record(name, value)
        super().dump_logs()
