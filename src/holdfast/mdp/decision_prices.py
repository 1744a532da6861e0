"""What a price for decisions buys: the optimal policies for all costs c ≥ 0, and where each gives way to the next.

From the start, a policy has a discounted return R and a discounted number of decisions N, and is worth R − c·N.
The maximum over all policies is a convex, piecewise linear function of c. Each line is a policy that is optimal
over an interval of costs, and N falls from each line to the next. To find the lines, the model is solved where two
known lines meet: either they are neighbours, or a third line lies above both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from holdfast.core.array_types import Integers
from holdfast.core.errors import InputError
from holdfast.core.options import chosen_persistences
from holdfast.mdp.model import TabularMDP
from holdfast.mdp.option_model import OptionModel
from holdfast.mdp.solve_options import best_policy, q_star_options

__all__ = ["CostInterval", "OptionPath", "cost_intervals", "follow_options"]


_ROUNDING = 1e-10
"""Lines whose relative difference is below this count as the same."""
_MOST_DOUBLINGS = 100


class CostInterval(NamedTuple):
    """A policy, and the costs for which it is optimal from the start.

    Attributes:
        low: The smallest cost at which it is optimal.
        high: The largest cost at which it is optimal; infinite for the last interval.
        discounted_return: Its expected discounted return from the start, without the cost.
        discounted_decisions: Its expected discounted number of decisions from the start.
        policy: (S,) its option in each state, as a flat number action · K + position.
    """

    low: float
    high: float
    discounted_return: float
    discounted_decisions: float
    policy: Integers


class OptionPath(NamedTuple):
    """What a policy does from a given state on, if moves are deterministic.

    Attributes:
        steps: Number of steps to the end.
        decisions: Number of options begun.
        total: Undiscounted sum of the rewards.
    """

    steps: int
    decisions: int
    total: float


class _Line(NamedTuple):
    """The value R − c·N of a policy as a function of c."""

    discounted_return: float
    discounted_decisions: float
    policy: Integers

    def at(self, cost: float) -> float:
        return self.discounted_return - cost * self.discounted_decisions

    def is_same(self, other: _Line) -> bool:
        return math.isclose(self.discounted_decisions, other.discounted_decisions, rel_tol=_ROUNDING)


def cost_intervals(
    mdp: TabularMDP, k_max: int | None = None, *, persistences: Sequence[int] | None = None
) -> list[CostInterval]:
    """The policies that are optimal from the start for some cost per decision, in order of increasing cost.

    There is one policy for each cost. If several are equally good at cost 0, it is the one with the fewest
    decisions.

    Args:
        mdp: The model, with γ < 1 and an initial state or distribution.
        k_max: Options last 1..k_max steps.
        persistences: A set of durations to use instead of 1..k_max.
    """
    if mdp.gamma >= 1.0:
        raise InputError("gamma must be below 1: otherwise endless decisions have an infinite cost", "gamma")
    if mdp.initial is None:
        raise InputError("mdp must have an initial state, from which returns and decisions are counted", "mdp")
    durations = chosen_persistences(k_max, persistences)
    model = OptionModel(mdp, durations)
    lines = _lines_between(model, *_first_and_last(model))
    meets = [_meeting(one, two) for one, two in pairwise(lines)]
    # If several lines are equally good at cost 0, the last, with the fewest decisions, is best just above 0.
    first = sum(cost <= _ROUNDING * (1.0 + abs(lines[0].discounted_return)) for cost in meets)
    ends = pairwise([0.0, *meets[first:], math.inf])
    return [
        CostInterval(low, high, line.discounted_return, line.discounted_decisions, line.policy)
        for (low, high), line in zip(ends, lines[first:], strict=True)
    ]


def _first_and_last(model: OptionModel) -> tuple[_Line, _Line]:
    """The optimal policy at cost 0, and the one with the fewest decisions, whatever its return."""
    mdp = model.mdp
    idle = TabularMDP(mdp.P, np.zeros_like(mdp.reward), mdp.gamma, mdp.initial, mdp.terminal)
    fewest = _best_line(OptionModel(idle, model.durations), 1.0)
    cost = float(np.abs(mdp.reward).max()) or 1.0
    last = _best_line(model, cost)
    for _ in range(_MOST_DOUBLINGS):
        if last.is_same(fewest):
            break
        cost *= 2.0
        last = _best_line(model, cost)
    return _best_line(model, 0.0), last


def _lines_between(model: OptionModel, left: _Line, right: _Line) -> list[_Line]:
    """All lines of the upper envelope from ``left`` to ``right``, both of which lie on it."""
    if left.is_same(right):
        return [right]
    cost = max(_meeting(left, right), 0.0)
    middle = _best_line(model, cost)
    scale = abs(left.discounted_return) + cost * left.discounted_decisions
    if middle.at(cost) <= left.at(cost) + _ROUNDING * scale:
        return [left, right]
    return [*_lines_between(model, left, middle)[:-1], *_lines_between(model, middle, right)]


def _meeting(left: _Line, right: _Line) -> float:
    gained = left.discounted_return - right.discounted_return
    return gained / (left.discounted_decisions - right.discounted_decisions)


def _best_line(model: OptionModel, cost: float) -> _Line:
    mdp = model.mdp
    assert mdp.initial is not None
    policy = best_policy(q_star_options(mdp, decision_cost=cost, persistences=model.durations))
    earned = float(mdp.initial @ model.policy_values(policy, 0.0))
    return _Line(earned, float(mdp.initial @ model.discounted_decisions(policy)), policy)


def follow_options(model: OptionModel, policy: Integers, start: int) -> OptionPath | None:
    """Follow ``policy`` (S,) from ``start`` to a terminal state if moves are certain; None if it never ends."""
    if model.ends is None:
        raise InputError("mdp must be deterministic (given by next states) to follow a path", "mdp")
    mdp, state = model.mdp, start
    steps, total = 0, 0.0
    for decisions in range(mdp.n_states):
        if mdp.terminal[state]:
            return OptionPath(steps, decisions, total)
        action, position = divmod(int(policy[state]), len(model.durations))
        for _ in range(model.durations[position]):
            if not mdp.terminal[state]:
                total += float(mdp.reward[state, action])
                state = int(mdp.P[state, action])
                steps += 1
    return OptionPath(steps, mdp.n_states, total) if mdp.terminal[state] else None
