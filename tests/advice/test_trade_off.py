"""Return against decisions: the front, and the sentence."""

from __future__ import annotations

import math

import pytest

from holdfast.advice.trade_off import TradeOffPoint, is_on_front, trade_off_sentence
from holdfast.stats.estimates import Estimate


def point(cost: float, returned: float, decisions: float, *tolerances: float) -> TradeOffPoint:
    estimates = (Estimate(value, math.nan, math.nan) for value in (returned, decisions, 100.0))
    return TradeOffPoint(cost, tolerances, *estimates)


@pytest.mark.parametrize(
    ("returns", "decisions", "expected"),
    [
        # The third has the first's return with more decisions, the fourth fewer of both.
        ([1.0, 2.0, 1.0, 0.5], [3, 5, 4, 2], [True, True, False, True]),
        # Equals do not beat each other; 1 + 1e-12 is 1.
        ([1.0, 1.0, 1.0 + 1e-12], [3, 3, 4], [True, True, False]),
        ([0.0, 0.0], [1, 2], [True, False]),
        ([-5.0], [9], [True]),
    ],
)
def test_the_front(returns: list[float], decisions: list[float], expected: list[bool]) -> None:
    assert is_on_front(returns, decisions).tolist() == expected


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        # 0.9 of 98.9 is less than 2 %, 5 are more.
        (
            [point(0.0, -98.9, 100.0), point(0.3, -99.8, 12.0), point(1.0, -104.0, 11.0)],
            "At 12 decisions per episode the return is -99.8; 88 more buy 0.9. To get it: decision_cost=0.3.",
        ),
        (
            [point(0.0, 1.0, 5.0), point(0.1, 0.84, 4.0), point(1.0, -1.0, 1.0)],
            "At 5 decisions per episode the return is 1; 1 fewer costs 0.16. To get it: decision_cost=0.",
        ),
        (
            [point(0.0, 1.0, 5.0), point(0.0, 1.0, 1.0, 0.0, 0.25, 0.5)],
            "At 1 decision per episode the return is 1, and no policy found returns more or decides less. "
            "To get it: decision_cost=0 with decision_tolerance=0.25 to 0.5.",
        ),
    ],
)
def test_the_sentence(points: list[TradeOffPoint], sentence: str) -> None:
    assert trade_off_sentence(points) == sentence
