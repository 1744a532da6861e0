"""Agents that join a figure beside those it shows: of a user's own, or any other of the list."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import InputError
from holdfast.policies.algorithms import algorithm_title, find_algorithm, nearest_names
from holdfast.policies.arguments import as_python

if TYPE_CHECKING:
    from holdfast.experiments.spec import Experiment

__all__ = ["Guest", "check_guests", "with_guests"]

_NETWORK = ("policy", "policy_kwargs", "head_arch")
"""Arguments whose values must fit what is observed."""


@dataclass(frozen=True)
class Guest:
    """Who joins.

    Attributes:
        algorithm: Its name, ``module:Class`` for one of a user's own.
        arguments: As JSON values; the figure's own come to them.
    """

    algorithm: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called in rows, legends and tables."""
        told = ", ".join(f"{name}={value}" for name, value in self.arguments.items())
        return algorithm_title(self.algorithm) + (f"({told})" if told else "")


def with_guests(experiment: Experiment, guests: Sequence[Guest]) -> Experiment:
    """The figure with agents beside its own. Their rows are jobs of the same study: its own are shared.

    Raises:
        ValueError: Nobody can join the figure, or one of them cannot.
    """
    if experiment.join is None:
        raise InputError(
            f"label must be a figure that compares agents, and {experiment.label} is not one", "label"
        )
    if len({guest.name for guest in guests}) != len(guests):
        raise InputError("each agent must join the figure once, or with other arguments")
    joined = experiment.join(guests)
    names = " and ".join(guest.name for guest in guests)
    return replace(
        joined,
        label=f"{experiment.label} with {names}",
        title=f"{experiment.title}; with {names}",
        shared=experiment.study,
        reference=experiment.reference,
        join=None,
    )


def check_guests(
    guests: Sequence[Guest], *, is_deep: bool, beside: Collection[str], shared: Collection[str] = ()
) -> None:
    """See that agents suit a figure.

    Args:
        guests: Who joins.
        is_deep: Whether its agents have networks, and discrete actions; else tables.
        beside: Names of its own agents.
        shared: Arguments that all agents of the figure share.

    Raises:
        ValueError: One has no table or no network, or an argument that it does not have or must share.
    """
    for guest in guests:
        algorithm = find_algorithm(guest.algorithm)
        if algorithm.is_deep != is_deep or algorithm.is_continuous:
            wanted = "with a network and discrete actions" if is_deep else "with a table"
            raise InputError(f"the figure must be joined by an agent {wanted}, and {guest.algorithm} is not one")
        if guest.name in beside:
            raise InputError(
                f"the figure must be joined by an agent that it does not have, and {guest.name} is one of its own"
            )
        known = algorithm.arguments()
        for name in guest.arguments:
            if name not in known:
                hint = nearest_names(name, known) or f"it has {', '.join(known)}"
                raise InputError(f"{guest.algorithm} has no argument {name!r}; {hint}")
            if name in shared:
                raise InputError(f"{guest.algorithm} must not be given {name}: all agents of the figure share it")
        # Made and thrown away: what it rejects should not fail as a job of the campaign.
        if is_deep:
            _check_network(guest)
        else:
            algorithm.load()(**as_python(algorithm.complete(guest.arguments)), **algorithm.stands_for)


def _check_network(guest: Guest) -> None:
    """See that an agent with a network can be made with the guest's arguments, in some environment.

    Which networks fit depends on what is observed, so those of the figure's own environments are not tried.
    """
    from holdfast.runs.options import make_config
    from holdfast.runs.training import check_agent

    given = {name: value for name, value in guest.arguments.items() if name not in _NETWORK}
    options = {"environment": "MountainCar-v0", "steps": 1000}
    try:
        check_agent(make_config({**options, "algo": guest.algorithm, "set": given}))
    except InputError as error:
        # What it says of other arguments may not be so with those that the figure gives.
        named = set(error.arguments)
        if "algo" in named or (named and named <= {*given, "set"}):
            raise
