"""Save and load a tabular policy as arrays and JSON values: its values, and the rule that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.core.checks import check_decision_cost, check_persistences, check_real
from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_array, take_mapping
from holdfast.envs.choices import Choices, are_choices
from holdfast.policies.actors import TableActor
from holdfast.policies.algorithms import ALGORITHMS, find_algorithm
from holdfast.policies.spaces import as_json, space_from, space_state

if TYPE_CHECKING:
    from gymnasium.spaces import Space

    from holdfast.tabular import Policy

__all__ = ["saved_table", "table_state"]

_GREEDY = ("decision_tolerance", "interrupt_margin", "decision_cost", "persistences")
"""Arguments of ``GreedyPolicy`` other than its values."""

_TABLES = {"GreedyPolicy": ("q",), "SkipPolicy": ("q", "skip_values")}
"""The tables that each kind of policy reads."""


def table_state(
    algorithm: str,
    policy: Policy,
    first_state: int,
    first_action: int,
    combinations: Space[Any] | None = None,
) -> dict[str, Any]:
    """A tabular policy as arrays and JSON values.

    Raises:
        ValueError: It is of a class that is not holdfast's own: a file cannot say what that does.
    """
    kind = type(policy).__name__
    if kind not in _TABLES or type(policy).__module__ != "holdfast.tabular.policy":
        raise InputError(f"policy_of must return a GreedyPolicy or a SkipPolicy to be saved, not {type(policy)}")
    found = {name: as_json(getattr(policy, name)) for name in _GREEDY} if kind == "GreedyPolicy" else {}
    tables = {name: getattr(policy, name) for name in _TABLES[kind]}
    return {
        **({} if combinations is None else {"combinations": space_state(combinations)}),
        "kind": "table",
        "algorithm": algorithm,
        "policy": kind,
        "arguments": found,
        "first_state": first_state,
        "first_action": first_action,
        "tables": {name: table.reshape(*table.shape[:2], -1).copy() for name, table in tables.items()},
    }


def saved_table(state: Mapping[str, Any]) -> TableActor:
    """The policy that ``table_state`` described.

    Raises:
        ValueError: It is damaged.
    """
    policy = _policy(state) if "policy" in state else _policy_of_learner(state)
    firsts = (take(state, "first_state"), take(state, "first_action"))
    if not all(type(first) is int for first in firsts):
        raise InputError("the saved policy must have whole numbers as 'first_state' and 'first_action'")
    combinations = space_from(state, "combinations") if "combinations" in state else None
    if combinations is not None and (
        not are_choices(combinations) or Choices(combinations).n != policy.table.shape[1]
    ):
        raise InputError("the saved policy must have a table of all combinations of its actions")
    return TableActor(policy, *firsts, combinations)


def _policy(state: Mapping[str, Any]) -> Policy:
    from holdfast.tabular import GreedyPolicy, SkipPolicy

    kind = take(state, "policy")
    if not isinstance(kind, str) or kind not in _TABLES:
        raise InputError(f"the saved policy must be one of {', '.join(_TABLES)}")
    tables = _tables(state, dict.fromkeys(_TABLES[kind]))
    if kind == "SkipPolicy":
        if tables["q"].shape[2] != 1:
            raise InputError("the saved policy must have one value of each action as 'q'")
        return SkipPolicy(tables["q"], tables["skip_values"])
    saved = take_mapping(state, "arguments")
    if set(saved) != set(_GREEDY):
        raise InputError(f"the saved policy must have the arguments {', '.join(_GREEDY)}")
    try:
        tolerance, margin = (
            None if saved[name] is None else check_real(name, saved[name], 0.0)
            for name in ("decision_tolerance", "interrupt_margin")
        )
        persistences = check_persistences("persistences", saved["persistences"])
        if persistences is not None and len(persistences) != tables["q"].shape[2]:
            raise InputError(f"there must be values of {len(persistences)} persistences")
        cost = check_decision_cost(saved["decision_cost"])
        return GreedyPolicy(tables["q"], tolerance, margin, cost, persistences)
    except InputError as error:
        raise InputError(f"the saved policy is damaged: {error}") from None


def _policy_of_learner(state: Mapping[str, Any]) -> Policy:
    """The policy of an older file, which only has the learner's arguments."""
    from holdfast.policies.arguments import as_python

    algorithm = find_algorithm(name) if (name := take(state, "algorithm")) in ALGORITHMS else None
    if algorithm is None or algorithm.is_deep:
        raise InputError("the saved policy must say by which rule its table is read")
    try:
        arguments = algorithm.complete(take_mapping(state, "arguments"))
        learner = algorithm.load()(**as_python(arguments), **algorithm.stands_for)
    except InputError as error:
        raise InputError(f"the saved policy is damaged: {error}") from None
    policy: Policy = learner.policy_of(_tables(state, learner.table_depths()))
    return policy


def _tables(state: Mapping[str, Any], depths: Mapping[str, int | None]) -> dict[str, Any]:
    import numpy as np

    saved = take_mapping(state, "tables")
    tables = {
        name: take_array(saved, name, np.float64, (None, None, depth)).copy() for name, depth in depths.items()
    }
    if len({table.shape[:2] for table in tables.values()}) != 1 or any(
        0 in table.shape for table in tables.values()
    ):
        raise InputError("the saved policy must have tables of the same states and actions")
    return tables
