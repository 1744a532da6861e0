"""From what random options find to a longest hold K_max: the rule, and the sentence that explains it.

The advice is about exploration: before anything is learned, which holds lead further than single steps do? It
rests on the first of these measures that tells the settings apart. All K are compared with the smallest:

1. **success**: per step, more episodes meet something better than going on (``visitation.outcomes``). An end whose
   reward is like that of going on counts only if no end is marked as a failure by a worse reward;
2. **return**: the mean return of random options is higher, if episodes have comparable lengths and hardly any of
   them fail. A return shows when an episode ended more than how well it went;
3. **coverage**: more places are visited, among the K that do no harm: a place that is reached by falling is no
   gain.

A K does **harm** if, per step, clearly more of its episodes fail, or if its rewards are clearly lower. Rewards are
compared by returns (mean and upper tenth) if lengths are comparable, else by the reward per step. They are not
compared at all if each step gives the same reward: they would only repeat how long the episodes were.

"More", "higher" and "lower" mean that the 95 % intervals do not overlap. Places have no interval: there are more
of them if the smallest K visits less than 95 % of the largest number visited, a hint and not a finding. They are
uninformative if there are too few episodes to see harm, if episodes did not end and were cut off, or if nearly
every observation is new. Among the K that are as good as the best and better than the smallest, the smallest is
advised, because longer holds give less to learn from. With too few episodes to see harm, advice is provisional. If
no measure tells the settings apart, K_max stays the smallest: no advice is better than wrong advice. For a model
that is known exactly, Kemeny's constant replaces all of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from holdfast.advice.advice_sentences import (
    because_of_nothing,
    because_of_places,
    because_of_return,
    because_of_success,
)
from holdfast.advice.harm import HARDLY_ANY, are_of_comparable_length, harm_of, successes_tell
from holdfast.advice.visitation.results import Visitation, VisitationStudy
from holdfast.core.errors import InputError
from holdfast.mdp.exploration import ExplorationCurve
from holdfast.stats.estimates import Estimate

__all__ = ["Advice", "advise_from_chain", "advise_from_visits", "clearly_lowest"]

AS_GOOD = 0.95
"""Share of the largest coverage above which a coverage counts as equally good."""

CLEARLY_LOWER = 0.995
"""A constant counts as lower if it is below this share of Kemeny's constant at the smallest K."""


@dataclass(frozen=True)
class Advice:
    """A longest hold, and the reason for it.

    Attributes:
        k_max: K_max.
        basis: ``"success"``, ``"return"``, ``"coverage"`` or ``"kemeny"``; ``"none"`` if nothing speaks for
            holding.
        sentence: The reason, with the numbers behind it.
        is_undecided: Whether too little was played to decide; ``k_max`` is then the smallest K, not advice.
        is_provisional: Whether so little was played that more of it may lead to other advice.
    """

    k_max: int
    basis: str
    sentence: str
    is_undecided: bool = False
    is_provisional: bool = False


def advise_from_visits(study: VisitationStudy) -> Advice:
    """The longest hold that a study of random options speaks for; the study must have the mode ``"dynamic"``."""
    results = sorted(
        (result for result in study.results if result.mode == "dynamic"), key=lambda found: found.k_max
    )
    if not results:
        raise InputError("study must have results of the mode 'dynamic' to advise a longest hold")
    first = results[0]
    if len(results) == 1:
        return _alone(first.k_max)
    found = _compared(study, first, results)
    if found.is_undecided or not _are_too_few(results):
        return found
    said = f"This is provisional, with only {_fewest(results)} for some k_max: play more steps before you train."
    return replace(found, sentence=f"{found.sentence} {said}", is_provisional=True)


def _compared(study: VisitationStudy, first: Visitation, results: Sequence[Visitation]) -> Advice:
    """The advice of the first measure that tells the settings apart."""
    if successes_tell(results):
        chosen = _clearly_best(results, lambda result: result.successes_per_step or _nothing())
        if chosen is not None:
            return Advice(chosen.k_max, "success", because_of_success(first, chosen))
    sound = [result for result in results if result is first or _returns_tell(first, result)]
    chosen = _clearly_best(sound, lambda result: result.mean_return)
    if chosen is not None:
        return Advice(chosen.k_max, "return", because_of_return(first, chosen))
    return _by_coverage(study, first, results)


def advise_from_chain(curve: ExplorationCurve) -> Advice:
    """The longest hold at which Kemeny's constant is lowest."""
    first = int(curve.k_max[0])
    if len(curve.k_max) == 1:
        return _alone(first)
    lowest = clearly_lowest(curve)
    if lowest is None:
        longer = ", ".join(str(k) for k in curve.k_max[1:])
        said = f"none of {longer} lowers" if len(curve.k_max) > 2 else f"{longer} does not lower"
        return Advice(
            first,
            "none",
            f"k_max = {first}: {said} Kemeny's constant of {curve.H} steps by half a percent or more: "
            "holding does not help exploration here.",
        )
    k_max, value = int(curve.k_max[lowest]), float(curve.kemeny[lowest] / curve.kemeny[0])
    return Advice(
        k_max,
        "kemeny",
        f"k_max = {k_max}: Kemeny's constant of {curve.H} steps of random options, the expected time to "
        f"reach a state, is lowest here: {value:.3f} of its value with k_max = {first}.",
    )


def clearly_lowest(curve: ExplorationCurve) -> int | None:
    """Index of the K_max with the lowest constant; None if that is not half a percent below the smallest K's.

    If the constants are estimates, two standard errors are added.
    """
    best = curve.best
    value, error = float(curve.kemeny[best] / curve.kemeny[0]), float(curve.normalised_error[best])
    return None if best == 0 or value + 2.0 * error > CLEARLY_LOWER else best


def _alone(k_max: int) -> Advice:
    return Advice(k_max, "none", f"k_max = {k_max}: there is nothing to compare it with.")


def _clearly_best(results: Sequence[Visitation], measure: Callable[[Visitation], Estimate]) -> Visitation | None:
    """The smallest K that is as good as the best and clearly better than the smallest of all, if any."""
    first = measure(results[0])
    best = max((measure(result) for result in results), key=lambda found: found.value)
    better = (result for result in results if measure(result).low > first.high)
    return next((result for result in better if measure(result).high >= best.low), None)


def _by_coverage(study: VisitationStudy, first: Visitation, results: Sequence[Visitation]) -> Advice:
    harms = [harm_of(study.going_on, first, result) for result in results]
    worst = harms[-1] or next((harm for harm in reversed(harms) if harm is not None), None)
    silence = _why_places_do_not_tell(study, results)
    if worst is None and _are_too_few(results):
        few = f"with only {_fewest(results)} for some k_max"
        said = f"No advice: {few}, settings cannot be told apart. Play more steps."
        return Advice(first.k_max, "none", said, is_undecided=True)
    if silence is not None:
        return Advice(
            first.k_max, "none", because_of_nothing(first, f"coverage is uninformative here: {silence}", worst)
        )
    harmless = [result for result, harm in zip(results, harms, strict=True) if harm is None]
    most = max(result.coverage for result in harmless)
    chosen = next(result for result in harmless if result.coverage >= AS_GOOD * most)
    if chosen is first:
        reason = "nor do they visit more places without harm" if worst else "nor do they visit more places"
        return Advice(first.k_max, "none", because_of_nothing(first, reason, worst))
    return Advice(chosen.k_max, "coverage", because_of_places(study.going_on, first, chosen))


def _returns_tell(first: Visitation, result: Visitation) -> bool:
    """Whether two mean returns show which setting did better, and not only when episodes failed."""
    return are_of_comparable_length(first, result) and all(
        found.ends["worse"].value <= HARDLY_ANY for found in (first, result)
    )


def _why_places_do_not_tell(study: VisitationStudy, results: Sequence[Visitation]) -> str | None:
    """The reason why coverage is uninformative; None if it is informative."""
    if not study.has_places:
        return "nearly every observation is new, so places cannot be compared"
    if any(result.cut_off for result in results):
        return "episodes that did not end were cut off"
    if _are_too_few(results):
        return "there are too few episodes to compare places"
    return None


def _are_too_few(results: Sequence[Visitation]) -> bool:
    """With fewer than 36 episodes, the upper end of the quantile is unknown, and the quantile may be anything."""
    return any(math.isnan(result.upper_return.high) for result in results)


def _fewest(results: Sequence[Visitation]) -> str:
    fewest = min(result.episodes for result in results)
    return "1 episode" if fewest == 1 else f"{fewest} episodes"


def _nothing() -> Estimate:
    return Estimate(0.0, 0.0, 0.0)
