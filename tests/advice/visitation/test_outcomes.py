"""What counts as a success, environment by environment, on rewards written down by hand."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.advice.visitation import outcomes
from holdfast.stats.estimates import Estimate
from holdfast.stats.intervals import wilson_estimate


def test_the_usual_reward_is_that_of_more_than_half_of_the_steps() -> None:
    assert outcomes.usual_reward(np.array([-1.0, -1.0, 0.0])) == -1.0
    assert outcomes.usual_reward(np.array([-1.0, 0.0])) is None
    assert outcomes.usual_reward(np.linspace(-3.0, 0.0, 50)) is None
    assert outcomes.usual_reward(np.empty(0)) is None


@pytest.mark.parametrize(
    ("usual", "rewards", "terminated", "succeeds"),
    [
        (-1.0, [-1.0, -1.0, -1.0], True, True),  # MountainCar: the flag
        (-1.0, [-1.0, -1.0, -1.0], False, False),  # MountainCar: the time is up
        (-1.0, [-1.0, -1.0, 0.0], True, True),  # Acrobot: high enough
        (0.0, [0.0, 0.0, 1.0], True, True),  # a grid: the goal
        (0.0, [0.0, 0.0, -1.0], True, False),  # a grid: a hole
        (0.0, [0.0, 0.0, 0.0], True, False),  # FrozenLake of Gymnasium: a hole
        (-1.0, [-1.0, -1.0, 100.0], True, True),  # the synchronous grid: the goal
        (-1.0, [-1.0, -1.0, -10.0], True, False),  # the synchronous grid: a hole
        (-1.0, [-1.0, -100.0, -1.0], True, True),  # CliffWalking: once over the cliff, then the goal
        (0.0, [0.0, 1.0, 0.0], False, True),  # Freeway: a crossing on the way
        (1.0, [1.0, 1.0, 1.0], True, False),  # CartPole: the pole falls
    ],
)
def test_an_episode_succeeds_where_it_met_something_better_than_usual(
    usual: float, rewards: list[float], terminated: bool, succeeds: bool
) -> None:
    found = outcomes.successes(usual, np.array([max(rewards)]), np.array([rewards[-1]]), np.array([terminated]))
    assert found.tolist() == [succeeds]


def test_steps_to_the_first_success() -> None:
    lengths = np.array([5, 7, 2, 4])
    assert outcomes.steps_to_success(Estimate(0.25, 0.1, 0.5), lengths) == (4.5 / 0.25, 4.5 / 0.5, 4.5 / 0.1)
    assert outcomes.steps_to_success(Estimate(0.0, 0.0, 0.5), lengths) == (np.inf, 9.0, np.inf)


def test_steps_to_the_first_success_are_those_of_a_simulation() -> None:
    # Success ends an episode early, so that lengths depend on it; Wald's identity holds all the same.
    draw = np.random.default_rng(0)
    succeeds = draw.random(200_000) < 0.2
    lengths = np.where(succeeds, 3, 10)
    found = outcomes.steps_to_success(wilson_estimate(int(succeeds.sum()), len(succeeds)), lengths)
    ends = np.cumsum(lengths)[succeeds]
    waits = np.diff(ends, prepend=0)
    assert found.value == pytest.approx(waits.mean(), rel=1e-3)
    assert found.low < 0.8 / 0.2 * 10 + 3 < found.high  # failures before it, and itself


def test_ends_are_told_by_the_last_reward_beside_those_of_going_on() -> None:
    usual = outcomes.going_on(np.linspace(-1.0, 0.0, 101))
    assert (usual.low, usual.high, usual.is_constant) == (pytest.approx(-0.95), pytest.approx(-0.05), False)
    last = np.array([-40.0, -0.5, 10.0, -40.0])
    found = outcomes.ends_of(usual, last, np.array([True, True, True, False]))
    assert [outcomes.ENDS[place] for place in found] == ["worse", "alike", "better", "limit"]


@pytest.mark.parametrize(("last", "told"), [(-1.0, "alike"), (0.0, "better"), (-100.0, "worse")])
def test_where_each_step_gives_the_same_any_other_last_reward_tells(last: float, told: str) -> None:
    usual = outcomes.going_on(np.full(50, -1.0))
    assert usual.is_constant
    assert outcomes.ENDS[outcomes.ends_of(usual, np.array([last]), np.array([True]))[0]] == told


def test_without_a_step_that_went_on_no_end_can_be_told() -> None:
    usual = outcomes.going_on(np.empty(0))
    assert outcomes.ENDS[outcomes.ends_of(usual, np.array([5.0]), np.array([True]))[0]] == "alike"


def test_an_amount_per_step_has_the_interval_of_a_simulation() -> None:
    draw = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        lengths = draw.integers(1, 30, 60)
        amounts = -0.5 * lengths + draw.normal(0.0, 2.0, 60)
        found = outcomes.ratio_estimate(amounts, lengths)
        covered += found.low < -0.5 < found.high
    assert 0.91 < covered / 300 < 0.98
    assert np.isnan(outcomes.ratio_estimate(np.array([3.0]), np.array([2])).low)


def test_what_never_happened_may_happen_yet() -> None:
    lengths = np.full(100, 20)
    never = outcomes.event_rate(np.zeros(100, dtype=bool), lengths)
    assert never.value == never.low == 0.0
    assert never.high == pytest.approx(wilson_estimate(0, 100).high / 20)
    always = outcomes.event_rate(np.ones(100, dtype=bool), lengths)
    assert always.low < always.value == 1 / 20
