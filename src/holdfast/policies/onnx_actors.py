"""An actor's policy as an ONNX graph: each head's proposal, the critic's value of it, and the decision rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from holdfast.core.errors import InputError
from holdfast.policies.onnx_graph import OUTPUTS, Graph, Tensor
from holdfast.policies.onnx_policies import feature_nodes, layer_nodes, space_inputs

if TYPE_CHECKING:
    from holdfast.deep.networks.actor_policy import ActorPolicy

__all__ = ["actor_graph"]


def actor_graph(policy: ActorPolicy) -> Graph:
    """A policy with an actor, from observations to action, hold and values (n, 1, K).

    Raises:
        ValueError: It has a layer or observations that holdfast's own networks do not have.
    """
    from holdfast.deep.networks.actor_networks import GaussianActor, OptionActor, OptionCritic

    actor, critic = policy.actor, policy.critic
    if type(actor) not in (OptionActor, GaussianActor) or type(critic) is not OptionCritic:
        raise InputError(f"a policy with the network {type(actor).__name__} cannot be exported")
    space, n_heads, size = policy.action_space, len(policy.durations), actor.action_dim
    action, hold, values = OUTPUTS
    inputs = space_inputs(policy.observation_space)
    outputs = [
        Tensor(action, "float32", space.shape),
        Tensor(hold, "int64", ()),
        Tensor(values, "float32", (1, n_heads)),
    ]
    graph = Graph(list(inputs.values()), outputs)
    proposed = layer_nodes(graph, actor.proposing_layers, feature_nodes(graph, actor, inputs))
    proposals = graph.add("Reshape", proposed, graph.constant([-1, n_heads, size], np.int64))
    worth = _worth(graph, policy, feature_nodes(graph, critic, inputs), proposals)
    table = graph.add("Reshape", worth, graph.constant([-1, 1, n_heads], np.int64))
    durations = policy.durations.tolist()
    _, chosen = graph.choose(table, 1, n_heads, policy.decision_tolerance, durations)
    is_chosen = graph.add("Equal", chosen, graph.constant(np.asarray(durations, dtype=np.int64)))
    mask = graph.add("Unsqueeze", is_chosen, graph.constant([2], np.int64))
    nothing = graph.constant(0.0, np.float32)
    kept = graph.add("Where", mask, proposals, nothing)
    # In this operator set, the axes are an input.
    followed = graph.add("ReduceSum", kept, graph.constant([1], np.int64), keepdims=0)
    low, width = space.low.astype(np.float32).ravel(), (space.high - space.low).astype(np.float32).ravel()
    half = graph.add(
        "Mul", graph.constant(0.5, np.float32), graph.add("Add", followed, graph.constant(1.0, np.float32))
    )
    taken = graph.add("Add", graph.constant(low), graph.add("Mul", half, graph.constant(width)))
    graph.add("Reshape", taken, graph.constant([-1, *space.shape], np.int64), output=action)
    graph.add("Squeeze", chosen, graph.constant([1], np.int64), output=hold)
    graph.add("Identity", table, output=values)
    return graph


def _worth(graph: Graph, policy: ActorPolicy, features: str, proposals: str) -> str:
    """(n, K) Q_1(s, μ_k(s), k)."""
    n_heads = len(policy.durations)
    row = graph.add("Unsqueeze", features, graph.constant([1], np.int64))
    repeated = graph.add("Tile", row, graph.constant([1, n_heads, 1], np.int64))
    seen = graph.add("Concat", repeated, proposals, axis=2)
    critic = policy.critic.q_networks[0]
    width = critic[0].in_features  # type: ignore[index]
    found = layer_nodes(graph, critic, graph.add("Reshape", seen, graph.constant([-1, width], np.int64)))
    flat = graph.add("Reshape", found, graph.constant([-1, n_heads * n_heads], np.int64))
    own = np.arange(n_heads, dtype=np.int64) * (n_heads + 1)
    return graph.add("Gather", flat, graph.constant(own), axis=1)
