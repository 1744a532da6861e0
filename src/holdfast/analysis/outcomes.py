"""What random episodes amount to, in a way that is defined for every environment.

Rewards differ too much between environments for one measure to fit them all. So there are several, and each says
where it says nothing:

- An episode's **return**, everywhere.
- Its **success**, where there is a **usual reward**: one that more than half of all steps give with the shortest
  options. An episode succeeds if it met something better than going on as usual: a reward above the usual one, or,
  where the usual one is negative, an end that is not itself worse than usual, for it spares what would have come.

| environment | usual reward | succeeds |
|---|---|---|
| MountainCar | −1 | at the flag, which ends the episode |
| Acrobot | −1 | at the height, which gives 0 and ends the episode |
| grids | 0 | at a goal, +1; a hole, −1, is no success |
| the synchronous grid | −1 | at the goal, +100; holes and borders end the episode but are worse than usual |
| CartPole | +1 | never: nothing is better than going on, so success is not defined |
| LunarLander, Pendulum | none | not defined, rewards are dense |
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from holdfast.analysis.intervals import Estimate

__all__ = ["steps_to_success", "successes", "usual_reward"]

Floats = NDArray[np.float64]


def usual_reward(rewards: Floats) -> float | None:
    """The reward of more than half of all steps; None where no reward is that common.

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
        last_rewards: (n,) reward of its last step.
        terminated: (n,) whether it ended by itself.

    Returns:
        (n,) a reward above the usual one was seen; or the usual one is negative, and the episode ended by itself
        with a reward that is not below it.
    """
    spared = np.asarray(terminated) & (np.asarray(last_rewards) >= usual) & (usual < 0.0)
    return np.asarray((np.asarray(best_rewards) > usual) | spared)


def steps_to_success(success: Estimate, lengths: NDArray[np.int64]) -> Estimate:
    """Steps that are taken on average up to the end of the first episode that succeeds: E[length] / p.

    By Wald's identity, since the number of episodes up to that one has the mean 1/p and whether to go on depends
    on those that were played. The interval is that of the rate p; the mean length counts as known. Infinite where
    no episode succeeded, and so is the upper end then: only that it takes longer than the lower end is known.

    Args:
        success: p, the share of the episodes that succeed.
        lengths: (n,) steps of each episode.
    """
    length = float(np.mean(lengths)) if len(lengths) else math.nan
    value, high, low = (length / rate if rate != 0.0 else math.inf for rate in success)
    return Estimate(value, low, high)
