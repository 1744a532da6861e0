"""How the policy of an agent that holds its actions is made: its networks, their optimiser and its settings."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor, NatureCNN
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.dqn.policies import DQNPolicy
from torch import nn

from holdfast.core.checks import check_choice
from holdfast.deep.arguments import DEFAULT_TRUNK, POLICY_ARGUMENTS, Argument
from holdfast.deep.networks.greedy_rules import GreedyRule
from holdfast.deep.networks.holding_policy import HoldingPolicy
from holdfast.deep.networks.option_network import OptionQNetwork, OptionRule
from holdfast.deep.networks.skip_network import SkipQNetwork, SkipRule
from holdfast.deep.networks.trunk import TrunkNetwork
from holdfast.envs.choices import Choices

__all__ = ["VALUED", "ValuePolicy"]

VALUED: dict[str, tuple[type[OptionQNetwork] | type[SkipQNetwork], GreedyRule]] = {
    "options": (OptionQNetwork, OptionRule()),
    "skips": (SkipQNetwork, SkipRule()),
}
"""What a policy values, by name: the network that does it, and how its values are read."""


class ValuePolicy(HoldingPolicy, DQNPolicy):
    """Value network, target network, averaged network, and the rule by which their values are read.

    Args:
        observation_space: Space of the observations.
        action_space: Discrete.
        lr_schedule: Learning rate.
        net_arch: Hidden units of the trunk; ``DEFAULT_TRUNK`` by default, none behind NatureCNN.
        activation_fn: Between the layers.
        features_extractor_class: SB3's.
        features_extractor_kwargs: Its arguments.
        normalize_images: Divide images by 255.
        optimizer_class: Adam by default, then with torch's fused kernel.
        optimizer_kwargs: Its arguments.
        valued: ``"options"`` for Q(s,a,k), ``"skips"`` for Q(s,a) and J(s,k|a).
        **settings: The arguments of an agent that are its policy's (``POLICY_ARGUMENTS``), with the same defaults.

    Attributes:
        rule: How an option follows from the values.
    """

    agent_arguments: ClassVar[tuple[Argument, ...]] = POLICY_ARGUMENTS

    q_net: OptionQNetwork | SkipQNetwork  # type: ignore[assignment]
    q_net_target: OptionQNetwork | SkipQNetwork  # type: ignore[assignment]
    action_space: spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    average_rate: float
    normalize_observations: str | None

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        net_arch: list[int] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        features_extractor_class: type[BaseFeaturesExtractor] = FlattenExtractor,
        features_extractor_kwargs: dict[str, Any] | None = None,
        normalize_images: bool = True,
        optimizer_class: type[th.optim.Optimizer] = th.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        *,
        valued: str = "options",
        **settings: Any,
    ) -> None:
        self.choices = Choices(action_space)
        self.valued = check_choice("valued", valued, tuple(VALUED))
        _, self.rule = VALUED[self.valued]
        self._take_settings(settings)
        if net_arch is None and features_extractor_class is not NatureCNN:
            net_arch = list(DEFAULT_TRUNK)
        if optimizer_kwargs is None and optimizer_class is th.optim.Adam:
            # One kernel for all parameters.
            optimizer_kwargs = {"fused": True}
        super().__init__(
            observation_space,
            action_space,  # type: ignore[arg-type]
            lr_schedule,
            net_arch,
            activation_fn,
            features_extractor_class,
            features_extractor_kwargs,
            normalize_images,
            optimizer_class,
            optimizer_kwargs,
        )

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        if self.average_rate > 0.0:
            self.q_net_average = self.make_q_net()
            self.q_net_average.load_state_dict(self.q_net.state_dict())
            self.q_net_average.requires_grad_(False)
            self.q_net_average.set_training_mode(False)

    def make_q_net(self) -> OptionQNetwork | SkipQNetwork:  # type: ignore[override]
        """One network, with a features extractor of its own."""
        kind, _ = VALUED[self.valued]
        arguments = self._update_features_extractor(self.net_args, features_extractor=None)
        taken = {**inspect.signature(TrunkNetwork).parameters, **inspect.signature(kind).parameters}
        settings = {name: value for name, value in self._settings().items() if name in taken}
        scale_to_space = self.normalize_observations == "space"
        return kind(**arguments, **settings, scale_to_space=scale_to_space).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "valued": self.valued,
            **self._settings(),
        }

    @staticmethod
    def layer_lists(net_arch: Any) -> Sequence[Any]:
        """The trunk's."""
        return (net_arch,)
