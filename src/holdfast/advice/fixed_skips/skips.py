"""What each fixed frame skip costs, for anyone who must ship a single frame skip.

Holding every action for k steps is the decision process (P_k, r_k, γ^k), with the optimal value V*_(k). It is not
the k-value V*_k of the paper, where only the first action is held for k steps. Nor can it be read off an agent's
heads, which mean the same: hold once for k steps, then do the best. If the model is known, the process is solved,
which gives the exact loss V* − V*_(k). If not, the loss is estimated from the holds in a replay.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from holdfast.advice.fixed_skips.fitted_q import (
    Averager,
    FittedQ,
    Samples,
    are_states,
    fitted_q_iteration,
    return_of_greedy,
)
from holdfast.advice.fixed_skips.held_tuples import episode_starts, held_tuples, longest_episode
from holdfast.advice.fixed_skips.run_replay import as_vectors, read_replay
from holdfast.core.array_types import Floats
from holdfast.core.checks import check_discount, check_integer
from holdfast.core.errors import InputError
from holdfast.core.history import discounts
from holdfast.deep.replay.ring import OptionReplayBuffer
from holdfast.envs.choices import Choices
from holdfast.mdp import NoConvergenceError, TabularMDP, persistent_mdp, q_star
from holdfast.runs.directory import RunFolder

__all__ = [
    "FEWEST_TUPLES",
    "ExactSkip",
    "RunSkips",
    "SkipEstimate",
    "bellman_residual",
    "estimate_run_skips",
    "estimate_skips",
    "exact_skips",
    "explore_run",
    "selection_index",
]


FEWEST_TUPLES = 100
"""Smallest number of samples of a skip; with fewer, nothing is said about it."""
MOST_TUPLES = 50_000
"""Largest number of samples of a skip that are used."""
HELD_OUT = 0.25
"""Share of the options that the values are not fitted to."""
_SWEEPS_WITHOUT_DISCOUNT = 20_000
_ALL_ALIKE = "all samples pay the same and none ends the episode: they say nothing about this skip"


# Exact -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExactSkip:
    """The cost of holding every action for k steps.

    Attributes:
        k: The frame skip.
        value: V*_(k), the optimal value of the k-persistent process at the start; None if it is infinite.
        loss: V* − V*_(k), at least 0; None if it is infinite.
        note: Why there is no value.
    """

    k: int
    value: float | None
    loss: float | None
    note: str | None = None


def exact_skips(mdp: TabularMDP, ks: Iterable[int]) -> list[ExactSkip]:
    """The loss of every fixed skip in ``ks``, averaged over the initial distribution.

    Args:
        mdp: The model, which must have an initial distribution.
        ks: Skips of at least 1.

    Raises:
        ValueError: The model has no initial distribution.
        NoConvergenceError: V* itself is infinite, which can happen with γ = 1.
    """
    skips = _checked_skips(ks)
    if mdp.initial is None:
        raise InputError("mdp must have an initial state or distribution, at which skips are compared")
    best = _start_value(mdp)
    found = []
    for k in skips:
        try:
            value = best if k == 1 else _start_value(persistent_mdp(mdp, k))
        except NoConvergenceError:
            note = f"without a discount, holding every action for {k} steps has no finite value"
            found.append(ExactSkip(k, None, None, note))
        else:
            # No skip is better than 1: anything below 0 is rounding.
            found.append(ExactSkip(k, value, max(best - value, 0.0)))
    return found


def _start_value(mdp: TabularMDP) -> float:
    limit = {} if mdp.gamma < 1.0 else {"max_iterations": _SWEEPS_WITHOUT_DISCOUNT}
    assert mdp.initial is not None
    return float(mdp.initial @ q_star(mdp, **limit).max(axis=1))


def _checked_skips(ks: Iterable[int]) -> list[int]:
    skips = [check_integer("a skip in ks", k) for k in ks]
    if not skips:
        raise InputError("ks must name at least one skip")
    return skips


# Estimated -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SkipEstimate:
    """A replay's estimate of holding every action for k steps.

    Attributes:
        k: The frame skip.
        tuples: Number of samples of it.
        value: Ĵ_k, the estimate of V*_(k) averaged over first observations; None with too few samples.
        loss: Its cost: the value of the smallest skip that has one, minus this value. A multiple of a skip is
            never truly better than the skip: a number below 0 is an error of the estimates. None if there is no
            value, if the value means nothing, or if this skip is not a multiple of the smallest.
        residual: L2 norm of the Bellman residual over samples that were not fitted.
        index: B_k, by which Metelli et al. rank the policies that could be fitted; None with γ = 1.
        note: What is missing, and why; or why the numbers mean nothing.
        undiscounted: Estimate of the undiscounted return of the same policy, over as many steps as the replay's
            longest episode has; None if unknown.
    """

    k: int
    tuples: int
    value: float | None = None
    loss: float | None = None
    residual: float | None = None
    index: float | None = None
    note: str | None = None
    undiscounted: float | None = None


def selection_index(start_value: float, differences: ArrayLike, weights: ArrayLike, gamma: float, k: int) -> float:
    """B_k = Ĵ_k − 1/(1−γ^k) · ‖Q̃_k − Q_k‖_{1,D}: an estimated lower bound on the value of Q_k's greedy policy.

    For every Q, the policy that is greedy for it has, in the k-persistent process, at least the value
    J − 1/(1−γ^k)·‖T*_k Q − Q‖_1, where J is the mean of max_a Q at the start and the norm is over the states that
    the policy visits. The index uses a regression Q̃_k of T*_k Q_k in place of the operator, and the data in place
    of the states that the policy visits: it is an estimate of that bound, not a bound itself. Source: the
    persistence selection of Metelli, Mazzolini, Bisi, Sabbioni and Restelli in *Control Frequency Adaptation via
    Action Persistence in Batch Reinforcement Learning* (ICML 2020).

    Args:
        start_value: Ĵ_k.
        differences: (N,) Q̃_k(s,a) − Q_k(s,a) at the samples.
        weights: (N,) weight of each sample.
        gamma: γ of one primitive step, below 1.
        k: The frame skip.
    """
    gamma_k = float(discounts(check_discount(gamma), check_integer("k", k))[k])
    if gamma_k >= 1.0:
        raise InputError("gamma must be below 1 for B_k, which divides by 1 − γ^k")
    return start_value - float(np.average(np.abs(differences), weights=np.asarray(weights))) / (1.0 - gamma_k)


def bellman_residual(values: ArrayLike, targets: ArrayLike, weights: ArrayLike) -> float:
    """(Σ w (y − Q)² / Σ w)^½ of targets y = r^k + γ^k·max_a' Q(s',a'), all (N,).

    If moves are random, it includes their variance, and is not 0 at the true Q.
    """
    return float(np.sqrt(np.average(np.square(np.subtract(targets, values)), weights=np.asarray(weights))))


class RunSkips(NamedTuple):
    """What a run's replay shows about fixed skips.

    Attributes:
        estimates: One per skip.
        gamma: Discount factor of one step, for all values.
        horizon: Number of steps of the longest episode, for the undiscounted returns.
    """

    estimates: list[SkipEstimate]
    gamma: float
    horizon: int


def explore_run(
    run: str | os.PathLike[str], ks: Iterable[int] | None = None, *, starts: Any = None, seed: int = 0
) -> RunSkips:
    """``estimate_run_skips``, with the discount factor and horizon of its numbers."""
    replay = read_replay(run)
    estimates = estimate_skips(replay, _skips_of(run, ks, replay), starts=starts, seed=seed)
    return RunSkips(estimates, float(replay.gamma), longest_episode(replay))


def estimate_run_skips(
    run: str | os.PathLike[str], ks: Iterable[int] | None = None, *, starts: Any = None, seed: int = 0
) -> list[SkipEstimate]:
    """``estimate_skips`` from the replay in a run's checkpoint.

    Args:
        run: Folder of a run of an agent with a network.
        ks: Skips (default: 1..K of the run).
        starts: See ``estimate_skips``.
        seed: See ``estimate_skips``.

    Raises:
        ValueError: There is no replay to read, its observations are not vectors, or no action was ever held.
    """
    return explore_run(run, ks, starts=starts, seed=seed).estimates


def _skips_of(run: str | os.PathLike[str], ks: Iterable[int] | None, replay: OptionReplayBuffer) -> list[int]:
    """The skips to study in a run."""
    k_max = RunFolder(run).read_config().k_max
    skips = None if ks is None else _checked_skips(ks)
    if k_max == 1 and skips != [1]:
        raise InputError("this run never held an action longer than one step; train with a larger k_max")
    return list(range(1, min(k_max, replay.buffer_size) + 1)) if skips is None else skips


def estimate_skips(
    replay: OptionReplayBuffer, ks: Iterable[int], *, starts: Any = None, seed: int = 0
) -> list[SkipEstimate]:
    """Estimate V*_(k) for every skip in ``ks``, by fitted Q-iteration on the holds of k steps in a replay.

    Args:
        replay: Replay of an agent that held actions.
        ks: Skips of at least 1.
        starts: First observations of episodes, as a batch of the replay's observation space (default: those in the
            replay).
        seed: Seed that selects the held-out options, and the samples to drop if there are too many.

    Raises:
        ValueError: Observations are not vectors, or none of them is the first of an episode.
    """
    skips, seed = _checked_skips(ks), check_integer("seed", seed, 0)
    space = replay.observation_space

    def vectors(rows: NDArray[np.int64]) -> Floats:
        return as_vectors(space, replay.store.get(rows))

    first = vectors(episode_starts(replay)) if starts is None else as_vectors(space, starts)
    if not len(first):
        raise InputError("the replay has no first observation of an episode: give some as starts")
    by_state = isinstance(space, spaces.Discrete) or are_states(vectors(held_tuples(replay, 1).rows))
    horizon = longest_episode(replay)
    rows = [
        _estimate(replay, k, vectors, first, by_state, horizon, np.random.default_rng((seed, k))) for k in skips
    ]
    return _with_losses(rows)


def _with_losses(rows: list[SkipEstimate]) -> list[SkipEstimate]:
    """The rows, each with its cost relative to the smallest skip that has a value."""
    telling = {row.k: row.value for row in rows if row.value is not None and row.note != _ALL_ALIKE}
    smallest = min(telling, default=1)
    return [
        replace(row, loss=telling[smallest] - telling[row.k])
        if row.k in telling and row.k % smallest == 0
        else row
        for row in rows
    ]


def _estimate(
    replay: OptionReplayBuffer,
    k: int,
    vectors: Any,
    starts: Floats,
    by_state: bool,
    horizon: int,
    rng: np.random.Generator,
) -> SkipEstimate:
    found = held_tuples(replay, k)
    count = len(found.rows)
    if count < FEWEST_TUPLES:
        note = f"{count} samples of holding for {k} steps are too few: {FEWEST_TUPLES} are needed"
        return SkipEstimate(k, count, note=note)
    if count > MOST_TUPLES:
        found = found.take(np.sort(rng.choice(count, MOST_TUPLES, replace=False)))
    samples = Samples(
        vectors(found.rows), found.actions, found.rewards, vectors(found.next_rows), found.dones, found.weights
    )
    options, number = np.unique(found.options, return_inverse=True)
    if len(options) < 2:
        return SkipEstimate(
            k, count, note=f"all samples of holding for {k} steps come from one option: two are needed"
        )
    # Windows of one option overlap, so options are held out as a whole.
    held_out = (rng.permutation(len(options)) < HELD_OUT * len(options))[number.ravel()]
    gamma_k = float(discounts(replay.gamma, k)[k])
    n_actions = Choices(replay.action_space).n
    fitted_to = np.flatnonzero(~held_out)
    averager = Averager(samples.take(fitted_to), n_actions, by_state)
    try:
        fitted = fitted_q_iteration(averager, gamma_k)
    except NoConvergenceError:
        return SkipEstimate(k, count, note="without a discount, the estimated values are infinite")
    value = float(fitted.v(starts).mean())
    total = return_of_greedy(fitted, averager, found.sums[fitted_to], starts, -(-horizon // k))
    undiscounted = total if math.isfinite(total) else None
    new = samples.take(np.flatnonzero(held_out))
    targets = new.rewards + np.where(new.dones, 0.0, gamma_k * fitted.v(new.next_observations))
    regressed = FittedQ(Averager(new, n_actions, by_state), targets)
    own, again = _at(fitted, new), _at(regressed, new)
    known = ~np.isnan(own)
    if not known.any():
        note = "too few samples to judge the estimate"
        return SkipEstimate(k, count, value, undiscounted=undiscounted, note=note)
    own, again, targets, weights = own[known], again[known], targets[known], new.weights[known]
    residual = bellman_residual(own, targets, weights)
    reason: str | None = None
    if not samples.dones.any() and np.ptp(samples.rewards) <= 1e-6 * np.abs(samples.rewards).max():
        reason = _ALL_ALIKE
    if gamma_k >= 1.0:
        return SkipEstimate(
            k,
            count,
            value,
            undiscounted=undiscounted,
            residual=residual,
            note=reason or "B_k needs a discount factor below 1",
        )
    index = selection_index(value, again - own, weights, replay.gamma, k)
    return SkipEstimate(k, count, value, undiscounted=undiscounted, residual=residual, index=index, note=reason)


def _at(fitted: FittedQ, samples: Samples) -> Floats:
    """Q(s,a) of each sample, (N,)."""
    return np.asarray(fitted.q(samples.observations)[np.arange(len(samples.actions)), samples.actions])
