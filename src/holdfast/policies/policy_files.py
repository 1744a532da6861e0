"""A policy on its own, for use without training: policy.json and policy.safetensors; reading executes nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_mapping
from holdfast.envs.choices import Choices, are_choices
from holdfast.files import Entry, as_entry, find_folder, read_newest, read_state, replace_folder, write_state
from holdfast.policies.actor_files import actor_state, saved_actor
from holdfast.policies.actors import NetworkActor
from holdfast.policies.arguments import ACTIVATIONS
from holdfast.policies.evaluation import Actor
from holdfast.policies.saved_layers import (
    building,
    check_saved_layers,
    check_saved_persistences,
    known_extractors,
    saved_arguments,
    saved_class,
    saved_tensors,
)
from holdfast.policies.spaces import as_json, space_from, space_state
from holdfast.policies.table_files import saved_table

if TYPE_CHECKING:
    from holdfast.deep.networks.holding_policy import HoldingPolicy

__all__ = [
    "FOLDER",
    "actor_of",
    "load_policy",
    "network_state",
    "read_policy",
    "write_policy",
]

FOLDER = "policy"

_DOCUMENT = "policy.json"
_PLACES = {"policy.safetensors": ()}
_LARGEST = 2**30
"""Largest size of a policy's arrays, in bytes."""

_NETWORK_ARGUMENTS = ("valued", "normalize_images", "net_arch")
"""Arguments in a policy's file beyond those that an agent passes to its policy."""


_UNSAID = {
    "valued": "options",
    "persistences": None,
    "layer_norm": False,
    "average_rate": 0.0,
    "decision_cost": 0.0,
}
"""Values for policies saved before these arguments existed."""


def write_policy(run: Path | Entry, state: Mapping[str, Any]) -> None:
    """Replace the policy of a run by ``state``, which ``network_state`` or ``table_files.table_state`` made."""
    with replace_folder((run if isinstance(run, Entry) else Entry(run)) / FOLDER) as unfinished:
        write_state(unfinished, state, _PLACES, _DOCUMENT)


def load_policy(run: str | os.PathLike[str]) -> Actor:
    """Load the best policy of a run; its ``decide(observation)`` returns action, hold and values.

    Args:
        run: The run's folder, or the folder of a policy in it.

    Raises:
        ValueError: There is none, or it is damaged.
    """
    return actor_of(read_policy(Path(run)))


def read_policy(path: Path) -> dict[str, Any]:
    """What ``write_policy`` wrote, in a run's folder or in the policy's own; a training may just replace it.

    Raises:
        ValueError: There is none, or it is damaged.
    """
    named = Entry(path)

    def find() -> list[Entry]:
        # While the policy's own folder is replaced, it is the folder that was moved aside.
        for folder in (named, named / FOLDER, as_entry(path)):
            found = folder if folder is named else find_folder(folder)
            if found is not None and ((found / _DOCUMENT).is_there or folder == named / FOLDER):
                return [found]
        return []

    state, damaged = read_newest(find, lambda folder: read_state(folder, _PLACES, _DOCUMENT, _LARGEST))
    if damaged:
        raise damaged[0][1]
    if state is None:
        if path.is_dir():
            raise InputError(f"{path} has no policy yet: a run stores one at its first evaluation or at its end")
        if path.exists():
            raise InputError(
                f"{str(path)!r} must be the folder of a run of holdfast train, but it is a file "
                "(load a model saved by Stable-Baselines3's save with PerDQN.load)"
            )
        raise InputError(
            f"policy must be the folder of a run or of a policy, and there is no folder {str(path)!r}", "policy"
        )
    return state


def actor_of(state: Mapping[str, Any]) -> Actor:
    """The policy that ``state`` describes.

    Raises:
        ValueError: It is damaged.
    """
    kind = take(state, "kind")
    if kind == "table":
        return saved_table(state)
    if kind == "network":
        return _network_actor(state)
    if kind == "actor":
        return NetworkActor(saved_actor(state))
    raise InputError("the saved policy must be a table, a network or an actor")


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
    """Raise InputError for parts that a file cannot describe."""
    from holdfast.deep.networks import policies

    extractors = known_extractors()
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
            **{name: as_json(getattr(policy, name)) for name in _argument_names()},
            # The averaged weights themselves are saved.
            "average_rate": 0.0,
            "activation_fn": policy.activation_fn.__name__,
            "features_extractor_class": policy.features_extractor_class.__name__,
            "features_extractor_kwargs": dict(policy.features_extractor_kwargs),
        },
        "observation_space": space_state(policy.observation_space),
        "action_space": space_state(policy.action_space),
        "weights": {name: as_array(value) for name, value in policy.averaged_net.state_dict().items()},
    }


def _argument_names() -> tuple[str, ...]:
    from holdfast.deep.arguments import POLICY_ARGUMENTS

    return (*_NETWORK_ARGUMENTS, *(argument.name for argument in POLICY_ARGUMENTS))


def _network_actor(state: Mapping[str, Any]) -> NetworkActor:

    from holdfast.deep.argument_checks import check_acting
    from holdfast.deep.networks.policies import CnnPolicy, MlpPolicy, MultiInputPolicy

    kind = saved_class(state, (MlpPolicy, CnnPolicy, MultiInputPolicy))
    saved = saved_arguments(state, _argument_names(), _UNSAID)
    observations, actions = space_from(state, "observation_space"), space_from(state, "action_space")
    if not are_choices(actions):
        raise InputError("the saved policy must have discrete actions")
    weights = take_mapping(state, "weights")
    _check_arguments(saved)
    _refuse_more_than_there_is(saved, weights, observations, Choices(actions).n)
    with building():
        check_acting(saved["decision_tolerance"], saved["interrupt_margin"], saved["decision_cost"])
        policy = kind(observations, actions, lambda _: 0.0, **saved)
    policy.q_net.load_state_dict(saved_tensors(weights, policy.q_net.state_dict()))
    policy.set_training_mode(False)
    return NetworkActor(policy)


def _refuse_more_than_there_is(
    arguments: Mapping[str, Any], weights: Mapping[str, Any], observations: Any, n_actions: int
) -> None:
    trunk, head, k_max = arguments["net_arch"], arguments["head_arch"], arguments["k_max"]
    if not isinstance(trunk, list) or not isinstance(head, list):
        raise InputError("the saved policy must have lists of whole numbers as 'net_arch' and 'head_arch'")
    n_heads = check_saved_persistences(arguments)
    # The heads: K with an output for each action; or one for the actions and one with an output for each skip.
    heads = ((n_heads, n_actions),) if arguments["valued"] == "options" else ((1, n_actions), (1, k_max))
    behind: list[int | None] = [None, *trunk]
    stacks = [(1, behind), *((number, [behind[-1], *head, outputs]) for number, outputs in heads)]
    extractor = arguments["features_extractor_class"]
    check_saved_layers(weights, extractor, arguments["features_extractor_kwargs"], observations, stacks)


def _check_arguments(arguments: Mapping[str, Any]) -> None:
    from holdfast.deep.argument_checks import check_state_value
    from holdfast.deep.arguments import POLICY_ARGUMENTS

    for name in (argument.name for argument in POLICY_ARGUMENTS if argument.check is check_state_value):
        if type(arguments[name]) is not bool and arguments[name] not in ("heads", "options"):
            raise InputError(f"the saved policy must have true, false, 'heads' or 'options' as {name!r}")
    truths = (*(found.name for found in POLICY_ARGUMENTS if found.annotation == "bool"), "normalize_images")
    if not all(type(arguments[name]) is bool for name in truths):
        raise InputError(f"the saved policy must have true or false as {' and '.join(map(repr, truths))}")
    if arguments["average_rate"] != 0.0:
        raise InputError("the saved policy must have 0 as 'average_rate'")
    if arguments["persistences"] is not None and arguments["valued"] != "options":
        raise InputError("the saved policy must have no 'persistences' unless its values are those of options")
