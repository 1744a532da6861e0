"""What is DQN's of an agent that holds its actions: its arguments, how it is made, and the values of its networks.

``OptionDQN`` is abstract: an agent supplies what of the replay it learns from, how random durations are drawn, and
one update of the networks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.policies import BasePolicy

from holdfast.deep.agents.option_agent import OptionAgent
from holdfast.deep.agents.option_steps import toss_coins
from holdfast.deep.agents.regression import Residuals
from holdfast.deep.argument_checks import check_discrete
from holdfast.deep.arguments import OWN_ARGUMENTS, SB3_ARGUMENTS, Argument
from holdfast.deep.networks.holding_policy import ExploratoryDraws, HoldingPolicy
from holdfast.deep.networks.initialization import initialize_as_baselines
from holdfast.deep.networks.option_network import OptionQNetwork
from holdfast.deep.networks.option_policy import OptionPolicy
from holdfast.deep.networks.policies import CnnPolicy, MlpPolicy, MultiInputPolicy
from holdfast.deep.networks.skip_network import SkipQNetwork
from holdfast.deep.replay.memory import check_fits
from holdfast.deep.replay.views import OptionBatch
from holdfast.deep.speed.target_cache import TargetCache

__all__ = ["OptionDQN"]


class OptionDQN(OptionAgent, DQN):
    """DQN over persistence options: SB3's arguments, plus how long an action may be held.

    Attributes:
        valued: What the policy's network values, one of ``VALUED``.
        n_coins: Exploration coins where an option begins: 1 for the whole of it, or 2, one for its action and one
            for its duration.
    """

    sb3_arguments: ClassVar[tuple[Argument, ...]] = SB3_ARGUMENTS
    base_arguments: ClassVar[tuple[Argument, ...]] = OWN_ARGUMENTS
    policy_base: ClassVar[type[HoldingPolicy]] = OptionPolicy
    own_counters: ClassVar[tuple[str, ...]] = ("_n_calls",)
    valued: ClassVar[str] = "options"
    n_coins: ClassVar[int] = 1

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": MlpPolicy,
        "CnnPolicy": CnnPolicy,
        "MultiInputPolicy": MultiInputPolicy,
    }
    policy: OptionPolicy
    max_grad_norm: float
    q_net: OptionQNetwork | SkipQNetwork  # type: ignore[assignment]
    q_net_target: OptionQNetwork | SkipQNetwork  # type: ignore[assignment]

    action_space: spaces.Discrete
    shared_draws: bool
    target_value: str
    initialization: str
    clip_gradients: str
    bootstrap: bool

    check_actions = staticmethod(check_discrete)

    @property
    def optimizers(self) -> dict[str, th.optim.Optimizer]:
        """The policy's one."""
        return {"optimizer": self.policy.optimizer}

    def _policy_arguments(self) -> dict[str, Any]:
        return {**super()._policy_arguments(), "valued": self.valued}

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.initialization == "baselines":
            initialize_as_baselines(self.q_net)
            for network in {self.q_net_target, self.policy.averaged_net} - {self.q_net}:
                network.load_state_dict(self.q_net.state_dict())
        shape = (int(self.action_space.n), self.views.n)
        if self.replay_buffer is not None and self.views.k_max > 1:
            needed = self.replay_buffer.nbytes + TargetCache.bytes_needed(len(self.replay_buffer.written), shape)
            check_fits(f"the replay of buffer_size={self.buffer_size}", needed)
        self.target_cache = TargetCache(shape)

    def kept_values(self) -> dict[str, Any]:
        """Those of the target cache."""
        return self.target_cache.state(self)

    def keep_values(self, state: Mapping[str, Any]) -> None:
        """Keep what ``kept_values`` returned."""
        self.target_cache.restore(self, state)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "target_cache"]

    # Acting ------------------------------------------------------------------------------------------------

    @abstractmethod
    def _random_durations(self, n: int) -> NDArray[np.int64]:
        """Draw for how long ``n`` exploratory actions are held, each in 1..k_max."""

    def _toss_coins(self, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return toss_coins(n, self._option_epsilon(), self.n_coins)

    def _explore(
        self, begins: NDArray[np.bool_], draws_action: NDArray[np.bool_], draws_hold: NDArray[np.bool_]
    ) -> ExploratoryDraws:
        actions = np.zeros(len(draws_action), dtype=np.int64)
        durations = np.ones(len(draws_hold), dtype=np.int64)
        n_actions = int(draws_action.sum())
        actions[draws_action] = [self.action_space.sample() - self.action_space.start for _ in range(n_actions)]
        durations[draws_hold] = self._random_durations(int(draws_hold.sum()))
        return ExploratoryDraws(draws_action, draws_hold, actions, durations)

    # Learning ----------------------------------------------------------------------------------------------

    def _raise_values(self, by: float) -> None:
        for network in {self.q_net, self.q_net_target, self.policy.averaged_net}:
            network.raise_values(by)

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
        self._check_loss(residuals.loss)
        self.policy.step(
            self.max_grad_norm, self._n_updates, compiled_parameters, clip_each=self.clip_gradients == "each"
        )
        self.replay_buffer.update_priorities_of(batch, residuals.td_errors)
        self.update_statistics.add(residuals.row_losses, targets, batch.is_there)
        return residuals.loss

    # What targets are made of -------------------------------------------------------------------------------

    def _target_values(self, rows: NDArray[np.int64]) -> th.Tensor:
        """Q⁻ of the observations in rows of the replay, (U, A, ·)."""
        assert self.replay_buffer is not None
        observations = self.replay_buffer.observations_at(rows, self._vec_normalize_env)
        return self.q_net_target.bootstrap_values(observations)

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
        values = self.q_net.bootstrap_values(self.replay_buffer.observations_at(rows, self._vec_normalize_env))
        self.policy.set_training_mode(True)
        return values
