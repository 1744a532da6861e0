from __future__ import annotations

import numpy as np
import pytest

from holdfast.core import Option
from holdfast.tabular import GreedyPolicy, SkipPolicy

Q = np.array([[[1.0, 0.9, 0.5], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 0.4, 0.4]]])


def test_the_greedy_policy_takes_the_first_maximum() -> None:
    policy = GreedyPolicy(Q)
    assert policy.act(0) == Option(0, 1)
    assert policy.act(1) == Option(1, 2)
    actions, durations = policy.options()
    np.testing.assert_array_equal(actions, [0, 1])
    np.testing.assert_array_equal(durations, [1, 2])


def test_a_decision_says_what_and_why() -> None:
    action, hold, values = GreedyPolicy(Q, decision_tolerance=0.2).decide(0)
    assert (action, hold) == (0, 2)
    np.testing.assert_array_equal(values, Q[0])
    values[:] = 5.0
    assert Q.max() == 1.0


@pytest.mark.parametrize(("tolerance", "durations"), [(None, [1, 2]), (0.0, [1, 3]), (0.1, [2, 3]), (9.0, [3, 3])])
def test_tolerance(tolerance: float | None, durations: list[int]) -> None:
    np.testing.assert_array_equal(GreedyPolicy(Q, tolerance).options()[1], durations)


def test_interruption() -> None:
    assert not GreedyPolicy(Q).interrupts(0, Option(1, 3))
    assert GreedyPolicy(Q, interrupt_margin=0.5).interrupts(0, Option(1, 3))
    assert not GreedyPolicy(Q, interrupt_margin=0.5).interrupts(0, Option(0, 3))
    assert not GreedyPolicy(Q, interrupt_margin=1.0).interrupts(0, Option(1, 3))


def test_a_margin_below_the_tolerance_is_refused() -> None:
    with pytest.raises(ValueError, match=r"interrupt_margin must be at least decision_tolerance, which is 0\.2"):
        GreedyPolicy(Q, decision_tolerance=0.2, interrupt_margin=0.1)
    GreedyPolicy(Q, decision_tolerance=0.2, interrupt_margin=0.2)


def test_the_skip_policy_takes_the_longest_of_equal_skips() -> None:
    policy = SkipPolicy(np.array([[0.0, 1.0], [0.0, 0.0]]), Q)
    assert policy.act(0) == Option(1, 3)
    assert policy.act(1) == Option(0, 3)
    np.testing.assert_array_equal(policy.options()[1], [3, 3])
    np.testing.assert_array_equal(policy.decide(0).values, Q[0])
    assert not policy.interrupts(0, Option(1, 2))
