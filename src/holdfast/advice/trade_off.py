"""Return against decisions per episode: which policies are worth having, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.stats.estimates import Estimate

__all__ = ["LITTLE", "TradeOffPoint", "is_on_front", "trade_off_sentence"]

LITTLE = 0.02
"""Share of the best return that fewer decisions may cost."""
_ROUNDING = 1e-9
"""Difference, as a share of the largest return, up to which two returns count as equal."""


class TradeOffPoint(NamedTuple):
    """The results of the policies for one decision cost.

    Attributes:
        cost: Cost of a decision, in reward.
        tolerances: Decision tolerances that the policies act with, one for each; empty for none.
        returns: Mean undiscounted return per episode, without the cost.
        decisions: Mean number of decisions per episode.
        steps: Mean number of steps per episode.
    """

    cost: float
    tolerances: tuple[float, ...]
    returns: Estimate
    decisions: Estimate
    steps: Estimate


def is_on_front(returns: ArrayLike, decisions: ArrayLike) -> NDArray[np.bool_]:
    """Which of n points are on the Pareto front: no other is as good in return and decisions and better in one.

    Args:
        returns: (n,); returns that differ only by rounding are equal.
        decisions: (n,).
    """
    value, count = np.asarray(returns, dtype=np.float64), np.asarray(decisions, dtype=np.float64)
    rounding = _ROUNDING * np.abs(value).max()
    as_good = (value[:, None] >= value - rounding) & (count[:, None] <= count)
    better = (value[:, None] > value + rounding) | (count[:, None] < count)
    return np.asarray(~(as_good & better).any(axis=0))


def trade_off_sentence(points: Sequence[TradeOffPoint]) -> str:
    """The fewest decisions at little loss, what more or fewer of them would change, and how to get that policy.

    Args:
        points: At least one.
    """
    on_front = is_on_front([p.returns.value for p in points], [p.decisions.value for p in points])
    front = [point for point, is_there in zip(points, on_front, strict=True) if is_there]
    front.sort(key=lambda point: point.decisions.value)
    best = front[-1]
    allowed = LITTLE * abs(best.returns.value)
    chosen = next(point for point in front if best.returns.value - point.returns.value <= allowed)
    fewer = [point for point in front if point.decisions.value < chosen.decisions.value]
    said = f"{_counted(chosen.decisions.value)} per episode the return is {_number(chosen.returns.value)}"
    if chosen.decisions.value < best.decisions.value:
        said += f"; {_change(chosen, best, 'more', 'buy')}."
    elif fewer:
        said += f"; {_change(fewer[-1], chosen, 'fewer', 'cost')}."
    else:
        said += ", and no policy found returns more or decides less."
    return f"At {said} To get it: {_how(chosen)}."


def _counted(decisions: float) -> str:
    return f"{_number(decisions)} decision{'' if decisions == 1.0 else 's'}"


def _change(low: TradeOffPoint, high: TradeOffPoint, more: str, verb: str) -> str:
    """What one point's additional decisions bring."""
    decisions = high.decisions.value - low.decisions.value
    bought = _number(high.returns.value - low.returns.value)
    return f"{_number(decisions)} {more} {verb}{'s' if decisions == 1.0 else ''} {bought}"


def _how(point: TradeOffPoint) -> str:
    """The arguments that give the policy."""
    told = f"decision_cost={point.cost:g}"
    used = [tolerance for tolerance in point.tolerances if tolerance > 0.0]
    if not used:
        return told
    low, high = f"{min(used):.3g}", f"{max(used):.3g}"
    return f"{told} with decision_tolerance={low}" + ("" if low == high else f" to {high}")


def _number(value: float) -> str:
    return f"{round(value, 1) if abs(value) >= 10.0 else float(f'{value:.3g}'):g}"
