"""How rarely a policy may decide: a sentence to act on, from a sweep of decision tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.runs.showing import SweepPoint

__all__ = ["ToleranceVerdict", "tolerance_verdict"]

COST = 0.02
"""Part of the return that fewer decisions may cost."""


@dataclass(frozen=True)
class ToleranceVerdict:
    """The fewest decisions that cost little.

    Attributes:
        tolerance: With which there are that few.
        decisions: Per episode.
        mean_return: Undiscounted.
        is_certain: Whether the episodes rule out that it costs more.
        sentence: All of it in words.
    """

    tolerance: float
    decisions: float
    mean_return: float
    is_certain: bool
    sentence: str


def tolerance_verdict(points: Sequence[SweepPoint], episodes: int) -> ToleranceVerdict:
    """The tolerance with the fewest decisions whose return is less than 2 % below that without one.

    Args:
        points: The first of them without any tolerance.
        episodes: That were played with each.
    """
    first = points[0]
    if first.mean_return == 0.0:
        said = "No verdict: the return without a tolerance is 0, so that no part of it can be lost."
        return ToleranceVerdict(first.tolerance, first.decisions, 0.0, False, said)
    allowed = COST * abs(first.mean_return)
    cheap = [point for point in points if point.lost <= allowed]
    chosen = min(cheap, key=lambda point: (point.decisions, point.tolerance))
    # Without an interval nothing is ruled out.
    is_certain = chosen.lost_high <= allowed
    if chosen.decisions >= first.decisions:
        said = (
            f"Fewer than {first.decisions:.4g} decisions per episode cost more than {100.0 * COST:.0f} % of the "
            f"return, {first.mean_return:.4g}: keep the policy as it is."
        )
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
