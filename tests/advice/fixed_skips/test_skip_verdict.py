"""Which fixed skip may be shipped, from values written down by hand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from holdfast.advice.exploring import explore
from holdfast.advice.fixed_skips.skip_verdict import skip_verdict
from holdfast.advice.fixed_skips.skips import exact_skips
from holdfast.envs import make_env
from holdfast.mdp import TabularMDP


class Priced(NamedTuple):
    k: int
    value: float | None
    loss: float | None
    note: str | None = None


def priced(values: dict[int, float | None]) -> list[Priced]:
    first = values[min(k for k, value in values.items() if value is not None)]
    assert first is not None
    return [Priced(k, value, None if value is None else first - value) for k, value in values.items()]


def test_the_longest_skip_that_costs_less_than_two_percent() -> None:
    found = skip_verdict(priced({1: -100.0, 2: -100.0, 5: -101.7, 6: -106.6}))
    assert (found.k, found.costs_less_than) == (5, 0.02)
    assert found.loss_share == pytest.approx(0.017)
    assert found.sentence == (
        "The longest fixed skip that costs less than 2 % of the value with k = 1 is 5 (1.7 %); k = 6 costs 6.6 %."
    )


def test_a_loss_counts_in_parts_of_the_value_whatever_its_sign() -> None:
    assert skip_verdict(priced({1: 50.0, 2: 49.5, 4: 45.0})).k == 2


def test_skips_are_compared_with_the_smallest_whatever_their_losses_are_measured_from() -> None:
    # The losses are those beside k = 1, which is not in the list: beside it both cost more than 2 %.
    found = skip_verdict([Priced(4, 90.0, 10.0), Priced(8, 89.1, 10.9), Priced(16, 45.0, 55.0)])
    assert (found.k, found.costs_less_than) == (8, 0.02)
    assert found.loss_share == pytest.approx(0.01)
    assert found.sentence.startswith(
        "The longest fixed skip that costs less than 2 % of the value with k = 4 is 8 (1 %)"
    )


@pytest.mark.parametrize("skips", [(4, 8), (8, 12), (16, 32), (3, 5, 7)])
@pytest.mark.parametrize("name", ["cliff", "open"])
def test_a_list_without_single_steps_has_a_verdict(name: str, skips: tuple[int, ...]) -> None:
    exact = explore(make_env(name), name, list(skips)).skips
    assert exact is not None
    found = skip_verdict(exact)
    assert found.k in skips
    assert f"of the value with k = {skips[0]} is {found.k} (" in found.sentence


def test_skips_without_a_value_are_named_with_the_reason() -> None:
    few = "3 samples of holding for 16 steps are too few, 20 are needed"
    infinite = "without a discount, holding every action for 32 steps has no finite value"
    known = priced({1: 10.0, 2: 10.0})
    found = skip_verdict([*known, Priced(32, None, None, infinite), Priced(16, None, None, few)])
    assert found.without_value == (16, 32)
    assert found.sentence.endswith(
        f"is 2 (nothing); longer ones were not compared. No value for k = 16 ({few}), k = 32 ({infinite})."
    )


def test_an_infinite_value_is_no_lack_of_data() -> None:
    # Each step costs 1; two at a time never stop between the border and the goal, one or three do.
    moves = np.array([[1, 0], [0, 2], [2, 2]])
    mdp = TabularMDP(moves, [[-1, -1], [-1, -1], [0, 0]], 1.0, 0, terminal=[2])
    found = skip_verdict(exact_skips(mdp, (1, 2, 3)))
    assert (found.k, found.without_value) == (1, (2,))
    assert found.sentence.endswith(
        "k = 3 costs 100 %. No value for k = 2 (without a discount, holding every action for 2 steps has no "
        "finite value)."
    )


def test_shorter_skips_that_cost_more_are_named() -> None:
    found = skip_verdict(priced({1: 100.0, 3: 97.0, 5: 80.0, 7: 99.9}))
    assert found.k == 7
    assert found.sentence == (
        "The longest fixed skip that costs less than 2 % of the value with k = 1 is 7 (0.1 %); longer ones were "
        "not compared. Not every shorter skip is as cheap: k = 3 costs 3 %, k = 5 costs 20 %."
    )


def test_estimates_that_contradict_each_other_tell_less() -> None:
    # Four steps at a time came out 4 % above two at a time, and cannot be.
    found = skip_verdict(priced({1: 100.0, 2: 95.0, 4: 99.0, 8: 80.0}))
    assert found.contradiction == pytest.approx(0.04)
    assert (found.k, found.costs_less_than) == (4, 0.05)
    assert "Smaller costs cannot be resolved: the estimates contradict each other by 4 % of" in found.sentence


def test_estimates_that_contradict_each_other_grossly_tell_nothing() -> None:
    found = skip_verdict(priced({1: 100.0, 2: 50.0, 4: 99.0}))
    assert found.k is None
    assert found.sentence.startswith("No verdict: the estimates contradict each other by 49 % of the value")


@pytest.mark.parametrize("values", [{1: 3.0}, {1: 3.0, 2: None}, {1: 0.0, 2: -1.0}])
def test_without_anything_to_compare_there_is_no_verdict(values: dict[int, float | None]) -> None:
    found = skip_verdict(priced(values))
    assert found.k is None
    assert found.sentence.startswith("No verdict: ")
