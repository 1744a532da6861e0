"""When an update may take a short cut: kept targets, gradients by hand, one kernel for the optimiser.

What training computes is what the plain path computes: autograd, the optimiser's own step, targets from networks
that are asked. A short cut gives the same numbers for less, and is taken only while nobody has changed or watches
what it goes around, which ``NetworkAsMade`` knows of a network. ``with plain_path():`` takes none of them, except
that the forward pass of a plain network skips the calls of its modules there too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeGuard

import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor
from torch import nn
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer

from holdfast.core.errors import InputError

if TYPE_CHECKING:
    from holdfast.deep.agents.per_dqn import OptionValueDQN
    from holdfast.deep.replay.views import OptionBatch

__all__ = [
    "NetworkAsMade",
    "UnchangedModules",
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
    """Inside, updates go the plain path: gradients by autograd, the optimiser's own step, no kept targets."""
    global _closed
    _closed += 1
    try:
        yield
    finally:
        _closed -= 1


def can_keep_targets(k_max: int, normalizer: Any) -> bool:
    """Whether what the target network says of an observation is worth keeping until the network changes.

    One view gains nothing by it, and what a training VecNormalize says of an observation changes.
    """
    return not _closed and k_max > 1 and normalizer is None


def can_pass_by_hand(parameters: list[th.Tensor] | None, observations: Any) -> bool:
    """Whether the gradients of a plain network can be written down instead of asked of autograd.

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
    """Whether a plain network's values may come from compiled code, which knows numbers of 32 bits on the CPU.

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

    It knows draws that all views share, and observations that are as the replay has them.
    """
    if not batch.is_shared or agent._vec_normalize_env is not None:
        return None
    parameters = agent.q_net.plain_parameters()
    if can_run_compiled(parameters, batch.observations) and can_pass_by_hand(parameters, batch.observations):
        return parameters
    return None


def can_step_in_one_kernel(optimizer: th.optim.Optimizer) -> bool:
    """Whether the optimiser is a fused Adam on the CPU that nobody watches."""
    group = optimizer.param_groups[0]
    return (
        not _closed
        and type(optimizer) is th.optim.Adam
        and len(optimizer.param_groups) == 1
        and bool(group.get("fused"))
        and not group["amsgrad"]
        and not group.get("decoupled_weight_decay", False)
        and not isinstance(group["lr"], th.Tensor)
        # Schedulers and users watch the steps.
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
        """Whether all modules are those that were made, do what their classes do, and nobody watches them.

        Modules that were added, replaced, taken out, wrapped or parametrised are noticed, and so is every hook on
        one of them or on all modules there are. What the parameters are is for the caller to look at.
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
        """Every parameter once, in PyTorch's order, without the price of ``nn.Module.parameters``."""
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
        """Put all modules into training or evaluation mode, without the price of ``nn.Module.train``.

        Returns:
            Whether those are all; if not, PyTorch's own way is the one to take.
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
    """A network that knows whether it is as it was made, and what may go around its modules then.

    A subclass makes ``trunk_layers`` and its heads, then calls ``_heads_are_made``.

    Attributes:
        trunk_layers: The linear layers of the trunk as it was made, each with its normalisation or None.
        activation_fn: Between the layers.
        scalers: What scales the observations, if anything does.
    """

    features_extractor: BaseFeaturesExtractor
    trunk_layers: tuple[tuple[nn.Linear, nn.LayerNorm | None], ...]
    activation_fn: type[nn.Module]
    scalers: nn.ModuleDict
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
        in_trunk = (layer for pair in self.trunk_layers for layer in pair if layer is not None)
        self._plain_layers = (*in_trunk, *self.head_layers())
        self._was_made_plain = (
            is_known_class
            and isinstance(self.observation_space, spaces.Box)
            and not is_image_space(self.observation_space)
            and type(self.features_extractor) is FlattenExtractor
            and self.activation_fn is nn.ReLU
        )

    @property
    def is_plain(self) -> bool:
        """Whether it maps vectors through linear layers, norms and ReLUs that nobody has changed or watches."""
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
        """Changes when weights are written or replaced; that of a network that is not as it was made, always.

        Whoever writes through ``.data``, as SB3's ``polyak_update`` does, leaves PyTorch's own versions as they
        are; that is noticed by the last biases, which every step of an optimiser moves.
        """
        parameters: Iterable[th.Tensor] | None = self.plain_parameters()
        if parameters is None:
            if not (self._as_made.holds() and self._as_made.is_evaluating()):
                # Its answers may depend on anything, and whoever watches is to see each of them.
                return (object(),)
            parameters = (*self._as_made.parameters(), *self._as_made.buffers())
        biases = self.last_bias.detach().sum().item()
        return (biases, *[(id(part), part._version) for part in parameters])

    def plain_inputs(self, obs: th.Tensor) -> th.Tensor:
        """What the first layer of a plain network sees: (B, inputs)."""
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
        # SB3 asks for this twice per step, and PyTorch's own way takes longer than acting does.
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
