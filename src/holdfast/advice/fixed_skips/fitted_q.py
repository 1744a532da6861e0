"""Fitted Q-iteration: the optimal values of a decision process that is known only from samples.

Q ← regression of r + γ·max_a' Q(s', a') on (s, a), repeatedly (Ernst, Geurts and Wehenkel, 2005). The regression
averages: Q(s, a) is a mean of targets. If observations repeat, these are the targets of a's samples that began in
s; else they are those of the D + 2 samples that began nearest to s, with more weight on the nearer (D numbers in
an observation). Such means never lie outside their targets and are no farther apart than the targets, so the
iteration is a contraction with one fixed point for any samples (Gordon, 1995; Ormoneit and Sen, 2002). Regressions
that extrapolate, such as least squares on Gaussians, can be more accurate but need not converge. No random numbers
and no training are needed; the price is that averages blur, more so the farther the neighbours are.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from holdfast.core.array_types import Floats, Integers
from holdfast.mdp import fixed_point

__all__ = ["Averager", "FittedQ", "Means", "Samples", "are_states", "fitted_q_iteration", "return_of_greedy"]

Bools = NDArray[np.bool_]

_MOST_STATES = 2_000
_VISITS = 3
_TOLERANCE = 1e-3


class Samples(NamedTuple):
    """N transitions, with observations as vectors.

    Attributes:
        observations: (N, D).
        actions: (N,) numbers from 0.
        rewards: (N,).
        next_observations: (N, D).
        dones: (N,) whether the next state is terminal.
        weights: (N,) weight of each transition.
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
    """Whether observations (N, D) repeat so often that each distinct one can be treated as a state."""
    distinct = len(np.unique(observations, axis=0))
    return distinct <= min(_MOST_STATES, len(observations) // _VISITS)


class Means(NamedTuple):
    """Weighted means of the targets of N samples, for each of A actions at M observations.

    Attributes:
        matrices: For each action (U, N), one row for each of U distinct observations; empty rows have no mean.
        places: (M,) the row that belongs to each observation.
    """

    matrices: list[sp.csr_array]
    places: Integers

    def of(self, targets: Floats) -> Floats:
        """Means of targets (N,), (M, A); NaN where an action has no samples to average."""
        columns = [np.where(np.diff(one.indptr) > 0, one @ targets, np.nan) for one in self.matrices]
        return np.asarray(np.stack(columns, axis=1)[self.places])


class Averager:
    """A regression on (s, a) that returns weighted means of the samples' targets.

    Args:
        samples: The samples to average.
        n_actions: A.
        by_state: Whether to average only samples that began in exactly the same observation.
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
        """The means of the targets at M observations, (M, D)."""
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
        # Triangular weights that reach 0 just beyond the farthest neighbour.
        reach = 1.001 * distances[:, -1:] + 1e-12
        weights = (1.0 - distances / reach) * self.samples.weights[rows][nearest]
        weights /= weights.sum(axis=1, keepdims=True)
        starts = np.arange(len(places) + 1) * count
        return sp.csr_array((weights.ravel(), rows[nearest].ravel(), starts), shape=shape)


class FittedQ:
    """Action values as means of targets.

    Args:
        averager: The regression, with its samples.
        targets: (N,) one target per sample.
    """

    def __init__(self, averager: Averager, targets: Floats) -> None:
        self._averager = averager
        self.targets = targets

    def q(self, observations: Floats) -> Floats:
        """Q(s,a) at observations (M, D), (M, A); NaN where an action was never tried."""
        return self._averager.means(observations).of(self.targets)

    def v(self, observations: Floats) -> Floats:
        """max_a Q(s,a) over the actions that were tried, (M,); see ``fitted_q_iteration`` if none was."""
        return _v(self.q(observations), self.targets)


def fitted_q_iteration(
    averager: Averager, gamma: float, max_iterations: int = 10_000, tolerance: float | None = None
) -> FittedQ:
    """The fixed point of Q = regression of r + γ·max_a' Q(s', a'), over actions that were tried in s'.

    If no action was tried in s', its value is the lowest target of all samples.

    Args:
        averager: The regression, with its samples.
        gamma: Discount factor from s to s'.
        max_iterations: Largest number of iterations.
        tolerance: Distance to the fixed point (default: a thousandth of the largest reward).

    Raises:
        NoConvergenceError: The limit was reached first, which can happen with γ = 1.
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
    """The undiscounted return of the policy that is greedy for fitted values, averaged over first observations.

    Args:
        fitted: The values.
        averager: The regression, with the same samples.
        sums: (N,) undiscounted reward of each sample.
        starts: (M, D) first observations.
        decisions: Number of decisions in an episode.
    """
    samples = averager.samples
    means = averager.means(samples.next_observations)
    places, chosen = np.arange(len(sums)), _greedy(means.of(fitted.targets))
    ahead = np.zeros(len(sums))
    for _ in range(max(decisions - 1, 0)):
        following = means.of(sums + ahead)[places, chosen]
        # If no action was ever tried there, nothing is known about what follows.
        ahead = np.where(samples.dones | np.isnan(following), 0.0, following)
    at_start = averager.means(starts)
    found = at_start.of(sums + ahead)[np.arange(len(starts)), _greedy(at_start.of(fitted.targets))]
    return float(np.nanmean(found)) if np.isfinite(found).any() else math.nan


def _greedy(q: Floats) -> Integers:
    return np.asarray(np.where(np.isnan(q), -np.inf, q).argmax(axis=1))


def _v(q: Floats, targets: Floats) -> Floats:
    best = np.where(np.isnan(q), -np.inf, q).max(axis=1)
    return np.asarray(np.where(np.isneginf(best), targets.min(initial=np.inf), best))
