"""A policy on its own, for use without training: policy.json and policy.safetensors; reading executes nothing."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.checks import check_persistences
from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_array, take_integer, take_mapping
from holdfast.core.user_code import is_raised_by_holdfast
from holdfast.files import Entry, find_folder, read_state, replace_folder, write_state
from holdfast.policies.actor_files import actor_state, saved_actor
from holdfast.policies.actors import NetworkActor, TableActor
from holdfast.policies.algorithms import find_algorithm
from holdfast.policies.arguments import ACTIVATIONS
from holdfast.policies.evaluation import Actor
from holdfast.policies.spaces import space_from, space_state

if TYPE_CHECKING:
    from holdfast.deep.networks.holding_policy import HoldingPolicy

__all__ = [
    "FOLDER",
    "actor_of",
    "load_policy",
    "network_state",
    "read_policy",
    "table_state",
    "write_policy",
]

FOLDER = "policy"
FORMAT = 1

_DOCUMENT = "policy.json"
_PLACES = {"policy.safetensors": ()}
_LARGEST = 2**30
"""Bytes that the arrays of a policy may have."""

_LONGEST = 2**31
"""Steps for which no policy holds an action."""

_NETWORK_ARGUMENTS = ("valued", "normalize_images", "net_arch")
"""What a policy's file holds beside the arguments of an agent that are its policy's."""


_UNSAID = {
    "valued": "options",
    "persistences": None,
    "layer_norm": False,
    "average_rate": 0.0,
    "decision_cost": 0.0,
}
"""What policies are that were saved before they could be anything else."""


def write_policy(run: Path | Entry, state: Mapping[str, Any]) -> None:
    """Replace the policy of a run by ``state``, which ``network_state`` or ``table_state`` made."""
    with replace_folder((run if isinstance(run, Entry) else Entry(run)) / FOLDER) as unfinished:
        write_state(unfinished, {"format": FORMAT, **state}, _PLACES, _DOCUMENT)


def load_policy(run: str | os.PathLike[str]) -> Actor:
    """The best policy of a run: ``decide(observation)`` gives action, hold and values.

    Args:
        run: The run's folder, or the folder of a policy in it.

    Raises:
        ValueError: There is none, or it is damaged.
    """
    return actor_of(read_policy(Path(run)))


def read_policy(path: Path) -> dict[str, Any]:
    """What ``write_policy`` wrote, in a run's folder or in the policy's own.

    Raises:
        ValueError: There is none, or it is damaged.
    """
    named = Entry(path)
    folder = named if (named / _DOCUMENT).is_there else find_folder(named / FOLDER)
    if folder is None:
        if path.is_dir():
            raise InputError(f"{path} has no policy yet: a run's first evaluation, or its end, makes one")
        if path.exists():
            raise InputError(
                f"{str(path)!r} must be the folder of a run of holdfast train, and is a file "
                "(a model that was saved by Stable-Baselines3's save is read with PerDQN.load)"
            )
        raise InputError(f"there is no folder {str(path)!r}")
    state = read_state(folder, _PLACES, _DOCUMENT, _LARGEST)
    found = take_integer(state, "format")
    if found != FORMAT:
        raise InputError(f"{folder} has format {found}, and this version of holdfast reads {FORMAT}")
    return state


def actor_of(state: Mapping[str, Any]) -> Actor:
    """The policy that ``state`` describes.

    Raises:
        ValueError: It is damaged.
    """
    kind = take(state, "kind")
    if kind == "table":
        return _table_actor(state)
    if kind == "network":
        return _network_actor(state)
    if kind == "actor":
        return NetworkActor(saved_actor(state, _extractors()))
    raise InputError("the saved policy must be a table, a network or an actor")


# Tables ---------------------------------------------------------------------------------------------------------


def table_state(
    algorithm: str, arguments: Mapping[str, Any], tables: Mapping[str, Any], first_state: int, first_action: int
) -> dict[str, Any]:
    """A tabular policy as arrays and JSON values."""
    return {
        "kind": "table",
        "algorithm": algorithm,
        "arguments": dict(arguments),
        "first_state": first_state,
        "first_action": first_action,
        "tables": {name: table.copy() for name, table in tables.items()},
    }


def _table_actor(state: Mapping[str, Any]) -> TableActor:
    import numpy as np

    from holdfast.policies.arguments import as_python

    algorithm = find_algorithm(take(state, "algorithm"))
    if algorithm.is_deep:
        raise InputError(f"the saved policy must be of a network for {algorithm.name}")
    try:
        arguments = algorithm.complete(take_mapping(state, "arguments"))
        learner = algorithm.load()(**as_python(arguments), **algorithm.stands_for)
    except InputError as error:
        raise InputError(f"the saved policy is damaged: {error}") from None
    saved = take_mapping(state, "tables")
    tables = {
        name: take_array(saved, name, np.float64, (None, None, depth)).copy()
        for name, depth in learner.table_depths().items()
    }
    if len({table.shape[:2] for table in tables.values()}) != 1 or 0 in tables["q"].shape:
        raise InputError("the saved policy must have tables of the same states and actions")
    firsts = (take(state, "first_state"), take(state, "first_action"))
    if not all(type(first) is int for first in firsts):
        raise InputError("the saved policy must have whole numbers as 'first_state' and 'first_action'")
    return TableActor(learner.policy_of(tables), *firsts)


# Networks -------------------------------------------------------------------------------------------------------


def network_state(algorithm: str, policy: HoldingPolicy) -> dict[str, Any]:
    """The policy of a network as arrays and JSON values.

    Raises:
        ValueError: It is of a class that is not holdfast's own: a file cannot say what that does.
    """
    from holdfast.deep.networks.actor_policy import ActorPolicy

    _check_parts(policy)
    if isinstance(policy, ActorPolicy):
        return actor_state(algorithm, policy)
    return _value_network_state(algorithm, policy)


def _check_parts(policy: Any) -> None:
    """InputError for parts that a file cannot say the meaning of."""
    from holdfast.deep.networks import policies

    extractors = _extractors()
    if type(policy).__name__ not in policies.__all__ or type(policy).__module__ != policies.__name__:
        raise InputError(
            f"policy must be MlpPolicy, CnnPolicy or MultiInputPolicy to be saved, not {type(policy)}"
        )
    if policy.features_extractor_class not in extractors.values():
        raise InputError(
            f"features_extractor_class must be one of {', '.join(extractors)} for the policy to be saved, "
            f"not {policy.features_extractor_class.__name__}"
        )
    if policy.activation_fn.__name__ not in ACTIVATIONS:
        raise InputError(f"activation_fn must be one of {', '.join(ACTIVATIONS)} for the policy to be saved")


def _value_network_state(algorithm: str, policy: Any) -> dict[str, Any]:
    from holdfast.deep.exact.agent_state import as_array

    return {
        "kind": "network",
        "algorithm": algorithm,
        "policy": type(policy).__name__,
        "arguments": {
            **{name: _as_json(getattr(policy, name)) for name in _argument_names()},
            # What is saved are the averaged weights themselves.
            "average_rate": 0.0,
            "activation_fn": policy.activation_fn.__name__,
            "features_extractor_class": policy.features_extractor_class.__name__,
            "features_extractor_kwargs": dict(policy.features_extractor_kwargs),
        },
        "observation_space": space_state(policy.observation_space),
        "action_space": space_state(policy.action_space),
        "weights": {name: as_array(value) for name, value in policy.averaged_net.state_dict().items()},
    }


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _argument_names() -> tuple[str, ...]:
    from holdfast.deep.arguments import POLICY_ARGUMENTS

    return (*_NETWORK_ARGUMENTS, *(argument.name for argument in POLICY_ARGUMENTS))


def _network_actor(state: Mapping[str, Any]) -> NetworkActor:
    import torch
    from gymnasium.spaces import Discrete

    from holdfast.deep.argument_checks import check_acting
    from holdfast.deep.exact.agent_state import as_array
    from holdfast.deep.networks.policies import CnnPolicy, MlpPolicy, MultiInputPolicy

    classes = {kind.__name__: kind for kind in (MlpPolicy, CnnPolicy, MultiInputPolicy)}
    kind = classes.get(str(take(state, "policy")))
    if kind is None:
        raise InputError(f"the saved policy must be one of {', '.join(classes)}")
    saved = {**_UNSAID, **take_mapping(state, "arguments")}
    known = {
        *_argument_names(),
        "activation_fn",
        "features_extractor_class",
        "features_extractor_kwargs",
    }
    if set(saved) != known:
        raise InputError(f"the saved policy must have the arguments {', '.join(sorted(known))}")
    extractor = _extractors().get(str(saved.pop("features_extractor_class")))
    if extractor is None or str(saved["activation_fn"]) not in ACTIVATIONS:
        raise InputError("the saved policy must have a known activation_fn and features_extractor_class")
    saved["activation_fn"] = getattr(torch.nn, saved["activation_fn"])
    observations, actions = space_from(state, "observation_space"), space_from(state, "action_space")
    if not isinstance(actions, Discrete):
        raise InputError("the saved policy must have discrete actions")
    weights = take_mapping(state, "weights")
    seen = {"FlattenExtractor": _flat_size, "CombinedExtractor": _size_without_pictures}.get(extractor.__name__)
    _refuse_more_than_there_is(saved, weights, seen(observations) if seen else 0, int(actions.n))
    try:
        check_acting(saved["decision_tolerance"], saved["interrupt_margin"], saved["decision_cost"])
        policy = kind(observations, actions, lambda _: 0.0, features_extractor_class=extractor, **saved)
    except Exception as error:
        if not isinstance(error, InputError) and is_raised_by_holdfast(error):
            raise
        # What PyTorch and SB3 say of spaces and arguments that they cannot use.
        raise InputError(f"the saved policy cannot be built: {' '.join(str(error).split())[:200]}") from None
    own = policy.q_net.state_dict()
    if set(own) != set(weights):
        raise InputError("the saved policy must have the weights of its layers, and no others")
    policy.q_net.load_state_dict(
        {
            name: torch.from_numpy(take_array(weights, name, as_array(value).dtype, tuple(value.shape)).copy())
            for name, value in own.items()
        }
    )
    policy.set_training_mode(False)
    return NetworkActor(policy)


def _refuse_more_than_there_is(
    arguments: Mapping[str, Any], weights: Mapping[str, Any], n_features: int, n_actions: int
) -> None:
    """Layers can be no larger than the weights that are there for them: nothing else is to be allocated.

    Args:
        arguments: Of the policy.
        weights: By name.
        n_features: Numbers that the first layer sees at least; 0 behind a convolution alone.
        n_actions: Actions.
    """
    from holdfast.deep.arguments import POLICY_ARGUMENTS

    largest = sum(getattr(array, "size", 0) for array in weights.values())
    _check_levers(arguments)
    trunk, head, k_max = arguments["net_arch"], arguments["head_arch"], arguments["k_max"]
    if not all(isinstance(part, list) and all(type(units) is int for units in part) for part in (trunk, head)):
        raise InputError("the saved policy must have lists of whole numbers as 'net_arch' and 'head_arch'")
    truths = (*(found.name for found in POLICY_ARGUMENTS if found.annotation == "bool"), "normalize_images")
    if not all(type(arguments[name]) is bool for name in truths):
        raise InputError(f"the saved policy must have true or false as {' and '.join(map(repr, truths))}")
    kwargs = arguments["features_extractor_kwargs"]
    if not isinstance(kwargs, dict) or not all(type(value) in (int, float, bool) for value in kwargs.values()):
        raise InputError("the saved policy must have numbers as 'features_extractor_kwargs'")
    if type(k_max) is not int or k_max < 1 or len(trunk) + len(head) > len(weights):
        raise InputError("the saved policy must have the weights of its layers, and no others")
    widths = [n_features or 1, *trunk]
    products = [one * other for one, other in pairwise(widths)]
    # The heads: K with an output for each action; or one for the actions and one with an output for each skip.
    n_heads = k_max if arguments["persistences"] is None else len(arguments["persistences"])
    heads = ((n_heads, n_actions),) if arguments["valued"] == "options" else ((1, n_actions), (1, k_max))
    for number, outputs in heads:
        products += [number * one * other for one, other in pairwise([widths[-1], *head, outputs])]
    if kwargs:
        # A convolution has 64 channels at least before its last layer.
        products += [64 * value for value in kwargs.values()]
    sizes = (*widths, *head, n_actions)
    if any(units < 1 for units in sizes) or any(product > largest for product in products):
        raise InputError("the saved policy must have the weights of its layers, and no others")


def _check_levers(arguments: Mapping[str, Any]) -> None:
    from holdfast.deep.argument_checks import check_state_value
    from holdfast.deep.arguments import POLICY_ARGUMENTS

    for name in (argument.name for argument in POLICY_ARGUMENTS if argument.check is check_state_value):
        if type(arguments[name]) is not bool and arguments[name] not in ("heads", "options"):
            raise InputError(f"the saved policy must have true, false, 'heads' or 'options' as {name!r}")
    persistences = arguments["persistences"]
    if arguments["average_rate"] != 0.0:
        raise InputError("the saved policy must have 0 as 'average_rate'")
    if persistences is None:
        return
    if not isinstance(persistences, list) or arguments["valued"] != "options":
        raise InputError("the saved policy must have a list of whole numbers as 'persistences', or none")
    try:
        numbers = check_persistences("persistences", persistences)
    except InputError as error:
        raise InputError(f"the saved policy is damaged: {error}") from None
    if numbers is None or numbers[-1] != arguments["k_max"] or numbers[-1] >= _LONGEST:
        raise InputError(f"the saved policy must have its longest persistence, below {_LONGEST}, as 'k_max'")


def _flat_size(space: Any) -> int:
    """Numbers that a network sees of an observation."""
    from gymnasium import spaces

    match space:
        case spaces.Discrete():
            return int(space.n)
        case spaces.MultiDiscrete():
            return int(space.nvec.sum())
        case spaces.Dict():
            return sum(map(_flat_size, space.spaces.values()))
    return math.prod(space.shape)


def _size_without_pictures(space: Any) -> int:
    """Numbers that a network sees of a dictionary, beside what a convolution makes of pictures."""
    parts = getattr(space, "spaces", {}).values()
    return sum(_flat_size(part) for part in parts if len(part.shape or ()) != 3)


def _extractors() -> dict[str, Any]:
    from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor, NatureCNN

    from holdfast.deep.networks.option_network import ConvFeatures
    from holdfast.deep.networks.small_convolutions import SmallConvolutions

    kinds = (FlattenExtractor, NatureCNN, CombinedExtractor, ConvFeatures, SmallConvolutions)
    return {kind.__name__: kind for kind in kinds}
