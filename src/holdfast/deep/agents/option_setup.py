"""How an agent that holds its actions is made from its arguments, with a policy and a replay.

It is the same for every off-policy parent in Stable-Baselines3; a seam such as ``option_dqn.py`` has the tables of
its arguments.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Collection
from typing import Any, ClassVar

from gymnasium import spaces
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.her import HerReplayBuffer

from holdfast.core.errors import InputError, InputTypeError
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
from holdfast.deep.replay.hindsight import HindsightReplayBuffer, check_strategy
from holdfast.deep.replay.ring import OptionReplayBuffer
from holdfast.deep.replay.views import Views, check_views

__all__ = ["OptionSetup"]

_PASSED_TO_REPLAY = {
    **{name: name for name in ("buffer_size", "device", "optimize_memory_usage")},
    **dict.fromkeys(("observation_space", "action_space", "n_envs", "env"), "env"),
}
"""What SB3 passes to every replay, with the agent's argument that it comes from."""


class OptionSetup(OptionSteps):
    """The construction of an agent that holds its actions: SB3's arguments, plus how long an action may be held.

    Attributes:
        sb3_arguments: The arguments of its parent in SB3, in SB3's order.
        base_arguments: Further arguments of every agent with this parent.
        added_arguments: Arguments that the agent adds or redefines.
        stands_for: Arguments that the agent fixes, with their values.
        own_arguments: All its arguments other than SB3's, derived from the three above.
        policy_base: Base class of its policies.
    """

    sb3_arguments: ClassVar[tuple[Argument, ...]] = ()
    base_arguments: ClassVar[tuple[Argument, ...]] = ()
    added_arguments: ClassVar[tuple[Argument, ...]] = ()
    stands_for: ClassVar[dict[str, Any]] = {}
    own_arguments: ClassVar[tuple[Argument, ...]] = ()
    policy_base: ClassVar[type[HoldingPolicy]]

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]]
    timeout_is_terminal: bool

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _check_added(cls)
        # What its parent fixes stays fixed.
        cls.stands_for = {**getattr(super(cls, cls), "stands_for", {}), **cls.stands_for}
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
        # The parent's own, which a seam adds.
        super().__init__(policy, env, **of_sb3, _init_setup_model=_init_setup_model)  # type: ignore[call-arg]

    @staticmethod
    @abstractmethod
    def check_actions(space: spaces.Space[Any]) -> None:
        """Reject an environment whose actions the agent does not support."""

    def check_together(self, policy: Any, settings: dict[str, Any]) -> None:
        """Check arguments against each other; mappings are replaced by copies."""
        check_acting(settings["decision_tolerance"], settings["interrupt_margin"], settings["decision_cost"])
        check_priced_target(settings["target_value"], settings["decision_cost"])
        check_not_of_sb3(policy, type(self))
        check_subclass("policy", policy, self.policy_base, tuple(self.policy_aliases))
        if settings["replay_buffer_class"] in (HerReplayBuffer, HerReplayBuffer.__name__):
            # SB3's own buffer keeps two copies of every observation and does not know holds.
            settings["replay_buffer_class"] = HindsightReplayBuffer
        or_else = (None, HerReplayBuffer.__name__)
        check_subclass("replay_buffer_class", settings["replay_buffer_class"], OptionReplayBuffer, or_else)
        for_replay = {found.in_replay: found.name for found in self.all_arguments() if found.in_replay}
        # The agent decides its own views.
        for_replay |= {name: name for name in Views._fields} | _PASSED_TO_REPLAY
        for_policy = {found.name: found.name for found in self.policy_base.agent_arguments}
        # SB3 would put its own in its place.
        for_policy |= {found.name: found.name for found in self.sb3_arguments if found.name == "use_sde"}
        for name, elsewhere in (("replay_buffer_kwargs", for_replay), ("policy_kwargs", for_policy)):
            settings[name] = check_mapping(name, settings[name], elsewhere)
        _check_replay_arguments(
            settings["replay_buffer_class"] or OptionReplayBuffer, settings["replay_buffer_kwargs"], for_replay
        )
        net_arch = settings["policy_kwargs"].get("net_arch")
        if net_arch is not None:
            for layers in self.policy_base.layer_lists(net_arch):
                check_layers("net_arch in policy_kwargs", layers)
        if settings["persistences"] is not None:
            _check_room(settings["k_max"], settings["buffer_size"])
        check_timeouts(settings["timeout_is_terminal"], settings["replay_buffer_kwargs"])

    def all_arguments(self) -> tuple[Argument, ...]:
        """SB3's arguments, those of all agents with its parent, and its own, including those that it fixes."""
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
            # SB3's files store it as a list.
            self.persistences = tuple(self.persistences)
            _check_room(self.k_max, self.buffer_size, self.n_envs)
        check_views(self.views, self.k_max)
        given_policy_kwargs, given_replay_kwargs = self.policy_kwargs, self.replay_buffer_kwargs
        # SB3 builds policy and replay from these two, but saves and compares the user's own.
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


def _check_room(longest: int, buffer_size: int, n_envs: int = 1) -> None:
    """Reject a set whose longest persistence does not fit into the replay: its value would hardly be learned."""
    room, names = "buffer_size", ["persistences", "buffer_size"]
    if n_envs > 1:
        room, names = "buffer_size divided by n_envs", [*names, "n_envs"]
    kept = buffer_size // n_envs
    if longest > kept:
        raise InputError(f"persistences must be at most {room}, which is {kept}, not {longest}", *names)


def _check_replay_arguments(
    replay: type[OptionReplayBuffer], given: dict[str, Any], elsewhere: Collection[str]
) -> None:
    """Reject unknown keyword arguments of the replay; a goal strategy is replaced by its name.

    Args:
        replay: Its class.
        given: The keyword arguments.
        elsewhere: Those that are given to the agent instead.
    """
    parameters = [found for kind in replay.__mro__ for found in inspect.signature(kind).parameters.values()]
    # What is only passed on has no name of its own.
    passed_on = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    known = {found.name for found in parameters if found.kind not in passed_on}
    for name in given:
        if name not in known:
            if not replay.relabels and name in inspect.signature(HindsightReplayBuffer).parameters:
                raise InputTypeError(
                    f"replay_buffer_kwargs names {name!r}, which needs replay_buffer_class=HerReplayBuffer",
                    "replay_buffer_kwargs",
                    "replay_buffer_class",
                )
            raise InputTypeError(
                f"replay_buffer_kwargs names {name!r}, which {replay.__name__} does not have; choose from "
                f"{', '.join(sorted(known.difference(elsewhere)))}",
                "replay_buffer_kwargs",
            )
    if "goal_selection_strategy" in given:
        given["goal_selection_strategy"] = check_strategy(given["goal_selection_strategy"])


def _check_added(agent: type[OptionSetup]) -> None:
    """Reject arguments of an agent's own that are none, or that SB3's agents have."""
    added = agent.added_arguments
    if not isinstance(added, tuple) or not all(isinstance(one, Argument) for one in added):
        raise InputTypeError(
            f"added_arguments of {agent.__name__} must be a tuple such as (Argument(...),), not {added!r}",
            "added_arguments",
        )
    taken = {one.name for one in getattr(agent, "sb3_arguments", ())}
    for name in (one.name for one in added if one.name in taken):
        raise InputError(
            f"added_arguments of {agent.__name__} must have names of their own, and every agent has {name!r}",
            "added_arguments",
        )


def _show_arguments(agent: type[OptionSetup]) -> None:
    """Show an agent's arguments to ``help`` and ``inspect``, unless it has its own constructor."""
    if "__init__" in vars(agent):
        return

    def __init__(self: OptionSetup, *arguments: Any, **keywords: Any) -> None:  # noqa: N807 - it is one
        super(agent, self).__init__(*arguments, **keywords)

    # Named after the agent, for tracebacks and API references.
    __init__.__qualname__, __init__.__module__ = f"{agent.__qualname__}.__init__", agent.__module__
    agent.__init__ = __init__  # type: ignore[method-assign]
    of_sb3 = merged(agent.sb3_arguments, (), agent.stands_for)
    shown = signature(of_sb3, agent.own_arguments)
    agent.__init__.__signature__ = shown  # type: ignore[attr-defined]
    own_text = inspect.cleandoc(vars(agent).get("__doc__") or "")
    agent.__doc__ = f"{own_text}\n\n{documentation(of_sb3, agent.own_arguments)}\n"
