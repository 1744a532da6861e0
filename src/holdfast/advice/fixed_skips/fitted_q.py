"""Fitted Q-iteration: the optimal values of a decision process of which only samples are known.

Q ← regression of r + γ·max_a' Q(s', a') on (s, a), again and again (Ernst, Geurts and Wehenkel, 2005). The
regression is one that averages: Q(s, a) is a mean of targets, of those samples of a that began in s where
observations repeat, and else of the D + 2 that began nearest to s, the nearer the more (D numbers in an
observation). Such means never lie outside their targets and are no farther apart than these, so that the
iteration is a contraction with one fixed point, whatever the samples (Gordon, 1995; Ormoneit and Sen, 2002).
Regressions that extrapolate, such as least squares on Gaussians, can be more accurate and need not converge. No
random numbers and no training are needed; the price is that averages blur, the more the farther neighbours are.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from holdfast.mdp import fixed_point

__all__ = ["Averager", "FittedQ", "Means", "Samples", "are_states", "fitted_q_iteration", "return_of_greedy"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

_MOST_STATES = 2_000
_VISITS = 3
_TOLERANCE = 1e-3


class Samples(NamedTuple):
    """N transitions, with their observations as vectors.

    Attributes:
        observations: (N, D).
        actions: (N,) numbers from 0.
        rewards: (N,).
        next_observations: (N, D).
        dones: (N,) whether the next state is terminal.
        weights: (N,) how much each counts.
    """

    observations: Floats
    actions: Integers
    rewards: Floats
    next_observations: Floats
    dones: Bools
    weights: Floats

    def take(self, places: Integers) -> Samples:
        """The samples at ``places``."""
        parts: Any = self
        return Samples(*(part[places] for part in parts))


def are_states(observations: Floats) -> bool:
    """Whether observations (N, D) repeat so often that each different one is to be a state of its own."""
    distinct = len(np.unique(observations, axis=0))
    return distinct <= min(_MOST_STATES, len(observations) // _VISITS)


class Means(NamedTuple):
    """Weighted means of the targets of N samples, for each of A actions at M observations.

    Attributes:
        matrices: For each action (U, N), a row for each of U different observations; empty rows have no mean.
        places: (M,) which of these rows belongs to an observation.
    """

    matrices: list[sp.csr_array]
    places: Integers

    def of(self, targets: Floats) -> Floats:
        """Means of targets (N,), (M, A); NaN where an action has no samples to average."""
        columns = [np.where(np.diff(one.indptr) > 0, one @ targets, np.nan) for one in self.matrices]
        return np.asarray(np.stack(columns, axis=1)[self.places])


class Averager:
    """A regression on (s, a) whose answers are weighted means of the samples' targets.

    Args:
        samples: What it averages.
        n_actions: A.
        by_state: Whether only samples that began in the very same observation are averaged.
    """

    def __init__(self, samples: Samples, n_actions: int, by_state: bool) -> None:
        self.samples = samples
        self._by_state = by_state
        spread = samples.observations.std(axis=0)
        self._scale = np.where(spread > 1e-9, spread, 1.0)
        self._rows = [np.flatnonzero(samples.actions == action) for action in range(n_actions)]
        self._places = [samples.observations[rows] / self._scale for rows in self._rows]
        self._trees = [None if by_state or not len(rows) else KDTree(places) for rows, places in self._parts()]

    def _parts(self) -> list[tuple[Integers, Floats]]:
        return list(zip(self._rows, self._places, strict=True))

    def means(self, observations: Floats) -> Means:
        """How means of the targets are made at M observations, (M, D)."""
        places = observations / self._scale
        if not self._by_state:
            near = [self._near(places, rows, tree) for rows, tree in zip(self._rows, self._trees, strict=True)]
            return Means(near, np.arange(len(places)))
        distinct, number = np.unique(places + 0.0, axis=0, return_inverse=True)
        return Means([self._same(distinct, rows, own) for rows, own in self._parts()], number.ravel())

    def _same(self, places: Floats, rows: Integers, own: Floats) -> sp.csr_array:
        numbers = {place.tobytes(): number for number, place in enumerate(places)}
        begun = np.array([numbers.get(place.tobytes(), -1) for place in own + 0.0], dtype=np.int64)
        rows, begun = rows[begun >= 0], begun[begun >= 0]
        weights = self.samples.weights[rows]
        shares = weights / np.bincount(begun, weights, len(places))[begun]
        return sp.csr_array((shares, (begun, rows)), shape=(len(places), len(self.samples.actions)))

    def _near(self, places: Floats, rows: Integers, tree: KDTree | None) -> sp.csr_array:
        shape = (len(places), len(self.samples.actions))
        if tree is None or not len(places):
            return sp.csr_array(shape)
        count = min(places.shape[1] + 2, len(rows))
        found, nearest = tree.query(places, np.arange(1, count + 1))
        distances = np.asarray(found)
        # A triangle that ends just behind the farthest of them.
        reach = 1.001 * distances[:, -1:] + 1e-12
        weights = (1.0 - distances / reach) * self.samples.weights[rows][nearest]
        weights /= weights.sum(axis=1, keepdims=True)
        starts = np.arange(len(places) + 1) * count
        return sp.csr_array((weights.ravel(), rows[nearest].ravel(), starts), shape=shape)


class FittedQ:
    """Action values as means of targets.

    Args:
        averager: Of the samples.
        targets: (N,) one for each of them.
    """

    def __init__(self, averager: Averager, targets: Floats) -> None:
        self._averager = averager
        self.targets = targets

    def q(self, observations: Floats) -> Floats:
        """Q(s,a) at observations (M, D), (M, A); NaN where an action was never tried."""
        return self._averager.means(observations).of(self.targets)

    def v(self, observations: Floats) -> Floats:
        """max_a Q(s,a) over the actions that were tried, (M,); see ``fitted_q_iteration`` where none was."""
        return _v(self.q(observations), self.targets)


def fitted_q_iteration(
    averager: Averager, gamma: float, max_iterations: int = 10_000, tolerance: float | None = None
) -> FittedQ:
    """The fixed point of Q = regression of r + γ·max_a' Q(s', a'), over actions that were tried in s'.

    An s' in which none was is worth as little as the worst of all samples.

    Args:
        averager: The regression, with its samples.
        gamma: Discount factor from s to s'.
        max_iterations: Limit.
        tolerance: How near to the fixed point; None for a thousandth of the largest reward.

    Raises:
        NoConvergenceError: The limit was reached first, as it may be with γ = 1.
    """
    samples = averager.samples
    means = averager.means(samples.next_observations)
    counts = np.where(samples.dones, 0.0, gamma)

    def sweep(values: ArrayLike) -> Floats:
        targets = np.asarray(values, dtype=np.float64)
        return np.asarray(samples.rewards + counts * _v(means.of(targets), targets))

    if tolerance is None:
        tolerance = _TOLERANCE * max(float(np.abs(samples.rewards).max(initial=0.0)), 1e-9)
    start = np.zeros(len(samples.rewards))
    found = fixed_point(sweep, start, modulus=gamma, tolerance=tolerance, max_iterations=max_iterations)
    return FittedQ(averager, found.value)


def return_of_greedy(fitted: FittedQ, averager: Averager, sums: Floats, starts: Floats, decisions: int) -> float:
    """The undiscounted return of the policy that is greedy for fitted values, mean over first observations.

    Args:
        fitted: The values.
        averager: Of the same samples.
        sums: (N,) undiscounted reward of each sample.
        starts: (M, D) first observations.
        decisions: After how many the episode is over.
    """
    samples = averager.samples
    means = averager.means(samples.next_observations)
    places, chosen = np.arange(len(sums)), _greedy(means.of(fitted.targets))
    ahead = np.zeros(len(sums))
    for _ in range(max(decisions - 1, 0)):
        following = means.of(sums + ahead)[places, chosen]
        # Where no action was ever tried, nothing is known of what follows.
        ahead = np.where(samples.dones | np.isnan(following), 0.0, following)
    at_start = averager.means(starts)
    found = at_start.of(sums + ahead)[np.arange(len(starts)), _greedy(at_start.of(fitted.targets))]
    return float(np.nanmean(found)) if np.isfinite(found).any() else math.nan


def _greedy(q: Floats) -> Integers:
    return np.asarray(np.where(np.isnan(q), -np.inf, q).argmax(axis=1))


def _v(q: Floats, targets: Floats) -> Floats:
    best = np.where(np.isnan(q), -np.inf, q).max(axis=1)
    return np.asarray(np.where(np.isneginf(best), targets.min(initial=np.inf), best))
