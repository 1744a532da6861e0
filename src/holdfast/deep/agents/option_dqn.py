"""The DQN part of an agent that holds its actions: its arguments, construction and network values.

``OptionDQN`` is abstract: an agent supplies its views of the replay, how random durations are drawn, and one
update of the networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy

from holdfast.deep.agents.option_agent import OptionAgent
from holdfast.deep.argument_checks import check_discrete
from holdfast.deep.arguments import OWN_ARGUMENTS, SB3_ARGUMENTS, Argument
from holdfast.deep.networks.holding_policy import HoldingPolicy
from holdfast.deep.networks.initialization import initialize_as_baselines
from holdfast.deep.networks.option_network import OptionQNetwork
from holdfast.deep.networks.option_policy import OptionPolicy
from holdfast.deep.networks.policies import CnnPolicy, MlpPolicy, MultiInputPolicy
from holdfast.deep.networks.skip_network import SkipQNetwork
from holdfast.deep.replay.memory import check_fits
from holdfast.deep.speed.target_cache import TargetCache

__all__ = ["OptionDQN"]


class _TakesCombinations(OffPolicyAlgorithm):
    """Sits between SB3's DQN and its base class, and lifts DQN's restriction to Discrete actions."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **{**keywords, "supported_action_spaces": None})


class OptionDQN(OptionAgent, DQN, _TakesCombinations):
    """DQN over persistence options: SB3's arguments, plus how long an action may be held.

    Attributes:
        valued: What the policy's network values, one of ``VALUED``.
    """

    sb3_arguments: ClassVar[tuple[Argument, ...]] = SB3_ARGUMENTS
    base_arguments: ClassVar[tuple[Argument, ...]] = OWN_ARGUMENTS
    policy_base: ClassVar[type[HoldingPolicy]] = OptionPolicy
    own_counters: ClassVar[tuple[str, ...]] = ("_n_calls",)
    valued: ClassVar[str] = "options"

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": MlpPolicy,
        "CnnPolicy": CnnPolicy,
        "MultiInputPolicy": MultiInputPolicy,
    }
    policy: OptionPolicy
    max_grad_norm: float
    q_net: OptionQNetwork | SkipQNetwork  # type: ignore[assignment]
    q_net_target: OptionQNetwork | SkipQNetwork  # type: ignore[assignment]

    action_space: spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    shared_draws: bool
    target_value: str
    initialization: str
    clip_gradients: str
    bootstrap: bool

    check_actions = staticmethod(check_discrete)

    def _policy_arguments(self) -> dict[str, Any]:
        return {**super()._policy_arguments(), "valued": self.valued}

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.initialization == "baselines":
            initialize_as_baselines(self.q_net)
            for network in {self.q_net_target, self.policy.averaged_net} - {self.q_net}:
                network.load_state_dict(self.q_net.state_dict())
        shape = (self.policy.choices.n, self.views.n)
        if self.replay_buffer is not None and self.views.k_max > 1:
            needed = self.replay_buffer.nbytes + TargetCache.bytes_needed(len(self.replay_buffer.written), shape)
            check_fits(f"the replay of buffer_size={self.buffer_size}", needed)
        self.target_cache = TargetCache(shape)

    def kept_values(self) -> dict[str, Any]:
        """The values of the target cache."""
        return self.target_cache.state(self)

    def keep_values(self, state: Mapping[str, Any]) -> None:
        """Keep what ``kept_values`` returned."""
        self.target_cache.restore(self, state)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "target_cache"]

    # Learning ----------------------------------------------------------------------------------------------

    def _raise_values(self, by: float) -> None:
        for network in {self.q_net, self.q_net_target, self.policy.averaged_net}:
            network.raise_values(by)

    # What targets are made of -------------------------------------------------------------------------------

    def _target_values(self, rows: NDArray[np.int64]) -> th.Tensor:
        """Q⁻ of the observations in rows of the replay, (U, A, ·)."""
        assert self.replay_buffer is not None
        observations = self.replay_buffer.observations_at(rows, self._vec_normalize_env)
        return self.q_net_target.bootstrap_values(observations)

    def _distinct(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct rows, and the index of each of ``rows`` among them; with one view, all rows as they are."""
        if self.views.k_max == 1:
            return rows.ravel(), np.arange(rows.size).reshape(rows.shape)
        distinct, index = np.unique(rows, return_inverse=True)
        return distinct, index.reshape(rows.shape)

    def _online_values(self, rows: NDArray[np.int64]) -> th.Tensor:
        """Q of the observations in distinct rows of the replay, (U, A, ·)."""
        assert self.replay_buffer is not None
        # Next states must not update batch-norm statistics.
        self.policy.set_training_mode(False)
        values = self.q_net.bootstrap_values(self.replay_buffer.observations_at(rows, self._vec_normalize_env))
        self.policy.set_training_mode(True)
        return values
