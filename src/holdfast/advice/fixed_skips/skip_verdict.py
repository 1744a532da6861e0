"""Which fixed frame skip can be shipped: a sentence to act on, from the value of each skip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["COSTS", "SkipVerdict", "skip_verdict"]

COSTS = (0.02, 0.05, 0.1, 0.2)
"""Shares of the value that a skip may cost; the first that estimates can resolve is used."""


class PricedSkip(Protocol):
    """A fixed skip and its cost."""

    @property
    def k(self) -> int:
        """The frame skip."""
        ...

    @property
    def value(self) -> float | None:
        """The value of the best policy with it; None if unknown."""
        ...

    @property
    def loss(self) -> float | None:
        """Its cost; None if the value must not be compared.

        Exact skips measure it from k = 1 and estimated ones from the smallest, so the verdict only checks whether
        it is known, and compares values.
        """
        ...

    @property
    def note(self) -> str | None:
        """Why there is no value."""
        ...


@dataclass(frozen=True)
class SkipVerdict:
    """The longest skip that costs little.

    Attributes:
        k: That skip; None if there is no verdict.
        costs_less_than: The share of the value that it costs less than; None if there is no verdict.
        loss_share: Its cost, as a share of the smallest skip's value.
        contradiction: The share of the value by which a multiple of a skip came out above the skip, which is
            impossible: no smaller difference means anything.
        without_value: Skips that have no value; the sentence says why.
        sentence: All of this in words.
    """

    k: int | None
    costs_less_than: float | None
    loss_share: float | None
    contradiction: float
    without_value: tuple[int, ...]
    sentence: str


def skip_verdict(skips: Sequence[PricedSkip]) -> SkipVerdict:
    """The longest skip that costs less than 2 % of the value, or less than what the estimates can resolve.

    Args:
        skips: The skips; all are compared with the smallest.
    """
    known = {skip.k: skip.value for skip in skips if skip.value is not None and skip.loss is not None}
    notes = {skip.k: skip.note for skip in sorted(skips, key=lambda skip: skip.k) if skip.value is None}
    missing, lack = tuple(notes), _lack(notes)
    if len(known) < 2:
        said = f"No verdict: at least two skips must have a value to be compared.{lack}"
        return SkipVerdict(None, None, None, 0.0, missing, said)
    smallest = min(known)
    whole = abs(known[smallest])
    if whole <= 1e-12:
        said = f"No verdict: the value with k = {smallest} is 0, so no share of it can be lost.{lack}"
        return SkipVerdict(None, None, None, 0.0, missing, said)
    shares = {k: (known[smallest] - value) / whole for k, value in sorted(known.items())}
    above = max(shares[k] - shares[other] for k in shares for other in shares if other % k == 0)
    contradiction = above if above > 1e-9 else 0.0
    cost = next((cost for cost in COSTS if contradiction < cost), None)
    if cost is None:
        said = (
            f"No verdict: the estimates contradict each other by {_percent(contradiction)} of the value (a "
            "multiple of a skip cannot be better than the skip). More steps, or random options, would improve "
            f"them.{lack}"
        )
        return SkipVerdict(None, None, None, contradiction, missing, said)
    longest = max(k for k, share in shares.items() if share < cost)
    said = (
        f"The longest fixed skip that costs less than {_percent(cost)} of the value with k = {smallest} is "
        f"{longest} ({_cost(shares[longest])})"
    )
    after = min((k for k in shares if k > longest), default=None)
    said += "; longer ones were not compared." if after is None else f"; k = {after} costs {_cost(shares[after])}."
    dear = [k for k in shares if k < longest and shares[k] >= cost]
    if dear:
        # Only a multiple of a skip is certain to cost at least as much as the skip.
        costs = _listed([f"k = {k} costs {_percent(shares[k])}" for k in dear])
        said += f" Not every shorter skip is as cheap: {costs}."
    if cost > COSTS[0]:
        said += (
            " Smaller costs cannot be resolved: the estimates contradict each other by "
            f"{_percent(contradiction)} of the value, because a multiple of a skip came out better than the skip."
        )
    return SkipVerdict(longest, cost, shares[longest], contradiction, missing, said + lack)


def _cost(share: float) -> str:
    return "nothing" if share <= 5e-4 else _percent(share)


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %" if abs(share) < 0.1 else f"{100.0 * share:.0f} %"


def _lack(notes: Mapping[int, str | None]) -> str:
    """The skips that have no value, and why."""
    if not notes:
        return ""
    return f" No value for {_listed([f'k = {k} ({note})' if note else f'k = {k}' for k, note in notes.items()])}."


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts)
