"""The rule that turns what random options find into a longest hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from holdfast.advice.advisor import Advice, advise_from_chain, advise_from_visits, clearly_lowest
from holdfast.advice.visitation.cells import Cells
from holdfast.advice.visitation.outcomes import GoingOn
from holdfast.advice.visitation.random_options import Budget, Setting
from holdfast.advice.visitation.results import Visitation, VisitationStudy
from holdfast.mdp.exploration import ExplorationCurve, exploration_curves
from holdfast.mdp.kernels import kernel_from
from holdfast.stats.estimates import Estimate


def around(value: float, half: float) -> Estimate:
    return Estimate(value, value - half, value + half)


def result(
    k_max: int,
    success: float | None = None,
    mean: float = 0.0,
    upper: float = 0.0,
    visited: int = 10,
    mode: str = "dynamic",
    cut_off: int = 0,
    length: float = 10.0,
    per_step: float = 0.0,
    failures: float = 0.0,
    alike: float = 0.0,
) -> Visitation:
    """Of 100 episodes; success, failures and unmarked ends are shares of them."""
    nothing = np.zeros(0)
    shares = {"better": success or 0.0, "alike": alike, "worse": failures}
    ends = {name: around(share, 0.01) for name, share in shares.items()}
    ends["limit"] = around(1.0 - sum(shares.values()), 0.01)
    return Visitation(
        k_max=k_max,
        mode=mode,
        episodes=100,
        steps=1000,
        decisions=500,
        cut_off=cut_off,
        returns=nothing,
        lengths=nothing.astype(np.int64),
        mean_return=around(mean, 1.0),
        upper_return=around(upper, 1.0),
        mean_length=around(length, 0.1),
        reward_per_step=around(per_step, 0.1),
        ends=ends,
        successes_per_step=None if success is None else around(success / length, 0.05 / length),
        failures_per_step=around(failures / length, 0.01 / length),
        beats_typical=around(0.5, 0.1),
        terminated=around(0.5, 0.1),
        success=None if success is None else around(success, 0.05),
        steps_to_success=None if success is None else around(1234.4, 100.0),
        counts=nothing.astype(np.int64),
        visited=visited,
        coverage=visited / 100,
    )


DENSE, ALL_ALIKE = GoingOn(-1.0, 0.0, -0.5, False), GoingOn(-1.0, -1.0, -1.0, True)


def advice(*results: Visitation, kind: str = "states", going_on: GoingOn = DENSE) -> Advice:
    study = VisitationStudy(
        env_name="somewhere",
        seed=0,
        budget=Budget(1000, "steps"),
        loop="python",
        reference=Setting(results[0].k_max, results[0].mode),
        usual_reward=None,
        going_on=going_on,
        results=results,
        cells=Cells(kind, (), (), (), np.zeros((len(results), 1), dtype=np.int64)),
        grid=None,
        goal=None,
        notes=(),
    )
    return advise_from_visits(study)


def test_the_smallest_of_those_that_succeed_as_often_as_the_best() -> None:
    found = advice(result(1, 0.0), result(8, 0.1), result(16, 0.35), result(32, 0.4), result(64, 0.2))
    # 16 is within the interval of 32, 8 is not.
    assert (found.k_max, found.basis) == (16, "success")
    assert found.sentence == (
        "k_max = 16: random actions held for up to 16 steps reach success about once per 29 steps (35 % (30–40) "
        "of episodes); single-step actions: never in 1,000 steps (0 % (-5–5))."
    )


def test_success_goes_before_the_return() -> None:
    found = advice(result(1, 0.0, mean=50.0), result(4, 0.5, mean=0.0))
    assert (found.k_max, found.basis) == (4, "success")


def test_where_success_does_not_tell_the_return_does() -> None:
    found = advice(result(1, 0.50, mean=0.0), result(4, 0.52, mean=5.0), result(8, 0.55, mean=5.5))
    assert (found.k_max, found.basis) == (4, "return")
    assert "return 5 (4 to 6) on average; single-step actions: 0 (-1 to 1)" in found.sentence
    assert found.sentence.endswith("Episodes are of comparable length.")


def test_where_the_return_does_not_tell_coverage_does_if_it_harms_nobody() -> None:
    harmless = (result(1, visited=10), result(4, visited=39), result(8, visited=40))
    found = advice(*harmless, result(16, upper=-3.0, visited=90), result(32, mean=-3.0, visited=95))
    # 39 is at least 95 % of 40; at 16 the better episodes are worse, at 32 the average.
    assert (found.k_max, found.basis) == (4, "coverage")
    assert "visit 39 places; single-step actions: 10" in found.sentence
    assert found.sentence.endswith("are not clearly worse: a hint to try, not a finding.")


def test_what_is_advised_is_itself_clearly_better_than_the_smallest() -> None:
    # 4 overlaps the best, 8, and the smallest too.
    four = replace(result(4, 0.2), successes_per_step=Estimate(0.02, 0.002, 0.04))
    assert advice(result(1, 0.0), four, result(8, 0.4)).k_max == 8
    wide = replace(result(4), mean_return=Estimate(3.0, 0.5, 5.5))
    assert advice(result(1), wide, result(8, mean=6.0)).k_max == 8
    assert advice(result(1), replace(wide, mean_return=Estimate(3.0, 1.1, 5.5)), result(8, mean=6.0)).k_max == 4


def test_too_few_episodes_give_no_advice() -> None:
    unknown = replace(result(4, visited=40), upper_return=Estimate(-5.0, np.nan, np.nan), episodes=3)
    found = advice(result(1), unknown)
    assert (found.k_max, found.basis, found.is_undecided) == (1, "none", True)
    assert found.sentence == (
        "No advice: with only 3 episodes for some k_max, settings cannot be told apart. Play more steps."
    )
    assert not advice(result(1), result(4)).is_undecided


def test_advice_from_too_few_episodes_says_itself_that_it_is_provisional() -> None:
    few = replace(result(4, 0.5), upper_return=Estimate(-5.0, np.nan, np.nan), episodes=30)
    found = advice(result(1, 0.0), few)
    assert (found.k_max, found.basis) == (4, "success")
    assert (found.is_undecided, found.is_provisional) == (False, True)
    assert found.sentence.endswith(
        " This is provisional, with only 30 episodes for some k_max: play more steps before you train."
    )
    sure = advice(result(1, 0.0), result(4, 0.5))
    assert not sure.is_provisional
    assert "provisional" not in sure.sentence


def test_episodes_that_were_cut_off_give_no_advice_by_coverage() -> None:
    found = advice(result(1), result(4, visited=40, cut_off=1))
    assert (found.k_max, found.basis) == (1, "none")
    assert found.sentence.endswith("coverage is uninformative here: episodes that did not end were cut off.")
    assert advice(result(1, 0.0), result(4, 0.5, cut_off=1)).k_max == 4


def test_where_nearly_every_observation_is_new_there_are_no_places_to_compare() -> None:
    # 1,100 observations of each: 1,000 steps and the first ones of 100 episodes.
    new = result(1, visited=991), result(4, visited=1100)
    found = advice(*new, kind="observations")
    assert (found.k_max, found.basis) == (1, "none")
    assert found.sentence.endswith("nearly every observation is new, so places cannot be compared.")
    assert "does not call for holding" not in found.sentence
    assert advice(result(1, visited=990), new[1], kind="observations").basis == "coverage"
    assert advice(*new).basis == "coverage"


def test_harm_is_told_where_places_do_not_tell() -> None:
    unknown = replace(result(8, mean=10.0), upper_return=Estimate(-5.0, np.nan, np.nan))
    found = advice(result(1, mean=20.0), unknown)
    assert "coverage is uninformative here: there are too few episodes" in found.sentence
    assert not found.is_undecided
    assert "they return 10 (9 to 11), single-step actions 20 (19 to 21)" in found.sentence


def test_an_episode_that_fails_early_has_saved_cost_and_is_no_better_for_it() -> None:
    """A tank that costs something at every step and ends when it overheats."""
    found = advice(
        result(1, mean=-148.0, upper=-90.0, length=200, per_step=-0.74, failures=0.0),
        result(32, mean=-105.0, upper=-60.0, length=92, per_step=-1.14, failures=0.76, visited=90),
    )
    assert (found.k_max, found.basis) == (1, "none")
    assert "With k_max = 32 episodes fail about once per 121 steps, with k_max = 1 never in 1,000 steps." in (
        found.sentence
    )
    assert found.sentence.endswith(
        "Episode lengths differ (92 and 200 steps with k_max = 32 and 1), so rewards are compared per step of "
        "equal time: their mean falls, -1.14 (-1.24 to -1.04) against -0.74 (-0.84 to -0.64)."
    )


def test_rewards_that_never_differ_are_not_compared_where_lengths_do() -> None:
    found = advice(
        result(1, mean=-100.0, length=100, failures=0.2),
        result(8, mean=-20.0, length=20, failures=0.9, visited=90),
        going_on=ALL_ALIKE,
    )
    assert (found.k_max, found.basis) == (1, "none")
    assert found.sentence.endswith(
        "Episode lengths differ (20 and 100 steps) and each step gives the same reward: returns are not compared."
    )


def test_successes_count_per_step_for_equal_time_is_what_learning_costs() -> None:
    """Every episode succeeds in the end; how soon is what differs."""
    soon, late = result(8, 1.0, length=20), result(1, 1.0, length=100)
    found = advice(late, soon)
    assert (found.k_max, found.basis) == (8, "success")
    assert "about once per 20 steps (100 % (95–105) of episodes); single-step actions: about once per 100" in (
        found.sentence
    )
    assert advice(replace(soon, k_max=1), replace(late, k_max=8)).k_max == 1


def test_an_end_that_nothing_marks_is_no_success_where_failures_are_marked() -> None:
    unmarked = (result(1, 0.1, alike=0.1), result(8, 0.6, alike=0.6))
    assert advice(*unmarked, going_on=ALL_ALIKE).k_max == 8
    marked = (unmarked[0], replace(unmarked[1], ends={**unmarked[1].ends, "worse": around(0.3, 0.01)}))
    assert (advice(*marked, going_on=ALL_ALIKE).k_max, advice(*marked).basis) == (1, "none")


def test_more_failures_in_equal_time_are_harm_and_places_do_not_make_up_for_it() -> None:
    one = result(1, failures=0.1, visited=10)
    found = advice(one, result(4, failures=0.1, visited=40), result(8, failures=0.5, visited=90))
    assert (found.k_max, found.basis) == (4, "coverage")
    assert advice(one, result(8, failures=0.5, visited=90)).k_max == 1


def test_places_are_sought_where_rewards_per_step_are_not_worse() -> None:
    found = advice(result(1, mean=-100.0, length=100), result(4, mean=-300.0, length=300, visited=90))
    assert (found.k_max, found.basis) == (4, "coverage")
    assert "Rewards per step are not clearly worse (episode lengths differ, so returns are not compared)" in (
        found.sentence
    )


def test_a_higher_return_of_episodes_that_fail_is_none() -> None:
    one, four = result(1, mean=0.0, failures=0.5), result(4, mean=5.0, failures=0.5)
    assert advice(one, four).basis == "none"
    assert advice(result(1), result(4, mean=5.0)).basis == "return"
    assert advice(result(1), result(4, mean=5.0, length=20)).basis == "none"


def test_where_holding_only_harms_nothing_speaks_for_it() -> None:
    found = advice(result(1, mean=20.0, upper=30.0), result(8, mean=10.0, upper=15.0, visited=99))
    assert (found.k_max, found.basis) == (1, "none")
    assert found.sentence.endswith(
        "Held for up to 8 steps they return 10 (9 to 11), single-step actions 20 (19 to 21), in episodes of "
        "comparable length."
    )


def test_the_order_in_which_they_were_given_does_not_matter() -> None:
    one, four, eight = result(1, 0.0), result(4, 0.4), result(8, 0.4)
    assert advice(eight, one, four) == advice(one, four, eight)
    assert advice(one, four, eight).k_max == 4


def test_one_alone_is_compared_with_nothing() -> None:
    assert advice(result(8, 0.9)) == Advice(8, "none", "k_max = 8: there is nothing to compare it with.")


def test_holds_of_one_length_are_not_what_is_advised_on() -> None:
    with pytest.raises(ValueError, match="study must have results of the mode 'dynamic'"):
        advice(result(1, mode="fixed"), result(4, mode="fixed"))


def curve(kemeny: list[float], errors: float = 0.0) -> ExplorationCurve:
    k_max = 2 ** np.arange(len(kemeny))
    nothing = np.zeros(len(kemeny))
    (known,) = exploration_curves(kernel_from(np.array([[1], [0]])), [1], H=[1])
    return ExplorationCurve(
        H=30,
        k_max=k_max,
        kemeny=np.array(kemeny),
        kemeny_error=nothing + errors,
        kemeny_of_one=known.kemeny_of_one._replace(value=kemeny[0], standard_error=errors),
        row_entropy=nothing,
        row_entropy_error=nothing,
        stationary_entropy=nothing,
    )


def test_a_chain_speaks_for_its_lowest_constant() -> None:
    found = advise_from_chain(curve([40.0, 38.0, 36.0, 37.0]))
    assert (found.k_max, found.basis) == (4, "kemeny")
    assert "0.900 of its value with k_max = 1" in found.sentence


def test_a_dip_of_less_than_half_a_percent_is_none() -> None:
    found = advise_from_chain(curve([40.0, 39.9, 41.0]))
    assert (found.k_max, found.basis) == (1, "none")
    assert found.sentence.startswith("k_max = 1: none of 2, 4 lowers Kemeny's constant of 30 steps")


def test_only_what_is_advised_is_called_lowest() -> None:
    assert clearly_lowest(curve([40.0, 38.0, 36.0, 37.0])) == 2
    assert clearly_lowest(curve([40.0, 39.9, 41.0])) is None
    assert clearly_lowest(curve([40.0, 38.0], errors=1.0)) is None
    assert clearly_lowest(curve([40.0, 41.0])) is clearly_lowest(curve([40.0])) is None


def test_a_dip_within_the_error_of_an_estimate_is_none() -> None:
    assert advise_from_chain(curve([40.0, 38.0], errors=0.1)).k_max == 2
    assert advise_from_chain(curve([40.0, 38.0], errors=1.0)).k_max == 1


def test_places_speak_where_the_smallest_has_clearly_fewer() -> None:
    assert advice(result(1, visited=94), result(2, visited=100)).k_max == 2
    assert advice(result(1, visited=95), result(2, visited=100)).k_max == 1


def test_one_other_k_max_is_named_alone() -> None:
    sentence = advise_from_chain(curve([40.0, 41.0])).sentence
    assert sentence.startswith("k_max = 1: 2 does not lower Kemeny's constant of 30 steps")


def test_a_chain_of_one_k_max_has_nothing_to_be_compared_with() -> None:
    """Whether holding helps, nothing says."""
    found = advise_from_chain(curve([40.0]))
    assert found == Advice(1, "none", "k_max = 1: there is nothing to compare it with.")
