"""One interface for tables and networks: they decide, and may interrupt a hold."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from holdfast.core.checks import check_real
from holdfast.core.choice import Decision
from holdfast.core.errors import InputError
from holdfast.core.options import Option
from holdfast.envs.choices import Choices

if TYPE_CHECKING:
    from holdfast.deep.networks.holding_policy import HoldingPolicy
    from holdfast.tabular import Policy

__all__ = ["NetworkActor", "TableActor", "acting_as"]


class TableActor:
    """A tabular policy in an environment whose states and actions need not count from 0.

    Args:
        policy: The policy, which counts from 0.
        first_state: Number of the environment's first state.
        first_action: Number of its first action.
        combinations: Its action space, if an action combines several parts (MultiDiscrete or MultiBinary).

    Attributes:
        choices: Its actions.
    """

    def __init__(
        self,
        policy: Policy,
        first_state: int = 0,
        first_action: int = 0,
        combinations: spaces.Space[Any] | None = None,
    ) -> None:
        self.policy = policy
        self._first_state = first_state
        self._first_action = first_action
        self._combinations = combinations
        n_actions = policy.table.shape[1]
        self.choices = Choices(combinations or spaces.Discrete(n_actions, start=first_action))

    def fits(self, observations: spaces.Space[Any], actions: spaces.Space[Any]) -> bool:
        """Whether it can play where these are seen and done."""
        n_states, n_actions, _ = self.policy.table.shape
        if self._combinations is not None:
            actions_fit = actions == self._combinations
        else:
            actions_fit = isinstance(actions, spaces.Discrete) and (actions.start, actions.n) == (
                self._first_action,
                n_actions,
            )
        # A model may have a last state that no environment shows.
        return (
            isinstance(observations, spaces.Discrete)
            and actions_fit
            and observations.start == self._first_state
            and observations.n in (n_states, n_states - 1)
        )

    @property
    def acting(self) -> tuple[float | None, float | None]:
        """Decision tolerance and interrupt margin."""
        return getattr(self.policy, "decision_tolerance", None), getattr(self.policy, "interrupt_margin", None)

    def acting_with(self, decision_tolerance: float | None, interrupt_margin: float | None) -> TableActor:
        """The same values, acted upon in another way.

        Raises:
            ValueError: The policy has no choice, or the margin is less than the tolerance.
        """
        from holdfast.tabular import GreedyPolicy

        if not isinstance(self.policy, GreedyPolicy):
            raise InputError(
                "decision_tolerance and interrupt_margin must not be given for TempoRL's policy",
                "decision_tolerance",
                "interrupt_margin",
            )
        policy = replace(self.policy, decision_tolerance=decision_tolerance, interrupt_margin=interrupt_margin)
        return TableActor(policy, self._first_state, self._first_action, self._combinations)

    def decide(self, observation: Any) -> Decision:
        """What to do, for how long, and the values of all options."""
        action, hold, values = self.policy.decide(operator.index(observation) - self._first_state)
        if self.choices.are_numbers:
            return Decision(action + self._first_action, hold, values)
        return Decision(self.choices.taken(np.array([action]))[0], hold, values)

    def interrupts(self, observation: Any, action: Any, left: int) -> bool:
        """Whether another option is better than holding on by more than the margin."""
        option = Option(self.choices.number(action), left)
        return self.policy.interrupts(operator.index(observation) - self._first_state, option)


class NetworkActor:
    """The greedy policy of a network.

    Args:
        policy: The network's policy; never changed.
    """

    def __init__(self, policy: HoldingPolicy) -> None:
        self.policy = policy

    def fits(self, observations: spaces.Space[Any], actions: spaces.Space[Any]) -> bool:
        """Whether it can play where these are seen and done."""
        from stable_baselines3.common.preprocessing import is_image_space
        from stable_baselines3.common.vec_env import VecTransposeImage

        own = self.policy.observation_space
        if observations != own and isinstance(observations, spaces.Box) and is_image_space(observations):
            observations = VecTransposeImage.transpose_space(observations)
        return observations == own and actions == self.policy.action_space

    @property
    def acting(self) -> tuple[float | None, float | None]:
        """Decision tolerance and interrupt margin."""
        return self.policy.decision_tolerance, self.policy.interrupt_margin

    def acting_with(self, decision_tolerance: float | None, interrupt_margin: float | None) -> NetworkActor:
        """The same values, acted upon in another way.

        Raises:
            ValueError: The policy has no choice, or the margin is less than the tolerance.
        """
        import copy

        from holdfast.deep.argument_checks import check_acting

        if self.policy.k_max == 1 and (decision_tolerance or interrupt_margin is not None):
            raise InputError(
                "decision_tolerance and interrupt_margin must not be given for a policy that holds every action "
                "for one step",
                "decision_tolerance",
                "interrupt_margin",
            )
        policy = copy.deepcopy(self.policy)
        policy.decision_tolerance, policy.interrupt_margin = check_acting(
            decision_tolerance or 0.0, interrupt_margin, self.policy.decision_cost
        )
        return NetworkActor(policy)

    def decide(self, observation: Any) -> Decision:
        """What to do, for how long, and the values of all options."""
        return self.policy.decide(observation)

    def interrupts(self, observation: Any, action: Any, left: int) -> bool:
        """Whether another option is better than holding on by more than the margin."""
        return self.policy.interrupts(observation, action, left)


def acting_as(actor: Any, decision_tolerance: float | None = None, interrupt_margin: float | None = None) -> Any:
    """The policy with the given tolerance and margin; what is not given stays as trained.

    Raises:
        ValueError: The policy has no choice, or the margin is less than the tolerance.
    """
    if decision_tolerance is None and interrupt_margin is None:
        return actor
    tolerance, margin = actor.acting
    return actor.acting_with(
        tolerance if decision_tolerance is None else check_real("decision_tolerance", decision_tolerance, 0.0),
        margin if interrupt_margin is None else check_real("interrupt_margin", interrupt_margin, 0.0),
    )
