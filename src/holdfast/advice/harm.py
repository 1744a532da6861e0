"""Whether longer holds do harm, and what can be compared between two settings of random options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.advice.visitation.outcomes import GoingOn
from holdfast.advice.visitation.results import Visitation
from holdfast.stats.estimates import Estimate

__all__ = [
    "HARDLY_ANY",
    "Harm",
    "are_of_comparable_length",
    "compared_rewards",
    "harm_of",
    "is_clearly_below",
    "successes_tell",
]

COMPARABLE = 0.1
"""Largest difference between two comparable mean lengths, as a share of the reference's."""

HARDLY_ANY = 0.01
"""Share of the episodes below which ends of a kind do not count."""


@dataclass(frozen=True)
class Harm:
    """What a longer hold is clearly worse at.

    Attributes:
        result: Result of the longer hold.
        fails_more: Whether more of its episodes fail per step.
        compared: How rewards were compared, ``"return"`` or ``"per step"``; None if they were not.
        earns_less: Whether its rewards are lower.
    """

    result: Visitation
    fails_more: bool
    compared: str | None
    earns_less: bool


def harm_of(usual: GoingOn, first: Visitation, result: Visitation) -> Harm | None:
    """What ``result`` is clearly worse at than ``first``; None if nothing.

    Args:
        usual: What going on gives.
        first: Result of the smallest K.
        result: Result of another K.
    """
    fails_more = is_clearly_below(first.failures_per_step, result.failures_per_step)
    compared = compared_rewards(usual, first, result)
    earns_less = False
    if compared == "return":
        earns_less = is_clearly_below(result.mean_return, first.mean_return) or is_clearly_below(
            result.upper_return, first.upper_return
        )
    elif compared == "per step":
        earns_less = is_clearly_below(result.reward_per_step, first.reward_per_step)
    return Harm(result, fails_more, compared, earns_less) if fails_more or earns_less else None


def compared_rewards(usual: GoingOn, first: Visitation, result: Visitation) -> str | None:
    """How the rewards of two settings can be compared.

    Returns:
        ``"return"`` if episodes have comparable lengths; else ``"per step"``; else None, because each step gives
        the same, so that rewards only repeat how long the episodes were, or because there are too few.
    """
    if are_of_comparable_length(first, result):
        return "return"
    if usual.is_constant or any(math.isnan(found.reward_per_step.low) for found in (first, result)):
        return None
    return "per step"


def are_of_comparable_length(first: Visitation, result: Visitation) -> bool:
    """Whether episodes have about the same length with both, and none of them was cut off."""
    ours, theirs = first.mean_length.value, result.mean_length.value
    return abs(theirs - ours) <= COMPARABLE * ours and not first.cut_off and not result.cut_off


def successes_tell(results: Sequence[Visitation]) -> bool:
    """Whether successful episodes can be told from the others.

    If some ends are marked as failures by a worse reward, an end whose reward is like that of going on may be
    anything.
    """
    if results[0].success is None:
        return False
    marked = any(result.ends["worse"].value > HARDLY_ANY for result in results)
    unmarked = any(result.ends["alike"].value > HARDLY_ANY for result in results)
    return not (marked and unmarked)


def is_clearly_below(one: Estimate, other: Estimate) -> bool:
    """Whether one interval lies below the other; an unknown end proves nothing."""
    return one.high < other.low
