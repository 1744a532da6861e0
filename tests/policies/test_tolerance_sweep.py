"""How rarely a policy may decide, from sweeps written down by hand."""

from __future__ import annotations

import math

import gymnasium
import pytest

from holdfast.policies.tolerance_sweep import SweepPoint, random_return, tolerance_verdict


def point(tolerance: float, decisions: float, mean: float, lost_high: float | None = None) -> SweepPoint:
    lost = -40.0 - mean
    return SweepPoint(
        tolerance, mean, mean - 1, mean + 1, decisions, lost, lost if lost_high is None else lost_high
    )


def test_the_fewest_decisions_that_cost_less_than_two_percent() -> None:
    found = tolerance_verdict([point(0.0, 200, -40.0), point(0.2, 42, -40.2), point(0.3, 40, -41.2)], 20)
    assert (found.tolerance, found.decisions, found.is_certain) == (0.2, 42, True)
    assert found.sentence == (
        "With a decision tolerance of 0.2 the policy decides 42 times per episode instead of 200, and its return "
        "is -40.2 instead of -40: less than 2 % is lost."
    )


def test_too_few_episodes_are_said() -> None:
    found = tolerance_verdict([point(0.0, 200, -40.0), point(0.2, 42, -40.2, lost_high=6.0)], 5)
    assert not found.is_certain
    assert found.sentence.endswith(
        "5 episodes are too few to be sure, and the loss could be as large as 15 %: evaluate more of them."
    )
    alone = tolerance_verdict([point(0.0, 200, -40.0), point(0.2, 42, -40.0, lost_high=math.nan)], 1)
    assert alone.sentence.endswith("1 episode is too few to be sure: evaluate more of them.")


def test_where_every_saving_costs_more_the_policy_stays_as_it_is() -> None:
    found = tolerance_verdict([point(0.0, 200, -40.0), point(0.2, 42, -60.0)], 20)
    assert found.tolerance == 0.0
    assert found.sentence == (
        "Fewer than 200 decisions per episode cost at least 2 % of the return, -40: keep the policy as it is."
    )


def test_where_no_tolerance_saves_a_decision_no_cost_is_claimed() -> None:
    found = tolerance_verdict([point(0.0, 200, -40.0), point(0.2, 200, -40.0), point(0.3, 210, -60.0)], 20)
    assert found.tolerance == 0.0
    assert found.sentence == (
        "No tolerance tried led to fewer than 200 decisions per episode: keep the policy as it is."
    )


def test_exactly_two_percent_is_not_less_than_two_percent() -> None:
    whole = SweepPoint(0.0, 100.0, 99.0, 101.0, 200, 0.0, 0.0)
    lost_two = SweepPoint(0.2, 98.0, 97.0, 99.0, 42, 2.0, 2.0)
    assert tolerance_verdict([whole, lost_two], 20).tolerance == 0.0


def test_of_nothing_no_part_can_be_lost() -> None:
    points = [SweepPoint(0.0, 0.0, 0.0, 0.0, 50.0), SweepPoint(0.2, 0.0, 0.0, 0.0, 25.0)]
    assert tolerance_verdict(points, 3).sentence.startswith("No verdict: the return without a tolerance is 0")


def test_a_policy_no_better_than_random_actions_has_nothing_to_trade() -> None:
    points = [SweepPoint(0.0, -200.0, -200.0, -200.0, 200), SweepPoint(0.2, -200.0, -200.0, -200.0, 7)]
    found = tolerance_verdict(points, 20, by_chance=-200.0)
    assert (found.tolerance, found.decisions, found.is_certain) == (0.0, 200, False)
    assert found.sentence == (
        "Nothing to trade: without a tolerance the policy returns -200, not clearly more than random actions "
        "(-200). Train it for longer before asking how rarely it may decide."
    )
    # A return that never differs is no sign of it: here random actions fall.
    assert tolerance_verdict(points, 20, by_chance=-500.0).tolerance == 0.2
    # The interval is -41 to -39, or unknown with one episode.
    learned = [point(0.0, 200, -40.0), point(0.2, 42, -40.2)]
    assert tolerance_verdict(learned, 20, by_chance=-41.5).tolerance == 0.2
    assert "Nothing to trade" in tolerance_verdict(learned, 20, by_chance=-40.5).sentence
    alone = [SweepPoint(0.0, -40.0, math.nan, math.nan, 200), SweepPoint(0.2, -40.0, math.nan, math.nan, 42)]
    assert tolerance_verdict(alone, 1, by_chance=-40.5).tolerance == 0.2
    assert "Nothing to trade" in tolerance_verdict(alone, 1, by_chance=-40.0).sentence


class Wandering(gymnasium.Env[int, int]):
    """A step costs 1, and no episode ends."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None) -> tuple[int, dict]:
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict]:
        assert action in (0, 1)
        return action, -1.0, False, False, {}


@pytest.mark.parametrize(("longest", "expected"), [(100_000, -70.0), (50, -50.0)])
def test_random_actions_are_cut_where_they_lead_nowhere(longest: int, expected: float) -> None:
    first = SweepPoint(0.0, -7.0, -7.0, -7.0, 7, length=7.0)
    assert random_return(Wandering(), [3, 4], first, longest) == expected
