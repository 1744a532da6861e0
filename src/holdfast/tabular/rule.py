"""A learner as its loops see it: how it decides and learns, its tables, and the option it has just carried out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["HeldOption", "LearningRule", "Tables"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NO_DURATIONS: Floats = np.zeros(0)


class LearningRule(NamedTuple):
    """How a learner decides, and what it learns from an option.

    Attributes:
        alpha: Learning rate α.
        powers: (K + 1,) γ^0..γ^K; no option lasts longer than K steps.
        ties_at_random: Whether greedy episodes draw one of equals at random; otherwise they take the first.
        updates_per_step: One-step updates with each step of an option; 0 updates all persistences instead, when
            the option is over.
        n_valued: V(s) is the largest value among the first ``n_valued`` persistences.
        bootstraps: Whether an option also updates longer persistences, by going on holding.
        pad_terminal: Whether an option that ends the episode also updates longer persistences.
        durations: Cumulative distribution of the duration of a random action; empty draws one of all options.
        margin: Interruption margin; infinite carries every option through.
        tolerance: What holding the best action longer may cost in a greedy episode; negative takes the best.
    """

    alpha: float
    powers: Floats
    ties_at_random: bool
    updates_per_step: float = 0.0
    n_valued: int = 1
    bootstraps: bool = False
    pad_terminal: bool = False
    durations: Floats = NO_DURATIONS
    margin: float = np.inf
    tolerance: float = -1.0


class Tables(NamedTuple):
    """What a run learns, changed in place.

    Attributes:
        q: (S, A, K) values of options; (S, A, 1) those of actions.
        skip_values: (S, A, K) values of holding the chosen action; (0, 0, 0) where ``q`` decides alone.
        carry: (1,) fraction of an update that is owed.
    """

    q: Floats
    skip_values: Floats
    carry: Floats


class HeldOption(NamedTuple):
    """The partial history of one option.

    Attributes:
        states: s_t..s_{t+κ} at the front.
        action: The held action.
        rewards: r_{t+1}..r_{t+κ} at the front.
        kappa: κ, the steps really executed.
        terminated: Whether s_{t+κ} is terminal.
    """

    states: Integers
    action: int
    rewards: Floats
    kappa: int
    terminated: bool
