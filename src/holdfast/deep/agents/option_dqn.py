"""What is DQN's of an agent that holds its actions: its arguments, how it is made, and the values of its networks.

``OptionDQN`` is abstract: an agent supplies what of the replay it learns from, how random durations are drawn, and
one update of the networks.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv

from holdfast.core.errors import InputError
from holdfast.core.targets import check_priced_target, constant_value
from holdfast.deep.agents.misuse import check_not_of_sb3, check_not_vector
from holdfast.deep.agents.option_agent import OptionAgent
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
from holdfast.deep.networks.initialization import initialize_as_baselines
from holdfast.deep.networks.option_network import OptionQNetwork
from holdfast.deep.networks.option_policy import OptionPolicy
from holdfast.deep.networks.policies import CnnPolicy, MlpPolicy, MultiInputPolicy
from holdfast.deep.networks.skip_network import SkipQNetwork
from holdfast.deep.replay.memory import check_fits
from holdfast.deep.replay.ring import OptionReplayBuffer
from holdfast.deep.replay.views import Views
from holdfast.deep.speed.target_cache import TargetCache

__all__ = ["OptionDQN"]


class OptionDQN(OptionAgent, DQN):
    """DQN over persistence options: SB3's arguments, plus how long an action may be held.

    Attributes:
        valued: What the policy's network values, one of ``VALUED``.
        added_arguments: What the agent adds to the arguments of all, or explains anew.
        stands_for: Arguments of all agents that this one fixes, with their values.
        own_arguments: What it has beside SB3's arguments; follows from these two.
    """

    valued: ClassVar[str] = "options"
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

    persistences: tuple[int, ...] | None
    shared_draws: bool
    target_value: str
    initial_values: str
    initialization: str
    bootstrap: bool
    timeout_is_terminal: bool

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
        for_replay = {found.in_replay: found.name for found in self.all_arguments() if found.in_replay}
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

    def all_arguments(self) -> tuple[Argument, ...]:
        """SB3's, those of all agents, and those that this one adds."""
        return (*SB3_ARGUMENTS, *merged(OWN_ARGUMENTS, self.added_arguments, {}))

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
        if self.initialization == "baselines":
            initialize_as_baselines(self.q_net)
            for network in {self.q_net_target, self.policy.averaged_net} - {self.q_net}:
                network.load_state_dict(self.q_net.state_dict())
        self._start_holding()
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

    def _begin_values(self) -> None:
        self.values_have_begun = True
        if self.initial_values == "zero":
            return
        assert self.replay_buffer is not None
        rewards, ends = self.replay_buffer.rewards_and_ends()
        if self._vec_normalize_env is not None:
            rewards = self._vec_normalize_env.normalize_reward(rewards)
        # Rewards too large for their sum are said to be so by the loss.
        with np.errstate(over="ignore"):
            mean_reward = float(np.mean(rewards))
        value = constant_value(mean_reward, float(np.mean(ends)), self.gamma)
        for network in {self.q_net, self.q_net_target, self.policy.averaged_net}:
            network.raise_values(value)

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
