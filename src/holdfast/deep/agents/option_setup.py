"""How an agent that holds its actions is made: of its arguments, with a policy and a replay.

It is the same for every off-policy parent in Stable-Baselines3; a seam such as ``option_dqn.py`` has the tables of
its arguments.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from typing import Any, ClassVar

from gymnasium import spaces
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv

from holdfast.core.errors import InputError
from holdfast.core.targets import check_priced_target
from holdfast.deep.agents.misuse import check_not_of_sb3, check_not_vector
from holdfast.deep.agents.option_steps import OptionSteps
from holdfast.deep.argument_checks import (
    check_acting,
    check_layers,
    check_mapping,
    check_observations,
    check_subclass,
    check_timeouts,
)
from holdfast.deep.arguments import Argument, documentation, merged, settled, signature
from holdfast.deep.networks.holding_policy import HoldingPolicy
from holdfast.deep.replay.ring import OptionReplayBuffer
from holdfast.deep.replay.views import Views

__all__ = ["OptionSetup"]


class OptionSetup(OptionSteps):
    """An agent that holds its actions, as it is made: SB3's arguments, plus how long an action may be held.

    Attributes:
        sb3_arguments: Those of its parent in SB3, in SB3's order.
        base_arguments: Those that every agent of this parent has beside them.
        added_arguments: What the agent adds to these, or explains anew.
        stands_for: Arguments that the agent fixes, with their values.
        own_arguments: What it has beside SB3's arguments; follows from these three.
        policy_base: What its policies are subclasses of.
    """

    sb3_arguments: ClassVar[tuple[Argument, ...]] = ()
    base_arguments: ClassVar[tuple[Argument, ...]] = ()
    added_arguments: ClassVar[tuple[Argument, ...]] = ()
    stands_for: ClassVar[dict[str, Any]] = {}
    own_arguments: ClassVar[tuple[Argument, ...]] = ()
    policy_base: ClassVar[type[HoldingPolicy]]

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]]
    k_max: int
    persistences: tuple[int, ...] | None
    timeout_is_terminal: bool

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        known = cls.base_arguments if "base_arguments" in vars(cls) else cls.own_arguments
        cls.own_arguments = merged(known, cls.added_arguments, cls.stands_for)
        if cls.sb3_arguments:
            _show_arguments(cls)

    def __init__(
        self,
        policy: str | type[HoldingPolicy],
        env: GymEnv | str,
        *positional: Any,
        _init_setup_model: bool = True,
        **given: Any,
    ) -> None:
        settings = settled(
            type(self).__name__, self.sb3_arguments, self.own_arguments, self.stands_for, positional, given
        )
        self.check_together(policy, settings)
        check_not_vector(env)
        env = maybe_make_env(env, settings["verbose"])
        if env is not None:
            self.check_actions(env.action_space)
            check_observations(env.observation_space)
        of_sb3 = {argument.name: settings.pop(argument.name) for argument in self.sb3_arguments}
        for name, value in settings.items():
            setattr(self, name, value)
        self.greedy_hold = 1.0
        self.values_have_begun = False
        of_sb3["replay_buffer_class"] = of_sb3["replay_buffer_class"] or OptionReplayBuffer
        of_sb3["optimize_memory_usage"] = False
        super().__init__(policy, env, **of_sb3, _init_setup_model=_init_setup_model)

    @staticmethod
    @abstractmethod
    def check_actions(space: spaces.Space[Any]) -> None:
        """Refuse an environment whose actions the agent cannot take."""

    def check_together(self, policy: Any, settings: dict[str, Any]) -> None:
        """Check what one argument alone cannot tell; mappings are replaced by copies."""
        check_acting(settings["decision_tolerance"], settings["interrupt_margin"], settings["decision_cost"])
        check_priced_target(settings["target_value"], settings["decision_cost"])
        check_not_of_sb3(policy, type(self))
        check_subclass("policy", policy, self.policy_base, tuple(self.policy_aliases))
        check_subclass("replay_buffer_class", settings["replay_buffer_class"], OptionReplayBuffer, (None,))
        for_replay = {found.in_replay: found.name for found in self.all_arguments() if found.in_replay}
        # Views are the agent's own: it is what it learns from.
        for_replay |= {name: name for name in Views._fields}
        for_policy = {found.name: found.name for found in self.policy_base.agent_arguments}
        for name, elsewhere in (("replay_buffer_kwargs", for_replay), ("policy_kwargs", for_policy)):
            settings[name] = check_mapping(name, settings[name], elsewhere)
        net_arch = settings["policy_kwargs"].get("net_arch")
        if net_arch is not None:
            for layers in self.policy_base.layer_lists(net_arch):
                check_layers("net_arch in policy_kwargs", layers)
        if settings["persistences"] is not None and settings["k_max"] > settings["buffer_size"]:
            raise InputError(
                f"persistences must be at most buffer_size, which is {settings['buffer_size']}, "
                f"not {settings['k_max']}",
                "persistences",
                "buffer_size",
            )
        check_timeouts(settings["timeout_is_terminal"], settings["replay_buffer_kwargs"])

    def all_arguments(self) -> tuple[Argument, ...]:
        """SB3's, those of all agents of its parent, and those that this one adds; the ones that it fixes too."""
        return (*self.sb3_arguments, *merged(self.base_arguments, self.added_arguments, {}))

    def _policy_arguments(self) -> dict[str, Any]:
        """What the policy is made with: the agent's arguments for it, and its views."""
        own = {found.name: getattr(self, found.name) for found in self.policy_base.agent_arguments}
        return {**own, "k_max": self.views.k_max, "persistences": self.views.persistences}

    def _replay_arguments(self) -> dict[str, Any]:
        """What the replay is made with: the agent's arguments for it, and its views."""
        own = {found.in_replay: getattr(self, found.name) for found in self.all_arguments() if found.in_replay}
        return {**own, **self.views._asdict()}

    def _setup_model(self) -> None:
        if self.persistences is not None:
            # A file that SB3 has saved made a list of it.
            self.persistences = tuple(self.persistences)
        given_policy_kwargs, given_replay_kwargs = self.policy_kwargs, self.replay_buffer_kwargs
        # SB3 builds policy and replay from these two; what it saves and compares are the user's own.
        self.policy_kwargs = {**self._policy_arguments(), **given_policy_kwargs}
        self.replay_buffer_kwargs = {
            **self._replay_arguments(),
            "handle_timeout_termination": not self.timeout_is_terminal,
            **given_replay_kwargs,
        }
        try:
            super()._setup_model()
        finally:
            self.policy_kwargs, self.replay_buffer_kwargs = given_policy_kwargs, given_replay_kwargs
        self._start_holding()

    @abstractmethod
    def _start_holding(self) -> None:
        """Make, once policy and replay are there, what is held and what is counted."""


def _show_arguments(agent: type[OptionSetup]) -> None:
    """Let ``help`` and ``inspect`` see the arguments of an agent, unless it has a constructor of its own."""
    if "__init__" in vars(agent):
        return

    def __init__(self: OptionSetup, *arguments: Any, **keywords: Any) -> None:  # noqa: N807 - it is one
        super(agent, self).__init__(*arguments, **keywords)

    agent.__init__ = __init__  # type: ignore[method-assign]
    shown = signature(agent.sb3_arguments, agent.own_arguments)
    agent.__init__.__signature__ = shown  # type: ignore[attr-defined]
    own_text = inspect.cleandoc(vars(agent).get("__doc__") or "")
    agent.__doc__ = f"{own_text}\n\n{documentation(agent.sb3_arguments, agent.own_arguments)}\n"
