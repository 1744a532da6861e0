"""When an update may take a short cut: kept targets, gradients by hand, one kernel for the optimiser.

The plain path defines what training computes: autograd, the optimiser's own step, and targets computed by the
networks. A short cut gives the same numbers at less cost. It is taken only while the parts that it bypasses are
unchanged and have no hooks, which ``NetworkAsMade`` checks for a network. ``with plain_path():`` takes no short
cut, except that the forward pass of a plain network still skips the calls of its modules.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeGuard

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor
from torch import nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer

from holdfast.core.errors import InputError
from holdfast.deep.networks.small_convolutions import SmallConvolutions

if TYPE_CHECKING:
    from holdfast.deep.agents.per_dqn import OptionValueDQN
    from holdfast.deep.networks.option_network import OptionQNetwork
    from holdfast.deep.replay.views import OptionBatch

__all__ = [
    "SHORT_CUT_TARGET_VALUES",
    "NetworkAsMade",
    "UnchangedModules",
    "are_boards",
    "can_keep_targets",
    "can_pass_by_hand",
    "can_run_compiled",
    "can_step_in_one_kernel",
    "compiled_parameters",
    "plain_path",
]

_closed = 0


@contextmanager
def plain_path() -> Iterator[None]:
    """Within the block, updates take the plain path: autograd, the optimiser's own step, no kept targets."""
    global _closed
    _closed += 1
    try:
        yield
    finally:
        _closed -= 1


SHORT_CUT_TARGET_VALUES = ("options", "primitive", "double")
"""Those of ``TARGET_VALUES`` that kept targets and compiled code support. Any other takes the plain path."""


def can_keep_targets(agent: OptionValueDQN) -> bool:
    """Whether to keep the target network's values of an observation until the network changes.

    With one view this gains nothing. Under a training VecNormalize, or with relabelled goals, a row does not
    always show the same observation.
    """
    assert agent.replay_buffer is not None
    return (
        not _closed
        and agent.views.k_max > 1
        and agent._vec_normalize_env is None
        and not agent.replay_buffer.relabels
        and agent.target_value in SHORT_CUT_TARGET_VALUES
    )


def can_pass_by_hand(parameters: list[th.Tensor] | None, observations: Any) -> bool:
    """Whether a plain network's gradients can be computed by hand instead of by autograd.

    Frozen layers, gradient hooks, parameters that layers share, mixed precision and the search for anomalies need
    autograd.

    Args:
        parameters: Those of a plain network; None of another.
        observations: What it sees.
    """
    return (
        _is_plain_on_cpu(parameters, observations)
        and len(set(map(id, parameters))) == len(parameters)
        and all(
            part.requires_grad and not part._backward_hooks and not part._post_accumulate_grad_hooks
            for part in parameters
        )
        and not th.is_anomaly_enabled()
    )


def can_run_compiled(parameters: list[th.Tensor] | None, observations: Any) -> bool:
    """Whether compiled code may compute a plain network's values; it supports 32-bit numbers on the CPU.

    Args:
        parameters: Those of a plain network; None of another.
        observations: What it sees.
    """
    return _is_plain_on_cpu(parameters, observations) and all(
        part.dtype is th.float32 and part.device.type == "cpu" for part in parameters
    )


def _is_plain_on_cpu(parameters: list[th.Tensor] | None, observations: Any) -> TypeGuard[list[th.Tensor]]:
    return (
        not _closed
        and parameters is not None
        and observations.device.type == "cpu"
        and not th.is_autocast_enabled("cpu")
    )


def compiled_parameters(agent: OptionValueDQN, batch: OptionBatch) -> list[th.Tensor] | None:
    """The parameters of an agent's network if compiled code may learn from a batch; None for the plain path.

    It supports draws shared by all views, and observations exactly as the replay stores them.
    """
    assert agent.replay_buffer is not None
    if (
        not batch.is_shared
        or agent._vec_normalize_env is not None
        or agent.replay_buffer.relabels
        or agent.target_value not in SHORT_CUT_TARGET_VALUES
    ):
        return None
    if agent.q_net.convolutions and not are_boards(agent.q_net, batch.observations):
        # A replay of the user's own may return other observations than it stores.
        return None
    parameters = agent.q_net.plain_parameters()
    if can_run_compiled(parameters, batch.observations) and can_pass_by_hand(parameters, batch.observations):
        return parameters
    return None


def are_boards(network: OptionQNetwork, observations: object) -> bool:
    """Whether observations are boards of bytes of the shape that a network's filters are for, at least one.

    Compiled code does not check it, and would read beyond their ends.
    """
    return (
        isinstance(observations, th.Tensor)
        and observations.dtype is th.uint8
        and len(observations) > 0
        and observations.shape[1:] == network.observation_space.shape
    )


def can_step_in_one_kernel(optimizer: th.optim.Optimizer) -> bool:
    """Whether the optimiser is a fused Adam on the CPU without hooks."""
    group = optimizer.param_groups[0]
    return (
        not _closed
        and type(optimizer) is th.optim.Adam
        and len(optimizer.param_groups) == 1
        and bool(group.get("fused"))
        and not group["amsgrad"]
        and not group.get("decoupled_weight_decay", False)
        and not isinstance(group["lr"], th.Tensor)
        # Schedulers and users may hook into the steps.
        and "step" not in vars(optimizer)
        and not torch_optimizer._global_optimizer_pre_hooks
        and not torch_optimizer._global_optimizer_post_hooks
        and not optimizer._optimizer_step_pre_hooks
        and not optimizer._optimizer_step_post_hooks
        and group["params"][0].device.type == "cpu"
    )


class UnchangedModules:
    """What a network was made of.

    Args:
        network: As it was just made.
    """

    def __init__(self, network: nn.Module) -> None:
        self._parts: tuple[tuple[nn.Module, type[nn.Module], Any, list[Any], list[type]], ...] = tuple(
            (
                module,
                type(module),
                type(module).forward,
                list(module._modules.values()),
                [type(part) for part in module._parameters.values()],
            )
            for module in network.modules()
        )
        self._leaves = [module for module, *_, children, _ in self._parts if not children]
        self._families = [(module, children) for module, *_, children, _ in self._parts if children]
        kinds = {type(module) for module in network.modules() if module is not network}
        self._switch_alike = all(
            kind.train is nn.Module.train and kind.__setattr__ is nn.Module.__setattr__ for kind in kinds
        )

    def holds(self) -> bool:
        """Whether all modules are the original ones, unpatched and without hooks.

        Modules that were added, replaced, taken out, wrapped or parametrised are noticed, and so is every hook on
        one of them or on all modules. The caller checks the parameters.
        """
        if (
            torch_module._global_forward_hooks
            or torch_module._global_forward_pre_hooks
            or torch_module._global_backward_hooks
            or torch_module._global_backward_pre_hooks
        ):
            return False
        for module, kind, forward, children, parameters in self._parts:
            now = module.__dict__
            if (
                type(module) is not kind
                or kind.forward is not forward
                or now["_forward_hooks"]
                or now["_forward_pre_hooks"]
                or now["_backward_hooks"]
                or now["_backward_pre_hooks"]
                or "forward" in now
                or "_compiled_call_impl" in now
                or ((now["_modules"] or children) and [*now["_modules"].values()] != children)
                or ((now["_parameters"] or parameters) and [*map(type, now["_parameters"].values())] != parameters)
            ):
                return False
        return True

    def parameters(self) -> list[th.Tensor]:
        """Every parameter once, in PyTorch's order, without the cost of ``nn.Module.parameters``."""
        found = (part for module, *_ in self._parts for part in module._parameters.values() if part is not None)
        return list({id(part): part for part in found}.values())

    def buffers(self) -> list[th.Tensor]:
        """Every buffer once, likewise."""
        found = (part for module, *_ in self._parts for part in module._buffers.values() if part is not None)
        return list({id(part): part for part in found}.values())

    def is_evaluating(self) -> bool:
        """Whether all modules that were made are in evaluation mode."""
        return not any(module.training for module, *_ in self._parts)

    def switch(self, mode: bool) -> bool:
        """Put all modules into training or evaluation mode, without the cost of ``nn.Module.train``.

        Returns:
            Whether these are all modules; if not, use PyTorch's own method.
        """
        if not self._switch_alike:
            return False
        for module in self._leaves:
            now = module.__dict__
            if now["_modules"] or "train" in now:
                return False
            now["training"] = mode
        for module, children in self._families:
            now = module.__dict__
            if [*now["_modules"].values()] != children or "train" in now:
                return False
            now["training"] = mode
        return True


class NetworkAsMade(BasePolicy):
    """A network that knows whether it is unchanged, so that short cuts may bypass its modules.

    A subclass makes ``trunk_layers`` and its heads, then calls ``_heads_are_made``.

    Attributes:
        trunk_layers: The linear layers of the trunk as it was made, each with its normalisation or None.
        activation_fn: Between the layers.
        scalers: What scales the observations, if anything does.
        convolutions: The small one over boards of bytes as it was made; empty without one.
    """

    features_extractor: BaseFeaturesExtractor
    trunk_layers: tuple[tuple[nn.Linear, nn.LayerNorm | None], ...]
    activation_fn: type[nn.Module]
    scalers: nn.ModuleDict
    convolutions: tuple[nn.Conv2d, ...] = ()
    _was_made_plain = False

    @abstractmethod
    def head_layers(self) -> tuple[nn.Module, ...]:
        """The layers behind the trunk as they are now, in order."""

    @property
    @abstractmethod
    def last_bias(self) -> th.Tensor:
        """Of a network as it was made: a bias behind everything else, which every step of an optimiser moves."""

    def _heads_are_made(self, is_known_class: bool) -> None:
        """Remember the modules; a user's subclass may treat them differently."""
        self._as_made = UnchangedModules(self)
        extractor = self.features_extractor
        if type(extractor) is SmallConvolutions and self.observation_space.dtype == np.uint8 and not self.scalers:
            self.convolutions = (extractor.convolution,)
        in_trunk = (layer for pair in self.trunk_layers for layer in pair if layer is not None)
        self._plain_layers = (*self.convolutions, *in_trunk, *self.head_layers())
        self._was_made_plain = (
            is_known_class
            and isinstance(self.observation_space, spaces.Box)
            and not is_image_space(self.observation_space)
            and (type(extractor) is FlattenExtractor or bool(self.convolutions))
            and self.activation_fn is nn.ReLU
        )

    @property
    def is_plain(self) -> bool:
        """Whether linear layers, norms and ReLUs, all unchanged and without hooks, map vectors to values.

        In front of them there may be the small convolution over boards of bytes.
        """
        return self._was_made_plain and self._as_made.holds()

    def plain_parameters(self) -> list[th.Tensor] | None:
        """The parameters of a plain network, found without going through the modules; None of another."""
        if not self.is_plain:
            return None
        # While it is plain, its layers are those that were made.
        return [part for layer in self._plain_layers for part in layer._parameters.values() if part is not None]

    def all_parameters(self) -> list[th.Tensor]:
        """Every parameter once, in PyTorch's order; found quickly while the modules are those that were made."""
        return self._as_made.parameters() if self._as_made.holds() else list(self.parameters())

    def all_buffers(self) -> list[th.Tensor]:
        """Every buffer once, likewise."""
        return self._as_made.buffers() if self._as_made.holds() else list(self.buffers())

    def version(self) -> tuple[Any, ...]:
        """A number that changes when weights are written or replaced; for a modified network, at every call.

        Whoever writes through ``.data``, as SB3's ``polyak_update`` does, leaves PyTorch's own versions as they
        are; that is noticed by the last biases, which every step of an optimiser moves.
        """
        parameters: Iterable[th.Tensor] | None = self.plain_parameters()
        if parameters is None:
            if not (self._as_made.holds() and self._as_made.is_evaluating()):
                # Its values may depend on anything, and hooks must see every call.
                return (object(),)
            parameters = (*self._as_made.parameters(), *self._as_made.buffers())
        biases = self.last_bias.detach().sum().item()
        return (biases, *[(id(part), part._version) for part in parameters])

    def plain_inputs(self, obs: th.Tensor) -> th.Tensor:
        """What the first linear layer of a plain network sees: (B, inputs)."""
        if self.convolutions:
            (layer,) = self.convolutions
            return F.conv2d(obs.float(), layer.weight, layer.bias).relu_().flatten(1)
        inputs = obs.float().flatten(1)
        if "all" in self.scalers:
            inputs = self.scalers["all"](inputs.view_as(obs)).flatten(1)
        return inputs

    @property
    def device(self) -> th.device:
        """Where the first parameter is."""
        first = _first_parameter(self)
        return th.device("cpu") if first is None else first.device

    def train(self, mode: bool = True) -> Self:
        """Put all modules into training or evaluation mode."""
        # SB3 calls this twice per step, and PyTorch's own method takes longer than acting does.
        if not isinstance(mode, bool):
            raise InputError(f"mode must be True or False, not {mode!r}", "mode")
        return self if self._as_made.switch(mode) else super().train(mode)


def _first_parameter(module: nn.Module) -> th.Tensor | None:
    for parameter in module._parameters.values():
        if parameter is not None:
            return parameter
    for child in module._modules.values():
        if child is not None and (found := _first_parameter(child)) is not None:
            return found
    return None
