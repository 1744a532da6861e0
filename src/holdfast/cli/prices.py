"""Which policy is best at which cost of a decision, as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from holdfast.mdp import CostInterval, OptionPath, TabularMDP

__all__ = ["PricedPolicy", "price_lines", "price_numbers", "priced_policies"]


class PricedPolicy(NamedTuple):
    """A policy that is best for some costs, and its path if there is one start and moves are deterministic."""

    interval: CostInterval
    path: OptionPath | None


def priced_policies(mdp: TabularMDP, durations: Sequence[int]) -> list[PricedPolicy]:
    """The best policies over all costs of a decision, the one at no cost first."""
    import numpy as np

    from holdfast.mdp import OptionModel, cost_intervals, follow_options

    intervals = cost_intervals(mdp, persistences=durations)
    model, start = OptionModel(mdp, durations), mdp.initial
    if model.ends is None or start is None or np.count_nonzero(start) != 1:
        return [PricedPolicy(interval, None) for interval in intervals]
    first = int(np.argmax(start))
    return [PricedPolicy(interval, follow_options(model, interval.policy, first)) for interval in intervals]


def price_lines(policies: Sequence[PricedPolicy]) -> list[str]:
    """A table with a row per policy: plain counts if there is a path, and discounted ones."""
    first = policies[0].path
    lines = [
        "  The best policy by what a decision costs (returns without the cost):",
        "",
        f"  {'decision cost':<20}  {'return':>6}  {'decisions':>9}  {'steps':>5}  {'discounted':>19}",
    ]
    for interval, path in policies:
        costs = f"{interval.low:.4g} to {interval.high:.4g}"
        if math.isinf(interval.high):
            costs = f"{interval.low:.4g} or more"
        plain = ("-", "-", "-") if path is None else (f"{path.total:g}", path.decisions, path.steps)
        discounted = f"{interval.discounted_return:.4f} / {interval.discounted_decisions:.4f}"
        row = f"  {costs:<20}  {plain[0]:>6}  {plain[1]:>9}  {plain[2]:>5}  {discounted:>19}"
        lines.append(f"{row}  {_kind(path, first)}".rstrip())
    return lines


def _kind(path: OptionPath | None, first: OptionPath | None) -> str:
    """What a path is, compared with the best one at no cost."""
    if path is None or first is None:
        return ""
    if path.total < first.total:
        return "less return"
    return "shortest" if path.steps == first.steps else "detour"


def price_numbers(policy: PricedPolicy) -> dict[str, Any]:
    """The rows of the table as JSON values; the last has no highest cost."""
    interval, path = policy
    return {
        "low": interval.low,
        "high": None if math.isinf(interval.high) else interval.high,
        "discounted_return": interval.discounted_return,
        "discounted_decisions": interval.discounted_decisions,
        "path": None if path is None else path._asdict(),
    }
