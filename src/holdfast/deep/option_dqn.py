"""The one place that overrides Stable-Baselines3: DQN whose agent holds its actions.

``collect_rollouts`` stays SB3's own, one primitive step per iteration, so that every callback, VecEnv, wrapper and
logger works as with DQN. What changes is where an action comes from (an ``OptionClock`` that is given a new option
only when the last one is over) and what is stored with it (whether the option is over).

``OptionDQN`` is abstract: an agent supplies how random options are drawn and the loss of a batch.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule

from holdfast.core.checks import check_integer, check_real
from holdfast.core.clock import OptionClock
from holdfast.deep.policies import CnnPolicy, Exploration, MlpPolicy, MultiInputPolicy, OptionPolicy
from holdfast.deep.replay import OptionBatch, OptionReplayBuffer
from holdfast.deep.statistics import HoldStatistics, UpdateStatistics

__all__ = ["BatchLoss", "OptionDQN", "clip_gradients"]


class BatchLoss(NamedTuple):
    """What an agent makes of a batch.

    Attributes:
        loss: The scalar to minimise.
        row_losses: (K, B) of each row, unweighted.
        td_errors: (K, B).
        targets: (K, B).
    """

    loss: th.Tensor
    row_losses: th.Tensor
    td_errors: th.Tensor
    targets: th.Tensor


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
        bootstrap: Whether tuples shorter than k inform the values of k.
        prioritized: Prioritised replay.
        priority_alpha: Its exponent of the priorities.
        priority_beta0: Its first exponent of the importance weights, which goes to 1 over the training.
        decision_tolerance: Deterministic acting holds the best action as long as that costs at most this.
        interrupt_margin: Drop a greedy option when another is better by more than this; None never does.
        timeout_is_terminal: Treat a time limit as an end instead of bootstrapping through it.
        _init_setup_model: SB3's.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": MlpPolicy,
        "CnnPolicy": CnnPolicy,
        "MultiInputPolicy": MultiInputPolicy,
    }
    policy: OptionPolicy
    replay_buffer: OptionReplayBuffer | None
    action_space: spaces.Discrete

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
        bootstrap: bool = True,
        prioritized: bool = True,
        priority_alpha: float = 0.6,
        priority_beta0: float = 0.4,
        decision_tolerance: float = 0.0,
        interrupt_margin: float | None = None,
        timeout_is_terminal: bool = False,
        _init_setup_model: bool = True,
    ) -> None:
        self.k_max = check_integer("k_max", k_max)
        self.bootstrap = bool(bootstrap)
        self.prioritized = bool(prioritized)
        self.priority_alpha = check_real("priority_alpha", priority_alpha, 0.0)
        self.priority_beta0 = check_real("priority_beta0", priority_beta0, 0.0, 1.0)
        self.timeout_is_terminal = bool(timeout_is_terminal)
        if n_steps != 1:
            raise ValueError(
                f"n_steps must be 1, not {n_steps!r}: windows of every length up to k_max are learned from already"
            )
        if replay_buffer_class is not None and not (
            isinstance(replay_buffer_class, type) and issubclass(replay_buffer_class, OptionReplayBuffer)
        ):
            raise ValueError("replay_buffer_class must be None or a subclass of OptionReplayBuffer")
        if not isinstance(policy, str) and not (isinstance(policy, type) and issubclass(policy, OptionPolicy)):
            raise ValueError(
                "policy must be 'MlpPolicy', 'CnnPolicy', 'MultiInputPolicy' or a subclass of OptionPolicy, "
                f"not {policy!r}"
            )
        replay_buffer_kwargs = _checked_mapping("replay_buffer_kwargs", replay_buffer_kwargs)
        if timeout_is_terminal and "handle_timeout_termination" in replay_buffer_kwargs:
            raise ValueError(
                "timeout_is_terminal and replay_buffer_kwargs['handle_timeout_termination'] say the same thing: "
                "give one of them"
            )
        env = maybe_make_env(env, verbose)
        if env is not None and not isinstance(env.action_space, spaces.Discrete):
            raise ValueError(f"env must have discrete actions, not {env.action_space}")
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
            replay_buffer_kwargs={
                "k_max": self.k_max,
                "gamma": gamma,
                "bootstrap": self.bootstrap,
                "prioritized": self.prioritized,
                "alpha": self.priority_alpha,
                "handle_timeout_termination": not self.timeout_is_terminal,
                **replay_buffer_kwargs,
            },
            optimize_memory_usage=False,
            n_steps=1,
            target_update_interval=target_update_interval,
            exploration_fraction=exploration_fraction,
            exploration_initial_eps=exploration_initial_eps,
            exploration_final_eps=exploration_final_eps,
            max_grad_norm=max_grad_norm,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs={
                "k_max": self.k_max,
                "head_arch": _checked_layers("head_arch", head_arch),
                "dueling": bool(dueling),
                "normalize_observations": _checked_scaling(normalize_observations),
                **_checked_acting(decision_tolerance, interrupt_margin),
                **_checked_mapping("policy_kwargs", policy_kwargs),
            },
            verbose=verbose,
            seed=seed,
            device=device,
            _init_setup_model=_init_setup_model,
        )

    def _setup_model(self) -> None:
        super()._setup_model()
        self._learned_parameters = list(self.q_net.parameters())
        self.clock = OptionClock(self.n_envs)
        if self.replay_buffer is not None:
            self.replay_buffer.finish()
        self.hold_statistics = HoldStatistics(self.n_envs, window=self._stats_window_size)
        self.update_statistics = UpdateStatistics(self.k_max)

    # Acting ------------------------------------------------------------------------------------------------

    @abstractmethod
    def _random_options(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw ``n`` exploratory options: actions, numbered from 0, and durations."""

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
        return self.policy.predict_holding(observation, state, episode_start, deterministic, explore)

    def _toss_coins(self, n: int) -> Exploration:
        """One coin for each of ``n`` environments that need an option."""
        mask = np.array([np.random.rand() < self.exploration_rate for _ in range(n)])  # noqa: NPY002 - SB3's
        return self._explore(mask)

    def _explore(self, mask: NDArray[np.bool_]) -> Exploration:
        actions = np.zeros(len(mask), dtype=np.int64)
        durations = np.ones(len(mask), dtype=np.int64)
        actions[mask], durations[mask] = self._random_options(int(mask.sum()))
        return Exploration(mask, actions, durations)

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The held action of each environment: in its own numbering, and as stored."""
        warming_up = self.num_timesteps < learning_starts
        if warming_up:
            idle = self.clock.idle
            if idle.any():
                drawn = self._explore(idle)
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
        self._check_finite("reward", reward)
        self._check_finite("observation", new_obs)
        for env in np.flatnonzero(dones):
            if infos[env].get("terminal_observation") is not None:
                self._check_finite("observation", infos[env]["terminal_observation"], int(env))
        began = np.equal(self.clock.elapsed, 0)
        over = self.clock.tick(dones)
        self.hold_statistics.step(began, over, self.clock.elapsed, np.asarray(dones, dtype=np.bool_))
        replay_buffer.announce(over)
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)

    def _check_finite(self, name: str, given: Any, env: int | None = None) -> None:
        """Refuse numbers that are none: of every environment, or of one."""
        for values in given.values() if isinstance(given, dict) else (given,):
            values = np.asarray(values)
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                if env is None:
                    env = int(np.argmax(~np.isfinite(values).reshape(len(values), -1).all(axis=1)))
                raise ValueError(
                    f"env must give finite numbers: environment {env} gave a {name} that is NaN "
                    f"or infinite at step {self.num_timesteps}"
                )

    def _setup_learn(self, *arguments: Any, **keywords: Any) -> Any:
        before = self._last_obs
        result = super()._setup_learn(*arguments, **keywords)
        if self._last_obs is not before:
            # The environments were reset: nothing is held any longer.
            self._drop_held_options()
            self._check_finite("observation", self._last_obs)
        return result

    def _drop_held_options(self) -> None:
        self.clock.cut(~self.clock.idle)
        self.hold_statistics.drop()
        if self.replay_buffer is not None:
            self.replay_buffer.finish()

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Go on in another environment; what was held is dropped."""
        super().set_env(env, force_reset)
        if force_reset:
            self._drop_held_options()

    # Learning ----------------------------------------------------------------------------------------------

    def _target_values(self, rows: NDArray[np.int64]) -> th.Tensor:
        """Q⁻(s,·,·) of the observations in distinct rows of the replay, (U, A, K)."""
        buffer = self.replay_buffer
        assert buffer is not None

        def compute(missing: NDArray[np.int64]) -> th.Tensor:
            return self.q_net_target(buffer.observations_at(missing, self._vec_normalize_env))

        # One view gains nothing by keeping, and what a training VecNormalize says of an observation changes.
        if self.k_max == 1 or self._vec_normalize_env is not None:
            return compute(rows)
        kept = buffer.kept.get(rows, lambda missing: compute(missing).cpu().numpy())
        return th.as_tensor(kept, device=self.device)

    def _online_values(self, rows: NDArray[np.int64]) -> th.Tensor:
        """Q(s,·,·) of the observations in distinct rows of the replay, (U, A, K)."""
        assert self.replay_buffer is not None
        return self.q_net(self.replay_buffer.observations_at(rows, self._vec_normalize_env))

    def _on_step(self) -> None:
        super()._on_step()
        if self._n_calls % max(self.target_update_interval // self.n_envs, 1) == 0:
            assert self.replay_buffer is not None
            self.replay_buffer.kept.drop()

    def set_parameters(self, *arguments: Any, **keywords: Any) -> None:
        """Load weights; see SB3."""
        super().set_parameters(*arguments, **keywords)
        if self.replay_buffer is not None:
            self.replay_buffer.kept.drop()

    def load_replay_buffer(self, *arguments: Any, **keywords: Any) -> None:
        """Load a replay that ``save_replay_buffer`` wrote; what was running in it is over."""
        super().load_replay_buffer(*arguments, **keywords)
        buffer = self.replay_buffer
        if not isinstance(buffer, OptionReplayBuffer) or (buffer.k_max, buffer.n_envs) != (
            self.k_max,
            self.n_envs,
        ):
            raise ValueError(
                f"the replay must be an OptionReplayBuffer of k_max={self.k_max} and n_envs={self.n_envs}"
            )
        buffer.finish()
        buffer.kept.drop()

    @abstractmethod
    def _batch_loss(self, batch: OptionBatch) -> BatchLoss:
        """The loss of a batch."""

    def train(self, gradient_steps: int, batch_size: int = 32) -> None:
        """Update the networks ``gradient_steps`` times, each with ``batch_size`` rows per persistence."""
        assert self.replay_buffer is not None
        drawable = self.replay_buffer.drawable
        if not drawable.any():
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        done = 1.0 - self._current_progress_remaining
        beta = self.priority_beta0 + (1.0 - self.priority_beta0) * done
        losses = []
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env, beta=beta)
            result = self._batch_loss(batch)
            loss = result.loss.item()
            if not np.isfinite(loss):
                raise ValueError(
                    f"the loss became {loss} at step {self.num_timesteps}: "
                    "choose a smaller learning_rate or scale the rewards"
                )
            losses.append(loss)
            self.policy.optimizer.zero_grad()
            result.loss.backward()
            clip_gradients(self._learned_parameters, self.max_grad_norm)
            self.policy.optimizer.step()
            if self.prioritized:
                self.replay_buffer.update_priorities(batch.rows, result.td_errors.cpu().numpy())
            self.update_statistics.add(result.row_losses, result.targets, drawable)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))

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
        return self

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_learned_parameters"]

    def dump_logs(self) -> None:
        """Write log data: SB3's, how actions were held, and the losses by persistence."""
        for name, value in (*self.hold_statistics.means().items(), *self.update_statistics.means().items()):
            self.logger.record(name, value)
        super().dump_logs()


def clip_gradients(parameters: list[th.nn.Parameter], max_norm: float) -> None:
    """PyTorch's ``clip_grad_norm_`` for gradients that all live on one device, without its grouping."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = th.linalg.vector_norm(th.stack(th._foreach_norm(gradients)))
    th._foreach_mul_(gradients, th.clamp(max_norm / (norm + 1e-6), max=1.0))


def _checked_mapping(name: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be a dictionary of keyword arguments or None, not {value!r}")
    if "k_max" in value:
        raise ValueError(f"{name} must not have 'k_max': give it to the agent itself")
    return dict(value)


def _checked_layers(name: str, value: Any) -> list[int]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a list of layer widths such as [64], not {value!r}")
    return [check_integer(f"a layer width in {name}", width) for width in value]


def _checked_scaling(value: Any) -> str | None:
    if value not in (None, "space"):
        raise ValueError(f"normalize_observations must be None or 'space', not {value!r}")
    return value


def _checked_acting(decision_tolerance: Any, interrupt_margin: Any) -> dict[str, float | None]:
    tolerance = check_real("decision_tolerance", decision_tolerance, 0.0)
    if interrupt_margin is None:
        return {"decision_tolerance": tolerance, "interrupt_margin": None}
    margin = check_real("interrupt_margin", interrupt_margin, 0.0)
    if margin < tolerance:
        raise ValueError(
            f"interrupt_margin must be at least decision_tolerance = {tolerance:g}, not {margin:g}: "
            "a hold would be dropped as soon as it is chosen"
        )
    return {"decision_tolerance": tolerance, "interrupt_margin": margin}
