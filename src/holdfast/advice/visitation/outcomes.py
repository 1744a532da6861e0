"""What random episodes amount to, defined for every environment.

Rewards differ too much between environments for a single measure. Therefore there are several, and each says where
it is undefined:

- An episode's **return** is always defined.
- Its **success** is defined if there is a **usual reward**: one that more than half of all steps give with the
  shortest options. An episode succeeds if it met something better than going on as usual: a reward above the usual
  one or, if the usual one is negative, an end that is not itself worse than usual, since it spares the rest.

| environment | usual reward | succeeds |
|---|---|---|
| MountainCar | −1 | at the flag, which ends the episode |
| Acrobot | −1 | at the height, which gives 0 and ends the episode |
| grids | 0 | at a goal, +1; a hole, −1, is not a success |
| the synchronous grid | −1 | at the goal, +100; holes and borders end the episode but are worse than usual |
| CartPole | +1 | never: nothing is better than going on, so success is undefined |
| LunarLander | none | at an end with a reward above nearly all others |
| Pendulum | none | undefined: rewards are dense, and no end stands out |

How an episode **ended** says more than how much it collected until then. If steps cost something, an episode that
fails early has paid less, but is no better for it. Therefore the reward of the last step is compared with what
going on gives: the rewards of all steps of the reference that did not end an episode:

- **better**: above their 95 % quantile;
- **worse**: below their 5 % quantile;
- **alike**: in between; the reward does not show whether the end is to be sought or avoided;
- **limit**: the episode did not end by itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from holdfast.core.array_types import Floats
from holdfast.stats.estimates import Estimate
from holdfast.stats.intervals import LEVEL, wilson_estimate

__all__ = [
    "ENDS",
    "GoingOn",
    "ends_of",
    "event_rate",
    "going_on",
    "ratio_estimate",
    "steps_to_success",
    "successes",
    "usual_reward",
]


ENDS = ("limit", "better", "alike", "worse")
"""The ways in which an episode may end; ``ends_of`` gives positions in this tuple."""

TAIL = 0.05
"""Share of the rewards of going on that is left out on either side."""


class GoingOn(NamedTuple):
    """The rewards of steps that did not end an episode.

    Attributes:
        low: Their 5 % quantile.
        high: Their 95 % quantile.
        mean: Their mean.
        is_constant: Whether they are all the same.
    """

    low: float
    high: float
    mean: float
    is_constant: bool


def going_on(rewards: Floats) -> GoingOn:
    """What going on gives.

    Args:
        rewards: (n,) rewards of steps that did not end an episode; if empty, the result is NaN.
    """
    if len(rewards) == 0:
        return GoingOn(math.nan, math.nan, math.nan, False)
    low, high = np.quantile(rewards, (TAIL, 1.0 - TAIL), method="inverted_cdf")
    return GoingOn(float(low), float(high), float(np.mean(rewards)), bool(np.ptp(rewards) == 0.0))


def ends_of(usual: GoingOn, last_rewards: Floats, terminated: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(n,) how each episode ended, as positions in ``ENDS``.

    Args:
        usual: What going on gives.
        last_rewards: (n,) reward of each episode's last step.
        terminated: (n,) whether it ended by itself.
    """
    found = np.full(len(last_rewards), ENDS.index("alike"))
    found[last_rewards > usual.high] = ENDS.index("better")
    found[last_rewards < usual.low] = ENDS.index("worse")
    found[~np.asarray(terminated)] = ENDS.index("limit")
    return found


def ratio_estimate(amounts: Floats, lengths: NDArray[np.int64]) -> Estimate:
    """An amount per step, Σ amounts / Σ lengths, with Student's interval over episodes (the delta method).

    Args:
        amounts: (n,) amount of each episode.
        lengths: (n,) steps of each episode.
    """
    n, steps = len(lengths), float(np.sum(lengths))
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan)
    ratio = float(np.sum(amounts)) / steps
    if n == 1:
        return Estimate(ratio, math.nan, math.nan)
    residuals = np.asarray(amounts) - ratio * np.asarray(lengths)
    error = math.sqrt(n / (n - 1) * float(np.square(residuals).sum())) / steps
    half = float(student.ppf(0.5 + LEVEL / 2.0, n - 1)) * error
    return Estimate(ratio, ratio - half, ratio + half)


def event_rate(happened: NDArray[np.bool_], lengths: NDArray[np.int64]) -> Estimate:
    """Episodes of a kind per step of all episodes, with an interval that is informative even if there are none.

    Args:
        happened: (n,) whether an episode is of that kind.
        lengths: (n,) steps of each episode.
    """
    happened = np.asarray(happened)
    found = ratio_estimate(happened.astype(np.float64), lengths)
    count = int(happened.sum())
    if 0 < count < len(happened) or len(happened) < 2:
        return Estimate(found.value, max(found.low, 0.0), found.high)
    share, length = wilson_estimate(count, len(happened)), float(np.mean(lengths))
    return Estimate(found.value, min(share.low / length, found.low), max(share.high / length, found.high))


def usual_reward(rewards: Floats) -> float | None:
    """The reward of more than half of all steps; None if no reward is that common.

    Args:
        rewards: (steps,).
    """
    values, counts = np.unique(rewards, return_counts=True)
    if len(values) == 0 or 2 * counts.max() <= len(rewards):
        return None
    return float(values[counts.argmax()])


def successes(
    usual: float, best_rewards: Floats, last_rewards: Floats, terminated: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which episodes met something better than going on as usual.

    Args:
        usual: The usual reward.
        best_rewards: (n,) largest reward of each episode.
        last_rewards: (n,) reward of each episode's last step.
        terminated: (n,) whether it ended by itself.

    Returns:
        (n,) whether a reward above the usual one was seen, or the usual one is negative and the episode ended by
        itself with a reward that is not below it.
    """
    spared = np.asarray(terminated) & (np.asarray(last_rewards) >= usual) & (usual < 0.0)
    return np.asarray((np.asarray(best_rewards) > usual) | spared)


def steps_to_success(success: Estimate, lengths: NDArray[np.int64]) -> Estimate:
    """Mean number of steps up to the end of the first episode that succeeds: E[length] / p.

    This is Wald's identity: the number of episodes up to that one has the mean 1/p, and whether to continue
    depends only on the episodes already played. The interval is that of the rate p; the mean length counts as
    known. If no episode succeeded, the value and its upper end are infinite: only the lower end is known.

    Args:
        success: p, the share of episodes that succeed.
        lengths: (n,) steps of each episode.
    """
    length = float(np.mean(lengths)) if len(lengths) else math.nan
    value, high, low = (length / rate if rate != 0.0 else math.inf for rate in success)
    return Estimate(value, low, high)
