"""Which policies are optimal at which cost of a decision: by hand, on random models, and on the paper's grids."""

from __future__ import annotations

import math
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast.envs  # noqa: F401 - registers the grids
from holdfast.mdp import OptionModel, OptionPath, TabularMDP, cost_intervals, follow_options, q_star_options
from tests.mdp.literal import assert_near
from tests.mdp.random_mdps import GAMMA_TO_ITERATE, RandomMDP, half_as_many_examples, random_mdps

# A fork, γ = ½. From 0, action 0 leads to 1 and action 1 to 2; from both, action 1 leads to the end, 3: from 1 it
# pays 8, but is another action than the one before; from 2 it pays 4.
FORK = TabularMDP([[1, 2], [0, 3], [0, 3], [3, 3]], [[0, 0], [0, 8], [0, 4], [0, 0]], 0.5, 0, [3])


def test_by_hand() -> None:
    # By 1: R = ½·8 = 4, decisions 1 + ½. By 2 with k = 2: R = ½·4 = 2, one decision. 4 − 1.5c = 2 − c at c = 4.
    first, second = cost_intervals(FORK, 2)
    assert (first.low, first.high, first.discounted_return, first.discounted_decisions) == (0.0, 4.0, 4.0, 1.5)
    assert (second.low, second.high, second.discounted_return, second.discounted_decisions) == (
        4.0,
        math.inf,
        2.0,
        1.0,
    )
    model = OptionModel(FORK, (1, 2))
    assert follow_options(model, first.policy, 0) == OptionPath(steps=2, decisions=2, total=8.0)
    assert follow_options(model, second.policy, 0) == OptionPath(steps=2, decisions=1, total=4.0)


def test_where_nothing_can_be_saved_there_is_one_interval() -> None:
    (only,) = cost_intervals(FORK, 1)
    assert (only.low, only.high, only.discounted_decisions) == (0.0, math.inf, 1.5)


def test_a_policy_that_never_ends_has_no_path() -> None:
    mdp = TabularMDP([[0, 1], [1, 1]], [[1.0, 0.0], [0.0, 0.0]], 0.5, 0, [1])
    stays = np.array([0, 0])
    assert follow_options(OptionModel(mdp, (1,)), stays, 0) is None


@half_as_many_examples
@given(random=random_mdps(gamma=GAMMA_TO_ITERATE), k_max=st.integers(1, 4))
def test_intervals_are_the_optimum_and_decisions_fall(random: RandomMDP, k_max: int) -> None:
    mdp = random.tabular()
    start = int(np.argmin(mdp.terminal))
    mdp = TabularMDP(mdp.P, mdp.r, mdp.gamma, start, mdp.terminal)
    intervals = cost_intervals(mdp, k_max)
    assert intervals[0].low == 0.0
    assert intervals[-1].high == math.inf
    for one, two in pairwise(intervals):
        assert one.high == two.low
        assert one.discounted_decisions > two.discounted_decisions
    if mdp.terminal[start]:
        return
    for interval in intervals:
        for cost in (interval.low, min(interval.high, 2.0 * interval.low + 1.0)):
            best = q_star_options(mdp, k_max, decision_cost=cost)[start].max() - cost
            assert_near(
                np.array(interval.discounted_return - cost * interval.discounted_decisions), np.array(best), 1e-7
            )


@pytest.mark.parametrize(
    ("name", "steps", "decisions"),
    # A shortest path with the fewest decisions; a detour that decides later; the next hole, in one decision.
    [("Cliff", [15, 22, 2], [4, 4, 1]), ("Bridge", [13, 15, 2], [4, 4, 1]), ("ZigZag", [20, 25, 2], [5, 5, 1])],
)
def test_three_regimes_on_the_grids(name: str, steps: list[int], decisions: list[int]) -> None:
    mdp = TabularMDP.from_gymnasium(gymnasium.make(f"holdfast/{name}-v0"), 0.99)
    assert mdp.initial is not None
    model = OptionModel(mdp, range(1, 9))
    intervals = cost_intervals(mdp, 8)
    paths = [follow_options(model, interval.policy, int(mdp.initial.argmax())) for interval in intervals]
    assert [path and path.steps for path in paths] == steps
    assert [path and path.decisions for path in paths] == decisions
    assert [path and path.total for path in paths] == [1.0, 1.0, -1.0]
    # A goal after n steps is worth γ^(n−1).
    expected = [0.99 ** (n - 1) for n in steps[:2]] + [-0.99]
    assert [interval.discounted_return for interval in intervals] == pytest.approx(expected)


def test_what_has_no_start_or_no_discount_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^mdp must have an initial state, from which returns"):
        cost_intervals(TabularMDP(FORK.P, FORK.r, 0.5, terminal=[3]), 2)
    with pytest.raises(ValueError, match=r"^gamma must be below 1:"):
        cost_intervals(TabularMDP(FORK.P, FORK.r, 1.0, 0, [3]), 2)
    chance = TabularMDP(np.full((2, 1, 2), 0.5), np.zeros((2, 1)), 0.5, 0)
    with pytest.raises(ValueError, match=r"^mdp must be deterministic \(given by next states\) to follow a path$"):
        follow_options(OptionModel(chance, (1,)), np.zeros(2, dtype=np.int64), 0)
