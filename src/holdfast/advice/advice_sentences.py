"""The sentences that give advice, with the numbers behind it."""

from __future__ import annotations

from holdfast.advice.harm import Harm, compared_rewards
from holdfast.advice.visitation.outcomes import GoingOn
from holdfast.advice.visitation.results import Visitation
from holdfast.stats.estimates import Estimate
from holdfast.stats.intervals import in_percent

__all__ = ["because_of_nothing", "because_of_places", "because_of_return", "because_of_success"]


def because_of_success(first: Visitation, chosen: Visitation) -> str:
    """More successes per step."""
    assert first.success is not None
    assert chosen.success is not None
    return (
        f"k_max = {chosen.k_max}: random actions held for up to {chosen.k_max} steps reach success "
        f"{_how_often(chosen.successes_per_step)} ({in_percent(chosen.success)} of episodes); "
        f"{_held(first.k_max)}: {_how_often(first.successes_per_step, first.steps)} "
        f"({in_percent(first.success)})."
    )


def because_of_return(first: Visitation, chosen: Visitation) -> str:
    """A higher mean return, at comparable episode lengths."""
    return (
        f"k_max = {chosen.k_max}: random actions held for up to {chosen.k_max} steps return "
        f"{_shown(chosen.mean_return)} on average; {_held(first.k_max)}: {_shown(first.mean_return)}. "
        "Episodes are of comparable length."
    )


def because_of_places(usual: GoingOn, first: Visitation, chosen: Visitation) -> str:
    """More places visited, without harm."""
    compared = {
        "return": "returns of episodes of comparable length are not clearly worse",
        "per step": "rewards per step are not clearly worse (episode lengths differ, so returns are not compared)",
        None: "no more of their episodes fail (episode lengths differ, so returns are not compared)",
    }[compared_rewards(usual, first, chosen)]
    return (
        f"k_max = {chosen.k_max}: random actions held for up to {chosen.k_max} steps visit {chosen.visited} "
        f"places; {_held(first.k_max)}: {first.visited}. {compared[0].upper()}{compared[1:]}: "
        "a hint to try, not a finding."
    )


def because_of_nothing(first: Visitation, also: str, harm: Harm | None) -> str:
    """Nothing speaks for holding, and possibly something against it."""
    said = f"k_max = {first.k_max}: random actions that are held longer do not clearly find more reward; {also}."
    return said if harm is None else f"{said} {_harm(first, harm)}"


def _harm(first: Visitation, harm: Harm) -> str:
    other, parts = harm.result, []
    if harm.fails_more:
        parts.append(
            f"With k_max = {other.k_max} episodes fail {_how_often(other.failures_per_step)}, with k_max = "
            f"{first.k_max} {_how_often(first.failures_per_step, first.steps)}."
        )
    lengths = f"{other.mean_length.value:.3g} and {first.mean_length.value:.3g} steps"
    if harm.compared == "per step":
        verb = "falls" if harm.earns_less else "does not clearly fall"
        parts.append(
            f"Episode lengths differ ({lengths} with k_max = {other.k_max} and {first.k_max}), so rewards are "
            f"compared per step of equal time: their mean {verb}, {_shown(other.reward_per_step)} against "
            f"{_shown(first.reward_per_step)}."
        )
    elif harm.compared == "return" and harm.earns_less:
        parts.append(
            f"Held for up to {other.k_max} steps they return {_shown(other.mean_return)}, {_held(first.k_max)} "
            f"{_shown(first.mean_return)}, in episodes of comparable length."
        )
    elif harm.compared is None:
        parts.append(
            f"Episode lengths differ ({lengths}) and each step gives the same reward: returns are not compared."
        )
    return " ".join(parts)


def _how_often(rate: Estimate | None, steps: int = 0) -> str:
    if rate is None or rate.value == 0.0:
        return f"never in {steps:,} steps" if steps else "never"
    return f"about once per {1.0 / rate.value:,.0f} steps"


def _held(k: int) -> str:
    return "single-step actions" if k == 1 else f"held for up to {k} steps"


def _shown(found: Estimate) -> str:
    return f"{found.value:.4g} ({found.low:.4g} to {found.high:.4g})"
