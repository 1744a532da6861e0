"""The policy of an actor as arrays and JSON values, and back: its actor and the critic that chooses how long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_array, take_mapping
from holdfast.core.user_code import is_raised_by_holdfast
from holdfast.policies.arguments import ACTIVATIONS
from holdfast.policies.spaces import space_from, space_state

if TYPE_CHECKING:
    from holdfast.deep.networks.actor_policy import ActorPolicy

__all__ = ["actor_state", "saved_actor"]

_SETTINGS = ("k_max", "persistences", "decision_tolerance", "interrupt_margin", "decision_cost")
_ARCHITECTURES = ("pi", "qf")


def actor_state(algorithm: str, policy: ActorPolicy) -> dict[str, Any]:
    """A policy with an actor as arrays and JSON values; of the critics the first, which is the one that acts."""
    from stable_baselines3.common.torch_layers import get_actor_critic_arch

    from holdfast.deep.exact.agent_state import as_array

    layers = dict(zip(_ARCHITECTURES, map(list, get_actor_critic_arch(policy.net_arch)), strict=True))
    return {
        "kind": "actor",
        "algorithm": algorithm,
        "policy": type(policy).__name__,
        "arguments": {
            **{name: _as_json(getattr(policy, name)) for name in _SETTINGS},
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


def saved_actor(state: Mapping[str, Any], extractors: Mapping[str, Any]) -> ActorPolicy:
    """The policy that ``actor_state`` described.

    Args:
        state: What was read from a file.
        extractors: The features extractors that there are, by name.

    Raises:
        ValueError: It is damaged.
    """
    import torch

    from holdfast.deep.argument_checks import check_acting, check_bounded
    from holdfast.deep.exact.agent_state import as_array
    from holdfast.deep.networks.policies import ActorCnnPolicy, ActorMlpPolicy, ActorMultiInputPolicy

    classes = {kind.__name__: kind for kind in (ActorMlpPolicy, ActorCnnPolicy, ActorMultiInputPolicy)}
    kind = classes.get(str(take(state, "policy")))
    if kind is None:
        raise InputError(f"the saved policy must be one of {', '.join(classes)}")
    saved = dict(take_mapping(state, "arguments"))
    known = {
        *_SETTINGS,
        "net_arch",
        "activation_fn",
        "normalize_images",
        "features_extractor_class",
        "features_extractor_kwargs",
    }
    if set(saved) != known:
        raise InputError(f"the saved policy must have the arguments {', '.join(sorted(known))}")
    extractor = extractors.get(str(saved.pop("features_extractor_class")))
    if extractor is None or str(saved["activation_fn"]) not in ACTIVATIONS:
        raise InputError("the saved policy must have a known activation_fn and features_extractor_class")
    saved["activation_fn"] = getattr(torch.nn, saved["activation_fn"])
    observations, actions = space_from(state, "observation_space"), space_from(state, "action_space")
    weights = take_mapping(state, "weights")
    try:
        check_bounded(actions)
        check_acting(saved["decision_tolerance"], saved["interrupt_margin"], saved["decision_cost"])
        _refuse_more_than_there_is(saved, weights, math.prod(actions.shape or ()))
        policy = kind(
            observations,
            actions,
            lambda _: 0.0,
            features_extractor_class=extractor,
            n_critics=1,
            **{name: value for name, value in saved.items() if name != "k_max" or saved["persistences"] is None},
        )
    except Exception as error:
        if not isinstance(error, InputError) and is_raised_by_holdfast(error):
            raise
        # What PyTorch and SB3 say of spaces and arguments that they cannot use.
        raise InputError(f"the saved policy cannot be built: {' '.join(str(error).split())[:200]}") from None
    parts = {"actor": policy.actor, "critic": policy.critic}
    own = {f"{part}.{name}": value for part, net in parts.items() for name, value in net.state_dict().items()}
    if set(own) != set(weights):
        raise InputError("the saved policy must have the weights of its layers, and no others")
    arrays = {
        name: take_array(weights, name, as_array(value).dtype, tuple(value.shape)) for name, value in own.items()
    }
    for part, network in parts.items():
        named = {
            name.removeprefix(f"{part}."): array for name, array in arrays.items() if name.startswith(f"{part}.")
        }
        network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in named.items()})
    policy.set_training_mode(False)
    return policy


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _refuse_more_than_there_is(arguments: Mapping[str, Any], weights: Mapping[str, Any], size: int) -> None:
    """Layers can be no larger than the weights that are there for them: nothing else is to be allocated."""
    wrong = InputError("the saved policy must have the weights of its layers, and no others")
    layers, kwargs = arguments["net_arch"], arguments["features_extractor_kwargs"]
    if not isinstance(layers, dict) or set(layers) != set(_ARCHITECTURES) or not isinstance(kwargs, dict):
        raise InputError("the saved policy must have the layers of 'pi' and 'qf' as 'net_arch'")
    if type(arguments["normalize_images"]) is not bool:
        raise InputError("the saved policy must have true or false as 'normalize_images'")
    largest = sum(getattr(array, "size", 0) for array in weights.values())
    numbers, k_max = arguments["persistences"], arguments["k_max"]
    if type(k_max) is not int or k_max < 1 or not (numbers is None or isinstance(numbers, list)):
        raise wrong
    if numbers is not None and (not numbers or numbers[-1] != k_max):
        raise InputError("the saved policy must have its longest persistence as 'k_max'")
    n_heads = k_max if numbers is None else len(numbers)
    for units, outputs in ((layers["pi"], n_heads * size), (layers["qf"], n_heads)):
        if not isinstance(units, list) or not all(type(width) is int and width >= 1 for width in units):
            raise wrong
        if any(one * other > largest for one, other in pairwise([1, *units, outputs])):
            raise wrong
    if not all(type(value) in (int, float, bool) and 64 * value <= largest for value in kwargs.values()):
        raise wrong
