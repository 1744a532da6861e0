"""Save and load an actor's policy as arrays and JSON values: the actor, and the critic that chooses the hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gymnasium import spaces

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take_mapping
from holdfast.policies.saved_layers import (
    building,
    check_saved_layers,
    check_saved_persistences,
    saved_arguments,
    saved_class,
    saved_tensors,
)
from holdfast.policies.spaces import as_json, space_from, space_state

if TYPE_CHECKING:
    from holdfast.deep.networks.actor_policy import ActorPolicy

__all__ = ["actor_state", "saved_actor"]

_SETTINGS = ("k_max", "persistences", "decision_tolerance", "interrupt_margin", "decision_cost")
_ARCHITECTURES = ("pi", "qf")


def actor_state(algorithm: str, policy: ActorPolicy) -> dict[str, Any]:
    """An actor's policy as arrays and JSON values, with the first critic, which chooses the hold."""
    from stable_baselines3.common.torch_layers import get_actor_critic_arch

    from holdfast.deep.exact.agent_state import as_array

    layers = dict(zip(_ARCHITECTURES, map(list, get_actor_critic_arch(policy.net_arch)), strict=True))
    return {
        "kind": "actor",
        "algorithm": algorithm,
        "policy": type(policy).__name__,
        "arguments": {
            **{name: as_json(getattr(policy, name)) for name in _SETTINGS},
            "net_arch": layers,
            "activation_fn": policy.activation_fn.__name__,
            "normalize_images": policy.normalize_images,
            "features_extractor_class": policy.features_extractor_class.__name__,
            "features_extractor_kwargs": dict(policy.features_extractor_kwargs),
        },
        "observation_space": space_state(policy.observation_space),
        "action_space": space_state(policy.action_space),
        "weights": {
            f"{part}.{name}": as_array(value)
            for part in ("actor", "critic")
            for name, value in getattr(policy, part).state_dict().items()
            if part == "actor" or not name.startswith("qf") or name.startswith("qf0.")
        },
    }


def saved_actor(state: Mapping[str, Any]) -> ActorPolicy:
    """The policy that ``actor_state`` described.

    Args:
        state: The state read from a file.

    Raises:
        ValueError: It is damaged.
    """
    from holdfast.deep.agents.per_sac import PerSAC
    from holdfast.deep.agents.per_td3 import PerTD3
    from holdfast.deep.argument_checks import check_acting, check_bounded

    kind = saved_class(state, [kind for agent in (PerTD3, PerSAC) for kind in agent.policy_aliases.values()])
    saved = saved_arguments(state, (*_SETTINGS, "net_arch", "normalize_images"))
    observations, actions = space_from(state, "observation_space"), space_from(state, "action_space")
    weights = take_mapping(state, "weights")
    _refuse_more_than_there_is(saved, weights, observations, math.prod(actions.shape or ()))
    with building():
        check_bounded(actions)
        assert isinstance(actions, spaces.Box)
        check_acting(saved["decision_tolerance"], saved["interrupt_margin"], saved["decision_cost"])
        policy: ActorPolicy = kind(
            observations,
            actions,
            lambda _: 0.0,
            n_critics=1,
            **{name: value for name, value in saved.items() if name != "k_max" or saved["persistences"] is None},
        )
    parts = {"actor": policy.actor, "critic": policy.critic}
    own = {f"{part}.{name}": value for part, net in parts.items() for name, value in net.state_dict().items()}
    tensors = saved_tensors(weights, own)
    for part, network in parts.items():
        start = f"{part}."
        network.load_state_dict(
            {name.removeprefix(start): tensors[name] for name in own if name.startswith(start)}
        )
    policy.set_training_mode(False)
    return policy


def _refuse_more_than_there_is(
    arguments: Mapping[str, Any], weights: Mapping[str, Any], observations: Any, size: int
) -> None:
    layers = arguments["net_arch"]
    if (
        not isinstance(layers, dict)
        or set(layers) != set(_ARCHITECTURES)
        or not all(isinstance(units, list) for units in layers.values())
    ):
        raise InputError("the saved policy must have the layers of 'pi' and 'qf' as 'net_arch'")
    if type(arguments["normalize_images"]) is not bool:
        raise InputError("the saved policy must have true or false as 'normalize_images'")
    n_heads = check_saved_persistences(arguments)
    # The critic sees the action, too; without it, this is less than there must be.
    stacks = [(1, [None, *layers["pi"], n_heads * size]), (1, [None, *layers["qf"], n_heads])]
    extractor = arguments["features_extractor_class"]
    check_saved_layers(weights, extractor, arguments["features_extractor_kwargs"], observations, stacks)
