"""How rarely a policy may decide: a sweep of decision tolerances, and its verdict in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from holdfast.core.array_types import Floats
from holdfast.core.choice import Decision
from holdfast.policies.evaluation import LONGEST_EPISODE, Actor, Evaluation, evaluate
from holdfast.stats.estimates import mean_interval

__all__ = [
    "SweepPoint",
    "ToleranceVerdict",
    "random_return",
    "sweep_tolerance",
    "sweep_values",
    "tolerance_verdict",
]


COST = 0.02
"""Share of the return that fewer decisions may cost."""
_PATIENCE = 10.0
"""How many times as long as the policy's episodes those of random actions may be."""


@dataclass(frozen=True)
class SweepPoint:
    """The result of one tolerance.

    Attributes:
        tolerance: In value, discounted as the agent discounts.
        mean_return: Undiscounted.
        low: Lower end of its 95 % interval.
        high: Upper end.
        decisions: Mean number per episode.
        lost: How much lower the mean return is than with the first tolerance.
        lost_high: Upper end of the 95 % interval of that, episode by episode; NaN with one episode.
        length: Mean number of steps per episode.
    """

    tolerance: float
    mean_return: float
    low: float
    high: float
    decisions: float
    lost: float = 0.0
    lost_high: float = 0.0
    length: float = 0.0


def sweep_values(
    actor: Actor, env: gymnasium.Env[Any, Any], seed: int, longest: int = LONGEST_EPISODE, n: int = 12
) -> list[float]:
    """Tolerances worth trying: none, and ``n`` more up to where every option is within the tolerance.

    They are quantiles of the loss from holding the best action longer, over the decisions of one episode.
    """
    losses: list[Floats] = []

    class Watched:
        """Records the values of its decisions."""

        def decide(self, observation: Any) -> Any:
            decision = actor.decide(observation)
            values = np.asarray(decision.values, dtype=np.float64)
            best = int(np.argmax(values.max(axis=1)))
            losses.append(values.max() - values[best])
            return decision

        def interrupts(self, observation: Any, action: int, left: int) -> bool:
            return actor.interrupts(observation, action, left)

    evaluate(Watched(), env, [seed], longest)
    known = np.concatenate(losses)
    # Tiny losses differ from 0 only by chance.
    known = known[known > 1e-4 * known.max()] if known.max() > 0.0 else known[:0]
    if len(known) == 0:
        return [0.0]
    found = np.quantile(known, np.linspace(0.0, 1.0, n))
    # A little more than the loss itself, so that it is within the tolerance.
    return [0.0, *dict.fromkeys(float(f"{1.001 * tolerance:.3g}") for tolerance in found)]


def sweep_tolerance(
    actor: Actor,
    env: gymnasium.Env[Any, Any],
    seeds: Sequence[int],
    tolerances: Sequence[float],
    longest: int = LONGEST_EPISODE,
    told: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> list[SweepPoint]:
    """Evaluate a policy with each of several decision tolerances, on the same episodes."""
    points: list[SweepPoint] = []
    first = None
    for number, tolerance in enumerate(tolerances):
        told(number, len(tolerances))
        found: Evaluation = evaluate(actor.acting_with(tolerance, None), env, seeds, longest)
        first = found.returns if first is None else first
        mean, low, high = (float(part[0]) for part in mean_interval(found.returns[:, None]))
        lost, _, lost_high = (float(part[0]) for part in mean_interval((first - found.returns)[:, None]))
        decisions, length = float(found.decisions.mean()), float(found.lengths.mean())
        points.append(SweepPoint(tolerance, mean, low, high, decisions, lost, lost_high, length))
    return points


def random_return(
    env: gymnasium.Env[Any, Any], seeds: Sequence[int], first: SweepPoint, longest: int = LONGEST_EPISODE
) -> float:
    """The mean return of random actions, one per step: what a policy has that has learned nothing.

    Args:
        env: Where; it is left open.
        seeds: Of the resets.
        first: The policy without a tolerance; an episode is cut after ten times as many steps as its take.
        longest: Steps after which an episode is cut in any case.
    """
    actions = deepcopy(env.action_space)
    actions.seed(seeds[0])

    class Random:
        """Draws every action."""

        def decide(self, observation: Any) -> Decision:
            return Decision(actions.sample(), 1, np.zeros((1, 1)))

        def interrupts(self, observation: Any, action: Any, left: int) -> bool:
            return False

    return float(evaluate(Random(), env, seeds, min(longest, int(_PATIENCE * first.length))).returns.mean())


@dataclass(frozen=True)
class ToleranceVerdict:
    """The fewest decisions that cost little.

    Attributes:
        tolerance: With which there are that few.
        decisions: Per episode.
        mean_return: Undiscounted.
        is_certain: Whether the episodes rule out that it costs more.
        sentence: The verdict in words.
    """

    tolerance: float
    decisions: float
    mean_return: float
    is_certain: bool
    sentence: str


def tolerance_verdict(
    points: Sequence[SweepPoint], episodes: int, by_chance: float | None = None
) -> ToleranceVerdict:
    """The tolerance with the fewest decisions whose return is less than 2 % below that without one.

    Args:
        points: Results of the sweep, the first without tolerance.
        episodes: Episodes played with each.
        by_chance: The mean return of random actions; a policy that is not clearly better has nothing to lose. None
            if that is not to be asked.
    """
    first = points[0]
    least = first.mean_return if first.low != first.low else first.low
    if by_chance is not None and not least > by_chance:
        said = (
            f"Nothing to trade: without a tolerance the policy returns {first.mean_return:.4g}, not clearly more "
            f"than random actions ({by_chance:.4g}). Train it for longer before asking how rarely it may decide."
        )
        return ToleranceVerdict(first.tolerance, first.decisions, first.mean_return, False, said)
    if first.mean_return == 0.0:
        said = "No verdict: the return without a tolerance is 0, so a loss relative to it is undefined."
        return ToleranceVerdict(first.tolerance, first.decisions, 0.0, False, said)
    allowed = COST * abs(first.mean_return)
    cheap = [point for point in points if point is first or point.lost < allowed]
    chosen = min(cheap, key=lambda point: (point.decisions, point.tolerance))
    # Without an interval nothing is ruled out.
    is_certain = chosen.lost_high < allowed
    if chosen.decisions >= first.decisions:
        fewer = f"fewer than {first.decisions:.4g} decisions per episode"
        if any(point.decisions < first.decisions for point in points):
            said = (
                f"{fewer.capitalize()} cost at least {100.0 * COST:.0f} % of the return, {first.mean_return:.4g}"
            )
        else:
            said = f"No tolerance tried led to {fewer}"
        said += ": keep the policy as it is."
        return ToleranceVerdict(first.tolerance, first.decisions, first.mean_return, True, said)
    said = (
        f"With a decision tolerance of {chosen.tolerance:.3g} the policy decides {chosen.decisions:.4g} times per "
        f"episode instead of {first.decisions:.4g}, and its return is {chosen.mean_return:.4g} instead of "
        f"{first.mean_return:.4g}: less than {100.0 * COST:.0f} % is lost."
    )
    if not is_certain:
        most = chosen.lost_high / abs(first.mean_return) if first.mean_return else float("nan")
        could = "" if most != most else f", and the loss could be as large as {100.0 * most:.0f} %"
        counted = f"{episodes} episodes are" if episodes > 1 else "1 episode is"
        said += f" {counted} too few to be sure{could}: evaluate more of them."
    return ToleranceVerdict(chosen.tolerance, chosen.decisions, chosen.mean_return, is_certain, said)
