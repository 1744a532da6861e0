"""Policies as ONNX graphs: from observations to action, hold and values.

PyTorch's exporter is not used: the layers are few and known, the rule must treat ties the same way for any number
of observations, and a table does not involve PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.core.errors import InputError
from holdfast.policies.onnx_graph import OUTPUTS, Graph, Tensor

if TYPE_CHECKING:
    from holdfast.deep.networks.option_policy import OptionPolicy
    from holdfast.deep.networks.stacked_heads import StackedHeads
    from holdfast.tabular import Policy

__all__ = ["feature_nodes", "layer_nodes", "network_graph", "space_inputs", "table_graph"]


def _outputs(dtype: str, n_actions: int, k_max: int, action_shape: tuple[int, ...] = ()) -> list[Tensor]:
    action, hold, values = OUTPUTS
    return [
        Tensor(action, "int64", action_shape),
        Tensor(hold, "int64", ()),
        Tensor(values, dtype, (n_actions, k_max)),
    ]


# Tables ---------------------------------------------------------------------------------------------------------


def table_graph(policy: Policy, first_state: int, taken: NDArray[Any]) -> Graph:
    """A tabular policy: a lookup of each state's option.

    Args:
        policy: The policy.
        first_state: Number of the first state.
        taken: (A, ...) each action as the environment takes it.
    """
    n_states, n_actions, k_max = policy.table.shape
    graph = Graph([Tensor("observation", "int64", ())], _outputs("float64", n_actions, k_max, taken.shape[1:]))
    actions, holds = policy.options()
    state = graph.add("Sub", "observation", graph.constant(first_state, np.int64))
    state = graph.checked_index(state, n_states)
    for name, table in zip(OUTPUTS, (taken.astype(np.int64)[actions], holds, policy.table), strict=True):
        graph.add("Gather", graph.constant(table), state, output=name)
    return graph


# Networks -------------------------------------------------------------------------------------------------------


def network_graph(policy: OptionPolicy) -> Graph:
    """A network's policy: preprocessing of observations, layers and decision rule.

    Raises:
        ValueError: It has a layer or observations that holdfast's own networks do not have.
    """
    from holdfast.deep.networks.option_network import OptionQNetwork

    network = policy.averaged_net
    if type(network) is not OptionQNetwork:
        raise InputError(f"a policy with the network {type(network).__name__} cannot be exported")
    n_actions, k_max = policy.choices.n, len(policy.durations)
    inputs = space_inputs(policy.observation_space)
    graph = Graph(list(inputs.values()), _outputs("float32", n_actions, k_max, policy.action_space.shape or ()))
    features = layer_nodes(graph, network.trunk, feature_nodes(graph, network, inputs))
    values = _heads(graph, network.heads, features)
    graph.decide(values, policy.choices.all_taken(), k_max, policy.decision_tolerance, policy.durations.tolist())
    return graph


def space_inputs(space: spaces.Space[Any]) -> dict[str, Tensor]:
    """The inputs for observations of a space: one per key of a dictionary, otherwise one under the key "all".

    Raises:
        ValueError: Such a space cannot be exported.
    """
    if not isinstance(space, spaces.Dict):
        return {"all": _input(space, "observation")}
    # An input cannot have the name of an output; keys never contain a dot.
    names = {key: f"observation.{key}" if key in OUTPUTS else key for key in space.spaces}
    return {key: _input(part, names[key]) for key, part in space.spaces.items()}


def _input(space: spaces.Space[Any], name: str) -> Tensor:
    if isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return Tensor(name, np.dtype(space.dtype).name, space.shape or ())
    raise InputError(f"a policy with observations of the space {type(space).__name__} cannot be exported")


def feature_nodes(graph: Graph, network: Any, inputs: Mapping[str, Tensor]) -> str:
    """(n, features) the extracted features, input of the network's other layers."""
    extractor: Any = network.features_extractor
    space: Any = network.observation_space
    parts = space.spaces if isinstance(space, spaces.Dict) else {"all": space}
    found = []
    for key, part in getattr(extractor, "extractors", {"all": extractor}).items():
        if key not in parts:
            raise InputError(f"a policy with the layer {type(part).__name__} for a dictionary cannot be exported")
        seen = _numbers(graph, parts[key], inputs[key].name, network.normalize_images)
        scalers = getattr(network, "scalers", {})
        if key in scalers:
            scaler = scalers[key]
            seen = graph.add("Sub", seen, graph.constant(_array(scaler.centre)))
            seen = graph.add("Div", seen, graph.constant(_array(scaler.half_width)))
        found.append(layer_nodes(graph, part, seen))
    return graph.add("Concat", *found, axis=1)


def _numbers(graph: Graph, space: spaces.Space[Any], seen: str, normalize_images: bool) -> str:
    """SB3's preprocessing: whole numbers become one-hot vectors, images are scaled to 0..1."""
    from stable_baselines3.common.preprocessing import is_image_space

    match space:
        case spaces.Discrete():
            return _one_hot(graph, seen, int(space.n))
        case spaces.MultiDiscrete():
            parts = []
            for column, n in enumerate(space.nvec.tolist()):
                one = graph.add("Gather", seen, graph.constant(column, np.int64), axis=1)
                parts.append(_one_hot(graph, one, n))
            return graph.add("Concat", *parts, axis=1)
    numbers = graph.cast(seen, np.float32)
    if normalize_images and is_image_space(space):
        return graph.add("Div", numbers, graph.constant(255.0, np.float32))
    return numbers


def _one_hot(graph: Graph, index: str, n: int) -> str:
    """(n,) → (n, N)."""
    index = graph.checked_index(graph.cast(index, np.int64), n)
    column = graph.add("Unsqueeze", index, graph.constant([1], np.int64))
    return graph.cast(graph.add("Equal", column, graph.constant(np.arange(n, dtype=np.int64))), np.float32)


# Layers ---------------------------------------------------------------------------------------------------------


def layer_nodes(graph: Graph, module: Any, seen: str) -> str:
    """Apply a layer, or a sequence of layers, to ``seen``."""
    match type(module).__name__:
        case "Sequential":
            for layer in module:
                seen = layer_nodes(graph, layer, seen)
            return seen
        case "NatureCNN":
            return layer_nodes(graph, module.linear, layer_nodes(graph, module.cnn, seen))
        case "ConvFeatures" | "SmallConvolutions":
            return layer_nodes(graph, module.layers, seen)
        case "Flatten" | "FlattenExtractor":
            return graph.add("Flatten", seen, axis=1)
        case "Linear":
            weights = [graph.constant(_array(part)) for part in (module.weight, module.bias)]
            return graph.add("Gemm", seen, *weights, transB=1)
        case "LayerNorm":
            weights = [graph.constant(_array(part)) for part in (module.weight, module.bias)]
            return graph.add("LayerNormalization", seen, *weights, axis=-1, epsilon=float(module.eps))
        case "Conv2d":
            weights = [graph.constant(_array(part)) for part in (module.weight, module.bias)]
            return graph.add("Conv", seen, *weights, strides=list(module.stride))
    return _activated(graph, module, seen)


def _activated(graph: Graph, module: Any, seen: str) -> str:
    add = graph.add
    match type(module).__name__:
        case "ReLU":
            return add("Relu", seen)
        case "Tanh":
            return add("Tanh", seen)
        case "ELU":
            return add("Elu", seen, alpha=float(module.alpha))
        case "LeakyReLU":
            return add("LeakyRelu", seen, alpha=float(module.negative_slope))
        case "SiLU":
            return add("Mul", seen, add("Sigmoid", seen))
        case "Mish":
            return add("Mul", seen, add("Tanh", add("Softplus", seen)))
        case "GELU":
            one, half, root = (graph.constant(number, np.float32) for number in (1.0, 0.5, math.sqrt(2.0)))
            return add("Mul", add("Mul", seen, half), add("Add", add("Erf", add("Div", seen, root)), one))
    raise InputError(f"a policy with the layer {type(module).__name__} cannot be exported")


def _heads(graph: Graph, heads: StackedHeads, features: str) -> str:
    """(n, A, K) the values."""
    from holdfast.deep.networks.stacked_heads import StackedLinear

    layers: list[Any] = list(heads.layers)
    for layer in layers:
        if type(layer) is not StackedLinear:
            raise InputError(f"a policy with the layer {type(layer).__name__} cannot be exported")
    first, *others = layers
    k_max, width, _ = first.weight.shape
    weights = [graph.constant(_array(part.flatten(0, 1))) for part in (first.weight, first.bias)]
    values = graph.add("Gemm", features, *weights, transB=1)
    values = graph.add("Reshape", values, graph.constant([0, k_max, width], np.int64))
    values = graph.add("Transpose", values, perm=[1, 0, 2])
    for layer in others:
        values = _activated(graph, heads.activation, values)
        values = graph.add("MatMul", values, graph.constant(_array(layer.weight.transpose(1, 2))))
        values = graph.add("Add", values, graph.constant(_array(layer.bias.unsqueeze(1))))
    if heads.state_value:
        values = _joined(graph, heads, values)
    return graph.add("Transpose", values, perm=[1, 2, 0])


def _joined(graph: Graph, heads: StackedHeads, outputs: str) -> str:
    """State value and advantages added up, (K, n, A), as ``StackedHeads.joined`` does."""
    if heads.state_value == "heads":
        state_value, advantages = _slice(graph, outputs, 2, 0, 1), _slice(graph, outputs, 2, 1, 2**31)
        axes = [2]
    else:
        last, advantages = (
            _slice(graph, outputs, 0, heads.n_heads, 2**31),
            _slice(graph, outputs, 0, 0, heads.n_heads),
        )
        state_value = graph.add("ReduceMean", last, axes=[2], keepdims=1)
        axes = [0, 2]
    mean = graph.add("ReduceMean", advantages, axes=axes, keepdims=1)
    return graph.add("Sub", graph.add("Add", state_value, advantages), mean)


def _slice(graph: Graph, values: str, axis: int, begin: int, end: int) -> str:
    return graph.add("Slice", values, *(graph.constant([number], np.int64) for number in (begin, end, axis)))


def _array(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy()
