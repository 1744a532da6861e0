"""What is TD3's of an agent that holds its actions: its arguments, its networks, and how it explores.

``OptionTD3`` is abstract: an agent supplies what of the replay it learns from and one update of the networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import TD3
from stable_baselines3.common.noise import ActionNoise, NormalActionNoise, VectorizedActionNoise
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.utils import LinearSchedule

from holdfast.core.errors import InputError
from holdfast.deep.actor_arguments import ACTOR_ARGUMENTS, TD3_ARGUMENTS
from holdfast.deep.agents.option_agent import OptionAgent
from holdfast.deep.agents.option_steps import toss_coins, uniform_durations
from holdfast.deep.argument_checks import check_bounded
from holdfast.deep.arguments import Argument
from holdfast.deep.exact.noise_state import noise_state, restore_noise
from holdfast.deep.networks.actor_policy import ActorPolicy
from holdfast.deep.networks.holding_policy import ExploratoryDraws, HoldingPolicy
from holdfast.deep.networks.policies import ActorCnnPolicy, ActorMlpPolicy, ActorMultiInputPolicy

__all__ = ["OptionTD3"]


class OptionTD3(OptionAgent, TD3):
    """TD3 over persistence options: SB3's arguments, plus how long an action may be held."""

    sb3_arguments: ClassVar[tuple[Argument, ...]] = TD3_ARGUMENTS
    base_arguments: ClassVar[tuple[Argument, ...]] = ACTOR_ARGUMENTS
    policy_base: ClassVar[type[HoldingPolicy]] = ActorPolicy
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": ActorMlpPolicy,
        "CnnPolicy": ActorCnnPolicy,
        "MultiInputPolicy": ActorMultiInputPolicy,
    }
    explores_in_predict: ClassVar[bool] = False
    loss_name: ClassVar[str] = "train/critic_loss"
    normalize_observations = None
    priority_beta0 = 1.0

    policy: ActorPolicy
    action_space: spaces.Box
    shared_draws: bool
    target_value: str
    exploration_initial_eps: float
    exploration_final_eps: float
    exploration_fraction: float

    check_actions = staticmethod(check_bounded)

    @property
    def optimizers(self) -> dict[str, th.optim.Optimizer]:
        """The actor's and the critics'."""
        return {"actor_optimizer": self.actor.optimizer, "critic_optimizer": self.critic.optimizer}

    def _setup_model(self) -> None:
        super()._setup_model()
        self.action_noise = _as_object(self.action_noise, get_action_dim(self.action_space), self.n_envs)
        self.exploration_schedule = LinearSchedule(
            self.exploration_initial_eps, self.exploration_final_eps, self.exploration_fraction
        )
        self.exploration_rate = self.exploration_initial_eps

    def _on_step(self) -> None:
        self.exploration_rate = self.exploration_schedule(self._current_progress_remaining)
        self.logger.record("rollout/exploration_rate", self.exploration_rate)

    def kept_values(self) -> dict[str, Any]:
        """Nothing of the target networks; what the exploration noise remembers."""
        return {"noise": noise_state(self.action_noise)}

    def keep_values(self, state: Mapping[str, Any]) -> None:
        """Go on with what ``kept_values`` returned."""
        restore_noise(self.action_noise, state, "noise")

    # Acting ------------------------------------------------------------------------------------------------

    def _toss_coins(self, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        actions = np.zeros(n, dtype=np.bool_)
        if self.k_max == 1:
            # There is no duration to choose.
            return actions, actions
        return actions, toss_coins(n, self._option_epsilon(), n_coins=1)[0]

    def _explore(
        self, begins: NDArray[np.bool_], draws_action: NDArray[np.bool_], draws_hold: NDArray[np.bool_]
    ) -> ExploratoryDraws:
        actions = np.zeros_like(self.clock.action)
        n_actions = int(draws_action.sum())
        if n_actions:
            sampled = np.array([self.action_space.sample() for _ in range(n_actions)])
            actions[draws_action] = self.policy.as_held(sampled)
        durations = np.ones(len(draws_hold), dtype=np.int64)
        durations[draws_hold] = uniform_durations(int(draws_hold.sum()), self.k_max, self.persistences)
        return ExploratoryDraws(draws_action, draws_hold, actions, durations, self._noise(begins))

    def _noise(self, begins: NDArray[np.bool_]) -> NDArray[np.floating] | None:
        """Noise of the options that begin, (n_envs, size), each from its own environment's process."""
        if self.action_noise is None:
            return None
        vectorized = isinstance(self.action_noise, VectorizedActionNoise)
        processes = self.action_noise.noises if vectorized else [self.action_noise]
        noise = np.zeros(self.clock.action.shape, dtype=self.clock.action.dtype)
        for env in np.flatnonzero(begins):
            noise[env] = processes[env]().ravel()
        return noise

    # Learning ----------------------------------------------------------------------------------------------

    def _raise_values(self, by: float) -> None:
        for network in (self.policy.critic, self.policy.critic_target):
            network.raise_values(by)


def _as_object(noise: Any, size: int, n_envs: int) -> ActionNoise | None:
    """Noise as SB3 has it when it trains; one whose draws have another shape than an action is refused."""
    if noise is None:
        return None
    if not isinstance(noise, ActionNoise):
        noise = NormalActionNoise(np.zeros(size), np.full(size, float(noise)))
    single = noise.base_noise if isinstance(noise, VectorizedActionNoise) else noise
    mean = getattr(single, "_mu", None)
    shape = np.shape(mean)
    if mean is not None and int(np.prod(shape)) != size:
        raise InputError(
            f"action_noise must have as many numbers as an action, which is {size}, not shape {shape}",
            "action_noise",
        )
    if isinstance(noise, VectorizedActionNoise) and noise.n_envs == n_envs:
        return noise
    return VectorizedActionNoise(single, n_envs) if n_envs > 1 else single
